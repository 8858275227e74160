"""The answer while it comes in: its blocks, its calls, and what of it is kept."""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.context.results import hold_to_budget
from stepfold.engine.context.tokens import chars_of, estimate_blocks
from stepfold.engine.effects import (
    AskPermission,
    CallShown,
    Cancel,
    CancelTool,
    Effect,
    Notice,
    NoticeKind,
    Show,
    SummaryShown,
    Tombstone,
)
from stepfold.engine.events import (
    CallStatus,
    StreamClosed,
    StreamEnd,
    Usage,
    Verdict,
)
from stepfold.engine.frozen import evolve
from stepfold.engine.guards.spending import spend
from stepfold.engine.messages import (
    Block,
    Message,
    Origin,
    RedactedThinking,
    ResultBlock,
    Role,
    Text,
    Thinking,
    ToolResult,
)
from stepfold.engine.moves.ledger import total, with_book, without
from stepfold.engine.phases import (
    Call,
    CallState,
    Closing,
    Reply,
    Schedule,
)
from stepfold.engine.state import (
    Batch,
    Book,
    Control,
    Data,
    Fill,
    Head,
    State,
)

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
NONE: Final = Head.NONE
SAFE: Final = Head.SAFE
UNSAFE: Final = Head.UNSAFE
DENY: Final = Verdict.DENY
ASK: Final = Verdict.ASK
ENDED: Final = CallState.ENDED
ACTIVE: Final = CallState.ACTIVE
ASKING: Final = CallState.ASKING
COMPLETED: Final = CallStatus.COMPLETED
USER: Final = Role.USER
ASSISTANT: Final = Role.ASSISTANT
RESULTS: Final = Origin.RESULTS
ANSWER: Final = Origin.ANSWER

NOT_RUN_CUT = "[Not run: the answer that made this call was cut off.]"
NOT_RUN_STOPPED = "[Not run: a hook asked to stop.]"
NOT_RUN_ABORTED = "[Not run: interrupted by the user.]"
CANCELLED_ABORT = "[Cancelled: interrupted by the user. What it did so far may stand.]"
CANCELLED_RAISED = "[Cancelled: the answer that made this call is asked for again with a higher limit.]"
CANCELLED_FAILED = "[Cancelled: the call to the model that made this call failed.]"
CANCELLED_FALLBACK = "[Cancelled: another model takes over from the one that made this call.]"
CANCELLED_CUT = "[Cancelled: the answer that made this call was cut off.]"
DENIED_CRASH = "[Denied: the process died twice while permission for this call was asked.]"
UNKNOWN_CRASH = "[Unknown: the process died while this call ran. It may or may not have done its work.]"


NO_HEAD = (NONE, False, False)


def head_of(schedule: Schedule) -> tuple[Head, bool, bool]:
    """Return what the first waiting call is: (head, refused without running, needs a permission)."""
    facts = schedule.calls[schedule.head].facts
    sound = facts.known and facts.valid
    refused = not sound or facts.verdict is DENY
    asks = not refused and facts.verdict is ASK
    return SAFE if sound and facts.safe else UNSAFE, refused, asks


def counted(batch: Batch, schedule: Schedule, opened: int, active: int, alone: bool) -> Batch:
    """Return the sums of *schedule* after *opened* more calls are open; flags stay as they are."""
    count = len(schedule.calls)
    head, refused, asks = head_of(schedule) if schedule.head < count else NO_HEAD
    return Batch(
        count,
        batch.open + opened,
        active,
        alone,
        head,
        refused,
        asks,
        schedule.stop is not None,
        batch.complete,
        schedule.broken_by != "",
        batch.streaming,
    )


def with_batch(c: Control, batch: Batch, blocks: int | None = None) -> Control:
    """Return *c* with other sums of the scheduler, and of the answer's blocks where they are given."""
    return evolve(c, batch=batch) if blocks is None else evolve(c, batch=batch, blocks=blocks)


