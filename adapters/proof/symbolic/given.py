"""
What the contracts are about: a run with any numbers in it, under any limits.

``Given`` is made of symbols by CrossHair; ``control`` and ``config`` build the
engine's own classes of it, without the validators (``sound`` says what those
say).  What is not a number is one tiny sample: a history of one message, an
answer with at most two calls.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

import attrs

from stepfold.engine.config import Config, HookSpec, ModelSpec, Thresholds
from stepfold.engine.effects import CallModel, Compact, CompactReason, Owed
from stepfold.engine.events import CallFacts, Event
from stepfold.engine.history import History
from stepfold.engine.measure import measure
from stepfold.engine.messages import Message, Origin, Role, Text, ToolUse, user_text
from stepfold.engine.phases import Call, CallState, Phase, PhaseKind, Reply, Schedule
from stepfold.engine.state import (
    Attempts,
    Batch,
    Book,
    Compaction,
    Continue,
    Control,
    Data,
    Fill,
    Hooks,
    Ledger,
    Recovery,
    Spending,
    State,
    Transition,
    Tried,
)
from stepfold.engine.step import step

VIEW: Final = History[Message]().extend(
    (user_text("x", Origin.PROMPT), Message(Role.ASSISTANT, (Text("x"),), Origin.ANSWER)) * 2
)
CALL: Final = CallModel(1, VIEW, "m", 1)
ASKED: Final = Reply(1)
NO_CALLS: Final = Batch()
SAFE: Final = CallFacts(safe=True)
HUGE: Final = 10**9
ROOM: Final = 1_000  # more than the messages of one step take
MARGIN: Final = 10_000  # of the blocking limit over autocompact's threshold


@attrs.frozen
class Given:
    """Numbers of a run and of its config, any of them."""

    turn: int
    reactive: bool
    recoveries: int
    drained: bool
    raised: bool
    fallbacks: int
    resends: int
    retries: int
    overloads: int
    crashed: bool
    autocompact_retries: int
    reactive_retries: int
    failures: int
    staged: int
    tokens: int
    floor: int
    calls: int
    output: int
    last_total: int
    last_delta: int
    continuations: int
    blocks: int
    hook_blocks: int  # blocks that the first of two hooks has left; the second has as many
    fact: int  # what the event reports
    max_turns: int
    max_calls: int
    max_recoveries: int
    max_failures: int
    max_compactor_retries: int
    max_retries: int
    max_resends: int
    max_overloads: int
    max_blocks: int
    min_continuations: int
    budget: int
    delta: int
    models: int
    threshold: int
    autocompacts: bool
    reacts: bool
    collapses: bool


class Chain(Sequence[Any]):
    """A chain of any number of models; each is *each*."""

    def __init__(self, count: int, each: Any) -> None:
        self.size = count
        self.each = each

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: Any) -> Any:
        return self.each


def sound(g: Given) -> bool:
    """Return whether validators and invariants allow *g*; not short-circuit, so that it is one formula."""
    return (
        (g.turn >= 1)
        & (g.turn <= g.max_turns)
        & _up_to(g.recoveries, g.max_recoveries)
        & _up_to(g.resends, g.max_resends)
        & _up_to(g.retries, g.max_retries)
        & _up_to(g.autocompact_retries, g.max_compactor_retries)
        & _up_to(g.reactive_retries, g.max_compactor_retries)
        & _up_to(g.blocks, g.max_blocks)
        & _up_to(g.last_total, g.output)
        & (g.fallbacks >= 0)
        & (g.fallbacks < g.models)
        & (g.overloads >= 0)
        & (g.failures >= 0)
        & (g.staged >= 0)
        & (g.tokens >= 0)
        & (g.floor >= 0)
        & (g.calls >= 0)
        & (g.last_delta >= 0)
        & (g.continuations >= 0)
        & (g.hook_blocks >= 1)
        & (g.fact >= 0)
        & (g.max_calls >= 0)
        & (g.max_failures >= 1)
        & (g.max_overloads >= 1)
        & (g.max_blocks >= 1)
        & (g.min_continuations >= 1)
        & (g.budget >= 1)
        & (g.delta >= 1)
    )


def _up_to(count: int, limit: int) -> bool:
    return (count >= 0) & (count <= limit)


def small(g: Given) -> bool:
    """Return whether the view of *g* is far under every threshold, whatever joins it in one step."""
    return (g.tokens + ROOM < g.threshold) & (g.floor < g.threshold) & (g.staged == 0)


def config(g: Given, base: Config, **more: Any) -> Config:
    """Return *base* with the limits of *g*, and with *more*."""
    made = copy.copy(base)
    window = g.threshold + HUGE
    values = {
        "max_turns": g.max_turns,
        "max_model_calls": g.max_calls,
        "max_output_recoveries": g.max_recoveries,
        "max_compaction_failures": g.max_failures,
        "max_compactor_retries": g.max_compactor_retries,
        "max_retries": g.max_retries,
        "max_resends": g.max_resends,
        "overloads_before_fallback": g.max_overloads,
        "max_answer_blocks": g.max_blocks,
        "min_budget_continuations": g.min_continuations,
        "budget_delta_tokens": g.delta,
        "autocompact": g.autocompacts,
        "reactive_compact": g.reacts,
        "collapse": g.collapses,
        "all_models": Chain(g.models, ModelSpec("m", window, base.escalated_output_tokens)),
        "thresholds": Chain(g.models, Thresholds(window, window, g.threshold, g.threshold + MARGIN, window)),
    }
    for name, value in {**values, **more}.items():
        object.__setattr__(made, name, value)
    return made


def budgeted(g: Given) -> Config:
    """Return the defaults with the budget and the ladders of *g*; their view is small."""
    made = copy.copy(PLAIN)
    values = {
        "max_turns": g.max_turns,
        "token_budget_tokens": g.budget,
        "max_output_recoveries": g.max_recoveries,
        "max_retries": g.max_retries,
        "max_resends": g.max_resends,
        "max_compactor_retries": g.max_compactor_retries,
        "max_model_calls": None,
        "all_models": Chain(g.models, PLAIN.all_models[0]),
        "thresholds": Chain(g.models, PLAIN.thresholds[0]),
    }
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


PLAIN: Final = Config()
HOOKED: Final = Config(stop_hooks=(HookSpec("a"), HookSpec("b")))
NESTED: Final = Config(source="compact")


def control(
    g: Given,
    kind: PhaseKind,
    batch: Batch = NO_CALLS,
    drained: bool = False,
    raised: bool = False,
    **more: Any,
) -> Control:
    """
    Return what *g* says a run in *kind* has counted.

    *drained* and *raised* are symbols only where a row reads them: each makes
    two paths of every path.
    """
    override = PLAIN.escalated_output_tokens if raised else None
    values: dict[str, Any] = {
        "turn": g.turn,
        "transition": Transition(Continue.COLLAPSE_DRAIN_RETRY, 1) if drained else None,
        "compaction": Compaction(False, 0, g.failures, Tried.NOT, g.autocompact_retries, g.reactive_retries),
        "recovery": Recovery(g.recoveries, g.reactive, override, staged=g.staged),
        "attempts": Attempts(g.fallbacks, g.retries, g.overloads, g.resends, g.crashed),
        "spending": Spending(g.calls, 0, g.output, 0, g.continuations, g.last_delta, g.last_total),
        "fill": Fill(g.tokens, g.floor),
        "blocks": g.blocks,
        **more,
    }
    return Control(kind, batch=batch, **values)


def data(*owed: Owed, blocks: tuple[int, ...] = ()) -> Data:
    """Return what a run carries that waits for *owed*."""
    return Data(messages=VIEW, ledger=Ledger(owed, 9), book=Book(hook_blocks=blocks))


def reply(*states: CallState, facts: CallFacts = SAFE) -> Reply:
    """Return an answer with calls in these *states*; the effect of each has the id 2, 3, ..."""
    calls = tuple(
        Call(ToolUse(f"c{place}", "t"), facts, f"c{place}", state, place)
        for place, state in enumerate(states, 2)
    )
    waiting = [place for place, call in enumerate(calls) if call.state is CallState.WAITING]
    head = waiting[0] if waiting else len(calls)
    return Reply(1, tuple(call.use for call in calls), Schedule(calls, head))


def compact(reason: CompactReason, head: int = 4) -> Compact:
    """Return the order of a compaction over *head* messages."""
    return Compact(1, reason, tuple(VIEW)[:head], (), "m", strip_media=reason is CompactReason.REACTIVE)


def falls(before: Control, event: Event, phase: Phase, carried: Data, k: Config, still: bool = False) -> bool:
    """
    Take one step of the shipped engine; return whether the measure fell and is nowhere negative.

    A run that ended is well.  *still* lets it stay where it is, too.
    """
    after, _ = step(State(before, phase, carried), event, k)
    if after.control.phase is PhaseKind.DONE:
        return True
    old, new = measure(before, k), measure(after.control, k)
    claim = still
    for place, was in reversed([*zip(new, old, strict=True)]):
        claim = (place < was) | ((place == was) & claim)
    for place in new:
        claim = claim & (place >= 0)
    return claim & _kept(after.control)


def begins(before: Control, event: Event, phase: Phase, carried: Data, k: Config) -> bool:
    """Take the first step of a run; return whether the measure is nowhere negative, or the run over."""
    after, _ = step(State(before, phase, carried), event, k)
    if after.control.phase is PhaseKind.DONE:
        return True
    claim = _kept(after.control)
    for place in measure(after.control, k):
        claim = claim & (place >= 0)
    return claim


def _kept(c: Control) -> bool:
    """Return whether what the next contract takes for granted holds again."""
    well = c.spending.last_total <= c.spending.output_tokens
    if c.phase is PhaseKind.COMPACTING:
        return well & (c.compaction.tried is Tried.NOT)
    if c.phase is PhaseKind.REACTING:
        return well & (not c.recovery.reactive_compacted)
    if c.phase is PhaseKind.CHECKING:
        return well & (c.hooks.left + c.hooks.blocking + 1 <= c.hooks.blocks_left)
    return well & (c.hooks.due + c.hooks.blocking <= c.hooks.blocks_left)


def hooks(g: Given, left: int = 0, blocking: int = 0) -> Hooks:
    """Return the sums of two stop hooks that have as many blocks left as *g* says."""
    return Hooks(due=2, left=left, blocking=blocking, blocks_left=2 * g.hook_blocks)
