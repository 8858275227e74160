"""
A foreign conversation as a recording of this loop, where it could have been one.

What cannot be told as a run (a foreign compaction, an interrupt, a result that
is missing) becomes a history: a recording without events, whose messages are
what the first prompt after it goes on from.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO, Final

import attrs

from stepfold.adapters.recording.writing import Writer
from stepfold.adapters.transcripts.histories import history_line
from stepfold.adapters.transcripts.items import Compacted, Interrupted, Item, RequestFailed, Said
from stepfold.adapters.transcripts.spool import Kept, Spool
from stepfold.effects.ports import Start
from stepfold.engine import Config, State, UnexpectedEvent, start, step
from stepfold.engine.effects import CallModel, Effect, RunTool
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    CallStatus,
    Event,
    RunStarted,
    Stop,
    StreamClosed,
    ToolEnded,
    ToolSpec,
)
from stepfold.engine.messages import Block, Message, Opaque, Role, ToolResult, ToolUse

OPEN: Final = Config(
    max_turns=None,
    max_model_calls=None,
    autocompact=False,
    reactive_compact=False,
    context_window_tokens=1_000_000_000,
    max_batch_result_chars=1_000_000_000,
)
"""No limit of ours ends a conversation that was another loop's."""


@attrs.frozen(eq=False)
class Conversation:
    """
    One conversation of a file.

    Args:
        session: Its session; "" where the format has none.
        chain: "" for the main one; else the name of the side chain.
        messages: As they were kept, answers that stood in several lines put together; they are on disk.
        times_ms: Of each.
        tools: Names of all that are called.
        trouble: Why it cannot be a run of this loop; "" where nothing speaks against it so far.
    """

    session: str
    chain: str
    messages: Sequence[Message]
    times_ms: Sequence[int]
    tools: tuple[str, ...]
    trouble: str


@attrs.frozen
class Imported:
    """
    What a conversation became.

    Args:
        conversation: It.
        events: How many events the recording holds; 0: it is a history.
        why: Why it is only a history; "" where it is a whole recording.
    """

    conversation: Conversation
    events: int
    why: str


class _Collecting:
    def __init__(self, spool: Spool) -> None:
        self.messages = Kept(spool)
        self.times = array("q")
        self.tools: set[str] = set()
        self.trouble = ""
        self._last: Message | None = None  # what comes next may still be part of it
        self._parts: list[Block] = []
        self._answer = ""

    def add(self, said: Said) -> None:
        message = said.message
        if not message.content:
            return
        self.tools |= {block.name for block in message.content if isinstance(block, ToolUse) and block.name}
        if self._last is not None and self._last.role is message.role:
            asked = message.role is Role.USER
            same = _results(self._last) == _results(message) if asked else said.answer == self._answer
            if same:  # the API takes messages of one role that follow each other as one
                self._parts += message.content
                return
        self.flush()
        self._answer = said.answer if message.role is Role.ASSISTANT else ""
        self._last, self._parts = message, [*message.content]
        self.times.append(said.place.at_ms or 0)

    def flush(self) -> None:
        """Keep the last message: it is whole."""
        if self._last is not None:
            self.messages.append(attrs.evolve(self._last, content=tuple(self._parts)))
            self._last = None

    def note(self, item: Item) -> None:
        """Note why the conversation cannot be a run, where *item* says so."""
        if self.trouble:
            return
        match item:
            case Compacted(micro=micro):
                self.trouble = f"line {item.place.line}: it was {'micro' if micro else ''}compacted"
            case Interrupted():
                self.trouble = f"line {item.place.line}: it was interrupted"
            case RequestFailed(shown=True):
                self.trouble = f"line {item.place.line}: an error stands in it"
            case _:
                pass


def _results(message: Message) -> bool:
    return all(isinstance(block, ToolResult) for block in message.content)


def conversations(items: Iterable[Item]) -> list[Conversation]:
    """
    Return the conversations of a transcript, in the order in which they began.

    Memory does not grow with what they say: that waits in a temporary file.

    Raises:
        OSError: There is no room for it.
    """
    spool = Spool()
    found: dict[tuple[str, str], _Collecting] = {}
    for item in items:
        name = (item.place.session, item.place.chain)
        if (one := found.get(name)) is None:
            one = found[name] = _Collecting(spool)
        if isinstance(item, Said):
            one.add(item)
        else:
            one.note(item)
    for one in found.values():
        one.flush()
    return [
        Conversation(session, chain, one.messages, one.times, tuple(sorted(one.tools)), one.trouble)
        for (session, chain), one in found.items()
        if one.messages
    ]


