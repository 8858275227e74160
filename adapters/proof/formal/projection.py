"""
From a real ``State`` to the variables of ``specs/AgentLoop.tla``, in one place.

What nothing reads any more in a phase is at rest in the model, so it is left
out here: a counter of the compactor outside a compaction, the blocks of an
answer that is whole, all but what must still come in during an abort.
What the engine keeps twice must agree; where it does not, that is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from stepfold.engine.config import Config
from stepfold.engine.effects import (
    AskPermission,
    CallShown,
    Cancel,
    Continued,
    Effect,
    ErrorShown,
    MarkCommand,
    Prefetch,
    Show,
    StageCollapse,
    Summarise,
)
from stepfold.engine.events import CallFacts, Verdict
from stepfold.engine.phases import (
    Aborting,
    Call,
    CallState,
    Checking,
    Compacting,
    Done,
    Reacting,
    Running,
    Sampling,
)
from stepfold.engine.state import Continue, Control, State, Withheld
from stepfold.engine.terminals import (
    AbortedStreaming,
    AbortedTools,
    BlockingLimit,
    Completed,
    End,
    Limit,
)

Variables: TypeAlias = dict[str, Any]
MUCH: Final = "much"  # the summary of a staged collapse whose span is large
ENDED: Final = {"kind": "ended", "state": "ended", "rerun": False}
BESIDE: Final = (StageCollapse, Prefetch, Summarise, MarkCommand)
REST: Final[Variables] = {
    "phase": "idle",
    "fill": "low",
    "staged": "none",
    "did": (),
    "end": (),
    "turn": 1,
    "failures": 0,
    "fallbacks": 0,
    "hook_blocks": (),
    "model_calls": 0,
    "over": False,
    "output": 0,
    "since": 0,
    "small": True,
    "continuations": 0,
    "output_recoveries": 0,
    "reactive_compacted": False,
    "escalated": False,
    "drained": False,
    "retries": 0,
    "overloads": 0,
    "resends": 0,
    "resending": False,
    "streaming": False,
    "complete": False,
    "blocks": 0,
    "calls": (),
    "stopped": False,
    "broken": False,
    "abort": "none",
    "withheld": "nothing",
    "shorter": 0,
    "last_round": False,
    "crashed": False,
    "asked": 0,
    "blocking": False,
    "prevented": False,
    "stop": "none",
}


def variables(state: State, did: tuple[str, ...], k: Config, exact: bool = True) -> Variables:
    """
    Return the model's variables for *state*, which was reached by a step that put out *did*.

    *exact* as in the model: where it is False, views grow by themselves, and
    how full one is when its run is over is not said.
    """
    phase, hooks = state.phase, () if k.nested else (0,) * len(k.stop_hooks)
    found = {**REST, "phase": phase.kind.value, "did": did, "hook_blocks": hooks, **_view(state, k)}
    if not exact and isinstance(phase, Done | Aborting):
        found["fill"] = "low"
    if isinstance(phase, Done):
        return {**found, "end": end_of(phase.end)}
    if isinstance(phase, Aborting):
        return {**found, **_calls(state), "abort": state.control.abort.value}
    if phase.kind.value == "idle":
        return found
    return {**found, **_run(state, k), **_ladders(state.control, k), **_scratch(state)}


def class_of(tokens: int, c: Control, k: Config) -> str:
    """Return the class of a view of *tokens* against the thresholds of the current model."""
    limits = k.thresholds[c.attempts.fallbacks]
    return "over" if tokens >= limits.blocking else "full" if tokens >= limits.autocompact else "low"


def _view(state: State, k: Config) -> Variables:
    c = state.control
    staged = "none"
    if c.recovery.staged:
        collapses = state.data.layers.collapses
        staged = MUCH if collapses and collapses[0].summary == MUCH else "little"
    return {"fill": class_of(c.fill.tokens, c, k), "staged": staged}


def _run(state: State, k: Config) -> Variables:
    c, spent = state.control, state.control.spending
    found: Variables = {
        "turn": 1 if k.max_turns is None else c.turn,
        "failures": c.compaction.failures,
        "fallbacks": c.attempts.fallbacks,
        "hook_blocks": () if k.nested else state.data.book.hook_blocks,
        "model_calls": 0 if k.max_model_calls is None else spent.model_calls,
        "over": _over(c, k),
    }
    budget = k.token_budget_tokens
    if budget is None or k.sub_agent:
        return found
    return {
        **found,
        "output": min(spent.output_tokens, budget),
        "since": min(spent.output_tokens - spent.last_total, k.budget_delta_tokens),
        "small": spent.last_delta < k.budget_delta_tokens,
        "continuations": min(spent.continuations, k.min_budget_continuations),
    }


def _over(c: Control, k: Config) -> bool:
    spent = c.spending
    return (
        k.max_run_tokens is not None and spent.input_tokens + spent.output_tokens >= k.max_run_tokens
    ) or (k.max_cost is not None and spent.cost >= k.max_cost)


def _ladders(c: Control, k: Config) -> Variables:
    recovery, attempts = c.recovery, c.attempts
    return {
        "output_recoveries": recovery.output_recoveries,
        "reactive_compacted": recovery.reactive_compacted,
        "escalated": recovery.output_limit_override is not None,
        "drained": c.transition is not None and c.transition.reason is Continue.COLLAPSE_DRAIN_RETRY,
        "retries": attempts.retries,
        "overloads": min(attempts.overloads, k.overloads_before_fallback - 1),
        "resends": attempts.resends,
        "resending": c.resending,
    }


def _scratch(state: State) -> Variables:
    c, phase, held = state.control, state.phase, Variables()
    match phase:
        case Sampling() | Running():
            return {**_calls(state), "stopped": c.batch.stopped, "broken": c.batch.broken}
        case Compacting():
            held = {"shorter": c.compaction.retries, "last_round": c.fill.last_round}
            return {**held, "crashed": c.attempts.crashed}
        case Reacting():
            held = {"shorter": c.compaction.reactive_retries, "last_round": c.fill.last_round}
            kind = c.recovery.withheld.value
            if c.recovery.withheld is Withheld.TOO_LONG and phase.partial:
                kind = "window"
            return {**held, "crashed": c.attempts.crashed, "withheld": kind}
        case Checking():
            held = {"asked": phase.asked + 1, "blocking": c.hooks.blocking > 0, "stop": c.stop.value}
            return {**held, "prevented": c.hooks.prevented, "crashed": c.attempts.crashed}
        case _:
            return {}


def _calls(state: State) -> Variables:
    assert isinstance(state.phase, Sampling | Running | Aborting)
    batch = state.control.batch
    return {
        "streaming": batch.streaming,
        "complete": batch.complete,
        "blocks": state.control.blocks if batch.streaming else 0,
        "calls": tuple(_call(call) for call in state.phase.reply.schedule.calls),
    }


def _call(call: Call) -> Variables:
    if call.state is CallState.ENDED:
        return ENDED
    return {"kind": kind_of(call.facts), "state": call.state.value, "rerun": call.rerun}


def kind_of(facts: CallFacts) -> str:
    """Return what a call is to the model's scheduler."""
    if not facts.known or not facts.valid:
        return "unknown"
    traits = {
        "denied": facts.verdict is Verdict.DENY,
        "asks": facts.verdict is Verdict.ASK,
        "shell": facts.shell,
        "idempotent": facts.idempotent,
    }
    names = [name for name, has in traits.items() if has]
    assert len(names) < 2, "the model has no call with two of these traits"
    if not names:
        return "safe" if facts.safe else "unsafe"
    return f"safe_{names[0]}" if facts.safe else names[0]


