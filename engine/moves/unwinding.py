"""Abort: what runs is cancelled or waited for, what was received is kept (specification, section 8)."""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.effects import BlockShown, CancelModel, Effect, Show
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    Interrupt,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    ToolEnded,
)
from stepfold.engine.frozen import evolve
from stepfold.engine.moves.reply import (
    CANCELLED_ABORT,
    NOT_RUN_ABORTED,
    cancel_active,
    counted,
    skip_waiting,
    stream_ended,
)
from stepfold.engine.moves.sampling import with_new_call
from stepfold.engine.moves.tools import closed_call
from stepfold.engine.phases import Aborting, CallState, Reply, Running, Sampling, Unwinding
from stepfold.engine.state import Data, Entered, Move, State


def _stopped(data: Data, reply: Reply, kind: AbortKind) -> tuple[Data, Reply, tuple[Effect, ...]]:
    """Cancel what this abort cancels; what never began is not run."""
    waits = frozenset(
        call.effect_id
        for call in reply.schedule.calls
        if kind is AbortKind.SUBMIT
        and call.state is CallState.ACTIVE
        and call.facts.interrupt is Interrupt.WAIT
    )
    data, reply, cancelled = cancel_active(data, reply, CANCELLED_ABORT, waits)
    reply, skipped = skip_waiting(reply, NOT_RUN_ABORTED)
    return data, reply, (*cancelled, *skipped)


def _unwinding(s: State, data: Data, reply: Reply, effects: tuple[Effect, ...]) -> Move:
    active = sum(call.state in (CallState.ACTIVE, CallState.ASKING) for call in reply.schedule.calls)
    batch = s.control.batch
    batch = counted(batch, reply.schedule, active - batch.open, active, batch.alone)
    control = evolve(s.control, batch=batch)
    return Move(control, Unwinding(reply), data, effects)


def abort_stream(s: State, e: AbortRequested, k: Config) -> Move:
    """Close the stream, and wait for what it had brought."""
    assert isinstance(s.phase, Sampling)
    data, reply, effects = _stopped(s.data, s.phase.reply, e.kind)
    s = evolve(s, control=evolve(s.control, abort=e.kind))
    return _unwinding(s, data, reply, (CancelModel(reply.call_id), *effects))


def abort_calls(s: State, e: AbortRequested, k: Config) -> Move:
    """The response is whole; stop its calls."""
    assert isinstance(s.phase, Running)
    data, reply, effects = _stopped(s.data, s.phase.reply, e.kind)
    s = evolve(s, control=evolve(s.control, abort=e.kind))
    return _unwinding(s, data, reply, effects)


def harden(s: State, e: AbortRequested, k: Config) -> Move:
    """A hard abort during a submit abort cancels what is still waited for."""
    assert isinstance(s.phase, Aborting)
    data, reply, effects = _stopped(s.data, s.phase.reply, e.kind)
    s = evolve(s, control=evolve(s.control, abort=e.kind))
    return _unwinding(s, data, reply, effects)


def keep_block(s: State, e: BlockCompleted, k: Config) -> Move:
    """A block crossed the abort on the wire: kept, its call not run."""
    assert isinstance(s.phase, Aborting)
    reply, effects = s.phase.reply, tuple[Effect, ...]()
    if e.facts is not None:
        grown = with_new_call(reply, s.data, e, k.nested)
        if grown is not reply:
            effects = (Show(BlockShown(reply.call_id, grown.blocks[-1])),)
        reply, skipped = skip_waiting(grown, NOT_RUN_ABORTED)
        effects = (*effects, *skipped)
    else:
        reply = Reply(reply.call_id, (*reply.blocks, e.block), reply.schedule)
        effects = (Show(BlockShown(reply.call_id, e.block)),)
    s = evolve(s, control=evolve(s.control, blocks=len(reply.blocks)))
    return _unwinding(s, s.data, reply, effects)


def stream_in(s: State, e: StreamCancelled | StreamClosed | StreamFailed, k: Config) -> Move:
    """The stream is closed; what it brought is kept."""
    assert isinstance(s.phase, Aborting)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    c = evolve(c, batch=evolve(c.batch, streaming=False))
    return _unwinding(evolve(s, control=c), data, reply, shown)


def end_waited_call(s: State, e: ToolEnded, k: Config) -> Move:
    """A call that a submit abort waits for has ended."""
    assert isinstance(s.phase, Aborting)
    reply = s.phase.reply
    place = next(p for p, call in enumerate(reply.schedule.calls) if call.effect_id == e.effect_id)
    data, reply, effects, _ = closed_call(s.data, reply, place, e.status, e.content, e.stop, e.messages)
    return _unwinding(s, data, reply, effects)


def keep_waiting(s: State, e: Entered, k: Config) -> Move:
    """The stream or a call is still to come in."""
    assert isinstance(s.phase, Unwinding)
    return Move(s.control, Aborting(s.phase.reply), s.data)
