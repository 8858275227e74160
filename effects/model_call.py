"""One model call: deltas to the consumer, whole blocks to the loop, and exactly one end."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from stepfold.effects.border import WrongAnswer, clean, short, sound_block, sound_end, want, whole_usage
from stepfold.effects.duties import clean_failure
from stepfold.effects.flow.inbox import Inbox
from stepfold.effects.ports import (
    Delta,
    DeltaLog,
    InputDelta,
    ModelPart,
    PortFault,
    TextDelta,
    ThinkingDelta,
    ToolProgress,
)
from stepfold.effects.world import World
from stepfold.engine.effects import CallModel
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    Event,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    Usage,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import (
    Block,
    Media,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

logger = logging.getLogger(__name__)

DELTAS: Final = MappingProxyType({TextDelta: "text", ThinkingDelta: "text", InputDelta: "partial_json"})
Give = Callable[[Any], Awaitable[None]]


class ModelCall:
    """
    Reads one stream and remembers what an end has to tell: open text, usage, shown.

    The loop cancels the task that runs it and takes the end from ``cancelled``
    or ``expired``; the task itself posts an end only if the stream had one.
    """

    __slots__ = (
        "_give",
        "_inbox",
        "_now",
        "_number",
        "_open",
        "_refused",
        "_world",
        "closed",
        "order",
        "shown",
        "usage",
    )

    def __init__(
        self,
        order: CallModel,
        world: World,
        inbox: Inbox[Event | ToolProgress],
        now: Callable[[], int],
        give: Give | None,
    ) -> None:
        self.order = order
        self.usage: Usage | None = None
        self.shown = False
        self.closed = False
        self._open: list[str] = []  # text of the block that is not whole yet
        self._number = 0  # of the last event posted
        self._refused: Exception | None = None  # what the consumer raised on a delta
        self._world = world
        self._inbox = inbox
        self._now = now
        self._give = give

    async def read(self) -> Event | None:
        """
        Read the stream to its end; return the end as an event.

        Every whole block is posted on the way; nothing further is read or
        handed on before the loop has dealt with it.
        """
        world, order = self._world, self.order
        parts: AsyncIterator[ModelPart] | None = None
        try:
            if world.microcompactor is not None:
                order = world.microcompactor.edit(order)
            parts = _iterator(world.model.call(order))
            end = await self._parts(parts)
        except PortFault:
            raise
        except Exception as problem:
            if problem is self._refused:  # the consumer raised it, not the model: it ends the run
                raise
            end = StreamFailed(self.order.id, Failure(FailureKind.OTHER, words_of(problem)))
        finally:
            if parts is not None:
                await _close(parts)
        return None if self.closed else self._end(end)

    async def _parts(self, parts: AsyncIterator[ModelPart]) -> StreamClosed | StreamFailed:
        inbox, give, open_text = self._inbox, self._give, self._open
        async for part in parts:
            kind = type(part)
            if kind in DELTAS:
                if type(getattr(part, DELTAS[kind])) is not str:
                    _unknown(self, part)
                if kind is TextDelta:
                    open_text.append(part.text)  # type: ignore[union-attr]
                self.shown = True
                if self._number > inbox.settled:
                    await inbox.until_settled(self._number)
                if give is not None:
                    await self._hand(part, give)
                continue
            if kind is StreamClosed or kind is StreamFailed:
                return sound_end(part)  # type: ignore[arg-type]
            if self._number > inbox.settled:
                await inbox.until_settled(self._number)
            TAKE.get(kind, _unknown)(self, part)
        return StreamFailed(self.order.id, Failure(FailureKind.CUT, "the stream ended without its end"))

    async def _hand(self, part: ModelPart, give: Give) -> None:
        """Hand a delta to the consumer; what the consumer raises is no failure of the model."""
        try:
            await give(part)
        except Exception as problem:
            self._refused = problem
            raise

    def take_usage(self, usage: Usage) -> None:
        """Keep what the API has reported so far: it is cumulative."""
        self.usage = whole_usage(usage)

    def take_block(self, block: Block) -> None:
        """Post a whole block."""
        self._post(sound_block(block), None)

    def take_call(self, block: ToolUse) -> None:
        """Post a whole tool call, with what the tools know of it."""
        call = sound_block(block)
        try:
            facts = self._world.tools.facts(block)
            want(facts, CallFacts)
        except Exception as problem:  # a check that fails has not accepted the call
            facts = CallFacts(valid=False, problem=words_of(problem))
        self._post(call, facts)

    def _post(self, block: Block, facts: CallFacts | None) -> None:
        self._open.clear()
        self.shown = True
        self._number = self._inbox.post(BlockCompleted(self.order.id, block, facts, self._now()))

    def _end(self, end: StreamClosed | StreamFailed) -> Event:
        """Return *end* with what only this call knows."""
        usage = self.usage if end.usage is None else end.usage
        text = clean(end.open_text or "".join(self._open))
        if isinstance(end, StreamFailed):
            failure = clean_failure(end.failure)
            return StreamFailed(self.order.id, failure, usage, text, self.shown, self._now())
        return StreamClosed(
            self.order.id,
            end.stop,
            end.reason,
            usage,
            text,
            self.shown,
            end.cleared_tokens,
            clean(end.details),
            self._now(),
        )

    def cancelled(self) -> Event:
        """Return the end of a stream that the loop closed, with what had been received."""
        self.closed = True
        return StreamCancelled(self.order.id, self.usage, clean("".join(self._open)), self.shown, self._now())

    def failed(self, kind: FailureKind, words: str) -> Event:
        """Return the end of a stream that did not answer in time, or was torn down from outside."""
        self.closed = True
        return self._end(StreamFailed(self.order.id, Failure(kind, words)))


def hearer(id: int, log: object, give: Give | None, now: Callable[[], int]) -> Give | None:
    """Return who takes the pieces of stream *id*: the log, if it keeps them, then the consumer."""
    if not isinstance(log, DeltaLog) or not log.keeps_deltas:
        return give
    keep = log.append_delta

    async def hear(delta: Any) -> None:
        await keep(id, delta, now())
        if give is not None:
            await give(delta)

    return hear


def words_of(problem: BaseException) -> str:
    """Return class and text of an exception, in one line."""
    text = str(problem)
    name = type(problem).__name__
    return clean(f"{name}: {text}" if text else name)


def _iterator(parts: Any) -> AsyncIterator[ModelPart]:
    """Return *parts*, which the model port's ``call`` returned, if they can be gone through."""
    if hasattr(parts, "__aiter__"):
        iterator: AsyncIterator[ModelPart] = parts
        return iterator
    if inspect.iscoroutine(parts):
        parts.close()  # it is never awaited: nobody shall be warned of that too
    raise WrongAnswer(f"Model.call returned {short(parts)}; wanted an async iterator: async def with yield")


def _unknown(call: ModelCall, part: Any) -> None:
    raise TypeError(f"the model port yielded {short(part)}, which is no part of an answer")


async def _close(parts: AsyncIterator[Delta | Any]) -> None:
    """Close the adapter's iterator, so that its connection is given back now and not some time."""
    close = getattr(parts, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except asyncio.CancelledError:
        raise
    except Exception:  # the answer is whole or lost already: nothing depends on a clean goodbye
        logger.warning("closing the stream of a model call failed", exc_info=True)


TAKE: Final[Mapping[type, Callable[[ModelCall, Any], None]]] = MappingProxyType(
    {
        Usage: ModelCall.take_usage,
        ToolUse: ModelCall.take_call,
        Text: ModelCall.take_block,
        Thinking: ModelCall.take_block,
        RedactedThinking: ModelCall.take_block,
        Media: ModelCall.take_block,
        Opaque: ModelCall.take_block,
        ToolResult: ModelCall.take_block,
    }
)
