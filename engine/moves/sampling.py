"""Blocks come in; a call fails and is made again."""

from __future__ import annotations

import attrs

from stepfold.engine.config import Config
from stepfold.engine.effects import BlockShown, Notice, NoticeKind, Show, Wait
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    Resumed,
    StreamClosed,
    StreamFailed,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.frozen import evolve
from stepfold.engine.messages import Role, ToolUse
from stepfold.engine.moves.ledger import owing, spec_of, without
from stepfold.engine.moves.reply import (
    CANCELLED_FAILED,
    CANCELLED_FALLBACK,
    counted,
    stream_ended,
    whole_answer,
    with_batch,
    withdraw,
)
from stepfold.engine.moves.turn import kept
from stepfold.engine.phases import (
    CALLING,
    Call,
    Reply,
    Sampling,
    Schedule,
    Scheduling,
    Waiting,
)
from stepfold.engine.state import (
    Attempts,
    Batch,
    Control,
    Data,
    Move,
    State,
)

NO_TOOLS = CallFacts(known=False, problem="[No tool runs here: answer with text.]")
MASK = (1 << 64) - 1


def take_block(s: State, e: BlockCompleted, k: Config) -> Move:
    """One more whole block of the answer."""
    assert isinstance(s.phase, Sampling)
    reply = s.phase.reply
    blocks = (*reply.blocks, e.block)
    phase = Sampling(Reply(reply.call_id, blocks, reply.schedule))
    shown = Show(BlockShown(reply.call_id, e.block))
    c = s.control
    return Move(with_batch(c, c.batch, len(blocks)), phase, s.data, (shown,))


def with_new_call(reply: Reply, data: Data, e: BlockCompleted, nested: bool) -> Reply:
    """
    Return *reply* with one call more.

    The same id, name and input twice in one answer is one call; any other
    reuse of an id gets a new one, counted from the state.  An empty id is
    none, so it is never the same, and an input that is no object is the text
    that the model wrote.
    """
    block, facts = e.block, e.facts
    assert isinstance(block, ToolUse)
    assert facts is not None
    schedule, name = reply.schedule, block.id
    named = [call for call in schedule.calls if call.use.id == name or call.original_id == name]
    if named and name:
        written = (name, block.name, block.input, block.raw_input)
        for call in named:
            use = call.use
            if (call.original_id, use.name, use.input, use.raw_input) == written:
                return reply
    if named or not name or name in data.used_ids:
        name = _new_id(reply, data)
    use = block if name == block.id else attrs.evolve(block, id=name)
    call = Call(use, NO_TOOLS if nested else facts, block.id)
    calls = (*schedule.calls, call)
    schedule = Schedule(calls, schedule.head, schedule.stop, schedule.broken_by, schedule.extra)
    return Reply(reply.call_id, (*reply.blocks, use), schedule)


def _new_id(reply: Reply, data: Data) -> str:
    here = {call.use.id for call in reply.schedule.calls}
    number = data.ledger.next_id
    while (name := f"call_{number}") in here or name in data.used_ids:
        number += 1
    return name


def take_call(s: State, e: BlockCompleted, k: Config) -> Move:
    """A whole client call: it joins the schedule."""
    assert isinstance(s.phase, Sampling)
    old = s.phase.reply
    reply = with_new_call(old, s.data, e, k.nested)
    if reply is old:
        return Move(s.control, Scheduling(reply), s.data)
    batch = s.control.batch
    batch = counted(batch, reply.schedule, 1, batch.active, batch.alone)
    control = with_batch(s.control, batch, len(reply.blocks))
    shown = Show(BlockShown(reply.call_id, reply.blocks[-1]))
    return Move(control, Scheduling(reply), s.data, (shown,))


def take_answer(s: State, e: StreamClosed, k: Config) -> Move:
    """The answer is whole and calls tools."""
    assert isinstance(s.phase, Sampling)
    old = s.control.batch
    batch = evolve(old, complete=True, streaming=False)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k, batch)
    return Move(c, Scheduling(reply), data, shown)


