"""The answer while it comes in: its blocks, its calls, and what of it is kept."""

from __future__ import annotations

import attrs

from stepfold.engine.config import Config
from stepfold.engine.context.tokens import estimate_blocks
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
    Verdict,
)
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
from stepfold.engine.moves.ledger import spec_of, spend, total, without
from stepfold.engine.phases import Call, CallState, Reply
from stepfold.engine.state import Batch, Control, Data, Fill, Head

NOT_RUN_CUT = "[Not run: the answer that made this call was cut off.]"
NOT_RUN_STOPPED = "[Not run: a hook asked to stop.]"
NOT_RUN_ABORTED = "[Not run: interrupted by the user.]"
CANCELLED_ABORT = "[Cancelled: interrupted by the user. What it did so far may stand.]"
CANCELLED_ATTEMPT = "[Cancelled: the answer that made this call was withdrawn.]"
CANCELLED_CUT = "[Cancelled: the answer that made this call was cut off.]"
UNKNOWN_CRASH = "[Unknown: the process died while this call ran. It may or may not have done its work.]"


def head_of(reply: Reply) -> tuple[Head, bool, bool]:
    """Return what the first waiting call is: (head, refused without running, needs a permission)."""
    if reply.head >= len(reply.calls):
        return Head.NONE, False, False
    facts = reply.calls[reply.head].facts
    sound = facts.known and facts.valid
    refused = not sound or facts.verdict is Verdict.DENY
    return (
        Head.SAFE if sound and facts.safe else Head.UNSAFE,
        refused,
        not refused and facts.verdict is Verdict.ASK,
    )


def counted(batch: Batch, reply: Reply, opened: int, active: int, alone: bool) -> Batch:
    """Return the sums of *reply* after *opened* more calls are open; flags stay as they are."""
    head, refused, asks = head_of(reply)
    return Batch(
        total=len(reply.calls),
        open=batch.open + opened,
        active=active,
        alone=alone,
        head=head,
        refused=refused,
        asks=asks,
        stopped=reply.stop is not None,
        complete=batch.complete,
        broken=bool(reply.broken_by),
        streaming=batch.streaming,
        blocks=len(reply.blocks),
    )


def with_call(reply: Reply, place: int, call: Call, head: int) -> Reply:
    """Return *reply* with the call at *place* replaced and the first waiting call at *head*."""
    calls = (*reply.calls[:place], call, *reply.calls[place + 1 :])
    return Reply(
        reply.call_id,
        reply.blocks,
        calls,
        head,
        reply.stop,
        reply.broken_by,
        reply.extra,
        reply.open_text,
        reply.tokens,
        reply.stop_reason,
        reply.details,
    )


