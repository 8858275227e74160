"""A transcript becomes recordings: what is kept meanwhile, and what is left where it cannot be."""

from __future__ import annotations

import gzip
import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.recording import writing
from stepfold.adapters.transcripts.importing import conversations, imported
from tests.transcripts.test_formats import SESSION, answer, claude, items, text, use, written


def told(id: str, words: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": words}


def test_an_import_keeps_little_more_than_the_messages(tmp_path: Path) -> None:
    """Lines of the recording are written as they are made: neither they nor the steps are kept."""
    records = list(SESSION[:1])
    for number in range(300):
        records += [
            answer([use(f"t{number}", path="a")], f"m{number}"),
            claude("user", [told(f"t{number}", "x" * 20_000 + str(number))]),
        ]
    records.append(answer(text("done"), "last"))
    (one,) = conversations(items(written(tmp_path, records)))
    tracemalloc.start()
    with (tmp_path / "new").open("w+b") as file:
        done = imported(one, file)
        size = file.tell()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ("", 903) == (done.why, done.events)
    assert size > 6_000_000
    assert most < size / 4


def test_a_history_that_no_line_holds_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(writing, "MOST_BYTES", 2_000)
    records = [*SESSION, {**claude("user", "x" * 3_000), "uuid": "more"}, answer(text("y"), "m8")]
    path = written(tmp_path, records)
    assert 2 == main(["import", str(path), "--out", str(tmp_path / "new")])
    [line] = capsys.readouterr().err.splitlines()
    assert f"{path}: as a history" in line
    assert "lines of up to 2,000" in line
    assert [] == list((tmp_path / "new").iterdir())


@pytest.mark.parametrize("command", [["lint"], ["import", "--out", "new"]])
def test_a_gzip_file_damaged_anywhere_is_one_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = gzip.compress("".join(json.dumps(record) + "\n" for record in SESSION).encode(), mtime=0)
    broken = 0
    for place in range(0, len(whole), 7):
        for name, content in (
            ("cut", whole[:place]),
            ("bad", whole[:place] + b"\xff\xff" + whole[place + 2 :]),
        ):
            Path("a.jsonl.gz").write_bytes(content)
            shutil.rmtree("new", ignore_errors=True)
            code = main([command[0], "a.jsonl.gz", *command[1:]])
            told = capsys.readouterr()
            broken += code == 2
            assert (code == 2) is (len(told.err.splitlines()) == 1), (name, place, told.err)
            assert code in (0, 1, 2)
            assert code != 2 or not list(Path().glob("new/*"))
    assert broken > 20


def test_a_folder_without_transcripts_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, SESSION)
    (tmp_path / "empty").mkdir()
    assert 2 == main(["import", "a.jsonl", "empty"])
    assert capsys.readouterr().err.startswith("stepfold: empty: there is no transcript in it")
    assert not (tmp_path / "imported").exists()
