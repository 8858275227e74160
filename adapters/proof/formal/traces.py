"""
Recorded runs, projected to the model and accepted by TLC: a trace is a walk through ``specs/AgentLoop.tla``.

All traces go into one generated module and are checked in one run of TLC.
Real limits and real sizes are in them; views grow and shrink by themselves.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from stepfold.adapters.proof.formal.constants import tla
from stepfold.adapters.proof.formal.fuzz import CONFIG
from stepfold.adapters.proof.formal.happenings import Saying
from stepfold.adapters.proof.formal.projection import (
    REST,
    Variables,
    class_of,
    did,
    kind_of,
    variables,
)
from stepfold.adapters.proof.formal.recordings import config_text
from stepfold.adapters.proof.formal.tlc import Run, Tool, Verdict, run_tlc
from stepfold.engine.config import Config
from stepfold.engine.events import (
    AbortRequested,
    BlockCompleted,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    PermissionAnswered,
    Resumed,
    RunStarted,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    ToolEnded,
    WaitElapsed,
)
from stepfold.engine.failures import RETRYABLE, TOO_LONG, Failure, FailureKind
from stepfold.engine.phases import Aborting, Running, Sampling
from stepfold.engine.state import State
from stepfold.engine.step import step

MODULE: Final = "AgentLoopTrace"
STOPPED_AT: Final = re.compile(r"/\\ trace = (\d+)")
PLACE: Final = re.compile(r"/\\ place = (\d+)")


@attrs.frozen
class Seen:
    """One step of a trace: what the model's world said (None: nothing that decides), and what came of it."""

    saying: Saying | None
    after: Variables


@attrs.frozen
class Trace:
    """A run as the model sees it."""

    first: Variables
    steps: tuple[Seen, ...]


@attrs.frozen
class Judgement:
    """What TLC says of some traces: accepted, or the first that is refused and at which step (from 0)."""

    accepted: bool
    words: str
    trace: int | None = None
    place: int | None = None


def trace_of(events: Iterable[Event], state: State, config: Config) -> Trace:
    """Return what the model sees of a run that is folded from *state* by *events*."""
    first = variables(state, (), config, exact=False)
    steps = []
    for event in events:
        after, effects = step(state, event, config)
        seen = variables(after, did(state, effects), config, exact=False)
        steps.append(Seen(saying_of(state, event, after, config), seen))
        state = after
    return Trace(first, tuple(steps))


def saying_of(before: State, event: Event, after: State, k: Config) -> Saying | None:
    """Return what *event* is to the model; None where it decides nothing (late answers, what is beside)."""
    owed = {order.id for order in before.data.ledger.owed}
    if getattr(event, "effect_id", None) not in (None, *owed):
        return None
    name = type(event).__name__
    match event:
        case RunStarted() | StreamCancelled() | WaitElapsed() | Resumed():
            return Saying(name)
        case BlockCompleted(facts=facts):
            if facts is None:
                return Saying(name, ("text",))
            repeated = len(_calls(before)) == len(_calls(after)) and not _full(before, k)
            return None if repeated else Saying(name, (kind_of(facts),))
        case StreamClosed(stop=stop, usage=usage, shown=shown):
            prompt = 0 if usage is None else usage.prompt_tokens
            report = class_of(prompt, before.control, k) if prompt else "none"
            tokens = 0 if usage is None else usage.output_tokens
            return Saying(name, (stop.value, report, tokens, shown, _billed(before, after, k)))
        case StreamFailed(failure=failure, shown=shown):
            return Saying(name, (_failure(failure, k), shown, _billed(before, after, k)))
        case ToolEnded(effect_id=id, status=status, stop=stop):
            return Saying(name, (_place(before, id), "stop" if stop else status.value))
        case PermissionAnswered(effect_id=id, allowed=allowed, stop=stop):
            return Saying(name, (_place(before, id), "stop" if stop else "allowed" if allowed else "denied"))
        case Compacted(summary=summary, tokens=tokens):
            fill = before.control.fill.tokens
            view = class_of(tokens, before.control, k) if summary.strip() else "empty"
            return Saying(name, (view, view == "empty" or tokens < fill, _billed(before, after, k)))
        case CompactionFailed(failure=failure):
            kind = "too_long" if failure.kind in TOO_LONG else "other"
            return Saying(name, (kind, False, _billed(before, after, k)))
        case HookAnswered(verdict=verdict):
            return Saying(name, (verdict.value,))
        case AbortRequested(kind=kind):
            return Saying(name, (kind.value,))
        case _:
            return None


