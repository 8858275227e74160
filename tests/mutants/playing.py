"""Playing the kept scenarios, cheap checks first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stepfold.adapters.scenarios.format import Scenario
from stepfold.adapters.scenarios.judging.crashes import crash_violations
from stepfold.adapters.scenarios.judging.expect import differences
from stepfold.adapters.scenarios.judging.invariants import violations
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import load

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def scenario(name: str) -> Scenario:
    """Return one of the kept scenarios, by its path below their folder, without suffix."""
    return load(SCENARIOS / f"{name}.toml")


def complaint(played: Scenario) -> str:
    """Return the first thing that is wrong with a scenario, or ""; a run that breaks off is wrong too."""
    try:
        return next(_complaints(played), "")
    except Exception as problem:  # a fault may break off the run, or the check of it
        return f"broke off: {type(problem).__name__}: {problem}"


def _complaints(given: Scenario) -> Iterator[str]:
    played = play(given)
    found: Iterable[str] = (
        *played.observed.journal.problems,
        *differences(given.expect, played.observed),
    )
    yield from found
    yield from violations(played)
    yield from crash_violations(played)
