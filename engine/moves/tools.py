"""The scheduler's moves: a call begins, is refused, skipped, permitted, ends."""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.effects import AskPermission, Effect, RunTool
from stepfold.engine.events import CallStatus, HookStop, PermissionAnswered, ToolEnded
from stepfold.engine.frozen import evolve
from stepfold.engine.messages import Message, ResultBlock, Text
from stepfold.engine.moves.ledger import owing
from stepfold.engine.moves.reply import (
    NOT_RUN_STOPPED,
    cancel_active,
    counted,
    ended,
    shown_end,
    with_batch,
    with_call,
    with_schedule,
)
from stepfold.engine.phases import (
    Aborting,
    Call,
    CallState,
    Reply,
    Running,
    Sampling,
    Scheduling,
)
from stepfold.engine.state import Batch, Data, Entered, Move, State

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
ACTIVE: Final = CallState.ACTIVE
ASKING: Final = CallState.ASKING
FAILED: Final = CallStatus.FAILED

DENIED = "[Denied.]"
REFUSED = "[Not run.]"


def _scheduling(s: State) -> Scheduling:
    assert isinstance(s.phase, Scheduling)
    return s.phase


def start_call(s: State, e: Entered, k: Config) -> Move:
    """Run the next call."""
    phase = _scheduling(s)
    reply, batch = phase.reply, s.control.batch
    call = reply.schedule.calls[reply.schedule.head]
    order = RunTool(s.data.ledger.next_id, call.use, call.use.input)
    return _begun(s, ACTIVE, order, batch)


def ask_permission(s: State, e: Entered, k: Config) -> Move:
    """Ask before the next call."""
    phase = _scheduling(s)
    call = phase.reply.schedule.calls[phase.reply.schedule.head]
    order = AskPermission(s.data.ledger.next_id, call.use)
    return _begun(s, ASKING, order, s.control.batch)


def _begun(s: State, state: CallState, order: RunTool | AskPermission, batch: Batch) -> Move:
    phase = _scheduling(s)
    reply = phase.reply
    old = reply.schedule.calls[reply.schedule.head]
    call = Call(old.use, old.facts, old.original_id, state, order.id)
    reply = with_call(reply, reply.schedule.head, call, reply.schedule.head + 1)
    alone = not old.facts.safe
    control = with_batch(s.control, counted(batch, reply.schedule, 0, batch.active + 1, alone))
    phase = Scheduling(reply)
    return Move(control, phase, owing(s.data, order), (order,))


def refuse_call(s: State, e: Entered, k: Config) -> Move:
    """An unknown tool, an invalid input or a denial by rule: an error result for the model."""
    call = _scheduling(s).reply.schedule.calls[_scheduling(s).reply.schedule.head]
    sound = call.facts.known and call.facts.valid
    status = CallStatus.DENIED if sound else FAILED
    return _passed(s, status, call.facts.problem or (DENIED if sound else REFUSED))


def skip_call(s: State, e: Entered, k: Config) -> Move:
    """No further call of this answer runs."""
    reply = _scheduling(s).reply
    words = NOT_RUN_STOPPED if reply.schedule.stop is not None else _sibling(reply.schedule.broken_by)
    return _passed(s, CallStatus.CANCELLED, words)


def _sibling(broken_by: str) -> str:
    return f"[Cancelled: the shell call {broken_by} of the same answer failed.]"


def _passed(s: State, status: CallStatus, words: str) -> Move:
    phase = _scheduling(s)
    reply, batch = phase.reply, s.control.batch
    call = ended(reply.schedule.calls[reply.schedule.head], status, (Text(words),))
    reply = with_call(reply, reply.schedule.head, call, reply.schedule.head + 1)
    control = with_batch(s.control, counted(batch, reply.schedule, -1, batch.active, batch.alone))
    phase = Scheduling(reply)
    return Move(control, phase, s.data, (shown_end(call, synthetic=True),))


