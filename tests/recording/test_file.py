"""What only this file catches: an old file that is not read, a newer one that is, what is no recording."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.codec import CodecError
from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.recording import RecordingError, read_deltas, read_recording, reading, writing
from stepfold.adapters.replay.folding import fold_recording
from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.adapters.tools import tool
from stepfold.effects import run_sync
from tests.recording.test_outcomes import kept, lines


def rewritten(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    whole = lines(path)
    change(whole)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in whole))
    return path


# ---------------------------------------------------------------------- versions


def test_a_schema_1_is_read_and_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    kept(path)

    def older(whole: list[dict[str, Any]]) -> None:
        whole[0] = {"stepfold": 1, "schema": 1, **{key: whole[0][key] for key in ("config", "tools")}}
        whole[1:] = [{"n": line["n"], "event": line["event"]} for line in whole[1:]]

    recording = read_recording(rewritten(path, older))
    assert (1, "", "", ()) == (
        recording.header.schema,
        recording.header.version,
        recording.header.config_hash,
        recording.header.keeps,
    )
    folded = fold_recording(path)
    assert folded.ok
    assert 0 == folded.compared
    log = JsonlLog(path)
    assert "more" == run_sync("on", model=ScriptedModel(["more"]), log=log, tools=[read]).output
    asyncio.run(log.close())
    assert fold_recording(path).ok


def test_a_newer_one_is_refused_with_both_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    kept(path)
    rewritten(path, lambda whole: whole[0].update(schema=3, version="9.9.9"))
    assert 2 == main(["replay", str(path)])
    err = capsys.readouterr().err
    assert "schema 3 is not known here; wanted format 1 and a schema from 1 to 2" in err
    assert "(it was written by stepfold 9.9.9, this is 0.1.0)" in err


@tool(read_only=True)
def read(path: str) -> str:
    """Read."""
    return path


# -------------------------------------------------------------------------- gzip


def test_a_packed_one_is_read_and_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    kept(path)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_recording(path).events == read_recording(packed).events
    for words in (["replay"], ["show"], ["lint"]):
        assert 0 == main([*words, str(packed)])
    before = packed.read_bytes()
    with pytest.raises(RecordingError, match="it is packed; unpack it to go on with it"):
        JsonlLog(packed)
    assert before == packed.read_bytes()
    for damaged in (
        before[:-20],
        before[:-4],
        before[:12],
        before + b"more",
        before[:40] + b"!" + before[41:],
    ):
        capsys.readouterr()
        packed.write_bytes(damaged)
        assert 2 == main(["replay", str(packed)])
        assert "it cannot be read: " in capsys.readouterr().err


# ------------------------------------------------------------------------ deltas


def test_pieces_of_streams_are_kept_where_they_came(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    header, *rest = kept(path, deltas=True)
    assert "deltas" in header["keeps"]
    recording, deltas = read_deltas(path)
    assert read_recording(path).events == recording.events
    assert deltas
    for one in deltas:
        assert "block_completed" == rest[_line_of(rest, one.before)]["event"]["$type"]
    text = "".join(each.delta["text"] for each in deltas if each.delta["$type"] == "text_delta")
    assert "done" == text
    assert fold_recording(path).ok


def _line_of(rest: list[dict[str, Any]], number: int) -> int:
    return next(at for at, line in enumerate(rest) if line.get("n") == number)


def test_a_log_that_keeps_none_is_told_of_none(tmp_path: Path) -> None:
    kept(tmp_path / "a.jsonl")
    assert [] == read_deltas(tmp_path / "a.jsonl")[1]


# ---------------------------------------------------------------------- bad input


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 10)


def nested(path: Path) -> None:
    deep = b'{"n":2,"event":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:2], deep, *whole[2:]]))


def surrogate(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"text":"done"', b'"text":"do\\ud800ne"'))


def wrong_type(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"text":"done"', b'"text":7'))


def infinite(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n":3', b'"n":Infinity'))


def huge(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n":3', b'"n":' + b"9" * 5_000))


def carriage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))


def mark(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def odd_key(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n":3,', b'"n":3,"colour":1,'))


def odd_keeps(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"keeps":["outcomes"]', b'"keeps":["all"]'))


def odd_delta(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"d":99,"effect_id":1,"at_ms":0,"delta":{}}\n')


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (cut, "line 1: its header is torn"),
        (binary, "line 1: it is no recording"),
        (nested, "line 3: it is damaged (not JSON: "),
        (surrogate, ": it is damaged (not JSON: "),
        (wrong_type, ": block.text: wanted a text, got 7"),
        (infinite, "line 4: it is damaged (not JSON: "),
        (huge, "line 4: "),
        (carriage, "line 1: its header is torn"),
        (mark, "line 1: it is no recording"),
        (odd_key, "line 4: wanted an object with the keys n and event; 'colour' is not known"),
        (odd_keeps, "line 1: keeps: wanted a list of deltas, digests, outcomes, redacted"),
        (odd_delta, "its d is 99, wanted "),
    ],
)
def test_what_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "a.jsonl"
    kept(path)
    spoil(path)
    before = path.read_bytes()
    for command in (["replay"], ["show"], ["fork", "--at", "1", "--record", str(tmp_path / "new")]):
        assert 2 == main([command[0], str(path), *command[1:]])
        err = capsys.readouterr().err
        assert words in err
        assert 1 == err.count("\n")
    assert before == path.read_bytes()
    assert not (tmp_path / "new").exists()


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    kept(path)
    monkeypatch.setattr(reading, "MOST_BYTES", 100)
    with pytest.raises(RecordingError, match="line 1: it has more than 100 bytes"):
        read_recording(path)


def test_no_line_is_written_that_could_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_BYTES", 8_000)
    path = tmp_path / "a.jsonl"
    log = JsonlLog(path)
    big = tool(name="big", read_only=True)(lambda: "x" * 9_000)
    with pytest.raises(
        CodecError, match=r"it makes a line of 9,\d+ bytes; a recording has lines of up to 8,000"
    ):
        run_sync("look", model=ScriptedModel([calls("big", {}), "done"]), tools=[big], log=log)
    asyncio.run(log.close())
    assert fold_recording(path).ok
    assert 3 == len(read_recording(path).events)


# ------------------------------------------------------------------------ resume


def test_a_file_that_was_cut_anywhere_is_gone_on_with(tmp_path: Path) -> None:
    """Header, events, outcomes, pieces of streams: what was being written is cut off, and the run ends."""
    whole = tmp_path / "whole.jsonl"
    kept(whole, deltas=True, digests=True)
    content = whole.read_bytes()
    events = read_recording(whole).events
    breaks = [at for at, byte in enumerate(content) if byte == 10]
    ended = 0
    for length in sorted({*range(0, len(content), 13), *breaks, *(at + 1 for at in breaks)}):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(content[:length])
        log = JsonlLog(path, deltas=True)
        left = asyncio.run(log.read())
        assert list(events[: len(left)]) == left
        assert (log.repaired is not None) is (length > 0 and content[length - 1] != 10), length
        prompt = None if left else "look"
        model = ScriptedModel([calls("read", {"path": "x"}), "done"] if not _answered(left) else ["done"])
        result = run_sync(prompt, model=model, tools=[read], log=log)
        asyncio.run(log.close())
        assert result.ok, length
        folded = fold_recording(path)
        assert folded.ok, (length, folded.divergence)
        assert folded.compared == folded.events
        ended += 1
        path.unlink()
    assert ended > 150


def _answered(events: list[Any]) -> bool:
    """Whether the answer with the call is whole."""
    return any(type(event).__name__ == "StreamClosed" for event in events)
