"""What joins the view when an answer is kept or a turn is done."""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.context.results import smallest_limit
from stepfold.engine.context.tokens import estimate_message
from stepfold.engine.effects import (
    Effect,
    Mark,
    MarkCommand,
    MessageShown,
    Notice,
    NoticeKind,
    Show,
    Summarise,
)
from stepfold.engine.events import StreamClosed, StreamFailed
from stepfold.engine.frozen import evolve
from stepfold.engine.messages import Message, Opaque, Origin, Role, user_text
from stepfold.engine.moves.ledger import joined, learned, owing, spec_of
from stepfold.engine.moves.reply import (
    CANCELLED_CUT,
    CANCELLED_FAILED,
    NOT_RUN_CUT,
    cut_answer,
    partial_answer,
    results,
    whole_answer,
    withdraw,
)
from stepfold.engine.phases import Reply, Scheduling
from stepfold.engine.state import Data, Fill, Side, State

WINDOW_RESUME = (
    "Your answer reached the limit of the context window, which has been shortened since. "
    "Continue exactly where it stopped: no apology, no recap."
)
REPEATS_TOLD = 3


def kept(
    data: Data, fill: Fill, answer: tuple[Message, ...], tokens: int, side: Side | None = None
) -> tuple[Data, Fill]:
    """
    Join an answer (and its results) to the view.

    Args:
        data: What is added to.
        fill: The token count that grows.
        answer: The answer, then the message with its results, if any; () joins nothing.
        tokens: What the answer takes; the rest is estimated.
        side: What stands beside the loop from now on; None leaves it as it is.
    """
    if not answer:
        return data, fill
    used, view, size = learned(data.used_ids, answer), data.messages, tokens
    for place, message in enumerate(answer):
        view = view.append(message)
        if place:
            size += estimate_message(message)
    data = Data(
        messages=view,
        tool_context=data.tool_context,
        pending_tool_summary=data.pending_tool_summary,
        ledger=data.ledger,
        side=data.side if side is None else side,
        layers=data.layers,
        book=data.book,
        used_ids=used,
    )
    return data, Fill(fill.tokens + size, fill.floor, fill.last_round)


def window_partial(
    data: Data, reply: Reply, e: StreamClosed | StreamFailed, model: str, k: Config
) -> tuple[Data, tuple[Message, ...], tuple[Effect, ...]]:
    """
    Return what goes behind the shortened view.

    A window that the answer filled keeps its partial answer and a resume
    message; a request that failed keeps nothing, and what was shown is withdrawn.
    """
    if not isinstance(e, StreamClosed):
        data, effects = withdraw(data, reply, e.shown, CANCELLED_FAILED)
        return data, (), effects
    data, reply, effects = cut_answer(data, reply, CANCELLED_CUT, NOT_RUN_CUT)
    partial = partial_answer(reply, data, model, k)
    return data, (*partial, user_text(WINDOW_RESUME, Origin.RESUME)), effects


def turn_joined(s: State, k: Config) -> tuple[Data, Fill, tuple[Effect, ...]]:
    """Join the answer, its results in call order, what tools brought, queued words, memories and skills."""
    assert isinstance(s.phase, Scheduling)
    reply, data = s.phase.reply, s.data
    model = spec_of(s.control, k).name
    answer = (*whole_answer(reply, model), *results(reply, s.data, k))
    side, effects = _repeated(data.side, reply)
    data, fill = kept(data, s.control.fill, answer, reply.closing.tokens, side)
    if side.queue or side.prefetched or reply.schedule.extra:
        data, fill, more = _company(data, fill, reply)
        effects = (*effects, *more)
    if side.tools_changed is not None:
        tools = side.tools_changed
        context = evolve(data.tool_context, tools=tools, result_chars=smallest_limit(tools, k))
        data = evolve(data, tool_context=context, side=evolve(data.side, tools_changed=None))
    if k.microcompact_trigger_results is not None:
        data = _note_clearable(data, reply)
    return data, fill, effects


def _company(data: Data, fill: Fill, reply: Reply) -> tuple[Data, Fill, tuple[Effect, ...]]:
    """
    Join what comes beside the results: from tools, from the queue, from memories and skills.

    While a server-side call of the answer is pending, its result opens the
    next answer, so words of the user wait for the turn after.
    """
    side, held = data.side, _server_pending(reply)
    queue, prefetched = ((), ()) if held else (side.queue, side.prefetched)
    words = tuple(Message(Role.USER, command.content, Origin.COMMAND) for command in queue)
    found = tuple(user_text(text, Origin.ATTACHMENT) for text in prefetched)
    more = (*reply.schedule.extra, *words, *found)
    data, fill = joined(data, fill, more)
    marks = tuple(MarkCommand(command.id, Mark.STARTED) for command in queue)
    if not held:
        data = evolve(data, side=evolve(side, queue=(), prefetched=()))
    return data, fill, (*marks, *(Show(MessageShown(message)) for message in more))


def _server_pending(reply: Reply) -> bool:
    blocks = [block for block in reply.blocks if isinstance(block, Opaque)]
    return bool({block.call_id for block in blocks if block.call_id} - {block.answers for block in blocks})


def _repeated(side: Side, reply: Reply) -> tuple[Side, tuple[Effect, ...]]:
    """Count how often the same calls came in a row; tell it at every third time."""
    calls = tuple((call.use.name, call.use.input) for call in reply.schedule.calls)
    repeats = side.repeats + 1 if calls == side.last_calls else 1
    side = Side(
        side.queue, side.prefetched, side.summary, side.summary_id, calls, repeats, side.tools_changed
    )
    if repeats % REPEATS_TOLD:
        return side, ()
    names = ", ".join(name for name, _ in calls)
    notice = Notice(
        NoticeKind.REPEATED_CALL, f"the same call came {repeats} times in a row: {names}", repeats
    )
    return side, (Show(notice),)


def _note_clearable(data: Data, reply: Reply) -> Data:
    names = {spec.name for spec in data.tool_context.tools if spec.clearable}
    new = tuple(call.use.id for call in reply.schedule.calls if call.use.name in names)
    layers = data.layers
    return evolve(data, layers=evolve(layers, clearable=(*layers.clearable, *new)))


def summarised(data: Data, reply: Reply, k: Config) -> tuple[Data, tuple[Effect, ...]]:
    """Start the summary of this batch; main runs only.  An older one that is still written may come late."""
    if not k.tool_summaries or k.sub_agent or not reply.schedule.calls:
        return data if data.pending_tool_summary is None else evolve(data, pending_tool_summary=None), ()
    message = results(reply, data, k)[0]
    order = Summarise(data.ledger.next_id, tuple(call.use for call in reply.schedule.calls), message)
    return evolve(owing(data, order), pending_tool_summary=order.id), (order,)
