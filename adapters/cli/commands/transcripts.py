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
from stepfold.adapters.transcripts.importing import Imported, conversations, imported
from stepfold.adapters.transcripts.reading import transcript
from stepfold.adapters.transcripts.source import Counts, TranscriptError

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".traj", ".eval")


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
    with progress("importing", len(files), json=json) as advance:
        for file, below in files:
            done += _import(file, out / below, format, json)
            advance()
    bad = len(files) - done
    if len(files) > 1 and not json:
        print(f"{len(files)} transcripts: {done} imported, {bad} not")
    return USAGE if bad else OK


def _import(file: Path, place: Path, format: str | None, json: bool) -> bool:
    """Import one file and tell what it became, or why it did not."""
    try:
        with transcript(file, format) as found:
            parts = [imported(one) for one in conversations(found.items)]
        if not parts:
            raise TranscriptError(f"{file}: it holds no message")
        written = _write(parts, place)
    except TranscriptError as error:
        if json:
            print(jsons.dumps({"transcript": str(file), "error": str(error)}, ensure_ascii=False))
        else:
            print(f"stepfold: {line_of(str(error), 1_000)}", file=sys.stderr, flush=True)
        return False
    for part, path in zip(parts, written, strict=True):
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


def _write(parts: list[Imported], place: Path) -> list[Path]:
    """Write each part to a file of its own, which is there whole or not at all."""
    stem = re.sub(r"(\.jsonl)?(\.gz)?$|\.(json|ndjson|traj|eval)$", "", place.name)
    written: list[Path] = []
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(parts, 1):
            path = place.with_name(f"{stem}{'' if number == 1 else f'.{number}'}.recording.jsonl")
            if path.exists():
                raise TranscriptError(f"{path}: it exists already; recordings are written to new files only")
            half = path.with_name(f".{path.name}.half")
            try:
                half.write_bytes(part.content)
                half.replace(path)
            finally:
                half.unlink(missing_ok=True)
            written.append(path)
    except OSError as error:
        raise Problem(f"{error.filename or place}: {error.strerror or error}") from error
    return written


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
