"""
The worst case in closed form: derived by hand, held against the exhaustive search for small limits.

Without a limit on requests the worst run spends the lowest rung that it can,
each time; everything below a rung is given back when the rung is spent, so the
numbers multiply (``rungs``).  With ``max_model_calls`` the worst run is the one
whose first so many requests cost most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Final, TypeAlias

import attrs

from stepfold.adapters.proof.worst.dearest import dearest_of
from stepfold.adapters.proof.worst.plans import Trip, compacting, exhausting, hooking, turning, waiting
from stepfold.adapters.proof.worst.quantities import Quantity
from stepfold.adapters.proof.worst.rungs import FOREVER, Prices, Rungs, money_prices, output_prices, rungs_of
from stepfold.engine.config import Config

EXACT_REQUESTS: Final = 20_000  # of ``max_model_calls``, up to which the dearest requests are picked exactly
Plan: TypeAlias = Callable[[], Iterable[Trip]]


@attrs.frozen
class Bound:
    """No run costs more than ``most`` (FOREVER or more: there is no bound); ``plan`` is a run that should."""

    most: int
    plan: Plan


def bounds(config: Config) -> dict[Quantity, Bound]:
    """
    Return the most that a run can cost, and how; the cost is left out where a price is not known.

    Assumes that no process dies, that every compaction finds rounds to drop,
    and that nothing is staged before the run.
    """
    rungs, money = rungs_of(config), money_prices(config)
    if not rungs.runs:
        nothing = Bound(0, tuple)
        return {quantity: nothing for quantity in Quantity if quantity is not Quantity.COST or money}
    found = {
        Quantity.MODEL_CALLS: _requests(rungs),
        Quantity.TOOL_ROUNDS: Bound(min(rungs.requests, rungs.turns), lambda: turning(rungs)),
        Quantity.COMPACTIONS: _compactions(rungs),
        Quantity.HOOK_RUNS: Bound(_hook_runs(rungs), lambda: hooking(rungs)),
        Quantity.WAITS_MS: _waits(rungs),
        Quantity.OUTPUT_TOKENS: _dearest(rungs, output_prices(config)),
    }
    return {**found, Quantity.COST: _dearest(rungs, money)} if money else found


def closed_forms(config: Config) -> dict[Quantity, int]:
    """Return the numbers of ``bounds`` alone."""
    return {quantity: bound.most for quantity, bound in bounds(config).items()}


def _free(rungs: Rungs) -> bool:
    """Return whether no run comes to the limit on requests, or nothing limits anything."""
    endless = rungs.turns >= FOREVER and rungs.requests >= FOREVER
    return endless or rungs.calls() + rungs.summaries() <= rungs.requests


def _requests(rungs: Rungs) -> Bound:
    most = min(rungs.requests, rungs.calls() + rungs.summaries())
    asks = 0 if rungs.calls() >= most and not rungs.reacts else None
    return Bound(most, lambda: exhausting(rungs, asks))


def _compactions(rungs: Rungs) -> Bound:
    """
    Every trip may begin with a compaction, and a reaction stands between two trips.

    Under a limit on requests the calls between them are kept as few as they
    may be: of n calls every second can end in a reaction.
    """
    if _free(rungs) or rungs.drains:
        return Bound(min(rungs.summaries(), rungs.requests), lambda: exhausting(rungs, calls=1))
    best = (0, 0)
    for calls in range(min(rungs.requests, EXACT_REQUESTS) + 1):
        begun = min(calls + 1, rungs.trips) * rungs.compacts
        reacted = min(rungs.reactions, (calls + 1) // 2)
        room, left = rungs.asks * (begun + reacted), rungs.requests - calls
        best = max(best, (min(room, left), -calls))
        if room >= left:
            break
    return Bound(best[0], lambda: compacting(rungs, -best[1]))


def _hook_runs(rungs: Rungs) -> int:
    """
    Stop hooks run after every answer of a run that calls no tool.

    All are asked as long as none has spent its blocks; each blocks alone, and
    all but the last block of each come first.
    """
    hooks, blocks = len(rungs.hooks), rungs.blocks
    if not hooks:
        return 0
    together = min(rungs.requests, rungs.budget + blocks - hooks + 1)
    alone = min(hooks - 1, rungs.requests - together)
    return hooks * together + sum(hooks - 1 - place for place in range(alone))


def _waits(rungs: Rungs) -> Bound:
    """Every call fails as often as it may; a reaction costs a request and brings another trip."""
    waited = (0, *accumulate(rungs.waits_ms))
    best, trips = (0, 0), rungs.steady * (1 + rungs.drains)
    for reactions in range(min(rungs.reactions, EXACT_REQUESTS) + 1):
        left = max(0, rungs.requests - reactions)
        rounds = (trips + reactions * (1 + rungs.drains)) * rungs.sends + rungs.fallbacks
        whole = min(rounds, left // rungs.tries)
        more = left - whole * rungs.tries if whole < rounds else 0
        total = whole * waited[-1] + waited[min(more, len(waited) - 1)]
        best = max(best, (total, -reactions))
        if whole < rounds:
            break
    if rungs.reactions > EXACT_REQUESTS and whole == rounds:
        return Bound((rungs.trips * rungs.sends + rungs.fallbacks) * waited[-1], tuple)
    return Bound(best[0], lambda: waiting(rungs, -best[1]))


def _dearest(rungs: Rungs, prices: Prices) -> Bound:
    """All requests together count most where the dearest are made."""
    calls, summaries = rungs.calls(), rungs.summaries()
    if _free(rungs):
        plain = rungs.narrow * rungs.calls_in_a_trip * (1 + rungs.drains) if rungs.raises else 0
        answers = plain * prices.answer + (calls - plain) * prices.raised
        return Bound(answers + summaries * prices.summary, lambda: exhausting(rungs))
    if rungs.requests > EXACT_REQUESTS or rungs.drains:
        highest = max(prices.raised, prices.summary) if summaries else prices.raised
        return Bound(rungs.requests * highest, tuple)
    found = dearest_of(rungs, prices)
    return Bound(found.worth, lambda: found.plan)
