"""
A session: searches in several processes, what they have come to, and what was found.

Each worker searches for a slice of time from a seed of its own and returns its
tally; the corpora are put together between the slices.  Any
``concurrent.futures.Executor`` runs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Final

import attrs

from stepfold.adapters.fuzzing.driver.machine import machine_of
from stepfold.adapters.fuzzing.driver.rules import Rule
from stepfold.adapters.fuzzing.driver.runs import Driver
from stepfold.adapters.fuzzing.driver.search import Player, Search
from stepfold.adapters.fuzzing.targets.live import LiveDriver
from stepfold.adapters.fuzzing.targets.target import AgentTarget, invariant_of, target_of
from stepfold.adapters.testing.world import ALL_FAULTS, Fault

SLICE_S: Final = 2.0
HANDED_ON: Final = 400  # choices that a slice begins with, beside those it makes


@attrs.frozen(kw_only=True)
class Wanted:
    """
    What is fuzzed, and how.

    Args:
        target: As ``target_of`` reads it.
        invariants: As ``invariant_of`` reads them.
        faults: What the world may do.
        seed: Where all choices come from.
        seconds: How long, of the clock on the wall.
        workers: How many searches beside each other.
    """

    target: str = ""
    invariants: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = tuple(ALL_FAULTS)
    seed: int = 0
    seconds: float = 60.0
    workers: int = 1


@attrs.frozen
class Slice:
    """What one search has come to; it travels between processes."""

    runs: int
    steps: int
    rows: dict[int, int]
    ways: tuple[int, ...]
    worst_calls: int
    worst_cost: int
    corpus: tuple[bytes, ...]
    broken: dict[Rule, bytes]
    printed: tuple[str, bytes] | None = None


@attrs.define
class Total:
    """What all searches have come to."""

    runs: int = 0
    steps: int = 0
    rows: dict[int, int] = attrs.field(factory=dict)
    ways: set[int] = attrs.field(factory=set)
    worst_calls: int = 0
    worst_cost: int = 0
    corpus: dict[bytes, None] = attrs.field(factory=dict)
    broken: dict[Rule, bytes] = attrs.field(factory=dict)
    printed: tuple[str, bytes] | None = None
    seconds: float = 0.0

    def add(self, part: Slice) -> None:
        """Put the tally of one slice to the others."""
        self.runs += part.runs
        self.steps += part.steps
        for row, times in part.rows.items():
            self.rows[row] = self.rows.get(row, 0) + times
        self.ways.update(part.ways)
        self.worst_calls = max(self.worst_calls, part.worst_calls)
        self.worst_cost = max(self.worst_cost, part.worst_cost)
        self.corpus.update(dict.fromkeys(part.corpus))
        for rule, tape in part.broken.items():
            self.broken.setdefault(rule, tape)
        self.printed = self.printed or part.printed

    @property
    def runs_a_second(self) -> float:
        """How many runs a second of the clock, over all workers."""
        return self.runs / self.seconds if self.seconds else 0.0


def player_of(wanted: Wanted) -> Player:
    """Return what plays the runs of *wanted*; raises ``BadTarget``."""
    target = target_of(wanted.target)
    invariants = tuple(map(invariant_of, wanted.invariants))
    if isinstance(target, AgentTarget):
        return LiveDriver(target, machine_of(), invariants)
    return Driver(machine_of(), invariants, target.config)


def search_slice(wanted: Wanted, seed: int, corpus: tuple[bytes, ...], seconds: float) -> Slice:
    """Search for so many seconds; this is what a worker does."""
    player = player_of(wanted)
    search = Search(player, seed, wanted.faults, corpus)
    until = time.monotonic() + seconds
    while time.monotonic() < until and not search.tally.broken:
        search.one()
    tally = search.tally
    return Slice(
        tally.runs,
        tally.steps,
        tally.rows,
        tuple(tally.ways),
        tally.worst_calls,
        tally.worst_cost,
        tally.corpus,
        tally.broken,
        getattr(player, "printed", None),
    )


def fuzz(
    wanted: Wanted,
    executor: Executor,
    corpus: tuple[bytes, ...] = (),
    told: Callable[[Total], None] = lambda total: None,
) -> Total:
    """
    Search until the time is over, or something is found.

    Args:
        wanted: What, and how.
        executor: Runs the slices.
        corpus: Choices to begin with.
        told: Called with the total after each round.
    """
    total = Total()
    begun = time.monotonic()
    known = corpus
    for number in _numbers():
        left = wanted.seconds - (time.monotonic() - begun)
        if left <= 0 and number:
            break
        seconds = max(0.05, min(SLICE_S, left))
        parts = [
            executor.submit(search_slice, wanted, wanted.seed + 1_000_003 * number + place, known, seconds)
            for place in range(wanted.workers)
        ]
        for part in parts:
            total.add(part.result())
        total.seconds = time.monotonic() - begun
        told(total)
        if total.broken:
            break
        known = tuple(total.corpus)[-HANDED_ON:]
    return total


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1
