"""Recordings read, whole or line by line; the file is never changed."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final, cast

import attrs
import orjson

from stepfold.adapters.codec import SCHEMA, CodecError, event_from, start_from
from stepfold.adapters.recording.format import (
    DELTA_KEYS,
    ENTRY_KEYS,
    FORMAT,
    HEADER_KEYS,
    KEEPS,
    MOST_BYTES,
    NO_HEADER,
    Header,
    KeptDelta,
    Outcome,
    Recording,
    RecordingError,
    package_version,
)
from stepfold.effects.ports import Start
from stepfold.engine.events import Event

START_KEYS: Final = ("config", "messages", "tools", "collapses", "prompt")


class Entries:
    """
    A recording, read entry by entry: memory does not grow with the file.

    Iterated over, it yields each event with what its entry tells of the step.
    ``begun`` and ``header`` are there at once; ``length`` and ``torn`` (bytes)
    are right when the iteration is over.

    Args:
        file: Where it is read from.
        name: For messages.

    Raises:
        RecordingError: It is no recording, or a damaged one; from the iteration, too.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.length = 0
        self.torn = 0
        self.deltas: list[KeptDelta] | None = None  # a list: they are kept there
        self._file = file
        self._name = name
        first = self._line(1)
        if first is None:
            torn = f", line 1: its header is torn: {self.torn} bytes without a line break"
            what = torn if self.torn else ": it is empty"
            raise RecordingError(f"{name}{what}; a recording begins with a header line")
        self.header, self.begun = _header(first, f"{name}, line 1")

    def __iter__(self) -> Iterator[tuple[Event, Outcome]]:
        number, at = 0, 1
        while (line := self._line(at + 1)) is not None:
            at += 1
            entry = _object(line, self._name, at)
            if "d" in entry:
                delta = _delta(entry, number, self._name, at)
                if self.deltas is not None:
                    self.deltas.append(delta)
                continue
            number += 1
            yield _entry(entry, number, self._name, at)

    def _line(self, at: int) -> bytes | None:
        """Return the next whole line without its line break; None at the end, where ``torn`` is set."""
        try:
            line = self._file.readline(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as problem:  # a gzip file that is cut or damaged
            words = getattr(problem, "strerror", None) or problem
            raise RecordingError(f"{self._name}, line {at}: it cannot be read: {words}") from problem
        if line.endswith(b"\n"):
            self.length += len(line)
            return line[:-1]
        if len(line) > MOST_BYTES:
            raise RecordingError(f"{self._name}, line {at}: it has more than {MOST_BYTES:,} bytes")
        if at == 1 and line and not line.startswith(b'{"stepfold"'[: len(line)]):
            raise RecordingError(f"{self._name}, line 1: {NO_HEADER}")
        self.torn = len(line)
        return None


def opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """Return *path*, open for reading, unpacked where it is a gzip file; raises ``RecordingError``."""
    name = os.fspath(path)
    try:
        file = open(name, "rb")  # noqa: SIM115  (the caller closes it)
    except (OSError, ValueError) as problem:
        raise RecordingError(f"{name}: {getattr(problem, 'strerror', None) or problem}") from problem
    try:
        if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):  # some never end
            raise RecordingError(f"{name}: it is a device; wanted a file or a pipe")
        packed = file.peek(2)[:2] == b"\x1f\x8b"
    except OSError as problem:
        file.close()
        raise RecordingError(f"{name}: {problem.strerror or problem}") from problem
    except RecordingError:
        file.close()
        raise
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if packed else file


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """
    Return what *path* holds; a torn last line is left out, ``.gz`` is unpacked.

    Raises:
        RecordingError: It cannot be read, or is damaged elsewhere.
    """
    with opened(path) as file:
        return _whole(Entries(file, os.fspath(path)))


def read_deltas(path: str | os.PathLike[str]) -> tuple[Recording, list[KeptDelta]]:
    """Return what *path* holds, and the pieces of its streams; as ``read_recording``."""
    with opened(path) as file:
        entries = Entries(file, os.fspath(path))
        entries.deltas = []
        return _whole(entries), entries.deltas


def parse_recording(content: bytes, name: str) -> Recording | None:
    """
    Return the recording in *content*; None where not even a whole first line is there.

    Only what follows the last line break can be torn: a line is written with
    its line break at the end, so one that has it and cannot be read is damaged.

    Raises:
        RecordingError: It is no recording, or a damaged one.
    """
    import io

    if b"\n" not in content:
        if content and not content.startswith(b'{"stepfold"'[: len(content)]):
            raise RecordingError(f"{name}, line 1: {NO_HEADER}")
        return None
    return _whole(Entries(io.BytesIO(content), name))


