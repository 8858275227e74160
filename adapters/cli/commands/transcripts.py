"""``stepfold import``: foreign transcripts as recordings of this loop."""

from __future__ import annotations

import json as jsons
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stepfold.adapters.cli.exits import OK, USAGE, Problem
from stepfold.adapters.cli.terminal.progress import progress
from stepfold.adapters.cli.terminal.words import line_of
from stepfold.adapters.codec import CodecError
from stepfold.adapters.transcripts.importing import Conversation, Imported, conversations, write_recording
from stepfold.adapters.transcripts.reading import transcript
from stepfold.adapters.transcripts.source import Counts, TranscriptError

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".traj", ".eval")
SUFFIX = re.compile(r"(\.jsonl)?(\.gz)?$|\.(json|ndjson|traj|eval)$")


def import_command(paths: Sequence[Path], *, out: Path, format: str | None, json: bool) -> int:
    """
    Import *paths* into the folder *out*.

    Returns:
        0, or 2 where a file cannot be imported; the others are.
    """
    if out.exists() and not out.is_dir():
        raise Problem(f"--out: {out} is no folder")
    files = list(transcripts_in(paths))
    done = 0
    with progress("importing", len(files), hidden=json) as begin:
        for file, place in _places([(file, out / below) for file, below in files]):
            begin(file.name)
            done += _import(file, place, format, json)
    bad = len(files) - done
    if len(files) > 1 and not json:
        print(f"{len(files)} transcripts: {done} imported, {bad} not")
    return USAGE if bad else OK


def _places(files: list[tuple[Path, Path]]) -> Iterator[tuple[Path, Path]]:
    """Yield each file with what its recording is called: as it is, without the suffix if no other one is."""
    taken: dict[Path, Path] = {}
    for file, below in files:
        short = below.with_name(SUFFIX.sub("", below.name))
        yield file, short if taken.setdefault(short, below) == below else below


def _import(file: Path, place: Path, format: str | None, json: bool) -> bool:
    """Import one file and tell what it became, or why it did not."""
    try:
        with transcript(file, format) as found:
            parts = conversations(found.items)
        if not parts:
            raise TranscriptError(f"{file}: it holds no message")
        written = _write(parts, file, place)
    except OSError as error:
        raise Problem(f"{error.filename or file}: {error.strerror or error}") from error
    except TranscriptError as error:
        if json:
            print(jsons.dumps({"transcript": str(file), "error": str(error)}, ensure_ascii=False))
        else:
            print(f"stepfold: {line_of(str(error), 1_000)}", file=sys.stderr, flush=True)
        return False
    for path, part in written.items():
        _print(file, found.format.name, part, path, json)
    if not json:
        _print_counts(found.counts)
    return True


def transcripts_in(paths: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each file of *paths*, and where it lies below what was named; raises ``Problem``."""
    for path in paths:
        if not path.is_dir():
            yield path, Path(path.name)
            continue
        found = sorted(
            Path(place) / name
            for place, _, names in os.walk(path)
            for name in names
            if name.endswith(SUFFIXES)
        )
        if not found:
            raise Problem(f"{path}: there is no transcript in it (wanted {', '.join(SUFFIXES)})")
        yield from ((file, file.relative_to(path)) for file in found)


def _write(parts: list[Conversation], file: Path, place: Path) -> dict[Path, Imported]:
    """Write each part of *file* to a file of its own; all of them are there, whole, or none is."""
    place.parent.mkdir(parents=True, exist_ok=True)
    names = [
        f"{place.name}{'' if number == 1 else f'.{number}'}.recording.jsonl"
        for number in range(1, len(parts) + 1)
    ]
    for name in names:
        if (path := place.with_name(name)).exists():
            raise TranscriptError(f"{path}: it exists already; recordings are written to new files only")
    halves: dict[Path, Path] = {}
    placed: dict[Path, Imported] = {}
    done: list[Imported] = []
    try:
        for name, part in zip(names, parts, strict=True):
            half = halves[place.with_name(name)] = place.with_name(f".{name}.half")
            with half.open("w+b") as to:
                done.append(write_recording(part, to))
        for (path, half), what in zip(halves.items(), done, strict=True):
            half.replace(path)
            placed[path] = what
    except BaseException as problem:
        for path in (*halves.values(), *placed):
            path.unlink(missing_ok=True)
        if isinstance(problem, CodecError):
            raise TranscriptError(f"{file}: {problem}") from problem
        raise
    return placed


def _print(file: Path, format: str, part: Imported, path: Path, json: bool) -> None:
    one = part.conversation
    if json:
        data: dict[str, Any] = {
            "transcript": str(file),
            "format": format,
            "recording": str(path),
            "session": one.session,
            "chain": one.chain,
            "messages": len(one.messages),
            "events": part.events,
            "why": part.why,
        }
        print(jsons.dumps(data, ensure_ascii=False))
        return
    chain = f", {one.chain}" if one.chain else ""
    what = f"{part.events} events" if part.events else f"a history: {line_of(part.why, 200)}"
    print(f"{file} ({format}{chain}): {len(one.messages)} messages, {what} -> {path}")


def _print_counts(counts: Counts) -> None:
    if counts.unknown:
        told = ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.unknown.items()))
        print(f"   records that tell nothing, or are not known: {line_of(told, 400)}")
    for line, words in counts.broken:
        print(f"   line {line} is left out: {line_of(words, 200)}")
    if counts.broken_lines > len(counts.broken):
        print(f"   {counts.broken_lines - len(counts.broken)} more such lines")
