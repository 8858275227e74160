"""The limits that hold in every run, counted again from what was ordered (specification, section 9)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs

from stepfold.adapters.scenarios.playing.tape import Step, Tape
from stepfold.engine import Config
from stepfold.engine.config import thresholds_of
from stepfold.engine.effects import CallModel, Compact, CompactReason, Continued, Show, Wait
from stepfold.engine.events import Compacted, CompactionFailed, RunStarted
from stepfold.engine.measure import measure
from stepfold.engine.state import Continue

ABOVE_RECOVERIES = frozenset(
    {Continue.NEXT_TURN, Continue.TOKEN_BUDGET_CONTINUATION, Continue.STOP_HOOK_BLOCKING}
)
ABOVE_REACTIVE = frozenset({Continue.NEXT_TURN, Continue.TOKEN_BUDGET_CONTINUATION})
BETWEEN_RESETS = (
    # how often a continue may be taken before one of those that reset it
    (Continue.MAX_OUTPUT_TOKENS_ESCALATE, ABOVE_RECOVERIES),
    (Continue.MAX_OUTPUT_TOKENS_RECOVERY, ABOVE_RECOVERIES),
    (Continue.REACTIVE_COMPACT_RETRY, ABOVE_REACTIVE),
)


def limit_violations(tape: Tape) -> Iterator[str]:
    """Return what went over a limit of the run."""
    config = tape.begun.config
    run: list[Step] = []
    for one in (*tape.steps, None):
        if one is None or isinstance(one.event, RunStarted):
            yield from _continues(run, config)
            yield from _calls(run, config)
            yield from _compactions(run, config)
            yield from _measure(run, config)
            run = []
        if one is not None:
            run.append(one)


def _continues(run: list[Step], config: Config) -> Iterator[str]:
    taken = [
        Continue(effect.item.reason)
        for one in run
        for effect in one.effects
        if isinstance(effect, Show) and isinstance(effect.item, Continued)
    ]
    allowed = {
        Continue.MAX_OUTPUT_TOKENS_ESCALATE: 1,
        Continue.MAX_OUTPUT_TOKENS_RECOVERY: config.max_output_recoveries,
        Continue.REACTIVE_COMPACT_RETRY: 1,
    }
    for reason, resets in BETWEEN_RESETS:
        count = 0
        for other in taken:
            count = 0 if other in resets else count + (other is reason)
            if count > allowed[reason]:
                yield f"{reason} was taken more than {allowed[reason]} times between two resets"
                break
    drain = Continue.COLLAPSE_DRAIN_RETRY
    if any(a is b is drain for a, b in pairwise(taken)):
        yield f"{drain} was taken twice in a row"
    blocks = sum(hook.max_blocks for hook in config.stop_hooks)
    if taken.count(Continue.STOP_HOOK_BLOCKING) > blocks:
        yield f"stop hooks blocked more than {blocks} times"
    turns = taken.count(Continue.NEXT_TURN)
    if config.max_turns is not None and turns > config.max_turns - 1:
        yield f"{turns + 1} turns, {config.max_turns} allowed"


def _calls(run: list[Step], config: Config) -> Iterator[str]:
    limit = config.max_model_calls
    made = sum(isinstance(effect, CallModel | Compact) for one in run for effect in one.effects)
    if limit is not None and made > limit:
        yield f"{made} requests, {limit} allowed"


def _measure(run: list[Step], config: Config) -> Iterator[str]:
    """
    The measure falls with every continue and every request, retry or wait; it never rises.

    Without a limit of turns that holds from one turn to the next only.
    """
    endless = config.max_turns is None and not config.nested
    before: tuple[int, ...] | None = None  # at the last request or wait
    last: tuple[int, ...] | None = None
    for number, one in enumerate(run, 1):
        now = measure(one.state.control, config)
        event = type(one.event).__name__
        orders = any(isinstance(effect, CallModel | Compact | Wait) for effect in one.effects)
        if endless and _took(one, Continue.NEXT_TURN):
            before = last = None
        if last is not None and now > last:
            yield f"the measure rose from {last} to {now} with event {number} of the run ({event})"
            return
        if orders and before is not None and now >= before:
            yield f"the measure did not fall: {before}, then {now} with event {number} of the run ({event})"
            return
        before = now if orders else before
        last = now


@attrs.define
class _Breaker:
    """Counts failed compactions in a row, as the specification words it."""

    failures: int = 0
    open: Compact | None = None


def _compactions(run: list[Step], config: Config) -> Iterator[str]:
    """After so many failures in a row autocompact is not tried any more."""
    breaker = _Breaker()
    limits = {spec.name: thresholds_of(spec).autocompact for spec in config.all_models}
    for one in run:
        order = breaker.open
        if order is not None and isinstance(one.event, Compacted | CompactionFailed):
            breaker.open = None
            _count(breaker, order, one, limits)
        for effect in one.effects:
            if isinstance(effect, Compact):
                breaker.open = effect
                automatic = effect.reason is CompactReason.AUTO and effect.attempt == 0
                if automatic and breaker.failures >= config.max_compaction_failures:
                    yield f"autocompact was tried after {breaker.failures} failures in a row"


def _count(breaker: _Breaker, order: Compact, one: Step, limits: dict[str, int]) -> None:
    again = any(isinstance(effect, Compact) and effect.attempt > order.attempt for effect in one.effects)
    if order.reason is CompactReason.REACTIVE:
        breaker.failures += not _took(one, Continue.REACTIVE_COMPACT_RETRY) and not again
    elif isinstance(one.event, Compacted) and one.event.tokens < limits[order.model]:
        breaker.failures = 0
    else:
        breaker.failures += not again


def _took(one: Step, reason: Continue) -> bool:
    """Return whether the loop went round for *reason* in this step."""
    return any(
        isinstance(effect, Show) and isinstance(effect.item, Continued) and effect.item.reason == reason
        for effect in one.effects
    )
