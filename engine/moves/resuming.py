"""A new process takes up the log: what was open is settled here, never guessed (specification, section 8)."""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.effects import (
    Effect,
    ErrorShown,
    Notice,
    NoticeKind,
    Show,
    Tombstone,
    Wait,
)
from stepfold.engine.events import CallStatus, Resumed
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.frozen import evolve
from stepfold.engine.messages import Text
from stepfold.engine.moves.ends import stop_failure
from stepfold.engine.moves.ledger import beside, finish, one_more_request, without
from stepfold.engine.moves.reply import (
    DENIED_CRASH,
    UNKNOWN_CRASH,
    cancel_active,
    counted,
    ended,
    shown_end,
    with_schedule,
)
from stepfold.engine.moves.sampling import lost_attempt
from stepfold.engine.phases import (
    CALLING,
    Aborting,
    Call,
    CallState,
    Reply,
    Running,
    Sampling,
    Scheduling,
    Unwinding,
    Waiting,
)
from stepfold.engine.state import Data, Move, State
from stepfold.engine.terminals import ModelError

CRASHED = Failure(FailureKind.CRASHED, "the process died while the call was open, and the retries are spent")


def _told(words: str) -> Show:
    return Show(Notice(NoticeKind.RESUMED, words))


def call_after_crash(s: State, e: Resumed, k: Config) -> Move:
    """The open call is made again from the start: a retry is spent, what was shown is withdrawn."""
    assert isinstance(s.phase, Sampling)
    control, data, shown = lost_attempt(s, e)
    data, effects = _lost_calls(data, s.phase.reply)
    stone = (Tombstone(s.phase.reply.call_id),) if shown else ()
    effects = (*effects, *stone, _told("the open call is made again"), *beside(data))
    return Move(control, CALLING, data, effects)


def _lost_calls(data: Data, reply: Reply) -> tuple[Data, tuple[Effect, ...]]:
    data, _, effects = cancel_active(data, reply, UNKNOWN_CRASH, status=CallStatus.UNKNOWN)
    return data, tuple(effect for effect in effects if isinstance(effect, Show))


def give_up_after_crash(s: State, e: Resumed, k: Config) -> Move:
    """A supervisor that restarts for ever meets the same limit as any failing call."""
    assert isinstance(s.phase, Sampling | Waiting)
    data, effects = s.data, tuple[Effect, ...]()
    if isinstance(s.phase, Sampling):
        data, effects = _lost_calls(data, s.phase.reply)
        if s.phase.reply.blocks:
            effects = (*effects, Tombstone(s.phase.reply.call_id))
    shown = (*effects, *stop_failure(k, CRASHED.kind), Show(ErrorShown(CRASHED)))
    return finish(s.control, data, ModelError(CRASHED, s.control.attempts.retries + 1), *shown)


def wait_after_crash(s: State, e: Resumed, k: Config) -> Move:
    """Wait again; a retry is spent."""
    attempts = evolve(s.control.attempts, retries=s.control.attempts.retries + 1)
    waits = tuple(effect for effect in s.data.ledger.owed if isinstance(effect, Wait))
    effects = (_told("the back-off begins again"), *waits, *beside(s.data))
    return Move(evolve(s.control, attempts=attempts), s.phase, s.data, effects)


def compact_again(s: State, e: Resumed, k: Config) -> Move:
    """The first crash in a compaction: it is begun again, a request more, and remembered."""
    move = ask_again(s, e, k)
    return move._replace(control=evolve(move.control, spending=one_more_request(move.control)))


def ask_again(s: State, e: Resumed, k: Config) -> Move:
    """The first crash in a hook: it is asked again, and remembered."""
    attempts = evolve(s.control.attempts, crashed=True)
    effects = (_told("what was open is begun again"), *s.data.ledger.owed)
    return Move(evolve(s.control, attempts=attempts), s.phase, s.data, effects)


def calls_after_crash(s: State, e: Resumed, k: Config) -> Move:
    """
    Calls that ran are ``unknown``; an idempotent one is run again, once.

    A permission is asked again, once; a second crash at the same prompt denies
    the call.  Calls that had not begun run as they would have.
    """
    assert isinstance(s.phase, Running)
    data, reply, effects = _settled(s.data, s.phase.reply)
    active = sum(call.state in (CallState.ACTIVE, CallState.ASKING) for call in reply.schedule.calls)
    batch = s.control.batch
    batch = counted(batch, reply.schedule, active - batch.active, active, batch.alone and active > 0)
    effects = (_told("open calls were settled"), *effects, *beside(data))
    return Move(evolve(s.control, batch=batch), Scheduling(reply), data, effects)


def _settled(data: Data, reply: Reply) -> tuple[Data, Reply, tuple[Effect, ...]]:
    owed = {effect.id: effect for effect in data.ledger.owed}
    calls, effects, gone = list[Call](), list[Effect](), list[int]()
    for call in reply.schedule.calls:
        asking = call.state is CallState.ASKING
        if (asking or (call.state is CallState.ACTIVE and call.facts.idempotent)) and not call.rerun:
            effects.append(owed[call.effect_id])
            call = evolve(call, rerun=True)
        elif asking or call.state is CallState.ACTIVE:
            gone.append(call.effect_id)
            status = CallStatus.DENIED if asking else CallStatus.UNKNOWN
            call = ended(call, status, (Text(DENIED_CRASH if asking else UNKNOWN_CRASH),))
            effects.append(shown_end(call, synthetic=True))
        calls.append(call)
    reply = with_schedule(reply, evolve(reply.schedule, calls=tuple(calls)))
    return without(data, gone), reply, tuple(effects)


def unwind_after_crash(s: State, e: Resumed, k: Config) -> Move:
    """The abort goes on: the stream is gone, calls that ran are ``unknown``."""
    assert isinstance(s.phase, Aborting)
    reply = s.phase.reply
    data, reply, effects = cancel_active(s.data, reply, UNKNOWN_CRASH, status=CallStatus.UNKNOWN)
    data = without(data, (reply.call_id,))
    batch = evolve(s.control.batch, streaming=False)
    batch = counted(batch, reply.schedule, -batch.open, 0, False)
    shown = tuple(effect for effect in effects if isinstance(effect, Show))
    return Move(evolve(s.control, batch=batch), Unwinding(reply), data, shown)