def with_call(reply: Reply, place: int, call: Call, head: int) -> Reply:
    """Return *reply* with the call at *place* replaced and the first waiting call at *head*."""
    schedule = reply.schedule
    calls = list(schedule.calls)
    calls[place] = call
    schedule = Schedule(tuple(calls), head, schedule.stop, schedule.broken_by, schedule.extra)
    return Reply(reply.call_id, reply.blocks, schedule, reply.closing)


def with_schedule(reply: Reply, schedule: Schedule) -> Reply:
    """Return *reply* with its calls where *schedule* has them."""
    return Reply(reply.call_id, reply.blocks, schedule, reply.closing)


def _blank(part: ResultBlock) -> bool:
    return type(part) is Text and (not part.text or part.text.isspace())


def ended(call: Call, status: CallStatus, content: tuple[ResultBlock, ...]) -> Call:
    """Return *call* ended for good with *status* and its result."""
    for part in content:
        if _blank(part):
            content = tuple(part for part in content if not _blank(part))
            break
    result = ToolResult(call.use.id, content, status is not COMPLETED)
    return Call(
        call.use,
        call.facts,
        call.original_id,
        ENDED,
        call.effect_id,
        status,
        result,
        call.input,
        call.rerun,
    )


def shown_end(call: Call, synthetic: bool) -> Show:
    """Return the order that tells the consumer how *call* ended."""
    assert call.status is not None
    assert call.result is not None
    return Show(
        CallShown(call.use.id, call.status, call.result.content, synthetic, call.original_id)
    )


def cancel_active(
    data: Data,
    reply: Reply,
    words: str,
    keep: frozenset[int] = frozenset(),
    status: CallStatus = CallStatus.CANCELLED,
) -> tuple[Data, Reply, tuple[Effect, ...]]:
    """End every active call whose effect is not in *keep* with a synthetic result, and cancel its effect."""
    calls, effects, gone = [], list[Effect](), []
    asked = {effect.id for effect in data.ledger.owed if isinstance(effect, AskPermission)}
    for call in reply.schedule.calls:
        if call.state in (ACTIVE, ASKING) and call.effect_id not in keep:
            gone.append(call.effect_id)
            effects.append(Cancel(call.effect_id) if call.effect_id in asked else CancelTool(call.effect_id))
            call = ended(call, status, (Text(words),))
            effects.append(shown_end(call, synthetic=True))
        calls.append(call)
    if not gone:
        return data, reply, ()
    schedule = evolve(reply.schedule, calls=tuple(calls))
    return without(data, gone), with_schedule(reply, schedule), tuple(effects)


def skip_waiting(reply: Reply, words: str) -> tuple[Reply, tuple[Effect, ...]]:
    """End every call that has not begun with a synthetic result."""
    schedule = reply.schedule
    if schedule.head >= len(schedule.calls):
        return reply, ()
    skipped = [ended(call, CallStatus.CANCELLED, (Text(words),)) for call in schedule.calls[schedule.head :]]
    calls = (*schedule.calls[: schedule.head], *skipped)
    shown = tuple(shown_end(call, synthetic=True) for call in skipped)
    return with_schedule(reply, evolve(schedule, calls=calls, head=len(calls))), shown


def results(reply: Reply, data: Data, k: Config) -> tuple[Message, ...]:
    """Return the message with every result in call order, held to its budgets; nothing without calls."""
    calls = reply.schedule.calls
    if not calls:
        return ()
    content = tuple([call.result for call in calls if call.result is not None])
    message = Message(USER, content, RESULTS)
    if sum([chars_of(result) for result in content]) < data.tool_context.result_chars:
        return (message,)
    tools = {spec.name: spec for spec in data.tool_context.tools}
    names = {call.use.id: call.use.name for call in calls}
    return (hold_to_budget(message, names, tools, k)[0],)


def whole_answer(reply: Reply, model: str) -> tuple[Message, ...]:
    """Return the answer as one message, or nothing where it is empty."""
    return (Message(ASSISTANT, reply.blocks, ANSWER, model),) if reply.blocks else ()


