"""
States that behave alike are one: the key by which, and the representative that is kept.

The key holds what a guard reads, or what a move makes of it: control, the
kind of the phase, the small scratch that can still decide.  Texts, messages,
ids and times are not in it.  A representative is trimmed to tiny data, so
that an exploration of any depth stays small.

A counter that is only ever compared with its limit is held as the quotient
{left, last}: "left" stands at one below the limit, and where it would reach
the limit both are explored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import attrs

from stepfold.engine.config import Config
from stepfold.engine.effects import Summarise
from stepfold.engine.events import Usage
from stepfold.engine.frozen import evolve
from stepfold.engine.history import History
from stepfold.engine.ids import Ids
from stepfold.engine.messages import Message, Origin, Role, Text
from stepfold.engine.phases import (
    Aborting,
    Call,
    CallState,
    Checking,
    Compacting,
    Done,
    Phase,
    Reacting,
    Reply,
    Running,
    Sampling,
)
from stepfold.engine.state import Batch, Continue, Control, Data, Fill, Ledger, Spending, State
from stepfold.engine.terminals import (
    AbortedStreaming,
    AbortedTools,
    BlockingLimit,
    Completed,
)

Key: TypeAlias = tuple[Any, ...]
Reduced: TypeAlias = tuple[tuple[str, int | None, bool], ...]
ANSWER: Final = Message(Role.ASSISTANT, (Text("x"),), Origin.ANSWER)
LOW: Final = 1_000  # tokens of a view that is under every threshold
COUNTERS: Final = ("turn", "retries", "resends", "model_calls", "compactor", "reactor")


@attrs.frozen
class Quotient:
    """Which of ``COUNTERS`` are held as {left, last}, and the view that stands for every view."""

    counters: frozenset[str]
    messages: History[Message]
    again: bool = False  # what a finished run leaves behind matters to a next one


def limit_of(name: str, config: Config) -> int | None:
    """Return what counter *name* is compared with, None where it is off."""
    match name:
        case "turn":
            return 1 if config.nested else config.max_turns
        case "retries":
            return config.max_retries
        case "resends":
            return config.max_resends
        case "compactor" | "reactor":
            return config.max_compactor_retries
        case _:
            return config.max_model_calls


def counter_of(name: str, control: Control) -> int:
    """Return counter *name* of *control*."""
    match name:
        case "turn":
            return control.turn
        case "retries":
            return control.attempts.retries
        case "resends":
            return control.attempts.resends
        case "compactor":
            return control.compaction.retries
        case "reactor":
            return control.compaction.reactive_retries
        case _:
            return control.spending.model_calls


def with_counter(name: str, control: Control, value: int) -> Control:
    """Return *control* with counter *name* at *value*."""
    if counter_of(name, control) == value:
        return control
    match name:
        case "turn":
            return evolve(control, turn=value)
        case "retries":
            return evolve(control, attempts=evolve(control.attempts, retries=value))
        case "resends":
            return evolve(control, attempts=evolve(control.attempts, resends=value))
        case "compactor":
            return evolve(control, compaction=evolve(control.compaction, retries=value))
        case "reactor":
            return evolve(control, compaction=evolve(control.compaction, reactive_retries=value))
        case _:
            return evolve(control, spending=evolve(control.spending, model_calls=value))


# ------------------------------------------------------------------- representatives


def reduced(config: Config, quotient: Quotient) -> Reduced:
    """Return the counters that are not exact, each with its limit and whether it is {left, last}."""
    limits = [(name, limit_of(name, config), name in quotient.counters) for name in COUNTERS]
    return tuple(each for each in limits if each[2] or each[1] is None)


def controls_of(before: Control, control: Control, config: Config, quotient: Quotient) -> list[Control]:
    """Return the controls that stand for *control*, which was reached from *before*."""
    return controls_by(before, control, config, reduced(config, quotient))


def controls_by(before: Control, control: Control, config: Config, counters: Reduced) -> list[Control]:
    """Return the same, for one who asks often: *counters* is what ``reduced`` says of the config."""
    controls = [_trimmed(control, config)]
    for name, limit, classed in counters:
        if classed:
            controls = [each for one in controls for each in _classes(name, before, one, limit)]
        elif counter_of(name, control) != (off := 1 if name == "turn" else 0):
            controls = [with_counter(name, one, off) for one in controls]
    return controls


def phase_of(state: State, quotient: Quotient) -> Phase:
    """Return the phase; where retries are {left, last}, rounds to drop are left until the last one is."""
    phase = state.phase
    if not isinstance(phase, Compacting | Reacting) or "compactor" not in quotient.counters:
        return phase
    if state.control.fill.last_round or len(phase.compact.head) >= len(quotient.messages):
        return phase
    return evolve(phase, compact=evolve(phase.compact, head=tuple(quotient.messages)))


def _classes(name: str, before: Control, control: Control, limit: int | None) -> Iterator[Control]:
    """Yield *control* with its counter at "left", at the limit, or at both where it has just got there."""
    value = counter_of(name, control)
    if limit is None:
        yield with_counter(name, control, 1)
        return
    left = max(limit - 1, 1 if name == "turn" else 0)
    if value < limit or (counter_of(name, before) < limit and left < limit):
        yield with_counter(name, control, left)
    if value >= limit:
        yield with_counter(name, control, limit)


def _trimmed(control: Control, config: Config) -> Control:
    """Return *control* with every number that only its class matters of at the least of its class."""
    limits = config.thresholds[control.attempts.fallbacks]
    fill, tokens = control.fill, min(max(LOW, control.fill.floor), limits.autocompact - 1)
    if fill.tokens >= limits.blocking:
        tokens = limits.blocking
    elif fill.tokens >= limits.autocompact:
        tokens = limits.autocompact
    attempts, book = control.attempts, control.compaction
    if tokens != fill.tokens:
        fill = Fill(tokens, fill.floor, fill.last_round)
    if attempts.overloads >= config.overloads_before_fallback:
        attempts = evolve(attempts, overloads=config.overloads_before_fallback - 1)
    if book.turns_since or book.failures > config.max_compaction_failures:
        book = evolve(book, turns_since=0, failures=min(book.failures, config.max_compaction_failures))
    spending = _spending(control.spending, config)
    same = fill is control.fill and spending is control.spending and book is control.compaction
    if same and attempts is control.attempts:
        return control
    return evolve(control, fill=fill, spending=spending, attempts=attempts, compaction=book)


def _spending(spent: Spending, config: Config) -> Spending:
    tokens, cost = config.max_run_tokens, config.max_cost
    if not (spent.input_tokens or spent.output_tokens or spent.cost or spent.last_delta):
        return spent
    over = tokens is not None and spent.input_tokens + spent.output_tokens >= tokens
    budget = config.token_budget_tokens
    output = 0 if budget is None else min(spent.output_tokens, budget)
    return Spending(
        model_calls=spent.model_calls,
        input_tokens=(tokens or 0) if over else 0,
        output_tokens=output,
        cost=cost if cost is not None and spent.cost >= cost else 0,
        continuations=spent.continuations,
        last_delta=min(spent.last_delta, config.budget_delta_tokens),
        last_total=min(spent.last_total, output),
    )


def tiny(data: Data, quotient: Quotient) -> Data:
    """Return *data* with as little in it as can still matter."""
    messages = quotient.messages
    if data.messages and data.messages[-1].role is Role.ASSISTANT:
        messages = messages.append(ANSWER)
    side = data.side
    return evolve(
        data,
        messages=messages,
        ledger=_few(data.ledger),
        used_ids=Ids(),
        side=evolve(side, queue=side.queue[:2], prefetched=side.prefetched[:1], last_calls=(), repeats=0),
        layers=evolve(data.layers, collapses=data.layers.collapses[:1], committed=0),
        book=evolve(data.book, usage=Usage(), warned=False),
    )


def _few(ledger: Ledger) -> Ledger:
    """Return *ledger* with at most one summary of a batch open; over many turns they would pile up."""
    summaries = [order.id for order in ledger.owed if isinstance(order, Summarise)]
    if len(summaries) < 2:
        return ledger
    return Ledger(tuple(order for order in ledger.owed if order.id not in summaries[:-1]), ledger.next_id)


# ------------------------------------------------------------------------------ keys


def short_key_of(state: State, config: Config, quotient: Quotient) -> Key | None:
    """Return the key of a state in which hardly anything decides any more, the same before it is trimmed."""
    control, phase = state.control, state.phase
    if isinstance(phase, Done) and not quotient.again:
        return ("done", *_end(phase), control.queued)
    if isinstance(phase, Aborting):  # nothing but what still has to come in matters to its end
        waits = (control.queued, min(control.blocks, config.max_answer_blocks), _beside(state.data))
        scratch = _scratch(phase, control.batch.complete)
        return (control.phase.value, control.abort.value, _sums(control.batch), waits, scratch)
    return None


def key_of(control: Control, phase: Phase, data: Data, config: Config, quotient: Quotient) -> Key:
    """Return what decides: integers, booleans and texts, in an order that never varies."""
    if isinstance(phase, Done) and quotient.again:
        left = (control.fill.tokens, min(len(data.layers.collapses), 1))
        return ("done", *_end(phase), control.queued, *left)
    if (short := short_key_of(State(control, phase, data), config, quotient)) is not None:
        return short
    compaction, recovery, attempts = control.compaction, control.recovery, control.attempts
    drained = control.transition is not None and control.transition.reason is Continue.COLLAPSE_DRAIN_RETRY
    hooks, fill = control.hooks, control.fill
    return (
        control.phase.value,
        control.turn,
        drained,
        control.abort.value,
        (compaction.failures, compaction.tried.value, compaction.retries, compaction.reactive_retries),
        (recovery.output_recoveries, recovery.reactive_compacted, recovery.output_limit_override is not None),
        (recovery.stop_hook_active, recovery.withheld.value, recovery.staged > 0),
        (attempts.fallbacks, attempts.retries, attempts.overloads, attempts.resends, attempts.crashed),
        _numbers(control.spending),
        (fill.tokens, fill.last_round),
        _sums(control.batch),
        (hooks.due, hooks.left, hooks.blocking, hooks.prevented, hooks.blocks_left),
        (control.queued, min(control.blocks, config.max_answer_blocks), control.resending),
        data.book.hook_blocks,
        _beside(data),
        _scratch(phase, control.batch.complete),
    )


def _numbers(spent: Spending) -> Key:
    return (
        spent.model_calls,
        spent.input_tokens,
        spent.output_tokens,
        spent.cost,
        spent.continuations,
        spent.last_delta,
        spent.last_total,
    )


def _sums(batch: Batch) -> Key:
    flags = (batch.alone, batch.head.value, batch.refused, batch.asks, batch.stopped, batch.complete)
    return (batch.total > 0, batch.open, batch.active, *flags, batch.broken, batch.streaming)


def _end(phase: Done) -> Key:
    match phase.end:
        case Completed(ending=ending, budget_cut_short=short):
            return ("completed", ending.value, short)
        case BlockingLimit(which=which):
            return ("blocking_limit", which.value)
        case AbortedStreaming(abort) | AbortedTools(abort):
            return (phase.end.reason.value, abort.value)
        case _:
            return (phase.end.reason.value,)


def _beside(data: Data) -> Key:
    """What runs or waits beside the loop: open orders, and what has come in."""
    side = data.side
    kinds = sorted(type(order).__name__ for order in data.ledger.owed)
    return (
        tuple(kind for place, kind in enumerate(kinds) if kind != "Summarise" or kind not in kinds[:place]),
        data.pending_tool_summary is not None,
        side.summary is not None,
        min(len(side.prefetched), 1),
        side.tools_changed is not None,
        data.layers.staging > 0,
        min(len(data.layers.collapses), 1),
    )


def _scratch(phase: Phase, complete: bool) -> Key:
    """What the phase holds that can still decide."""
    match phase:
        case Sampling(reply) | Running(reply) | Aborting(reply):
            return _calls(reply, complete)
        case Compacting(compact):
            return (len(compact.head),)  # rounds that can still be dropped
        case Reacting(compact, _, partial):
            return (len(compact.head), bool(partial))
        case Checking(_, asked, waiting, errors, stop):
            return (asked, waiting, len(errors), stop is not None)
        case _:
            return ()


def _calls(reply: Reply, complete: bool) -> Key:
    calls = reply.schedule.calls
    known = 0 if complete else len(calls)  # how many more the world may make
    return (known, bool(reply.blocks), *(_call(call) for call in calls if call.state is not CallState.ENDED))


def _call(call: Call) -> Key:
    facts = call.facts
    traits = (facts.safe, facts.verdict.value, facts.known, facts.interrupt.value, facts.idempotent)
    return (call.state.value, *traits, facts.shell, call.rerun)
