"""Which formats there are, and a file read by the one that knows it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from stepfold.adapters.transcripts.formats import (
    agents,
    claude_code,
    codex,
    editors,
    messages,
    openhands,
    swe,
)
from stepfold.adapters.transcripts.items import Item
from stepfold.adapters.transcripts.source import Counts, TranscriptError, opened, packed, source_of


@attrs.frozen
class Format:
    """
    A format of transcripts.

    Args:
        name: As ``--format`` takes it.
        recognises: Whether a file is one of it: of its first record, or its whole value, and whether it
            holds JSON lines.
        read: Yields what its records mean.
    """

    name: str
    recognises: Callable[[Any, bool], bool]
    read: Callable[[Iterator[tuple[int, Any]], Counts], Iterator[Item]]


FORMATS: Final = (
    Format("stream-json", claude_code.recognises_stream, claude_code.read),
    Format("claude-code", claude_code.recognises, claude_code.read),
    Format("codex", codex.recognises, codex.read),
    Format("gemini", agents.recognises_gemini, agents.read_gemini),
    Format("openhands", openhands.recognises, openhands.read),
    Format("swe-agent", swe.recognises, swe.read),
    Format("inspect", agents.recognises_inspect, agents.read_inspect),
    Format("amp", messages.recognises_thread, messages.read_thread),
    Format("continue", messages.recognises_continue, messages.read_continue),
    Format("sessions", messages.recognises_sessions, messages.read_sessions),
    Format("copilot", editors.recognises_copilot, editors.read_copilot),
    Format("copilot-events", editors.recognises_copilot_events, editors.read_copilot_events),
    Format("windsurf", editors.recognises_windsurf, editors.read_windsurf),
    Format("opencode", editors.recognises_opencode, editors.read_opencode),
    Format("messages", messages.recognises, messages.read),
)


@attrs.frozen
class Transcript:
    """
    A transcript that is being read.

    Args:
        path: The file.
        format: Which reads it.
        items: What it tells, once.
        counts: What was met on the way; right when the items are through.
    """

    path: str
    format: Format
    items: Iterator[Item]
    counts: Counts


@contextmanager
def transcript(path: str | Path, format: str | None = None) -> Iterator[Transcript]:
    """
    Yield *path* as a transcript; memory does not grow with the file, where it holds JSON lines.

    Args:
        path: The file.
        format: Name of its format; None: it is recognised.

    Raises:
        TranscriptError: It cannot be read, or is of no format that is known; from the items, too.
    """
    counts = Counts()
    with opened(path) as file:
        if packed(file, str(path)):
            raise TranscriptError(f"{path}: {_packed(path)}")
        source = source_of(file, path, counts)
        known = _named(format) if format is not None else _recognised(source.first, source.lines, str(path))
        yield Transcript(str(path), known, known.read(source.records, counts), counts)


def _packed(path: str | Path) -> str:
    try:
        with zipfile.ZipFile(path) as parts:
            names = ", ".join(parts.namelist()[:3])
    except (OSError, zipfile.BadZipFile) as problem:
        return f"it is a damaged zip file ({problem})"
    return f"it is a zip file ({names}, ...); unpack it, or let inspect_ai write it as JSON"


def _named(name: str) -> Format:
    for each in FORMATS:
        if each.name == name:
            return each
    allowed = ", ".join(each.name for each in FORMATS)
    raise TranscriptError(f"--format {name}: there is no such format; allowed are {allowed}")


def _recognised(first: Any, lines: bool, name: str) -> Format:
    for each in FORMATS:
        if each.recognises(first, lines):
            return each
    what = (
        f"an object with {', '.join(sorted(map(str, first))[:5])}" if isinstance(first, dict) else "no object"
    )
    raise TranscriptError(f"{name}: it is of no format that is known (its first record is {what})")
