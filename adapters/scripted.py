"""
A model that answers from a script: for the tests of people who use the loop.

    >>> from stepfold.adapters.scripted import ScriptedModel, calls
    >>> from stepfold.adapters.tools import tool
    >>> from stepfold.effects import run_sync
    >>> @tool(read_only=True, safe=True)
    ... def read(path: str) -> str:
    ...     "Read a file."
    ...     return f"the text of {path}"
    >>> with ScriptedModel([calls("read", {"path": "a"}), "All done."]) as model:
    ...     result = run_sync("fix it", model=model, tools=[read])
    >>> result.output
    'All done.'
    >>> [order.model for order in model.calls]
    ['main', 'main']

A call that the script does not expect raises ``ScriptError`` out of the run; so
does leaving the ``with`` block (or ``check``) where answers are left over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeAlias

import attrs

from stepfold.effects.ports import InputDelta, ModelPart, PortFault, TextDelta, ThinkingDelta
from stepfold.engine.effects import CallModel
from stepfold.engine.events import Stop, StreamClosed, StreamFailed, Usage
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Block, Text, Thinking, ToolUse


@attrs.frozen
class Closes:
    """The answer ends as the API ends answers; ``reason`` is the raw stop reason."""

    stop: Stop = Stop.END_TURN
    reason: str = ""


@attrs.frozen
class Fails:
    """The call fails: at once where nothing came before, else in its stream."""

    failure: Failure


@attrs.frozen
class Breaks:
    """The stream ends without an end."""


Outcome: TypeAlias = Closes | Fails | Breaks
OpenBlock: TypeAlias = Text | Thinking | ToolUse
Arrive: TypeAlias = Callable[[int], Awaitable[None]]


@attrs.frozen
class Answer:
    """
    One answer of the model.

    Args:
        blocks: The whole blocks, in order.
        outcome: How it ends.
        usage: What is reported, or None.
        takes_ms: Time until the end; blocks arrive evenly spread.
        open: A block that began and never closed (a call's ``input`` is then partial).
        model: The model that must be the one asked, or "" for any.
    """

    blocks: tuple[Block, ...] = ()
    outcome: Outcome = Closes()
    usage: Usage | None = None
    takes_ms: int = 0
    open: OpenBlock | None = None
    model: str = ""

    @property
    def arrivals_ms(self) -> tuple[int, ...]:
        """When each block, the open one included, and at last the end arrives, in ms after the call."""
        parts = len(self.blocks) + (self.open is not None)
        return (*(self.takes_ms * (place + 1) // parts for place in range(parts)), self.takes_ms)


def says(text: str, *, stop: Stop = Stop.END_TURN, usage: Usage | None = None) -> Answer:
    """Return an answer of one text block."""
    return Answer((Text(text),), Closes(stop, stop.value), usage)


def calls(
    name: str, arguments: Mapping[str, Any] | None = None, *, id: str = "call_1", text: str = ""
) -> Answer:
    """Return an answer that calls one tool, with *text* before the call if there is any."""
    use = ToolUse(id, name, json.dumps(dict(arguments or {})))
    before: tuple[Block, ...] = (Text(text),) if text else ()
    return Answer((*before, use), Closes(Stop.TOOL_USE, Stop.TOOL_USE.value))


def fails(failure: Failure) -> Answer:
    """Return a call that fails before anything came."""
    return Answer(outcome=Fails(failure))


async def play_answer(answer: Answer, order: CallModel, arrive: Arrive) -> AsyncIterator[ModelPart]:
    """
    Yield what *answer* brings, as a model port does.

    Args:
        answer: The answer.
        order: The call; its id goes onto the end of the stream.
        arrive: Awaited with the place in ``answer.arrivals_ms`` before that part comes.
    """
    for place, block in enumerate(answer.blocks):
        await arrive(place)
        for delta in _deltas(block):
            yield delta
        yield block
    if answer.open is not None:
        await arrive(len(answer.blocks))
        for delta in _deltas(answer.open):
            yield delta
    await arrive(len(answer.arrivals_ms) - 1)
    match answer.outcome:
        case Closes(stop, reason):
            yield StreamClosed(order.id, stop, reason, answer.usage)
        case Fails(failure):
            yield StreamFailed(order.id, failure, answer.usage)
        case Breaks():
            cut = Failure(FailureKind.CUT, "the stream ended before the answer did")
            yield StreamFailed(order.id, cut, answer.usage)


def _deltas(block: Block) -> Iterable[TextDelta | ThinkingDelta | InputDelta]:
    match block:
        case Text(text=text) if text:
            return (TextDelta(text),)
        case Thinking(thinking=thinking) if thinking:
            return (ThinkingDelta(thinking),)
        case ToolUse(input=whole, raw_input=raw) if raw or whole:
            return (InputDelta(raw or whole),)
    return ()


class ScriptError(PortFault):
    """The script and what the loop asked for do not agree: a fault of the test, which the run raises."""


def _as_answers(given: Iterable[Answer | str]) -> list[Answer]:
    return [says(answer) if isinstance(answer, str) else answer for answer in given]


@attrs.define
class ScriptedModel:
    """
    A model port that gives one answer a call, in order.

    Args:
        answers: An ``Answer`` each, or a plain text for a whole answer of it.

    ``calls`` holds the orders it received, oldest first.
    """

    answers: list[Answer] = attrs.field(converter=_as_answers)
    calls: list[CallModel] = attrs.field(init=False, factory=list)
    complaints: list[str] = attrs.field(init=False, factory=list)

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Stream the next answer; raise ``ScriptError`` where there is none or another model is due."""
        number = len(self.calls)
        self.calls.append(order)
        if number >= len(self.answers):
            raise self._complaint(f"call {number + 1} was not expected: the script has {number} answers")
        answer = self.answers[number]
        if answer.model and answer.model != order.model:
            raise self._complaint(f"call {number + 1} went to {order.model!r}, not to {answer.model!r}")
        times = answer.arrivals_ms

        async def arrive(place: int) -> None:
            await asyncio.sleep((times[place] - (times[place - 1] if place else 0)) / 1000)

        async for part in play_answer(answer, order, arrive):
            yield part

    def _complaint(self, words: str) -> ScriptError:
        """Remember *words* too: a tool that runs a loop of its own turns what that raises into a failure."""
        self.complaints.append(words)
        return ScriptError(words)

    def check(self) -> None:
        """Raise ``ScriptError`` if a call was not expected, or answers are left over."""
        left = len(self.answers) - len(self.calls)
        unused = [f"{left} of {len(self.answers)} answers were not asked for"] if left > 0 else []
        if self.complaints or unused:
            raise ScriptError("; ".join((*self.complaints, *unused)))

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.check()
