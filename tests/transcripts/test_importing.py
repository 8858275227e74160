"""A transcript becomes recordings: what is kept meanwhile, and what is left where it cannot be."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from stepfold.adapters.cli import main
from tests.transcripts.test_formats import SESSION, written


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