def partial_answer(reply: Reply, data: Data, model: str, k: Config) -> tuple[Message, ...]:
    """Return what is kept of a cut answer: trailing thinking dropped, open text kept, results after it."""
    blocks: tuple[Block, ...] = reply.blocks
    if reply.closing.open_text.strip():
        blocks = (*blocks, Text(reply.closing.open_text))
    while blocks and isinstance(blocks[-1], Thinking | RedactedThinking):
        blocks = blocks[:-1]
    if not blocks:
        return ()
    return (Message(ASSISTANT, blocks, ANSWER, model), *results(reply, data, k))


def cut_answer(
    data: Data, reply: Reply, running: str, waiting: str
) -> tuple[Data, Reply, tuple[Effect, ...]]:
    """Close the calls of an answer that was cut: running ones are cancelled, the rest not run."""
    data, reply, cancelled = cancel_active(data, reply, running)
    reply, skipped = skip_waiting(reply, waiting)
    return data, reply, (*cancelled, *skipped)


def withdraw(data: Data, reply: Reply, shown: bool, words: str) -> tuple[Data, tuple[Effect, ...]]:
    """Drop an attempt: its running calls are cancelled, and what was shown is withdrawn."""
    data, reply, cancelled = cancel_active(data, reply, words)
    if shown or reply.blocks:
        return data, (*cancelled, Tombstone(reply.call_id))
    return data, cancelled


def stream_ended(
    s: State, reply: Reply, e: StreamEnd, k: Config, batch: Batch | None = None
) -> tuple[Control, Data, Reply, tuple[Effect, ...]]:
    """
    Book a stream's end: usage and cost, the token count, the time; show a batch summary that waited.

    The count becomes what was reported for the prompt; the answer's own tokens
    stand in ``reply.closing`` and join with it.  *batch* takes the place of
    the sums of its calls.
    """
    c, data, usage = s.control, s.data, e.usage
    fill, tokens, last_ms = c.fill, -1, data.book.last_answer_ms
    effects: tuple[Effect, ...] = ()
    stop, details = c.stop, ""
    if isinstance(e, StreamClosed):
        stop, details, last_ms = e.stop, e.details or e.reason, s.now_ms
        if usage is not None and (prompt_tokens := usage.prompt_tokens):
            fill = Fill(prompt_tokens, fill.floor, fill.last_round)
            tokens = usage.output_tokens
        if e.cleared_tokens and data.layers.edits_pending:
            data, effects = _cleared(data, e.cleared_tokens)
    if tokens < 0:
        tokens = estimate_blocks((*reply.blocks, Text(e.open_text)))
    side = data.side
    if side.summary is not None:
        effects = (*effects, Show(SummaryShown(side.summary_id, side.summary)))
        data = evolve(data, side=evolve(side, summary=None))
    if usage is not None or last_ms != data.book.last_answer_ms:
        data = with_book(data, _answered(data.book, usage, last_ms))
    closing = Closing(stop, e.open_text, tokens, details)
    reply = Reply(reply.call_id, reply.blocks, reply.schedule, closing)
    control = evolve(
        c,
        stop=stop,
        spending=spend(c, usage, k.all_models[c.attempts.fallbacks]),
        fill=fill,
        batch=c.batch if batch is None else batch,
    )
    return control, data, reply, effects


def _answered(book: Book, usage: Usage | None, last_ms: int | None) -> Book:
    return evolve(book, usage=total(book.usage, usage), last_answer_ms=last_ms)


def _cleared(data: Data, tokens: int) -> tuple[Data, tuple[Effect, ...]]:
    """The server's cache edits are confirmed: only now is their boundary written."""
    notice = Notice(NoticeKind.MICROCOMPACTED, "the server cleared old tool results", tokens)
    boundary = Message(USER, (), Origin.BOUNDARY)
    layers = evolve(data.layers, edits_pending=False)
    return evolve(data, layers=layers, messages=data.messages.append(boundary)), (Show(notice),)
