"""
How the worst run goes, trip by trip: what is to be acted out against the real ``step``.

A plan is what the closed forms say in another form; whether it costs what they
say is seen when it is played.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from itertools import chain, count, repeat

import attrs

from stepfold.adapters.proof.worst.rungs import FOREVER, Rungs


class Way(enum.Enum):
    """What ends a trip."""

    CUT = "an answer that is cut: the limit is raised, or the answer resumed"
    REACT = "a prompt that is too long: reactive compaction"
    BLOCK = "a stop hook that blocks"
    WIDE = "a continuation of the token budget while there is one, else a tool"
    TURN = "a tool"
    END = "a tool, in the last turn"


@attrs.frozen
class Trip:
    """So many requests to the compactor, so many calls, what ends it, and the requests of a reaction."""

    way: Way
    calls: int = 1
    asks: int = 0
    reaction: int = 0


def exhausting(rungs: Rungs, asks: int | None = None, calls: int | None = None) -> Iterator[Trip]:
    """
    Yield a run that spends every rung.

    Args:
        rungs: What there is.
        asks: Requests of each compaction; all there are by default.
        calls: Calls in each trip; all there are by default.
    """
    asks = rungs.asks if asks is None else asks
    begun = asks * rungs.compacts
    most = rungs.calls_in_a_trip if calls is None else calls
    for place in range(rungs.wide) if rungs.turns < FOREVER else count():
        last = place == rungs.wide - 1
        blocks = rungs.blocks if not place else 0
        ways: Iterator[Way] = chain(
            repeat(Way.CUT, rungs.raises + rungs.recoveries),
            repeat(Way.REACT, rungs.reacts),
            *([Way.BLOCK, *repeat(Way.CUT, rungs.raises + rungs.recoveries)] for _ in range(blocks)),
            (Way.END if last else Way.WIDE,),
        )
        for way in ways:
            more = rungs.fallbacks * rungs.tries if way is Way.END and calls is None else 0
            yield Trip(way, most + more, begun, max(1, asks) if way is Way.REACT else 0)


def compacting(rungs: Rungs, calls: int) -> Iterator[Trip]:
    """
    Yield a run that asks the compactor as often as it can, with so many *calls* between.

    Each wide stretch holds a reaction and what ends it; trips that are still
    missing are put into the first of them.
    """
    more = max(0, calls + 1 - rungs.wide * (2 if rungs.reacts else 1))
    inside = rungs.raises + rungs.recoveries
    begun = rungs.asks * rungs.compacts
    for place in range(rungs.wide) if rungs.turns < FOREVER else count():
        ways: list[Way] = []
        cuts = min(more, inside)
        blocks = 0 if place else min(rungs.blocks, max(0, -(-(more - cuts) // (1 + inside))))
        ways += repeat(Way.CUT, cuts)
        more -= cuts
        ways += repeat(Way.REACT, rungs.reacts)
        for _ in range(blocks):
            cuts = min(max(0, more - 1), inside)
            ways += [Way.BLOCK, *repeat(Way.CUT, cuts)]
            more -= 1 + cuts
        ways.append(Way.END if place == rungs.wide - 1 else Way.WIDE)
        yield from (Trip(way, 1, begun, rungs.asks if way is Way.REACT else 0) for way in ways)


def waiting(rungs: Rungs, reactions: int) -> Iterator[Trip]:
    """Yield a run in which every call fails as often as it may, with so many *reactions*."""
    for trip in exhausting(rungs, asks=0):
        if trip.way is not Way.REACT:
            yield trip
        elif reactions:
            reactions -= 1
            yield trip


def turning(rungs: Rungs) -> Iterator[Trip]:
    """Yield a run of tools alone."""
    yield from repeat(Trip(Way.TURN), rungs.turns - 1)
    yield Trip(Way.END)


def hooking(rungs: Rungs) -> Iterator[Trip]:
    """Yield a run that asks the stop hooks after every answer: the budget's continuations first."""
    yield from repeat(Trip(Way.WIDE), rungs.budget)
    yield from repeat(Trip(Way.BLOCK), rungs.blocks)
    yield Trip(Way.END)
