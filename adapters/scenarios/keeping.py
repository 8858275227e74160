"""Where ``stepfold check --record`` keeps recordings: no two share a file, and no file is overwritten."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from stepfold.adapters.recording.writing import recording_bytes
from stepfold.adapters.scenarios.playing.play import Played

SUFFIX = ".jsonl"


class KeepError(ValueError):
    """A recording cannot be kept where it would be; the text names the file, and nothing was played."""


def places(files: Iterable[Path], named: Iterable[Path], folder: Path) -> Mapping[Path, Path]:
    """
    Return where the recording of each file is kept.

    Args:
        files: The scenarios.
        named: What was named: files and folders. Recordings lie below *folder* as the scenarios lie
            below the innermost folder that holds all that was named.
        folder: Of the recordings.

    Raises:
        KeepError: Two scenarios would have one recording, something is there already, or the folder
            cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise KeepError(f"{folder}: it is no folder; recordings are kept in one")
    tops = [os.path.abspath(each if each.is_dir() else each.parent) for each in named if each.exists()]
    top = os.path.commonpath(tops) if tops else ""
    taken: dict[Path, Path] = {}
    found: dict[Path, Path] = {}
    for file in files:
        place = folder / _without_toml(Path(os.path.relpath(os.path.abspath(file), top)))
        other = taken.setdefault(place, file)
        if os.path.abspath(other) != os.path.abspath(file):
            raise KeepError(f"{other} and {file} would both be recorded in {place}{SUFFIX}; rename one")
        try:
            there = _there(place)
        except OSError as problem:
            raise KeepError(f"{place.parent}: {problem.strerror or problem}") from problem
        if there is not None:
            raise KeepError(f"{there}: it exists already; recordings are kept in new files only")
        found[file] = place
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise KeepError(f"{folder}: it cannot be made: {problem.strerror or problem}") from problem
    return found


def _without_toml(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".toml" else path


def _there(place: Path) -> Path | None:
    """Return the recording of a first or further log that is there already."""
    ours = re.compile(rf"{re.escape(place.name)}(\.\d+)?{re.escape(SUFFIX)}")
    names = os.listdir(place.parent) if place.parent.is_dir() else ()
    return next((place.parent / name for name in sorted(names) if ours.fullmatch(name)), None)


def keep(played: Played, place: Path) -> None:
    """
    Write one recording a log; a second and third log of a scenario get their number into the name.

    Args:
        played: The run.
        place: The path without its suffix; folders are made.

    Raises:
        OSError: It cannot be written, or is there already; nothing is left of it.
        CodecError: An event does not go into JSON.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    for number, take in enumerate(played.takes, 1):
        steps = ((one.event, one.state, one.effects) for one in take.tape.steps)
        content = recording_bytes(take.tape.begun, steps)
        path = place.with_name(f"{place.name}{'' if number == 1 else f'.{number}'}{SUFFIX}")
        with path.open("xb") as file:
            try:
                file.write(content)
                file.flush()
            except BaseException:
                path.unlink()
                raise