def write_recording(conversation: Conversation, file: BinaryIO) -> Imported:
    """
    Write *conversation* as a recording, whole if it can be.

    Args:
        conversation: What is written.
        file: Empty; it can be written, and cut again.

    Raises:
        CodecError: A message makes a longer line than a recording may have.
        OSError: It cannot be written, or the conversation not read again.
    """
    tools = tuple(ToolSpec(name, max_result_chars=None) for name in conversation.tools)
    begun = Start(OPEN, (), tools)
    why = conversation.trouble
    if not why:
        writer = Writer(outcomes=True, digests=False, deltas=False, redact=None, kept=None)
        file.write(writer.header(begun))
        writer.begin(begun)
        before, events = start((), tools), 0
        try:
            for event, after, effects in _played(conversation, begun):
                file.write(writer.entry(event, before, after, effects))
                writer.written()
                before, events = after, events + 1
        except _NoRun as problem:
            why = str(problem)
        else:
            return Imported(conversation, events, "")
        file.seek(0)
        file.truncate()
    for piece in history_line(begun, conversation.messages):
        file.write(piece)
    return Imported(conversation, 0, why)


class _NoRun(ValueError):
    """The conversation cannot be a run of this loop; the text says where and why."""


def _played(conversation: Conversation, begun: Start) -> Iterator[tuple[Event, State, tuple[Effect, ...]]]:
    """Yield the steps of runs that come to the same messages."""
    stage = _Stage(begun)
    for number, (message, at_ms) in enumerate(
        zip(conversation.messages, conversation.times_ms, strict=True), 1
    ):
        try:
            yield from stage.take(message, number, at_ms)
        except UnexpectedEvent as problem:
            raise _NoRun(f"message {number}: in a run of this loop it cannot come there") from problem
    kept = tuple(stage.state.data.messages)
    told = len(conversation.messages)
    if conversation.messages[-1].role is Role.ASSISTANT and stage.state.end is None:
        told -= 1  # its calls are open: it joins the view when they have ended
    for number, message in enumerate(islice(conversation.messages, told), 1):
        if len(kept) < number or _said(kept[number - 1]) != _said(message):
            raise _NoRun(f"message {number}: a run of this loop would keep something else")
    if len(kept) > told:
        raise _NoRun(f"message {told + 1}: a run of this loop would keep more")


def _said(message: Message) -> tuple[Role, tuple[Block, ...]]:
    return message.role, message.content


class _Stage:
    def __init__(self, begun: Start) -> None:
        self.state = start((), begun.tools)
        self.runs = 0
        self._config = begun.config

    def take(
        self, message: Message, number: int, at_ms: int
    ) -> Iterator[tuple[Event, State, tuple[Effect, ...]]]:
        results = [block for block in message.content if isinstance(block, ToolResult)]
        if message.role is Role.ASSISTANT:
            yield from self._answer(message, number, at_ms)
        elif results and len(results) == len(message.content):
            yield from self._results(results, number, at_ms)
        elif results:
            raise _NoRun(f"message {number}: words stand beside results")
        else:
            self.runs += 1
            yield self._do(RunStarted(message.content, f"run-{self.runs}", 0, at_ms))

    def _do(self, event: Event) -> tuple[Event, State, tuple[Effect, ...]]:
        self.state, effects = step(self.state, event, self._config)
        return event, self.state, effects

    def _answer(
        self, message: Message, number: int, at_ms: int
    ) -> Iterator[tuple[Event, State, tuple[Effect, ...]]]:
        id = next((one.id for one in self.state.data.ledger.owed if isinstance(one, CallModel)), None)
        if id is None:
            raise _NoRun(f"message {number}: an answer that nobody asked for")
        calls = 0
        for block in message.content:
            if isinstance(block, Opaque) or (isinstance(block, ToolUse) and block.raw_input):
                raise _NoRun(f"message {number}: a block that only its own loop knows")
            facts = CallFacts(safe=False) if isinstance(block, ToolUse) else None
            calls += facts is not None
            yield self._do(BlockCompleted(id, block, facts, at_ms))
        yield self._do(StreamClosed(id, Stop.TOOL_USE if calls else Stop.END_TURN, at_ms=at_ms))

    def _results(
        self, results: list[ToolResult], number: int, at_ms: int
    ) -> Iterator[tuple[Event, State, tuple[Effect, ...]]]:
        left = {block.use_id: block for block in results}
        if len(left) != len(results):
            raise _NoRun(f"message {number}: two results of one call")
        while left:
            order = next((one for one in self.state.data.ledger.owed if isinstance(one, RunTool)), None)
            if order is None or order.call.id not in left:
                raise _NoRun(f"message {number}: a result that does not fit the calls before it")
            block = left.pop(order.call.id)
            status = CallStatus.FAILED if block.is_error else CallStatus.COMPLETED
            yield self._do(ToolEnded(order.id, block.content, status, at_ms=at_ms))