def resend(s: State, e: StreamClosed, k: Config) -> Move:
    """The server paused: send the turn back unchanged."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, fill = kept(data, c.fill, whole_answer(reply, spec_of(c, k).name), reply.closing.tokens)
    resends = c.attempts.resends + 1
    control = evolve(
        c,
        fill=fill,
        batch=Batch(),
        attempts=Attempts(fallbacks=c.attempts.fallbacks, resends=resends),
        resending=bool(data.messages) and data.messages[-1].role is Role.ASSISTANT,
    )
    notice = Show(
        Notice(NoticeKind.RESENDING, f"the server paused; sent back for the {resends}. time", resends)
    )
    return Move(control, CALLING, data, (*shown, notice))


def backoff_ms(c: Control, data: Data, failure: Failure, k: Config) -> tuple[int, int]:
    """
    Return (ms to wait, jitter within it).

    Doubles from ``backoff_initial_ms`` to ``backoff_max_ms`` with the retries
    made; up to ``jitter_percent`` more from the run's seed and a counter.  The
    server's own wait is taken as it is.
    """
    if failure.retry_after_ms is not None:
        return failure.retry_after_ms, 0
    base = min(k.backoff_initial_ms << min(c.attempts.retries, 30), k.backoff_max_ms)
    mixed = (data.book.seed * 6364136223846793005 + data.ledger.next_id * 1442695040888963407) & MASK
    mixed = ((mixed ^ (mixed >> 31)) * 0x9E3779B97F4A7C15) & MASK
    jitter = base * k.jitter_percent * ((mixed >> 32) % 1001) // 100_000
    return base + jitter, jitter


def wait(s: State, e: StreamFailed, k: Config) -> Move:
    """Withdraw the attempt and wait before the next."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, effects = withdraw(data, reply, e.shown, CANCELLED_FAILED)
    ms, jitter = backoff_ms(c, data, e.failure, k)
    order = Wait(data.ledger.next_id, ms, jitter)
    overloads = c.attempts.overloads + 1 if e.failure.kind is FailureKind.OVERLOADED else 0
    attempts = evolve(c.attempts, retries=c.attempts.retries + 1, overloads=overloads)
    words = f"{e.failure.kind}: try {attempts.retries + 1} in {ms} ms"
    notice = Show(Notice(NoticeKind.RETRYING, words, ms))
    control = evolve(c, attempts=attempts, batch=Batch())
    phase = Waiting(e.failure)
    return Move(control, phase, owing(data, order), (*shown, *effects, notice, order))


def fall_back(s: State, e: StreamFailed, k: Config) -> Move:
    """Withdraw the attempt and go on with the next model, for the rest of the run."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, effects = withdraw(data, reply, e.shown, CANCELLED_FALLBACK)
    attempts = Attempts(fallbacks=c.attempts.fallbacks + 1, resends=c.attempts.resends)
    control = evolve(c, attempts=attempts, batch=Batch())
    model = spec_of(control, k).name
    data = evolve(data, tool_context=evolve(data.tool_context, model=model))
    notice = Show(Notice(NoticeKind.FALLBACK, f"the run goes on with model {model}"))
    return Move(control, CALLING, data, (*shown, *effects, notice))


def call_again(s: State, e: WaitElapsed, k: Config) -> Move:
    """The back-off is over."""
    assert isinstance(s.phase, Waiting)
    return Move(s.control, CALLING, s.data)


def lost_attempt(s: State, e: Resumed) -> tuple[Control, Data, bool]:
    """Return control and data after a crash with a call open, and whether anything had been shown."""
    assert isinstance(s.phase, Sampling)
    attempts = evolve(s.control.attempts, retries=s.control.attempts.retries + 1)
    control = evolve(s.control, attempts=attempts, batch=Batch())
    return control, without(s.data, (s.phase.reply.call_id,)), bool(s.phase.reply.blocks)