def end_of(end: End) -> tuple[str, ...]:
    """Return an end as the model names it: reason, and what of the payload the model decides."""
    reason = end.reason.value
    match end:
        case Completed(ending=ending, budget_cut_short=short):
            return (reason, ending.value, "cut_short") if short else (reason, ending.value)
        case BlockingLimit(which=which):
            return (reason, "spent" if which in (Limit.RUN_TOKENS, Limit.COST) else which.value)
        case AbortedStreaming(abort) | AbortedTools(abort):
            return (reason, abort.value)
        case _:
            return (reason,)


def did(before: State, effects: tuple[Effect, ...]) -> tuple[str, ...]:
    """Return what the model keeps of *effects*, in order; what is beside the loop is left out."""
    return tuple(_told(before, effects))


def _told(before: State, effects: tuple[Effect, ...]) -> Iterator[str]:
    for effect in effects:
        match effect:
            case Show(CallShown(status=status)):
                yield status.value
            case Show(ErrorShown()):
                yield "ErrorShown"
            case Show(Continued(reason=reason)):
                yield str(reason)
            case Show():
                pass
            case Cancel(id):
                if not any(isinstance(order, BESIDE) for order in before.data.ledger.owed if order.id == id):
                    yield "Cancel"
            case _ if not isinstance(effect, BESIDE):
                yield type(effect).__name__