def ended(call: Call, status: CallStatus, content: tuple[ResultBlock, ...]) -> Call:
    """Return *call* ended for good with *status* and its result."""
    result = ToolResult(call.use.id, content, is_error=status is not CallStatus.COMPLETED)
    return Call(
        call.use,
        call.facts,
        call.original_id,
        CallState.ENDED,
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
    return Show(CallShown(call.use.id, call.status, call.result.content, synthetic, call.original_id))


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
    for call in reply.calls:
        if call.state in (CallState.ACTIVE, CallState.ASKING) and call.effect_id not in keep:
            gone.append(call.effect_id)
            effects.append(Cancel(call.effect_id) if call.effect_id in asked else CancelTool(call.effect_id))
            call = ended(call, status, (Text(words),))
            effects.append(shown_end(call, synthetic=True))
        calls.append(call)
    if not gone:
        return data, reply, ()
    return without(data, gone), attrs.evolve(reply, calls=tuple(calls)), tuple(effects)


def skip_waiting(reply: Reply, words: str) -> tuple[Reply, tuple[Effect, ...]]:
    """End every call that has not begun with a synthetic result."""
    if reply.head >= len(reply.calls):
        return reply, ()
    skipped = [ended(call, CallStatus.CANCELLED, (Text(words),)) for call in reply.calls[reply.head :]]
    calls = (*reply.calls[: reply.head], *skipped)
    return (
        attrs.evolve(reply, calls=calls, head=len(calls)),
        tuple(shown_end(call, synthetic=True) for call in skipped),
    )


def results(reply: Reply) -> tuple[Message, ...]:
    """Return the message with every result in call order, or nothing where no call was made."""
    if not reply.calls:
        return ()
    content = tuple(call.result for call in reply.calls if call.result is not None)
    return (Message(Role.USER, content, Origin.RESULTS),)


def whole_answer(reply: Reply, model: str) -> tuple[Message, ...]:
    """Return the answer as one message, or nothing where it is empty."""
    return (Message(Role.ASSISTANT, reply.blocks, Origin.ANSWER, model),) if reply.blocks else ()


def partial_answer(reply: Reply, model: str) -> tuple[Message, ...]:
    """Return what is kept of a cut answer: trailing thinking dropped, open text kept, results after it."""
    blocks: tuple[Block, ...] = reply.blocks
    if reply.open_text.strip():
        blocks = (*blocks, Text(reply.open_text))
    while blocks and isinstance(blocks[-1], Thinking | RedactedThinking):
        blocks = blocks[:-1]
    if not blocks:
        return ()
    return (Message(Role.ASSISTANT, blocks, Origin.ANSWER, model), *results(reply))


def cut_answer(
    data: Data, reply: Reply, running: str, waiting: str
) -> tuple[Data, Reply, tuple[Effect, ...]]:
    """Close the calls of an answer that was cut: running ones are cancelled, the rest not run."""
    data, reply, cancelled = cancel_active(data, reply, running)
    reply, skipped = skip_waiting(reply, waiting)
    return data, reply, (*cancelled, *skipped)


def withdraw(data: Data, reply: Reply, shown: bool) -> tuple[Data, tuple[Effect, ...]]:
    """Drop an attempt: its running calls are cancelled, and what was shown is withdrawn."""
    data, reply, cancelled = cancel_active(data, reply, CANCELLED_ATTEMPT)
    if shown or reply.blocks:
        return data, (*cancelled, Tombstone(reply.call_id))
    return data, cancelled


def stream_ended(
    control: Control, data: Data, reply: Reply, e: StreamEnd, k: Config
) -> tuple[Control, Data, Reply, tuple[Effect, ...]]:
    """
    Book a stream's end: usage and cost, the token count, the time; show a batch summary that waited.

    The count becomes what was reported for the prompt; the answer's own tokens
    stand in ``reply.tokens`` and join with it.
    """
    spec = spec_of(control, k)
    spending = spend(control, e.usage, spec)
    fill, tokens = control.fill, estimate_blocks((*reply.blocks, Text(e.open_text)))
    layers, side = data.layers, data.side
    effects: tuple[Effect, ...] = ()
    book = attrs.evolve(data.book, usage=total(data.book.usage, e.usage))
    if isinstance(e, StreamClosed):
        book = attrs.evolve(book, last_answer_ms=data.ledger.now_ms)
        if e.usage is not None and e.usage.prompt_tokens:
            fill = Fill(e.usage.prompt_tokens, fill.floor, fill.last_round)
            tokens = e.usage.output_tokens
        if e.cleared_tokens and layers.edits_pending:
            layers = attrs.evolve(layers, edits_pending=False)
            effects = (
                Show(
                    Notice(NoticeKind.MICROCOMPACTED, "the server cleared old tool results", e.cleared_tokens)
                ),
            )
            data = attrs.evolve(data, messages=data.messages.append(Message(Role.USER, (), Origin.BOUNDARY)))
    if side.summary is not None:
        effects = (
            *effects,
            Show(SummaryShown(side.summary_id, side.summary)),
        )
        side = attrs.evolve(side, summary=None)
    data = attrs.evolve(data, side=side, book=book, layers=layers)
    stop = e.stop if isinstance(e, StreamClosed) else control.stop
    details = e.details or e.reason if isinstance(e, StreamClosed) else ""
    reply = attrs.evolve(reply, open_text=e.open_text, tokens=tokens, stop_reason=stop, details=details)
    control = attrs.evolve(control, spending=spending, fill=fill, stop=stop)
    return control, data, reply, effects
