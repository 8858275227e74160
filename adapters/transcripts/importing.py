"""
A foreign conversation as a recording of this loop, where it could have been one.

What cannot be told as a run (a foreign compaction, an interrupt, a result that
is missing) becomes a history: a recording without events, whose messages are
what the first prompt after it goes on from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Final

import attrs

from stepfold.adapters.codec import CodecError
from stepfold.adapters.recording.writing import recording_lines
from stepfold.adapters.transcripts.items import Compacted, Interrupted, Item, RequestFailed, Said
from stepfold.adapters.transcripts.source import TranscriptError
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


@attrs.frozen
class Conversation:
    """
    One conversation of a file.

    Args:
        session: Its session; "" where the format has none.
        chain: "" for the main one; else the name of the side chain.
        messages: As they were kept, answers that stood in several lines put together.
        times_ms: Of each.
        trouble: Why it cannot be a run of this loop; "" where nothing speaks against it so far.
    """

    session: str
    chain: str
    messages: tuple[Message, ...]
    times_ms: tuple[int, ...]
    trouble: str


@attrs.frozen
class Imported:
    """
    What a conversation became.

    Args:
        conversation: It.
        events: How many events it holds; 0: it is a history.
        why: Why it is only a history; "" where it is a whole recording.
    """

    conversation: Conversation
    events: int
    why: str


class _Collecting:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.times: list[int] = []
        self.answer = ""
        self.trouble = ""

    def add(self, said: Said) -> None:
        message = said.message
        if not message.content:
            return
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role is message.role:
            asked = message.role is Role.USER
            same = _results(last) == _results(message) if asked else said.answer == self.answer
            if same:  # the API takes messages of one role that follow each other as one
                self.messages[-1] = attrs.evolve(last, content=(*last.content, *message.content))
                return
        self.answer = said.answer if message.role is Role.ASSISTANT else ""
        self.messages.append(message)
        self.times.append(said.place.at_ms or 0)


def _results(message: Message) -> bool:
    return all(isinstance(block, ToolResult) for block in message.content)


def conversations(items: Iterable[Item]) -> list[Conversation]:
    """Return the conversations of a transcript, in the order in which they began."""
    found: dict[tuple[str, str], _Collecting] = {}
    for item in items:
        one = found.setdefault((item.place.session, item.place.chain), _Collecting())
        match item:
            case Said():
                one.add(item)
            case Compacted(micro=micro):
                one.trouble = (
                    one.trouble or f"line {item.place.line}: it was {'micro' if micro else ''}compacted"
                )
            case Interrupted():
                one.trouble = one.trouble or f"line {item.place.line}: it was interrupted"
            case RequestFailed(shown=True):
                one.trouble = one.trouble or f"line {item.place.line}: an error stands in it"
            case _:
                pass
    return [
        Conversation(session, chain, tuple(one.messages), tuple(one.times), one.trouble)
        for (session, chain), one in found.items()
        if one.messages
    ]


def imported(conversation: Conversation, file: IO[bytes]) -> Imported:
    """
    Write *conversation* as a recording, whole if it can be.

    Lines are written as they are made: beside the messages, which the loop's
    state holds as well, nothing is kept.

    Args:
        conversation: What becomes a recording.
        file: New and empty; it can be wound back.

    Raises:
        TranscriptError: It makes a line that no recording may have.
        OSError: It cannot be written.
    """
    blocks = [block for message in conversation.messages for block in message.content]
    names = {block.name for block in blocks if isinstance(block, ToolUse)}
    tools = tuple(ToolSpec(name, max_result_chars=None) for name in sorted(names) if name)
    begun = Start(OPEN, (), tools)
    why = conversation.trouble
    if not why:
        try:
            lines = _written(begun, _played(conversation, begun), file)
        except (_NoRun, CodecError) as problem:
            why = str(problem)
            file.seek(0)
            file.truncate()
        else:
            return Imported(conversation, lines - 1, "")
    try:
        _written(Start(OPEN, conversation.messages, tools), (), file)
    except CodecError as problem:
        raise TranscriptError(f"as a history, which it is because {why}, {problem}") from problem
    return Imported(conversation, 0, why)


def _written(begun: Start, steps: Iterable[tuple[Event, State, tuple[Effect, ...]]], file: IO[bytes]) -> int:
    """Write the lines of a recording; return how many."""
    count = 0
    for line in recording_lines(begun, steps):
        file.write(line)
        count += 1
    return count


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
    told = conversation.messages
    if told[-1].role is Role.ASSISTANT and stage.state.end is None:
        told = told[:-1]  # its calls are open: it joins the view when they have ended
    for number, message in enumerate(told, 1):
        if len(kept) < number or _said(kept[number - 1]) != _said(message):
            raise _NoRun(f"message {number}: a run of this loop would keep something else")
    if len(kept) > len(told):
        raise _NoRun(f"message {len(told) + 1}: a run of this loop would keep more")


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
