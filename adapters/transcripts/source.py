"""Where records come from: JSON lines, read one by one, or a file that is one JSON value."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

import attrs
import orjson

MOST_LINE_BYTES: Final = 64 << 20
MOST_FILE_BYTES: Final = 512 << 20  # of a file that is one JSON value: that has to be read whole
KEPT: Final = 20  # broken lines that are named
DAMAGED: Final = (OSError, EOFError, zlib.error)  # what reading a gzip file raises that is cut or damaged


class TranscriptError(ValueError):
    """A file is no transcript that can be read; the text names file, line and reason."""


@attrs.define
class Counts:
    """
    What was met on the way.

    Args:
        records: How many were read.
        unknown: Types of records that no reader knows, and how many.
        broken: Lines that are no JSON, up to twenty of them: number and reason.
        broken_lines: How many there are.
    """

    records: int = 0
    unknown: dict[str, int] = attrs.field(factory=dict)
    broken: list[tuple[int, str]] = attrs.field(factory=list)
    broken_lines: int = 0

    def skip(self, kind: str) -> None:
        """Count a record of a type that is not known."""
        name = kind[:60] or "without a type"
        self.unknown[name] = self.unknown.get(name, 0) + 1

    def spoil(self, line: int, words: str) -> None:
        """Count a broken line."""
        self.broken_lines += 1
        if len(self.broken) < KEPT:
            self.broken.append((line, words))


@attrs.frozen
class Source:
    """
    The records of a file.

    Args:
        name: Of the file, for messages.
        first: The first record of JSON lines; else the whole value.
        lines: Whether it holds JSON lines.
        records: All of them with their line, the first one too; a whole value is one record.
    """

    name: str
    first: Any
    lines: bool
    records: Iterator[tuple[int, Any]]


def opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """Return *path*, open for reading, unpacked where it is a gzip file; raises ``TranscriptError``."""
    name = os.fspath(path)
    try:
        file = open(name, "rb")  # noqa: SIM115  (the caller closes it)
        if not stat.S_ISREG(mode := os.fstat(file.fileno()).st_mode) and not stat.S_ISFIFO(mode):
            file.close()
            raise TranscriptError(f"{name}: it is no file")
    except (OSError, ValueError) as problem:
        if isinstance(problem, TranscriptError):
            raise
        raise TranscriptError(f"{name}: {getattr(problem, 'strerror', None) or problem}") from problem
    small = file.peek(2)[:2] == b"\x1f\x8b"
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if small else file


def source_of(file: IO[bytes], path: str | Path, counts: Counts) -> Source:
    """
    Return the records of *file*.

    Raises:
        TranscriptError: It is empty, binary, or neither JSON lines nor JSON.
    """
    name = str(path)
    line, number = _first_line(file, name)
    found = _loaded(line)
    if isinstance(found, dict) and not line.lstrip().startswith(b"["):
        rest = _line(file, name, number + 1)
        if rest.strip() or name.endswith((".jsonl", ".jsonl.gz", ".ndjson")):
            return Source(name, found, True, _lines(file, [line, rest], number, name, counts))
        return Source(name, found, False, iter([(1, found)]))
    if name.endswith((".jsonl", ".jsonl.gz", ".ndjson")) and found is None:
        first, ahead, at = _first_object(file, line, number, name)
        return Source(name, first, True, _lines(file, ahead, at, name, counts))
    value = _whole(file, line, name)
    return Source(name, value, False, iter([(1, value)]))


def packed(file: IO[bytes], name: str) -> bool:
    """Return whether *file* is a zip file; raises ``TranscriptError``."""
    try:
        return bool(file.peek(4)[:4] == b"PK\x03\x04")  # type: ignore[attr-defined]
    except DAMAGED as problem:
        raise TranscriptError(f"{name}: it cannot be read: {problem}") from problem


def _line(file: IO[bytes], name: str, at: int) -> bytes:
    """Return the next line, or b""; raises ``TranscriptError``."""
    try:
        return file.readline(MOST_LINE_BYTES + 1)
    except DAMAGED as problem:
        raise TranscriptError(f"{name}, line {at}: it cannot be read: {problem}") from problem


def _first_line(file: IO[bytes], name: str) -> tuple[bytes, int]:
    number = 0
    while True:
        number += 1
        line = _line(file, name, number)
        if not line:
            raise TranscriptError(f"{name}: it is empty")
        if b"\0" in line[:4096]:
            raise TranscriptError(f"{name}, line {number}: it is binary; wanted JSON")
        if len(line) > MOST_LINE_BYTES:
            raise TranscriptError(f"{name}, line {number}: it has more than {MOST_LINE_BYTES:,} bytes")
        if line.strip():
            return line.removeprefix(b"\xef\xbb\xbf"), number


def _first_object(file: IO[bytes], line: bytes, number: int, name: str) -> tuple[Any, list[bytes], int]:
    """Return the first record that is whole, and all lines up to it."""
    ahead = [line]
    while len(ahead) < 1_000:
        line = _line(file, name, number + len(ahead))
        if not line:
            break
        ahead.append(line)
        if isinstance(found := _loaded(line), dict):
            return found, ahead, number
    raise TranscriptError(f"{name}, line {number}: it is no JSON: {_why(ahead[0])}")


def _lines(
    file: IO[bytes], ahead: list[bytes], number: int, name: str, counts: Counts
) -> Iterator[tuple[int, Any]]:
    at = number - 1
    while True:
        line = ahead.pop(0) if ahead else _line(file, name, at + 1)
        if not line:
            return
        at += 1
        if len(line) > MOST_LINE_BYTES:
            counts.spoil(at, f"it has more than {MOST_LINE_BYTES:,} bytes")
            while line and not line.endswith(b"\n"):
                line = _line(file, name, at)
            continue
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError as problem:
            if line.strip():
                counts.spoil(at, str(problem))
            continue
        counts.records += 1
        yield at, found


def _whole(file: IO[bytes], line: bytes, name: str) -> Any:
    try:
        content = line + file.read(MOST_FILE_BYTES + 1 - len(line))
    except DAMAGED as problem:
        raise TranscriptError(f"{name}: it cannot be read: {problem}") from problem
    if len(content) > MOST_FILE_BYTES:
        raise TranscriptError(f"{name}: one JSON value of more than {MOST_FILE_BYTES:,} bytes")
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as problem:
        place = f", line {problem.lineno}" if problem.lineno else ""
        raise TranscriptError(f"{name}{place}: it is no JSON: {problem.msg}") from problem


def _loaded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _why(line: bytes) -> str:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        return problem.msg
    return "its lines are no objects"