def _reply_of(s: State) -> Reply:
    assert isinstance(s.phase, (Sampling, Running, Aborting))
    return s.phase.reply


def _place(reply: Reply, effect_id: int) -> int:
    return [call.effect_id for call in reply.schedule.calls].index(effect_id)


def closed_call(
    data: Data,
    reply: Reply,
    place: int,
    status: CallStatus,
    content: tuple[ResultBlock, ...],
    stop: HookStop | None = None,
    extra: tuple[Message, ...] = (),
    synthetic: bool = False,
) -> tuple[Data, Reply, tuple[Effect, ...], int]:
    """
    End one active call; return what changed and how many calls closed with it.

    A failed shell call takes its siblings with it, running or not.
    """
    call = ended(reply.schedule.calls[place], status, content)
    reply = with_call(reply, place, call, reply.schedule.head)
    schedule = reply.schedule
    effects: tuple[Effect, ...] = (shown_end(call, synthetic),)
    if stop is not None or extra:
        schedule = evolve(schedule, stop=schedule.stop or stop, extra=(*schedule.extra, *extra))
        reply = with_schedule(reply, schedule)
    closed = 1
    breaks = call.facts.shell and status is FAILED and not schedule.broken_by
    if breaks:
        reply = with_schedule(reply, evolve(schedule, broken_by=call.use.id))
        still = _active(reply)
        data, reply, cancelled = cancel_active(data, reply, _sibling(call.use.id))
        closed, effects = closed + still, (*effects, *cancelled)
    return data, reply, effects, closed


def _active(reply: Reply) -> int:
    return sum(call.state in (ACTIVE, ASKING) for call in reply.schedule.calls)


def end_call(s: State, e: ToolEnded, k: Config) -> Move:
    """A tool answered."""
    reply = _reply_of(s)
    place = _place(reply, e.effect_id)
    data, reply, effects, closed = closed_call(s.data, reply, place, e.status, e.content, e.stop, e.messages)
    return _scheduled(s, data, reply, effects, closed)


def _scheduled(s: State, data: Data, reply: Reply, effects: tuple[Effect, ...], closed: int) -> Move:
    batch = s.control.batch
    active = batch.active - closed
    batch = counted(batch, reply.schedule, -closed, active, batch.alone and active > 0)
    return Move(with_batch(s.control, batch), Scheduling(reply), data, effects)


def run_permitted(s: State, e: PermissionAnswered, k: Config) -> Move:
    """The call may run; a hook may have changed its input, which the history does not see."""
    reply = _reply_of(s)
    place = _place(reply, e.effect_id)
    old = reply.schedule.calls[place]
    given = old.use.input if e.input is None else e.input
    order = RunTool(s.data.ledger.next_id, old.use, given)
    call = Call(old.use, old.facts, old.original_id, ACTIVE, order.id, input=e.input)
    reply = with_call(reply, place, call, reply.schedule.head)
    return Move(s.control, Scheduling(reply), owing(s.data, order), (order,))


def deny_call(s: State, e: PermissionAnswered, k: Config) -> Move:
    """The call may not run: denied, or a hook asked to stop."""
    reply = _reply_of(s)
    place = _place(reply, e.effect_id)
    status = CallStatus.CANCELLED if e.allowed else CallStatus.DENIED
    words = e.words or (NOT_RUN_STOPPED if e.allowed else DENIED)
    data, reply, effects, closed = closed_call(
        s.data, reply, place, status, (Text(words),), e.stop, synthetic=True
    )
    return _scheduled(s, data, reply, effects, closed)


def back_to_stream(s: State, e: Entered, k: Config) -> Move:
    """Nothing more may begin while the answer streams."""
    phase = _scheduling(s)
    return Move(s.control, Sampling(phase.reply), s.data)


def await_calls(s: State, e: Entered, k: Config) -> Move:
    """Nothing more may begin until a call ends."""
    return Move(s.control, Running(_scheduling(s).reply), s.data)
