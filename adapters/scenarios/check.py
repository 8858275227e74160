"""Plays scenario files and says what differs: the logic of ``stepfold check``."""

from __future__ import annotations

import json as jsons
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TextIO

import attrs

from stepfold.adapters.codec import CodecError
from stepfold.adapters.scenarios.format import Scenario
from stepfold.adapters.scenarios.judging.crashes import crash_violations
from stepfold.adapters.scenarios.judging.expect import differences
from stepfold.adapters.scenarios.judging.invariants import violations
from stepfold.adapters.scenarios.keeping import keep, places
from stepfold.adapters.scenarios.playing.play import Played, play
from stepfold.adapters.scenarios.reading.load import load
from stepfold.adapters.toml.reader import Malformed

ALL_OK: Final = 0
SOME_FAILED: Final = 1
MALFORMED: Final = 2


@attrs.frozen
class Verdict:
    """A scenario that was played; ``played`` is None where playing broke off."""

    name: str
    title: str
    differences: tuple[str, ...]
    played: Played | None = None

    @property
    def ok(self) -> bool:
        """Whether everything is as expected."""
        return not self.differences

    def line(self) -> str:
        """Return what is printed for people."""
        return f"ok  {self.name}" if self.ok else f"FAIL {self.name}: {'; '.join(self.differences)}"

    def json(self) -> dict[str, object]:
        """Return what is printed for programs."""
        seen = None if self.played is None else self.played.observed
        return {
            "scenario": self.name,
            "title": self.title,
            "ok": self.ok,
            "differences": list(self.differences),
            "terminal": None if seen is None else seen.last.terminal,
            "terminals": [] if seen is None else [run.terminal for run in seen.runs],
            "transitions": [] if seen is None else list(seen.last.transitions),
            "model_calls": 0 if seen is None else len(seen.journal.requests),
        }


@attrs.frozen
class Refusal:
    """A file that cannot be played."""

    name: str
    problem: str
    line_number: int = 0
    key: str = ""
    allowed: str = ""

    def line(self) -> str:
        """Return what is printed for people."""
        return f"MALFORMED {self.problem}"

    def json(self) -> dict[str, object]:
        """Return what is printed for programs."""
        return {
            "scenario": self.name,
            "title": "",
            "ok": False,
            "differences": [self.problem],
            "terminal": None,
            "terminals": [],
            "transitions": [],
            "model_calls": 0,
            "error": self.problem,
            "line": self.line_number,
            "key": self.key,
            "allowed": self.allowed,
        }


def check_paths(
    paths: Iterable[str | Path], *, json: bool = False, record_dir: str | Path | None = None, out: TextIO
) -> int:
    """
    Play every scenario of *paths* and print what came of it, one line each.

    Args:
        paths: Files, and folders that are searched for ``*.toml``.
        json: One JSON object a line, and nothing else.
        record_dir: Where to keep each recording (see ``keeping.places``); made if it is not there.
        out: Where to print.

    Returns:
        0 all as expected, 1 any failed, 2 a file or a path is unusable (2 wins over 1).

    Raises:
        KeepError: A recording cannot have a file of its own; nothing was played.
    """
    counts = {Verdict: 0, Refusal: 0}
    good = 0
    for outcome in _outcomes(map(Path, paths), None if record_dir is None else Path(record_dir)):
        line = jsons.dumps(outcome.json(), ensure_ascii=False) if json else outcome.line()
        print(line, file=out, flush=True)
        counts[type(outcome)] += 1
        good += isinstance(outcome, Verdict) and outcome.ok
    if not json:
        print(_count(good, counts[Verdict] - good, counts[Refusal]), file=out, flush=True)
    if counts[Refusal]:
        return MALFORMED
    return ALL_OK if good == counts[Verdict] else SOME_FAILED


def _count(good: int, failed: int, malformed: int) -> str:
    words = [f"{good + failed + malformed} scenarios: {good} ok", f"{failed} failed"]
    return ", ".join([*words, f"{malformed} malformed"] if malformed else words)


def _outcomes(named: Iterable[Path], record_dir: Path | None) -> Iterator[Verdict | Refusal]:
    paths = list(named)
    found = [each for path in paths for each in _files(path)]
    files = list(dict.fromkeys(file for file in found if isinstance(file, Path)))
    kept = {} if record_dir is None else dict(places(files, paths, record_dir))
    for each in found:
        yield each if isinstance(each, Refusal) else _checked(each, kept.pop(each, None))


def _files(path: Path) -> Iterator[Path | Refusal]:
    """Yield the scenarios that *path* names."""
    if path.is_dir():
        yield from (found := sorted(path.rglob("*.toml")))
        if found:
            return
    elif path.exists():
        yield path
        return
    what = "no scenario files (*.toml) in this folder" if path.is_dir() else "no such file or folder"
    yield Refusal(str(path), f"{path}: {what}", allowed="a .toml file or a folder of them")


def check_file(file: Path, record_dir: Path | None = None) -> Verdict | Refusal:
    """
    Play the scenario in *file*.

    Args:
        file: The file.
        record_dir: Where to keep its recording, under the name of the file, or None.
    """
    return _checked(file, None if record_dir is None else record_dir / file.stem)


def _checked(file: Path, place: Path | None) -> Verdict | Refusal:
    try:
        scenario = load(file)
    except Malformed as problem:
        return Refusal(str(file), str(problem), problem.line, problem.key, problem.allowed)
    verdict = judge(scenario, str(file))
    if place is not None and verdict.played is not None:
        try:
            keep(verdict.played, place)
        except (OSError, CodecError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else None
            words = f"{place}.jsonl: the recording cannot be kept: {why or problem}"
            return Refusal(str(file), words, allowed="a folder that can be written to")
    return verdict


def judge(scenario: Scenario, name: str) -> Verdict:
    """Play *scenario*; whatever breaks it off is a difference too."""
    played: Played | None = None
    found: list[str] = []
    try:
        played = play(scenario)
        found += played.observed.journal.problems
        found += differences(scenario.expect, played.observed)
        found += violations(played)
        found += crash_violations(played)
    except Exception as problem:  # a bug of the loop or of the world: this scenario fails, the others go on
        found.append(f"the {'check' if played else 'run'} broke off: {type(problem).__name__}: {problem}")
    return Verdict(name, scenario.title, tuple(" ".join(one.split()) for one in found), played)