def _full(state: State, k: Config) -> bool:
    return state.control.blocks >= k.max_answer_blocks


def _calls(state: State) -> Sequence[object]:
    phase = state.phase
    return phase.reply.schedule.calls if isinstance(phase, Sampling | Running | Aborting) else ()


def _place(state: State, effect_id: int) -> int:
    assert isinstance(state.phase, Sampling | Running | Aborting)
    return 1 + [call.effect_id for call in state.phase.reply.schedule.calls].index(effect_id)


def _failure(failure: Failure, k: Config) -> str:
    wait = failure.retry_after_ms
    if failure.kind is FailureKind.REQUEST_TOO_LARGE:
        return "request_too_large"
    if failure.kind in TOO_LONG:
        return "prompt_too_long"
    if failure.kind is FailureKind.MEDIA_TOO_LARGE:
        return "media_too_large"
    if failure.kind in RETRYABLE and wait is not None and wait > k.max_retry_after_ms:
        return "wait_too_long"
    if failure.kind is FailureKind.OVERLOADED:
        return "overloaded"
    return "transport" if failure.kind in RETRYABLE else "invalid"


def _billed(before: State, after: State, k: Config) -> bool:
    there, here = variables(after, (), k), variables(before, (), k)
    return bool(there["over"]) and not here["over"]


# ---------------------------------------------------------------------------- to TLC


def written(value: object) -> str:
    """Return a value of a variable as TLA+."""
    if isinstance(value, dict):
        return "[" + ", ".join(f"{name} |-> {written(each)}" for name, each in value.items()) + "]"
    if isinstance(value, tuple):
        return "<<" + ", ".join(map(written, value)) + ">>"
    return tla(value)


def data_module(traces: Sequence[Trace]) -> str:
    """Return the module ``TraceData``: what becomes of each part at each step, each way once."""
    tables: dict[str, dict[str, int]] = {name: {} for name in ("Said", "Outs", "Calls", "Changes")}

    def number(table: str, text: str) -> int:
        return tables[table].setdefault(text, len(tables[table]) + 1)

    starts, lines = [], []
    for trace in traces:
        starts.append(_changed(REST, {**trace.first, "hook_blocks": REST["hook_blocks"]}))
        steps, before = [], trace.first
        for seen in trace.steps:
            saying, after = seen.saying, seen.after
            event = 0
            if saying is not None:
                event = number("Said", f'<<"{saying.event}", {written(saying.payload)}>>')
            out, calls = number("Outs", written(after["did"])), number("Calls", written(after["calls"]))
            steps.append(f"<<{event}, {out}, {calls}, {number('Changes', _changed(before, after))}>>")
            before = after
        lines.append("<<" + ", ".join(steps) + ">>")
    parts = {"Starts": starts, **tables, "Traces": lines}
    body = "\n".join(f"{name} == <<\n" + ",\n".join(each) + "\n>>" for name, each in parts.items())
    return f"---- MODULE TraceData ----\n{body}\n====\n"


def _changed(before: Variables, after: Variables) -> str:
    """Return a record of what differs but ``did`` and ``calls``; the phase is always there."""
    apart = ("did", "calls")
    changes = {k: v for k, v in after.items() if k == "phase" or (before[k] != v and k not in apart)}
    return written(changes)


def judge(tool: Tool, traces: Sequence[Trace], config: Config = CONFIG) -> Judgement:
    """
    Return whether the model has all of *traces*, in one run of TLC.

    Raises:
        NotInTheModel: *config*, of the runs, has what the model does not tell apart.
    """
    with tempfile.TemporaryDirectory(prefix="stepfold-traces-") as folder:
        data, limits = Path(folder, "TraceData.tla"), Path(folder, "Trace.cfg")
        data.write_text(data_module(traces), encoding="utf-8")
        limits.write_text(config_text(config), encoding="utf-8")
        run = run_tlc(tool, MODULE, limits, deadlock=True, beside=data)
    if run.verdict is Verdict.HOLDS:
        return Judgement(True, f"{len(traces)} traces, {run.states} states")
    return _refused(run)


def _refused(run: Run) -> Judgement:
    traces, places = STOPPED_AT.findall(run.output), PLACE.findall(run.output)
    if not traces or not places:
        return Judgement(False, run.why)
    trace, place = int(traces[-1]) - 1, int(places[-1])
    return Judgement(False, f"{run.why} in trace {trace}, step {place}", trace, place)
