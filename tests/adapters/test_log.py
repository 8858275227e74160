"""Only this file checks the log as a file: what reaches the disk, torn and damaged lines, redaction."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import multiprocessing
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import attrs
import pytest

from stepfold.adapters import jsonl_log
from stepfold.adapters.codec import CodecError, digest
from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.memory_log import MemoryLog
from stepfold.adapters.recording import RecordingError, compare, read_recording
from stepfold.adapters.scripted import ScriptedModel
from stepfold.effects import fold, run_sync
from stepfold.effects.ports import Start
from stepfold.engine import Config
from stepfold.engine.events import Event, Prefetched, RunStarted, ToolSpec, WaitElapsed
from stepfold.engine.messages import Origin, Text, user_text

BEGUN = Start(Config(max_turns=3), (user_text("old", Origin.PROMPT),), (ToolSpec("read"),))
EVENTS: tuple[Event, ...] = (RunStarted((Text("p"),)), WaitElapsed(1, 5), Prefetched(2, ("a\nb", "é")))


def now(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def write(path: Path, events: tuple[Event, ...] = EVENTS, **options: Any) -> None:
    async def all_of_it() -> None:
        log = JsonlLog(path, **options)
        await log.begin(BEGUN)
        for event in events:
            await log.append(event, durable=False)
        await log.close()

    now(all_of_it())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_a_file_holds_a_header_and_one_numbered_event_a_line(path: Path) -> None:
    write(path)
    lines = path.read_text().splitlines()
    assert {"stepfold": 1, "schema": 2} == {k: json.loads(lines[0])[k] for k in ("stepfold", "schema")}
    assert [1, 2, 3] == [json.loads(line)["n"] for line in lines[1:]]
    recording = read_recording(path)
    assert (BEGUN, EVENTS, 0) == (recording.begun, recording.events, recording.torn)
    assert 0o600 == path.stat().st_mode & 0o777


def test_a_recorded_run_replays(path: Path) -> None:
    log = JsonlLog(path)
    result = run_sync("hello", model=ScriptedModel(["hi"]), log=log)
    now(log.close())
    recording = read_recording(path)
    assert digest(result.state) == digest(fold(recording.events, recording.state(), recording.begun.config))


def test_an_existing_file_keeps_its_header_and_goes_on_with_the_numbers(path: Path) -> None:
    write(path)

    async def more() -> tuple[Start, list[Event]]:
        log = JsonlLog(path)
        kept = await log.begin(Start(Config(max_turns=9)))
        before = await log.read()
        await log.append(WaitElapsed(7), durable=True)
        after = await log.read()
        await log.close()
        assert before == after[:-1]
        return kept, after

    kept, events = now(more())
    assert (BEGUN, [*EVENTS, WaitElapsed(7)]) == (kept, events)
    assert tuple(events) == read_recording(path).events


def test_every_torn_last_line_is_cut_off_and_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(path)
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1

    async def opened(cut: int) -> None:
        kept = whole[:cut].count(b"\n")
        torn = cut - (whole[:cut].rindex(b"\n") + 1 if kept else 0)
        log = JsonlLog(path, fsync=False)
        assert bool(torn) is (log.repaired is not None)
        assert cut - torn == path.stat().st_size
        if torn:
            assert f"{torn} bytes" in str(log.repaired)
            assert str(log.repaired) in caplog.text
        if cut >= header:
            assert list(EVENTS[: kept - 1]) == await log.read()
        await log.begin(BEGUN)
        await log.append(WaitElapsed(9), durable=True)
        await log.close()

    async def all_cuts() -> None:
        for cut in (*range(1, header, 50), *range(header - 2, len(whole))):
            path.write_bytes(whole[:cut])
            await opened(cut)
            assert WaitElapsed(9) == read_recording(path).events[-1]
            caplog.clear()

    now(all_cuts())


def test_reading_leaves_a_torn_line_alone(path: Path) -> None:
    write(path)
    with path.open("ab") as file:
        file.write(b'{"n":4,"ev')
    before = path.read_bytes()
    recording = read_recording(path)
    assert (EVENTS, 10) == (recording.events, recording.torn)
    assert before == path.read_bytes()


def test_a_block_that_never_reached_the_disk_is_torn_too(path: Path) -> None:
    write(path)
    with path.open("ab") as file:
        file.write(b"\0" * 512)
    log = JsonlLog(path)
    assert log.repaired is not None
    assert list(EVENTS) == now(log.read())
    now(log.close())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [lines[0], b"{broken", *lines[2:]], "line 2: it is damaged"),
        (lambda lines: [*lines, b'{"n":4,"ev'], "line 5: it is damaged"),
        (lambda lines: [*lines, b"\0" * 512], "line 5: it is damaged"),
        (lambda lines: [*lines, b""], "line 5: it is damaged"),
        (lambda lines: [*lines, b"[" * 5_000], "line 5: it is damaged"),
        (lambda lines: [*lines, b"1" * 5_000], "line 5: it is damaged"),
        (lambda lines: [lines[0][:-5]], "line 1: it is no recording"),
        (lambda lines: [lines[0], *lines[2:]], "line 2: its number is 2, wanted 1"),
        (lambda lines: [lines[0], lines[1], lines[1], *lines[2:]], "line 3: its number is 1, wanted 2"),
        (lambda lines: [b"{broken", *lines[1:]], "line 1: it is no recording"),
        (lambda lines: [b'{"a":1}', *lines[1:]], "line 1: it is no recording"),
        (lambda lines: [lines[0].replace(b'"stepfold":1', b'"stepfold":2'), *lines[1:]], "line 1: format 2"),
        (lambda lines: [lines[0].replace(b'"schema":2', b'"schema":9'), *lines[1:]], "schema 9"),
        (lambda lines: [lines[0].replace(b"max_turns", b"max_turnz"), *lines[1:]], "unknown key 'max_turnz'"),
        (lambda lines: [lines[0].replace(b'"config"', b'"konfig"'), *lines[1:]], "unknown key 'konfig'"),
        (lambda lines: [*lines[:2], b'{"n":2,"event":{"$type":"x"}}', lines[3]], "line 3: $type 'x'"),
        (
            lambda lines: [*lines[:2], b'{"n":2}', lines[3]],
            "line 3: wanted an object with the keys n and event",
        ),
        (lambda lines: [*lines[:3], b'{"n":3,"event":{"$type":"x"}}'], "line 4: $type 'x'"),
    ],
)
def test_damage_elsewhere_is_an_error_that_names_the_line(path: Path, change: Any, words: str) -> None:
    write(path)
    path.write_bytes(b"\n".join(change(path.read_bytes().splitlines())) + b"\n")
    before = path.read_bytes()
    for read in (read_recording, JsonlLog):
        with pytest.raises(RecordingError) as refused:
            read(path)
        assert words in str(refused.value)
        assert str(path) in str(refused.value)
        assert "\n" not in str(refused.value)
    assert before == path.read_bytes()


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b'{"some":"json"}', b"PK\x03\x04\x00"])
def test_a_file_that_is_no_recording_is_not_touched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for read in (read_recording, JsonlLog):
        with pytest.raises(RecordingError, match="no recording"):
            read(path)
    assert content == path.read_bytes()


def test_what_cannot_be_read_is_one_clear_line(tmp_path: Path, path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        read_recording(path)
    with pytest.raises(RecordingError, match="Is a directory"):
        read_recording(tmp_path)
    with pytest.raises(RecordingError, match="No such file"):
        JsonlLog(tmp_path / "missing" / "log.jsonl")
    with pytest.raises(RecordingError, match="it is a device; wanted a file or a pipe"):
        read_recording("/dev/zero")
    with pytest.raises(RecordingError, match="it is a device or a pipe; wanted a file"):
        JsonlLog("/dev/null")
    path.write_bytes(b"")
    with pytest.raises(RecordingError, match="it is empty"):
        read_recording(path)
    path.write_bytes(b'{"stepfold":1,"sch')
    with pytest.raises(RecordingError, match="line 1: its header is torn: 18 bytes without a line break"):
        read_recording(path)


def test_a_log_that_never_began_leaves_no_file(path: Path) -> None:
    async def attempt() -> None:
        log = JsonlLog(path)
        with pytest.raises(CodecError, match="JSON"):
            await log.begin(Start(Config(model="\ud800")))
        assert path.exists()
        await log.close()
        assert not path.exists()
        path.touch()
        await JsonlLog(path).close()
        assert path.exists()  # it was there before

    now(attempt())


def test_a_log_that_nobody_holds_lets_go_of_its_file(path: Path) -> None:
    for words in ("one", "two"):
        run_sync(words, model=ScriptedModel(["done"]), log=JsonlLog(path))
        gc.collect()
    prompts = [event.prompt for event in read_recording(path).events if isinstance(event, RunStarted)]
    assert [(Text("one"),), (Text("two"),)] == prompts


def test_two_writers_at_once_are_refused(path: Path) -> None:
    log = JsonlLog(path)
    with pytest.raises(RecordingError, match="another process"):
        JsonlLog(path)
    now(log.close())
    again = JsonlLog(path)
    now(again.close())


def test_durable_entries_and_the_header_are_synced_and_the_others_are_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(
        jsonl_log.os, "fsync", lambda file: (synced.append(path.read_bytes().count(b"\n")), real(file))
    )

    async def some(fsync: bool) -> None:
        log = JsonlLog(path, fsync=fsync)
        await log.begin(BEGUN)
        for event, durable in zip(EVENTS, (False, True, False), strict=True):
            await log.append(event, durable=durable)
        await log.close()

    now(some(True))
    assert [1, 1, 3, 4] == synced  # header, its folder, the second event (and the first with it), closing
    path.unlink()
    synced.clear()
    now(some(False))
    assert [] == synced
    assert EVENTS == read_recording(path).events


def test_a_write_that_fails_half_way_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path)
    before, real = path.read_bytes(), os.write

    def full(file: int, data: bytes) -> int:
        if len(data) > 10:
            return real(file, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    async def attempt() -> None:
        log = JsonlLog(path)
        await log.begin(BEGUN)
        with monkeypatch.context() as patch:
            patch.setattr(jsonl_log.os, "write", full)
            with pytest.raises(OSError, match="No space") as refused:
                await log.append(Prefetched(1, ("x" * 1_004,)), durable=True)
            assert str(path) == refused.value.filename
        assert before == path.read_bytes()
        await log.append(WaitElapsed(4), durable=True)
        await log.close()

    now(attempt())
    assert (*EVENTS, WaitElapsed(4)) == read_recording(path).events


def test_after_a_failed_fsync_nothing_more_is_promised(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attempt() -> None:
        log = JsonlLog(path)
        await log.begin(BEGUN)

        def broken(file: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(jsonl_log.os, "fsync", broken)
            with pytest.raises(OSError, match="Input/output") as refused:
                await log.append(WaitElapsed(1), durable=True)
            assert str(path) == refused.value.filename
        with pytest.raises(OSError, match="earlier fsync"):
            await log.append(WaitElapsed(2), durable=False)
        await log.close()

    now(attempt())


def test_what_json_cannot_hold_leaves_no_trace(path: Path) -> None:
    async def attempt() -> None:
        log = JsonlLog(path)
        await log.begin(BEGUN)
        with pytest.raises(CodecError):
            await log.append(Prefetched(1, ("\ud800",)), durable=True)
        await log.append(WaitElapsed(1), durable=True)
        await log.close()

    now(attempt())
    assert (WaitElapsed(1),) == read_recording(path).events


def test_redaction_changes_the_file_and_not_the_run(path: Path) -> None:
    log = JsonlLog(path, redact=lambda text: text.replace("1234", "[redacted]"))
    result = run_sync("p", model=ScriptedModel(["the password is 1234"]), log=log)
    now(log.close())
    assert "1234" in result.output
    assert b"1234" not in path.read_bytes()
    recording = read_recording(path)
    replayed = fold(recording.events, recording.state(), recording.begun.config)
    assert result.end == replayed.end
    assert digest(result.state) != digest(replayed)


def _die_while_writing(path: str) -> None:
    real = os.write

    def half(file: int, data: bytes) -> int:
        if b"wait_elapsed" in data:
            real(file, data[: len(data) // 2])
            os._exit(9)
        return real(file, data)

    jsonl_log.os.write = half  # type: ignore[attr-defined,assignment]
    write(Path(path))


def test_a_process_that_dies_in_the_middle_of_a_line(path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=_die_while_writing, args=(str(path),))
    child.start()
    child.join()
    assert 9 == child.exitcode
    log = JsonlLog(path)
    assert log.repaired is not None
    assert [EVENTS[0]] == now(log.read())
    now(log.close())


def test_compare_names_the_first_event_and_field(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    write(path)
    for events, number, field in (
        (EVENTS, None, ""),
        ((EVENTS[0], WaitElapsed(1, 6), EVENTS[2]), 2, "at_ms"),
        ((EVENTS[0], WaitElapsed(2, 5), EVENTS[2]), 2, "effect_id"),
        ((EVENTS[0], EVENTS[1], Prefetched(2, ("a\nb", "e"))), 3, "texts[1]"),
        ((RunStarted((Text("q"),)), *EVENTS[1:]), 1, "prompt[0].text"),
        ((EVENTS[0], EVENTS[2], EVENTS[1]), 2, "$type"),
        (EVENTS[:2], 3, ""),
        ((*EVENTS, WaitElapsed(9)), 4, ""),
    ):
        other.unlink(missing_ok=True)
        write(other, events)
        found = compare(read_recording(path), read_recording(other))
        assert (number, field) == ((None, "") if found is None else (found.number, found.field))
        if found is not None:
            assert f"event {number}" in str(found)
    one = read_recording(path)
    header = attrs.evolve(one, begun=attrs.evolve(BEGUN, config=Config(max_turns=4)))
    found = compare(one, header)
    assert found is not None
    assert (0, "config.max_turns", 3, 4) == (found.number, found.field, found.left, found.right)
    later = attrs.evolve(one, events=(EVENTS[0], WaitElapsed(1, 99), EVENTS[2]))
    assert compare(one, later) is not None
    assert compare(one, later, times=False) is None


def test_the_memory_log_notes_what_had_to_be_durable() -> None:
    async def some() -> None:
        log = MemoryLog()
        assert BEGUN is await log.begin(BEGUN)
        assert BEGUN is await log.begin(Start(Config()))
        await log.append(EVENTS[0], durable=True)
        await log.append(EVENTS[1], durable=False)
        assert [EVENTS[0], EVENTS[1]] == await log.read()
        assert [True, False] == log.durable
        await log.close()

    now(some())