def contradictions(state: State, k: Config) -> Iterator[str]:
    """Yield where the engine says one thing twice and means two."""
    c, data, phase = state.control, state.data, state.phase
    if c.phase is not phase.kind:
        yield f"control says {c.phase}, the phase is {phase.kind}"
    if c.recovery.staged != len(data.layers.collapses):
        yield f"{c.recovery.staged} collapses in control, {len(data.layers.collapses)} in data"
    if isinstance(phase, Done) or phase.kind.value == "idle" or k.nested:
        return
    blocks, hooks = data.book.hook_blocks, c.hooks
    due = sum(spent < hook.max_blocks for spent, hook in zip(blocks, k.stop_hooks, strict=True))
    if hooks.due != due:
        yield f"{hooks.due} hooks due in control, {due} in the book"
    left = sum(hook.max_blocks for hook in k.stop_hooks) - sum(blocks)
    pending = hooks.blocking if isinstance(phase, Checking) else 0
    if hooks.blocks_left != left + pending:
        yield f"{hooks.blocks_left} hook blocks left in control, {left + pending} by the book"
    if c.recovery.stop_hook_active != (sum(blocks) > pending):
        yield f"stop_hook_active is {c.recovery.stop_hook_active}, the blocks are {blocks}"
    override = c.recovery.output_limit_override
    if override not in (None, k.escalated_output_tokens):
        yield f"the output limit was raised to {override}"
    if isinstance(phase, Checking) and hooks.left != len(phase.waiting):
        yield f"{hooks.left} hooks left in control, {len(phase.waiting)} wait"
    if isinstance(phase, Sampling | Running | Aborting):
        yield from _batch(state)


def _batch(state: State) -> Iterator[str]:
    assert isinstance(state.phase, Sampling | Running | Aborting)
    batch, calls = state.control.batch, state.phase.reply.schedule.calls
    sums = {
        "total": (batch.total, len(calls)),
        "open": (batch.open, sum(call.state is not CallState.ENDED for call in calls)),
        "active": (batch.active, sum(call.state in (CallState.ACTIVE, CallState.ASKING) for call in calls)),
    }
    for name, (control, counted) in sums.items():
        if control != counted:
            yield f"{control} calls {name} in control, {counted} in the schedule"
    owed = {order.id for order in state.data.ledger.owed}
    for call in calls:
        if call.state in (CallState.ACTIVE, CallState.ASKING) and call.effect_id not in owed:
            yield f"a call is {call.state}, but its effect {call.effect_id} is not owed"
    asking = {order.id for order in state.data.ledger.owed if isinstance(order, AskPermission)}
    if asking != {call.effect_id for call in calls if call.state is CallState.ASKING}:
        yield "open prompts and asking calls differ"
