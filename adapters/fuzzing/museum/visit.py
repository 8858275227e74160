"""A visit: each exhibit is fuzzed until it is found, and the finding is shrunk."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import attrs

from stepfold.adapters.fuzzing.driver.machine import machine_of
from stepfold.adapters.fuzzing.driver.rules import Rule
from stepfold.adapters.fuzzing.driver.runs import Driver
from stepfold.adapters.fuzzing.driver.search import Search
from stepfold.adapters.fuzzing.findings.shrinking import shrink
from stepfold.adapters.fuzzing.findings.shrunk import SHAPE, breaks
from stepfold.adapters.fuzzing.museum.planting import Exhibit
from stepfold.adapters.testing.world import ALL_FAULTS
from stepfold.engine.table import TABLE


@attrs.frozen
class Visit:
    """
    What became of one exhibit.

    Args:
        exhibit: The fault.
        rule: What it broke; None where it was not found.
        words: What was seen.
        events: The events of the shortest run that shows it.
        runs: Runs until it was found.
        seconds: CPU seconds until it was found.
    """

    exhibit: Exhibit
    rule: Rule | None
    words: str
    events: tuple[str, ...]
    runs: int
    seconds: float

    @property
    def found(self) -> bool:
        """Whether the fuzzer found it."""
        return self.rule is not None

    def line(self) -> str:
        """Return what is printed for people."""
        if self.rule is None:
            return f"NOT FOUND {self.exhibit.name}: {self.runs:,} runs in {self.seconds:.1f} s"
        return (
            f"{self.exhibit.name}: {self.rule}\n"
            f"    {len(self.events)} events, found in run {self.runs:,} ({self.seconds:.1f} s): "
            f"{' '.join(self.events)}"
        )

    def json(self) -> dict[str, object]:
        """Return what is printed for programs."""
        return {
            "exhibit": self.exhibit.name,
            "planted": self.exhibit.planted,
            "story": self.exhibit.story,
            "found": self.found,
            "rule": None if self.rule is None else self.rule.name.lower(),
            "words": self.words,
            "events": list(self.events),
            "runs": self.runs,
            "seconds": round(self.seconds, 2),
        }


def visits(exhibits: Iterable[Exhibit], *, seconds: float, seed: int) -> Iterator[Visit]:
    """Yield what becomes of each exhibit in at most *seconds* of CPU."""
    for exhibit in exhibits:
        yield visit(exhibit, seconds=seconds, seed=seed)


def visit(exhibit: Exhibit, *, seconds: float, seed: int) -> Visit:
    """Fuzz one exhibit for at most *seconds* of CPU, and shrink what is found."""
    driver = Driver(machine_of(exhibit.plant(TABLE)))
    search = Search(driver, seed, exhibit.faults or ALL_FAULTS)
    begun = time.process_time()
    spent = 0.0
    while spent < seconds:
        broken = search.one().broken
        spent = time.process_time() - begun
        if broken is None:
            continue
        tape = search.tally.broken[broken.rule]
        shrunk = shrink(tape, SHAPE, breaks(driver, broken.rule))
        played = driver.play(shrunk.tape, keep=True)
        assert played.broken is not None
        names = tuple(type(event).__name__ for event in played.events)
        return Visit(exhibit, broken.rule, played.broken.words, names, search.tally.runs, spent)
    return Visit(exhibit, None, "", (), search.tally.runs, spent)
