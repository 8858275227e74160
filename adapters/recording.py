"""Recordings: what a log file holds, read without changing it, and two of them compared."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any, Final

import attrs
import orjson

from stepfold.adapters.codec import (
    SCHEMA,
    CodecError,
    dump_start,
    event_from,
    plain_event,
    plain_start,
    start_from,
)
from stepfold.effects.ports import Start
from stepfold.engine import State, start
from stepfold.engine.events import Event

FORMAT: Final = 1
HEADER_KEYS: Final = ("stepfold", "schema", "config", "messages", "tools", "collapses")
NO_HEADER: Final = "it is no recording (wanted a header with the key 'stepfold')"


class RecordingError(ValueError):
    """A file is no recording, or a damaged one; the text names file and line."""


@attrs.frozen
class Recording:
    """
    A recording.

    Args:
        begun: What its first run started from.
        events: In order.
        length: Bytes of the file up to the end of the last whole line.
        torn: Bytes behind that: a line that was being written when the machine or the process died.
    """

    begun: Start
    events: tuple[Event, ...]
    length: int = 0
    torn: int = 0

    def state(self) -> State:
        """Return the state before the first event; ``fold(events, state(), begun.config)`` replays it."""
        return start(self.begun.messages, self.begun.tools, self.begun.collapses)


def header_line(begun: Start) -> bytes:
    """Return the first line of a recording; raises ``CodecError`` where it does not go into JSON."""
    return b'{"stepfold":%d,"schema":%d,%b\n' % (FORMAT, SCHEMA, dump_start(begun).removeprefix(b"{"))


def event_line(number: int, json: bytes) -> bytes:
    """Return the line of event *number*, counted from 1."""
    return b'{"n":%d,"event":%b}\n' % (number, json)


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """
    Return what *path* holds; a torn last line is left out.

    Raises:
        RecordingError: It cannot be read, or is damaged elsewhere.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):  # some never end
                raise RecordingError(f"{name}: it is a device; wanted a file or a pipe")
            content = file.read()
    except OSError as problem:
        raise RecordingError(f"{name}: {problem.strerror or problem}") from problem
    recording = parse_recording(content, name)
    if recording is None:
        torn = f", line 1: its header is torn: {len(content)} bytes without a line break"
        what = torn if content else ": it is empty"
        raise RecordingError(f"{name}{what}; a recording begins with a header line")
    return recording


def parse_recording(content: bytes, name: str) -> Recording | None:
    """
    Return the recording in *content*; None where not even a whole first line is there.

    Only what follows the last line break can be torn: a line is written with
    its line break at the end, so one that has it and cannot be read is damaged.

    Raises:
        RecordingError: It is no recording, or a damaged one.
    """
    lines = content.split(b"\n")
    rest = lines.pop()
    if not lines:
        if rest and not rest.startswith(b'{"stepfold"'[: len(rest)]):
            raise RecordingError(f"{name}, line 1: {NO_HEADER}")
        return None
    begun = _header(lines[0], f"{name}, line 1")
    events = tuple(_events(lines[1:], name))
    return Recording(begun, events, len(content) - len(rest), len(rest))


def _header(line: bytes, place: str) -> Start:
    try:
        header = orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise RecordingError(f"{place}: it is no recording (not JSON: {problem})") from problem
    if not isinstance(header, dict) or "stepfold" not in header:
        raise RecordingError(f"{place}: {NO_HEADER}")
    if header["stepfold"] != FORMAT or header.get("schema") != SCHEMA:
        raise RecordingError(
            f"{place}: format {header['stepfold']!r}, schema {header.get('schema')!r} is not known here; "
            f"wanted {FORMAT} and {SCHEMA}"
        )
    unknown = sorted(set(header) - set(HEADER_KEYS))
    if unknown:
        raise RecordingError(f"{place}: unknown key {unknown[0]!r}; allowed are {', '.join(HEADER_KEYS)}")
    kept = {key: value for key, value in header.items() if key not in ("stepfold", "schema")}
    try:
        return start_from(kept)
    except CodecError as problem:
        raise RecordingError(f"{place}: {problem}") from problem


def _events(lines: list[bytes], name: str) -> Iterator[Event]:
    for number, line in enumerate(lines, 1):
        place = f"{name}, line {number + 1}"
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError as problem:
            raise RecordingError(f"{place}: it is damaged (not JSON: {problem})") from problem
        if not isinstance(entry, dict) or set(entry) != {"n", "event"}:
            raise RecordingError(f"{place}: wanted an object with the keys n and event")
        if entry["n"] != number:
            raise RecordingError(f"{place}: its number is {entry['n']!r}, wanted {number}")
        try:
            yield event_from(entry["event"])
        except CodecError as problem:
            raise RecordingError(f"{place}: {problem}") from problem


# -------------------------------------------------------------------- comparing


@attrs.frozen
class Difference:
    """
    The first place where two recordings differ.

    Args:
        number: Of the event, counted from 1; 0 is the header.
        field: Where in it, as ``block.input``; "" where one recording has no such event.
        left: What the first one has there; None: nothing.
        right: What the second one has there.
    """

    number: int
    field: str
    left: Any
    right: Any

    def __str__(self) -> str:
        where = "the header" if self.number == 0 else f"event {self.number}"
        return f"{where}{', ' if self.field else ''}{self.field}: {self.left!r} and {self.right!r}"


def compare(left: Recording, right: Recording, *, times: bool = True) -> Difference | None:
    """Return the first difference of two recordings, or None; *times* False: ``at_ms`` does not count."""
    found = _differ(plain_start(left.begun), plain_start(right.begun), "", times)
    if found is not None:
        return Difference(0, *found)
    for number, (one, other) in enumerate(zip(left.events, right.events, strict=False), 1):
        if one != other:
            found = _differ(plain_event(one), plain_event(other), "", times)
            if found is not None:
                return Difference(number, *found)
    shorter = min(len(left.events), len(right.events))
    if len(left.events) == len(right.events):
        return None
    return Difference(
        shorter + 1,
        "",
        plain_event(left.events[shorter]) if len(left.events) > shorter else None,
        plain_event(right.events[shorter]) if len(right.events) > shorter else None,
    )


def _differ(left: Any, right: Any, place: str, times: bool) -> tuple[str, Any, Any] | None:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}, key=lambda key: (key != "$type", key)):
            if key == "at_ms" and not times:
                continue
            found = _differ(left.get(key), right.get(key), f"{place}.{key}" if place else key, times)
            if found is not None:
                return found
        return None
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for index in range(max(len(left), len(right))):
            one = left[index] if index < len(left) else None
            other = right[index] if index < len(right) else None
            found = _differ(one, other, f"{place}[{index}]", times)
            if found is not None:
                return found
        return None
    return None if left == right and type(left) is type(right) else (place, left, right)
