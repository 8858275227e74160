"""What joins the view when an answer is kept or a turn is done."""

from __future__ import annotations

from typing import Final, TypeAlias

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
from stepfold.engine.events import Command, StreamClosed, StreamFailed
from stepfold.engine.frozen import evolve
from stepfold.engine.messages import Message, Opaque, Origin, Role, user_text
from stepfold.engine.moves.ledger import learned, spec_of
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
from stepfold.engine.state import Data, Fill, Ledger, Side, State

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
USER: Final = Role.USER
COMMAND: Final = Origin.COMMAND
ATTACHMENT: Final = Origin.ATTACHMENT
STARTED: Final = Mark.STARTED

WINDOW_RESUME = (
    "Your answer reached the limit of the context window, which has been shortened since. "
    "Continue exactly where it stopped: no apology, no recap."
)
REPEATS_TOLD = 3

# What waits for a turn that it can join: queued words, memories and skills, what tools brought.
Company: TypeAlias = tuple[tuple[Command, ...], tuple[str, ...], tuple[Message, ...]]
NOTHING_WAITS: Final[Company] = ((), (), ())


def kept(
    data: Data,
    fill: Fill,
    answer: tuple[Message, ...],
    tokens: int,
    company: tuple[Message, ...] = (),
    side: Side | None = None,
) -> tuple[Data, Fill]:
    """
    Join an answer (and its results) to the view.

    Args:
        data: What is added to.
        fill: The token count that grows.
        answer: The answer, then the message with its results, if any; () joins nothing.
        tokens: What the answer takes; the rest is estimated.
        company: What comes behind them.
        side: What stands beside the loop from now on; None leaves it as it is.
    """
    if not answer:
        return data, fill
    size, joining = tokens, (*answer, *company)
    for message in joining[1:]:
        size += estimate_message(message)
    data = evolve(
        data,
        messages=data.messages.extend(joining),
        side=data.side if side is None else side,
        used_ids=learned(data.used_ids, joining),
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


def turn_joined(s: State, k: Config) -> tuple[Data, Fill, tuple[Effect, ...], tuple[Message, ...]]:
    """
    Join the answer, its results in call order, what tools brought, queued words, memories and skills.

    Returns data, fill and effects, and the message with the results once more.
    """
    assert isinstance(s.phase, Scheduling)
    reply, data = s.phase.reply, s.data
    found = results(reply, data, k)
    answer = (*whole_answer(reply, spec_of(s.control, k).name), *found)
    old = data.side
    company, waiting, effects = tuple[Message, ...](), NOTHING_WAITS, tuple[Effect, ...]()
    if old.queue or old.prefetched or old.extra or reply.schedule.extra:
        company, waiting, effects = _company(old, reply)
    calls = tuple([(call.use.name, call.use.input) for call in reply.schedule.calls])
    repeats = old.repeats + 1 if calls == old.last_calls else 1
    if not repeats % REPEATS_TOLD:
        effects = (_repeated(calls, repeats), *effects)
    queue, prefetched, extra = waiting
    side = Side(queue, prefetched, old.summary, old.summary_id, calls, repeats, None, extra)
    data, fill = kept(data, s.control.fill, answer, reply.closing.tokens, company, side)
    if old.tools_changed is not None:
        tools = old.tools_changed
        context = evolve(data.tool_context, tools=tools, result_chars=smallest_limit(tools, k))
        data = evolve(data, tool_context=context)
    if k.microcompact_trigger_results is not None:
        data = _note_clearable(data, reply)
    return data, fill, effects, found


def _company(side: Side, reply: Reply) -> tuple[tuple[Message, ...], Company, tuple[Effect, ...]]:
    """
    Return what comes beside the results, what goes on waiting, and the effects.

    It comes from tools, from the queue, from memories and skills.  While a
    server-side call of the answer is pending, its result opens the next
    answer, so whatever would stand as the user's words waits for the turn after.
    """
    extra = (*side.extra, *reply.schedule.extra)
    if _server_pending(reply):
        return (), (side.queue, side.prefetched, extra), ()
    words = [Message(USER, command.content, COMMAND) for command in side.queue]
    found = [user_text(text, ATTACHMENT) for text in side.prefetched]
    company = (*extra, *words, *found)
    marks = [MarkCommand(command.id, STARTED) for command in side.queue]
    return company, NOTHING_WAITS, (*marks, *map(shown, company))


def shown(message: Message) -> Effect:
    """Return the order that shows *message* to the consumer."""
    return Show(MessageShown(message))


def _server_pending(reply: Reply) -> bool:
    blocks = [block for block in reply.blocks if isinstance(block, Opaque)]
    if not blocks:
        return False
    return bool({block.call_id for block in blocks if block.call_id} - {block.answers for block in blocks})


def _repeated(calls: tuple[tuple[str, str], ...], repeats: int) -> Effect:
    """Return the notice that the same calls came so many times in a row; it goes out at every third time."""
    names = ", ".join(name for name, _ in calls)
    words = f"the same call came {repeats} times in a row: {names}"
    return Show(Notice(NoticeKind.REPEATED_CALL, words, repeats))


def _note_clearable(data: Data, reply: Reply) -> Data:
    names = {spec.name for spec in data.tool_context.tools if spec.clearable}
    new = tuple(call.use.id for call in reply.schedule.calls if call.use.name in names)
    layers = data.layers
    return evolve(data, layers=evolve(layers, clearable=(*layers.clearable, *new)))


def summarised(
    data: Data, reply: Reply, found: tuple[Message, ...], k: Config
) -> tuple[Data, tuple[Effect, ...]]:
    """
    Start the summary of this batch, whose results are *found*; main runs only.

    An older one that is still written may come late.
    """
    if not k.tool_summaries or k.sub_agent or not found:
        return unsummarised(data), ()
    ledger = data.ledger
    uses = tuple([call.use for call in reply.schedule.calls])
    order = Summarise(ledger.next_id, uses, found[0])
    ledger = Ledger((*ledger.owed, order), ledger.next_id + 1)
    data = evolve(data, pending_tool_summary=order.id, ledger=ledger)
    return data, (order,)


def unsummarised(data: Data) -> Data:
    """Return *data* that waits for no summary of a batch: one that still comes is shown on arrival."""
    return data if data.pending_tool_summary is None else evolve(data, pending_tool_summary=None)
