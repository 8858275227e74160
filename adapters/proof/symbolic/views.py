"""
What the names of the arithmetic stand for in a real state, event and config.

Written from ``specs/machine.toml``, so that each name is read in one place:
counters from Control (and the calls that wait for a permission from the
schedule), facts from the event, limits from Config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from stepfold.adapters.proof.symbolic.arithmetic import Domain, Flag, Number, Words
from stepfold.engine.config import Config
from stepfold.engine.events import (
    AbortRequested,
    BlockCompleted,
    Compacted,
    CompactionFailed,
    HookAnswered,
    PermissionAnswered,
    Resumed,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    Usage,
)
from stepfold.engine.messages import ToolUse
from stepfold.engine.phases import CallState, Schedule
from stepfold.engine.state import Continue, Control, State

PARTS: Final = ("compaction", "recovery", "attempts", "spending", "fill", "batch", "hooks")
PLAIN: Final = ("turn", "queued", "blocks", "resending")
CRASH: Final = "crash"
PER_MILLION: Final = 1_000_000
EMPTY: Final = Schedule()


def counters_of(control: Control, schedule: Schedule = EMPTY) -> dict[str, Any]:
    """Return every counter of *control*, and those of the *schedule* of its calls, by name."""
    found: dict[str, Any] = {name: getattr(control, name) for name in PLAIN}
    for part in PARTS:
        inner = getattr(control, part)
        for field in attrs.fields(type(inner)):
            found[f"{part}.{field.name}"] = _plain(getattr(inner, field.name))
    transition = control.transition
    found["drained"] = transition is not None and transition.reason is Continue.COLLAPSE_DRAIN_RETRY
    found["abort"] = control.abort.value
    asking = [call for call in schedule.calls if call.state is CallState.ASKING]
    again = [c for c in schedule.calls if c.state is CallState.ACTIVE and c.facts.idempotent]
    found["asking"] = len(asking)
    found["untried"] = sum(not call.rerun for call in (*asking, *again))
    return found


def schedule_of(state: State) -> Schedule:
    """Return the calls of the answer; none where no answer is at hand."""
    reply = getattr(state.phase, "reply", None)
    return EMPTY if reply is None else reply.schedule


def limits_of(config: Config, fallbacks: int) -> dict[str, Any]:
    """Return every limit of *config* by its name; those of the model at *fallbacks* too."""
    limits, spec = config.thresholds[fallbacks], config.all_models[fallbacks]
    return {
        **{field.name: getattr(config, field.name) for field in attrs.fields(Config)},
        "models": len(config.all_models),
        "stop_hooks": len(config.stop_hooks),
        "stop_hook_blocks": sum(hook.max_blocks for hook in config.stop_hooks),
        "model.window": limits.window,
        "model.max_output_tokens": spec.max_output_tokens,
        "model.autocompact": limits.autocompact,
        "model.blocking": limits.blocking,
    }


def facts_of(event: Any, state: State, config: Config) -> dict[str, Any]:
    """Return what *event* says in *state*, by name, without ``event.``."""
    read = FACTS.get(type(event))
    return {} if read is None else read(event, state, config)


def fits(value: Any, domain: Domain) -> bool:
    """Return whether *value* is one that *domain* allows."""
    match domain:
        case Flag():
            return isinstance(value, bool)
        case Words(values):
            return value in values
        case Number(low, off):
            if value is None:
                return off
            return type(value) is int and (low is None or value >= low)


def _plain(value: Any) -> Any:
    """An enum is its text; a limit of output that is not set is 0."""
    if value is None:
        return 0
    return value if isinstance(value, bool | int) else value.value


def _usage(usage: Usage | None, state: State, config: Config) -> dict[str, Any]:
    if usage is None:
        return {"usage.prompt": 0, "usage.output": 0, "usage.cost": 0}
    model = config.all_models[state.control.attempts.fallbacks]
    millionths = 0
    if model.input_price is not None:
        read, made = model.cache_read_price, model.cache_creation_price
        millionths += usage.input_tokens * model.input_price
        millionths += usage.output_tokens * (model.output_price or 0)
        millionths += usage.cache_read_tokens * (model.input_price if read is None else read)
        millionths += usage.cache_creation_tokens * (model.input_price if made is None else made)
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
    return {
        "usage.prompt": prompt,
        "usage.output": usage.output_tokens,
        "usage.cost": -(-millionths // PER_MILLION),
    }


def _closed(event: StreamClosed, state: State, config: Config) -> dict[str, Any]:
    return {"stop": event.stop.value, **_usage(event.usage, state, config)}


def _failed(event: StreamFailed | CompactionFailed, state: State, config: Config) -> dict[str, Any]:
    said = {"kind": event.failure.kind.value, **_usage(event.usage, state, config)}
    if isinstance(event, StreamFailed):
        said["retry_after_ms"] = event.failure.retry_after_ms
    return said


def _block(event: BlockCompleted, state: State, config: Config) -> dict[str, Any]:
    use, repeated = event.block, False
    if isinstance(use, ToolUse) and use.id:
        written = (use.id, use.name, use.input, use.raw_input)
        repeated = any(
            (call.original_id, call.use.name, call.use.input, call.use.raw_input) == written
            for call in schedule_of(state).calls
        )
    return {"call": event.facts is not None, "repeated": repeated}


def _compacted(event: Compacted, state: State, config: Config) -> dict[str, Any]:
    said = {"summary": bool(event.summary.strip()), "tokens": event.tokens}
    return {**said, **_usage(event.usage, state, config)}


FACTS: Final[Mapping[type, Callable[[Any, State, Config], dict[str, Any]]]] = {
    StreamClosed: _closed,
    StreamFailed: _failed,
    StreamCancelled: lambda event, state, config: _usage(event.usage, state, config),
    BlockCompleted: _block,
    PermissionAnswered: lambda event, s, k: {"allowed": event.allowed, "stop": event.stop is not None},
    Compacted: _compacted,
    CompactionFailed: _failed,
    HookAnswered: lambda event, state, config: {"verdict": event.verdict.value},
    Resumed: lambda event, state, config: {"verdict": CRASH},
    AbortRequested: lambda event, state, config: {"kind": event.kind.value},
}
