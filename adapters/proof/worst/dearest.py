"""
What the first so many requests of a run can count at most, where a limit on requests cuts the run short.

The choices are few: at the begin of a trip how many summaries, then how many
calls, then what leads to the next trip.  ``table[n]`` is the most that n more
requests count.  First as if wide stretches never ran out; only where the best
run would need more of them than there are, one more at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import product
from typing import Final, TypeAlias

import attrs

from stepfold.adapters.proof.worst.plans import Trip, Way
from stepfold.adapters.proof.worst.rungs import Prices, Rungs

Table: TypeAlias = list[int]
Place: TypeAlias = tuple[int, int, bool, int, bool]  # fallbacks and blocks left, raised, recoveries, reacted
WORK_MAX: Final = 3_000_000  # entries of tables; more would take half a minute
FREE_MAX: Final = 100_000  # the same of those that are always made
SCALE: Final = 10**9  # what counts, in units of one wide stretch: of equal runs the one with fewer is best


@attrs.frozen
class Dearest:
    """The most that the requests count (an upper bound without a ``plan``), and the trips of that run."""

    worth: int
    plan: tuple[Trip, ...] = ()


def dearest_of(rungs: Rungs, prices: Prices) -> Dearest:
    """Return what ``rungs.requests`` requests count at most; an upper bound where that takes too long."""
    entries = rungs.requests + 1
    scaled = Prices(prices.answer * SCALE, prices.raised * SCALE, prices.summary * SCALE)
    narrow = attrs.evolve(rungs, hooks=())
    loops = _count(narrow) * entries > FREE_MAX
    if loops:  # no run has more recoveries than requests; fewer may make it less
        narrow = attrs.evolve(narrow, recoveries=0)
    if _count(narrow) * entries > WORK_MAX:
        return Dearest(rungs.requests * max(attrs.astuple(prices)))
    free = _Tables(narrow, scaled, loops=loops)
    free.fill(None)
    worth = -(-free.whole // SCALE)
    if loops and rungs.recoveries < rungs.requests:
        return Dearest(worth)
    if -free.whole % SCALE < rungs.wide:
        return Dearest(worth, tuple(_trips([free], 0)))
    sweeps: list[_Tables] = []
    for number in range(1, rungs.wide + 1):
        if number * _count(rungs) * entries > WORK_MAX:
            return Dearest(worth)
        sweeps.append(_Tables(rungs, prices))
        sweeps[-1].fill(sweeps[-2] if len(sweeps) > 1 else None, endless=False)
    return Dearest(sweeps[-1].whole, tuple(_trips(sweeps, 1)))


class _Tables:
    """
    The tables of one question, made together, from few requests to many.

    Where it *loops*, a further recovery is always left: it leads to where it came from.
    """

    def __init__(self, rungs: Rungs, prices: Prices, loops: bool = False) -> None:
        self.rungs = rungs
        self.prices = prices
        self.loops = loops
        self.places = _places(rungs)
        self.begun: dict[Place, Table] = {
            place: [] for place in self.places
        }  # before the summaries of a trip
        self.called: dict[Place, Table] = {place: [] for place in self.places}  # before its calls
        self.left: dict[Place, Table] = {place: [] for place in self.places}  # behind them

    @property
    def first(self) -> Place:
        """Where a run begins."""
        return (self.rungs.fallbacks, self.rungs.blocks, *self.opening)

    @property
    def opening(self) -> tuple[bool, int, bool]:
        """How a wide stretch begins."""
        return (not self.rungs.raises, 0, not self.rungs.reacts)

    @property
    def whole(self) -> int:
        """What all requests count."""
        return self.begun[self.first][-1]

    def fill(self, before: _Tables | None, endless: bool = True) -> None:
        """Make the tables; a wide stretch more leads into *before*, or costs 1 where they are *endless*."""
        asks, worth = self.rungs.asks, self.prices.summary
        calls = {place: self._windows(place) for place in self.places}
        asked = {place: _Window(self.called[place], worth, 0, asks) for place in self.places}
        reacted = {place: _Window(self.begun[place], worth, 1, asks) for place in self.places}
        for left in range(self.rungs.requests + 1):
            for place in self.places:
                self.called[place].append(max(window.most(left) for window in calls[place]))
                begun = asked[place].most(left) if self.rungs.compacts else self.called[place][-1]
                self.begun[place].append(begun)
            behind = {place: reacted[place].most(left) for place in self.places}
            for place in self.places:
                ways = [self.begun[after][left] for _, after in self.ways(place)]
                if not place[4]:
                    ways.append(behind[*place[:4], True])
                if endless:
                    ways.append(self.begun[place[0], place[1], *self.opening][left] - 1)
                elif before is not None:
                    ways.append(before.begun[place[0], place[1], *self.opening][left])
                self.left[place].append(max(0, *ways) if ways else 0)

    def _windows(self, place: Place) -> list[_Window]:
        one, tries = self.rungs.calls_in_a_trip, self.rungs.tries
        return [
            _Window(
                self.left[place[0] - spent, *place[1:]], self.worth(place), 1 + spent, one + spent * tries
            )
            for spent in range(place[0] + 1)
        ]

    def worth(self, place: Place) -> int:
        """Return what a call counts there."""
        return self.prices.raised if place[2] else self.prices.answer

    def ways(self, place: Place) -> Iterator[tuple[Way, Place]]:
        """Yield what leads to the next trip without a summary and inside the wide stretch."""
        fallbacks, blocks, raised, used, reacted = place
        if not raised:
            yield Way.CUT, (fallbacks, blocks, True, used, reacted)
        elif self.loops:
            yield Way.CUT, place
        elif used < self.rungs.recoveries:
            yield Way.CUT, (fallbacks, blocks, True, used + 1, reacted)
        if blocks:
            yield Way.BLOCK, (fallbacks, blocks - 1, not self.rungs.raises, 0, reacted)


def _count(rungs: Rungs) -> int:
    """Return how many places there are, without making them."""
    ladder = rungs.recoveries + 1 + rungs.raises
    return (rungs.fallbacks + 1) * (rungs.blocks + 1) * ladder * (1 + rungs.reacts)


def _places(rungs: Rungs) -> list[Place]:
    raised = (True, False) if rungs.raises else (True,)
    reacted = (True, False) if rungs.reacts else (True,)
    every = product(
        range(rungs.fallbacks + 1), range(rungs.blocks + 1), raised, range(rungs.recoveries + 1), reacted
    )
    return [place for place in every if place[2] or not place[3]]


class _Window:
    """*least* to *most* requests that count *worth* each, before what *after* says of the rest."""

    def __init__(self, after: Table, worth: int, least: int, most: int) -> None:
        self.after = after
        self.worth = worth
        self.least = least
        self.width = most
        self.kept: deque[tuple[int, int]] = deque()  # (requests left after them, what those count beyond)
        self.next = 0

    def most(self, left: int) -> int:
        """Return the most that *left* requests count; asked for from few to many."""
        while self.next <= left - self.least:
            gain = self.after[self.next] - self.next * self.worth
            while self.kept and self.kept[-1][1] <= gain:
                self.kept.pop()
            self.kept.append((self.next, gain))
            self.next += 1
        while self.kept and self.kept[0][0] < left - self.width:
            self.kept.popleft()
        return left * self.worth + self.kept[0][1] if self.kept else left * self.worth


# ------------------------------------------------------------------- the run itself


def _trips(sweeps: list[_Tables], fewer: int) -> Iterator[Trip]:
    """Yield the trips of the run that counts most; each wide stretch goes *fewer* tables back."""
    at = len(sweeps) - 1
    place, left = sweeps[at].first, sweeps[at].rungs.requests
    while left > 0:
        tables = sweeps[at]
        asks = _summaries(tables, place, left)
        left -= asks
        spent, calls = _calls(tables, place, left)
        left -= calls
        place = (place[0] - spent, *place[1:])
        way, again, after = _way(sweeps, at, place, left, fewer)
        yield Trip(way, calls, asks, again)
        left -= again
        at -= fewer * (way is Way.WIDE)
        place = after


def _summaries(tables: _Tables, place: Place, left: int) -> int:
    if not tables.rungs.compacts:
        return 0
    wanted = tables.begun[place][left]
    worth, called = tables.prices.summary, tables.called[place]
    return next(n for n in range(min(tables.rungs.asks, left) + 1) if n * worth + called[left - n] == wanted)


def _calls(tables: _Tables, place: Place, left: int) -> tuple[int, int]:
    """Return how many fallbacks and calls the best trip has."""
    rungs, worth, wanted = tables.rungs, tables.worth(place), tables.called[place][left]
    for spent in range(place[0] + 1):
        after = tables.left[place[0] - spent, *place[1:]]
        for calls in range(1 + spent, min(left, rungs.calls_in_a_trip + spent * rungs.tries) + 1):
            if calls * worth + after[left - calls] == wanted:
                return spent, calls
    return 0, left


def _way(sweeps: list[_Tables], at: int, place: Place, left: int, fewer: int) -> tuple[Way, int, Place]:
    """Return what leads to the next trip, the summaries on the way, and where it leads."""
    tables = sweeps[at]
    wanted = tables.left[place][left]
    for way, after in tables.ways(place):
        if tables.begun[after][left] == wanted:
            return way, 0, after
    if not place[4]:
        after = (*place[:4], True)
        for asks in range(1, min(tables.rungs.asks, left) + 1):
            if asks * tables.prices.summary + tables.begun[after][left - asks] == wanted:
                return Way.REACT, asks, after
    after = (place[0], place[1], *tables.opening)
    if not fewer or at:
        return Way.WIDE, 0, after
    return Way.END, 0, after
