"""What only this file catches: an import that holds files in memory, or leaves half of one behind."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.codec import CodecError
from stepfold.adapters.recording import format as recording_format
from stepfold.adapters.recording import parse_recording, read_recording
from stepfold.adapters.transcripts import histories, spool
from stepfold.adapters.transcripts.importing import OPEN, Conversation, conversations, write_recording
from stepfold.adapters.transcripts.reading import transcript
from stepfold.effects.ports import Start
from stepfold.engine.messages import Message, Origin, Role, Text
from tests.transcripts.test_formats import (
    SESSION,
    answer,
    claude,
    imported,
    items,
    results,
    text,
    use,
    written,
)

WORDS = 4_000  # characters of each result


def long(path: Path, turns: int, *first: dict[str, Any]) -> int:
    """Write a session of *turns* to *path*; return how many characters its results have."""
    with path.open("w") as file:
        for record in (*first, claude("user", "please look")):
            file.write(json.dumps({**record, "uuid": ""}) + "\n")
        for turn in range(turns):
            result = [{**each, "content": f"{turn}" + "x" * WORDS} for each in results(f"t{turn}")]
            for record in (answer([use(f"t{turn}", path="a")], f"m{turn}"), claude("user", result)):
                file.write(json.dumps({**record, "uuid": ""}) + "\n")
    return turns * WORDS


def peak(work: Callable[[], object]) -> int:
    """Return the most bytes that *work* holds at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def taken(path: Path, to: Path) -> list[Conversation]:
    with transcript(path) as found:
        parts = conversations(found.items)
    for part in parts:
        with to.open("w+b") as file:
            write_recording(part, file)
    return parts


INTERRUPTED = claude("user", text("[Request interrupted by user]"))


def test_a_history_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY_BYTES", 1)
    path, to = tmp_path / "a.jsonl", tmp_path / "out"
    long(path, 100, INTERRUPTED)
    few = peak(lambda: taken(path, to))
    more = long(path, 1_600, INTERRUPTED)
    many = peak(lambda: taken(path, to))
    recording = read_recording(to)
    assert 1 + 2 * 1_600 == len(recording.begun.messages)
    assert more < to.stat().st_size
    assert many - few < more // 20


def test_of_a_run_only_the_engines_own_history_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY_BYTES", 1)
    path, to = tmp_path / "a.jsonl", tmp_path / "out"
    long(path, 100)
    few = peak(lambda: taken(path, to))
    more = long(path, 1_100) - 100 * WORDS
    many = peak(lambda: taken(path, to))
    assert 1 + 3 * 1_100 == len(read_recording(to).events)
    assert many - few < 2 * more


def test_what_waits_on_disk_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = written(tmp_path, SESSION)
    (small,) = conversations(items(path))
    monkeypatch.setattr(spool, "IN_MEMORY_BYTES", 1)
    (large,) = conversations(items(path))
    assert [*small.messages] == [*large.messages] == [large.messages[at] for at in range(4)]
    assert large.messages[-1] == large.messages[3:][0]
    assert imported(small)[1] == imported(large)[1]


@pytest.mark.parametrize("count", [1, 31, 32, 33, 65])
def test_a_history_in_pieces_is_the_header_that_it_would_be(count: int) -> None:
    messages = tuple(Message(Role.USER, (Text(f"é {at} ]}}\n"),), Origin.PROMPT) for at in range(count))
    begun = Start(OPEN, messages)
    told = b"".join(histories.history_line(Start(OPEN), messages))
    whole = recording_format.header_line(begun, keeps=("outcomes",))
    assert json.loads(whole) == json.loads(told)
    assert 1 == told.count(b"\n")
    recording = parse_recording(told, "it")
    assert recording is not None
    assert messages == recording.begun.messages


def test_a_line_that_no_recording_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(histories, "MOST_BYTES", 2_000)
    side = [
        claude("user", "sub", isSidechain=True, agentId="ag1"),
        answer(text("y" * 3_000), "m9", isSidechain=True),
    ]
    path = written(
        tmp_path, [*SESSION, {**side[0]}, {**side[1], "agentId": "ag1"}, {**INTERRUPTED, **_aside()}]
    )
    (_, other) = conversations(items(path))
    with pytest.raises(CodecError, match="more than 2,000 bytes"):
        write_recording(other, io.BytesIO())
    assert 2 == main(["import", str(path), "--out", str(tmp_path / "out")])
    err = capsys.readouterr().err
    assert err.startswith(f"stepfold: {path}: it makes a line of more than 2,000 bytes")
    assert 1 == err.count("\n")
    assert [] == list((tmp_path / "out").iterdir())


def _aside() -> dict[str, Any]:
    return {"isSidechain": True, "agentId": "ag1"}


def two(folder: Path) -> Path:
    """A file with two conversations."""
    side = [
        {**record, "isSidechain": True, "agentId": "ag", "uuid": f"x{at}"}
        for at, record in enumerate(SESSION)
    ]
    return written(folder, [*SESSION, *side])


def test_all_parts_of_a_file_are_written_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = two(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "a.2.recording.jsonl").write_text("mine")
    assert 2 == main(["import", str(path), "--out", str(out)])
    assert "a.2.recording.jsonl: it exists already" in capsys.readouterr().err
    assert ["a.2.recording.jsonl"] == [each.name for each in out.iterdir()]
    assert "mine" == (out / "a.2.recording.jsonl").read_text()
    (out / "a.2.recording.jsonl").unlink()
    assert 0 == main(["import", str(path), "--out", str(out)])
    assert ["a.2.recording.jsonl", "a.recording.jsonl"] == sorted(each.name for each in out.iterdir())


def test_files_of_one_name_get_recordings_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.json", "a.jsonl", "b.traj.json"):
        records = [{"role": "user", "content": name}]
        written(tmp_path / "in", records, name)
    assert 0 == main(["import", str(tmp_path / "in"), "--out", str(tmp_path / "out")])
    prompts = {
        path.name: read_recording(path).events[0].prompt[0].text  # type: ignore[union-attr]
        for path in (tmp_path / "out").iterdir()
    }
    assert {
        "a.recording.jsonl": "a.json",
        "a.jsonl.recording.jsonl": "a.jsonl",
        "b.traj.recording.jsonl": "b.traj.json",
    } == prompts
    assert 2 == main(["import", str(tmp_path / "in" / "a.json"), "--out", str(tmp_path / "out")])
    twice = [str(tmp_path / "in" / "a.json")] * 2
    assert 2 == main(["import", *twice, "--out", str(tmp_path / "again")])
    assert ["a.recording.jsonl"] == [path.name for path in (tmp_path / "again").iterdir()]


@pytest.mark.parametrize("at", [1, 2])
def test_a_disk_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], at: int
) -> None:
    """Whichever of the two is put in its place when it does."""
    path, out, left = two(tmp_path), tmp_path / "out", [at]
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        left[0] -= 1
        if not left[0]:
            raise OSError(28, os.strerror(28), str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    assert 2 == main(["import", str(path), "--out", str(out)])
    err = capsys.readouterr().err
    assert f"recording.jsonl: {os.strerror(28)}" in err
    assert 1 == err.count("\n")
    assert [] == list(out.iterdir())


def test_a_spool_that_cannot_grow_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(self: spool.Spool, message: Message) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(spool.Spool, "add", full)
    path = written(tmp_path, SESSION)
    assert 2 == main(["import", str(path), "--out", str(tmp_path / "out")])
    assert f"stepfold: {path}: {os.strerror(28)}\n" == capsys.readouterr().err
    assert not (tmp_path / "out").exists()
