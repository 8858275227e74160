"""The payloads of orders, held against the state that they belong to."""

from __future__ import annotations

from collections.abc import Iterator

from stepfold.engine.config import SUMMARY_RESERVE_TOKENS, Config
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    CompactReason,
    Effect,
    Finish,
    RunHook,
    RunTool,
)
from stepfold.engine.phases import Aborting, Checking, Done, Reacting, Running, Sampling
from stepfold.engine.state import State


def problems(after: State, effects: tuple[Effect, ...], k: Config) -> Iterator[str]:
    """Yield what an order of *effects* says that *after*, the state it left behind, does not."""
    c, phase = after.control, after.phase
    model = k.all_models[c.attempts.fallbacks].name
    owed = {order.id for order in after.data.ledger.owed}
    for effect in effects:
        match effect:
            case CallModel(id):
                limit = c.recovery.output_limit_override or k.max_output_tokens or k.default_output_tokens
                if k.nested:
                    limit = min(k.max_output_tokens or SUMMARY_RESERVE_TOKENS, SUMMARY_RESERVE_TOKENS)
                limit = min(limit, k.all_models[c.attempts.fallbacks].max_output_tokens)
                if (effect.model, effect.max_output_tokens, effect.resend) != (model, limit, c.resending):
                    yield f"CallModel of {effect.model}, {effect.max_output_tokens}, resend {effect.resend}"
                if id not in owed or not isinstance(phase, Sampling) or phase.reply.call_id != id:
                    yield f"CallModel {id} is not the open call"
            case Compact(id):
                reactive = isinstance(phase, Reacting)
                reason = CompactReason.REACTIVE if reactive else CompactReason.AUTO
                if (effect.reason, effect.strip_media, effect.model) != (reason, reactive, model):
                    yield f"Compact for {effect.reason}, media stripped: {effect.strip_media}, {effect.model}"
                if id not in owed:
                    yield f"Compact {id} is not owed"
            case RunHook(id):
                if not isinstance(phase, Checking) or effect.hook != k.stop_hooks[phase.asked].name:
                    yield f"RunHook asks {effect.hook}"
                if effect.active is not c.recovery.stop_hook_active or id not in owed:
                    yield f"RunHook {id} says active: {effect.active}"
            case RunTool(id) | AskPermission(id):
                yield from _call(after, effect, id)
            case Finish(end):
                if not isinstance(phase, Done) or phase.end != end or owed:
                    yield f"Finish with {end}, still owed: {sorted(owed)}"


def _call(after: State, effect: RunTool | AskPermission, id: int) -> Iterator[str]:
    phase = after.phase
    if not isinstance(phase, Sampling | Running | Aborting):
        return
    uses = {call.effect_id: call.use for call in phase.reply.schedule.calls}
    if uses.get(id) != effect.call:
        yield f"{type(effect).__name__} {id} belongs to no open call"
