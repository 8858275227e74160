"""What only this file catches: a live run that keeps less, or more, than it was told to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepfold.adapters.recording import read_deltas, read_recording
from tests.adapters.anthropic_api.loopback import Loopback, Reply
from tests.adapters.anthropic_api.sessions.playing import call, calling, saying
from tests.cli.process import Ended, ran, scripted, stepfold, told, with_key

KEY = "sk-ant-" + "a1B2c3D4" * 4
READ = call("t1", "read", {"file_path": "a.txt"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text(f"the key is {KEY}")
    return tmp_path


def run(folder: Path, replies: tuple[Reply, ...], *arguments: str, **more: str) -> Ended:
    async def work() -> Ended:
        async with Loopback(scripted(*replies)) as api:
            ended = await stepfold(folder, "run", *arguments, env={**with_key(api.url), **more})
            assert api.refused == []
            return ended

    return ran(work())


def test_a_live_run_is_kept_replayed_shown_forked_and_gone_on_with(folder: Path) -> None:
    replies = (calling(READ), saying(f"It is {KEY}."))
    kept = ("--record", "r.jsonl", "--deltas", "--redact")
    ended = run(folder, replies, f"find {KEY}", "--model", "m", "--tools", "work", *kept)

    assert 0 == ended.code
    assert KEY in ended.out
    assert KEY not in (folder / "r.jsonl").read_text()
    recording, deltas = read_deltas(folder / "r.jsonl")
    assert deltas
    assert ("deltas", "outcomes", "redacted") == recording.header.keeps

    for words in (["replay"], ["lint"], ["show"], ["show", "--screen"], ["show", "--at", "3"]):
        again = told(folder, words[0], "r.jsonl", *words[1:])
        assert (0, "") == (again.code, again.err), words
        assert KEY not in again.out
    assert "same: " in told(folder, "replay", "r.jsonl").out

    assert 0 == told(folder, "fork", "r.jsonl", "--at", "5", "--record", "f.jsonl").code
    ended = run(folder, (saying(f"Something else: {KEY}."),), "--resume", "f.jsonl", "--tools", "work")
    assert 0 == ended.code
    parted = told(folder, "diff", "r.jsonl", "f.jsonl")
    assert 1 == parted.code
    assert "1 to 5 and 1 to 5 the same" in parted.out
    assert "Something else: [key]**" in parted.out
    assert KEY not in (folder / "f.jsonl").read_text()
    assert "same: " in told(folder, "replay", "f.jsonl").out


def test_a_session_is_begun_and_gone_on_with_by_its_name(folder: Path) -> None:
    place = {"STEPFOLD_SESSIONS": str(folder / "kept.db")}
    session = ("--session", "mine", "--tools", "work")
    first = run(folder, (saying("One."),), "first", "--model", "m", *session, **place)
    second = run(folder, (saying("Two."),), "second", *session, **place)

    assert (0, 0) == (first.code, second.code)
    listed = told(folder, "sessions", "list", "--json", env=place)
    (one,) = (json.loads(line) for line in listed.out.splitlines())
    assert ("mine", 2, "completed", "first") == (one["name"], one["runs"], one["end"], one["prompt"])
    assert 0 == told(folder, "sessions", "export", "mine", "--record", "mine.jsonl", env=place).code
    said = [block.text for event in read_recording(folder / "mine.jsonl").events if (block := _text(event))]
    assert ["One.", "Two."] == said
    other = run(folder, (), "third", "--model", "other", *session, **place)
    assert 2 == other.code
    assert "--model: session 'mine' is there already, and keeps its model" in other.err
    lost = run(folder, (), "--session", "new", "--tools", "work", **place)
    assert 2 == lost.code
    assert "Traceback" not in lost.err


def _text(event: object) -> object:
    block = getattr(event, "block", None)
    return block if hasattr(block, "text") else None


@pytest.mark.parametrize("words", [["--deltas"], ["--redact"]])
def test_what_is_kept_nowhere_cannot_be_wanted(folder: Path, words: list[str]) -> None:
    ended = told(folder, "run", "x", *words)
    assert 2 == ended.code
    assert "--deltas and --redact go with --record or --resume" in ended.err