def _whole(entries: Entries) -> Recording:
    pairs = list(entries)
    events = tuple(event for event, _ in pairs)
    outcomes = tuple(outcome for _, outcome in pairs)
    return Recording(entries.begun, events, entries.length, entries.torn, entries.header, outcomes)


# ------------------------------------------------------------------- single lines


def _header(line: bytes, place: str) -> tuple[Header, Start]:
    try:
        header = orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise RecordingError(f"{place}: it is no recording (not JSON: {problem})") from problem
    if not isinstance(header, dict) or "stepfold" not in header:
        raise RecordingError(f"{place}: {NO_HEADER}")
    schema = header.get("schema")
    if header["stepfold"] != FORMAT or type(schema) is not int or not 1 <= schema <= SCHEMA:
        newer = type(schema) is int and schema > SCHEMA
        raise RecordingError(
            f"{place}: format {header['stepfold']!r}, schema {schema!r} is not known here; "
            f"wanted format {FORMAT} and a schema from 1 to {SCHEMA}"
            + (
                f" (it was written by stepfold {header.get('version', '?')}, this is {package_version()})"
                if newer
                else ""
            )
        )
    unknown = sorted(set(header) - set(HEADER_KEYS))
    if unknown:
        raise RecordingError(f"{place}: unknown key {unknown[0]!r}; allowed are {', '.join(HEADER_KEYS)}")
    told = attrs.evolve(_told(header, schema, place), sha=hashlib.sha256(line).hexdigest())
    try:
        return told, start_from({key: header[key] for key in START_KEYS if key in header})
    except CodecError as problem:
        raise RecordingError(f"{place}: {problem}") from problem


def _told(header: dict[str, Any], schema: int, place: str) -> Header:
    """Return what the header tells of the recording; a schema 1 tells nothing."""
    for key in ("version", "config_hash"):
        if not isinstance(header.get(key, ""), str):
            raise RecordingError(f"{place}: {key}: wanted a text, got {header[key]!r:.60}")
    keeps = header.get("keeps", [])
    if not isinstance(keeps, list) or not all(each in KEEPS for each in keeps):
        raise RecordingError(f"{place}: keeps: wanted a list of {', '.join(KEEPS)}, got {keeps!r:.60}")
    origin = header.get("forked_from")
    if origin is not None and not isinstance(origin, dict):
        raise RecordingError(f"{place}: forked_from: wanted an object, got {origin!r:.60}")
    return Header(schema, header.get("version", ""), header.get("config_hash", ""), tuple(keeps), origin)


def _object(line: bytes, name: str, at: int) -> dict[str, Any]:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise RecordingError(f"{name}, line {at}: it is damaged (not JSON: {problem})") from problem
    if type(entry) is not dict:
        raise RecordingError(f"{name}, line {at}: wanted an object with the keys n and event")
    return entry


def _entry(entry: dict[str, Any], number: int, name: str, at: int) -> tuple[Event, Outcome]:
    if not {"n", "event"} <= entry.keys() <= ENTRY_KEYS:
        odd = ", ".join(sorted(map(repr, set(entry) - ENTRY_KEYS)))
        allowed = f"; {odd} is not known" if odd else ""
        raise RecordingError(f"{name}, line {at}: wanted an object with the keys n and event{allowed}")
    if (given := entry.pop("n")) != number:
        raise RecordingError(f"{name}, line {at}: its number is {given!r:.60}, wanted {number}")
    try:
        return event_from(entry.pop("event")), entry
    except CodecError as problem:
        raise RecordingError(f"{name}, line {at}: {problem}") from problem


def _delta(entry: dict[str, Any], number: int, name: str, at: int) -> KeptDelta:
    wrong = set(entry) != DELTA_KEYS or not isinstance(entry["delta"], dict)
    if wrong or not all(type(entry[key]) is int for key in ("d", "effect_id", "at_ms")):
        raise RecordingError(
            f"{name}, line {at}: wanted a delta with the keys d, effect_id, at_ms (numbers) and delta"
        )
    if entry["d"] != number + 1:
        raise RecordingError(f"{name}, line {at}: its d is {entry['d']!r}, wanted {number + 1}")
    return KeptDelta(entry["d"], entry["effect_id"], entry["at_ms"], entry["delta"])
