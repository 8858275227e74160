"""Ports that wait: what the loop asks for stays open until the world says what comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import attrs

from stepfold.adapters.testing.world import World
from stepfold.effects.ports import ModelPart, TextDelta, Tools
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Owed,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
)
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolSpec,
)
from stepfold.engine.messages import Text, ToolUse

A = TypeVar("A")
Coming = asyncio.Queue[Event]


class HookCrash(Exception):
    """A stop hook of the world crashes."""


@attrs.define
class Waiting:
    """The orders that ports have received and the world has not answered, by id."""

    orders: dict[int, Owed] = attrs.field(factory=dict)
    _coming: dict[int, Coming] = attrs.field(factory=dict)

    def open(self, order: Owed) -> Coming:
        """Keep *order*; return what its answers will come through."""
        self.orders[order.id] = order
        return self._coming.setdefault(order.id, asyncio.Queue())

    def close(self, id: int) -> None:
        """Forget an order: it was answered or cancelled."""
        self.orders.pop(id, None)
        self._coming.pop(id, None)

    def say(self, event: Any) -> None:
        """Let an answer come to the port that waits for it."""
        self._coming[event.effect_id].put_nowait(event)

    async def answer(self, order: Owed, kind: type[A]) -> A:
        """Wait for the one answer to *order*."""
        coming = self.open(order)
        try:
            answer = await coming.get()
        finally:
            self.close(order.id)
        assert isinstance(answer, kind)
        return answer


@attrs.frozen
class WaitingModel:
    """The model port."""

    waiting: Waiting

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Yield blocks as they come, and the end."""
        coming = self.waiting.open(order)
        try:
            while True:
                match await coming.get():
                    case BlockCompleted(block=block):
                        if isinstance(block, Text) and block.text:
                            yield TextDelta(block.text)
                        yield block
                    case StreamClosed() | StreamFailed() as end:
                        yield end
                        return
        finally:
            self.waiting.close(order.id)


@attrs.frozen
class WaitingCompactor:
    """The compactor port."""

    waiting: Waiting

    async def compact(self, order: Compact) -> Compacted | CompactionFailed:
        """Answer as the world does."""
        return await self.waiting.answer(order, Compacted | CompactionFailed)  # type: ignore[arg-type]

    async def stage(self, order: StageCollapse) -> CollapseStaged:
        """Answer as the world does."""
        return await self.waiting.answer(order, CollapseStaged)


@attrs.frozen
class WaitingTools:
    """The tools of the world, for a loop that brings none of its own, and the user who is asked."""

    waiting: Waiting
    world: World

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools on offer."""
        return self.world.specs

    def facts(self, call: ToolUse) -> CallFacts:
        """Return what the world knows of a call."""
        return self.world.facts(call)

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the call as it is."""
        return call

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Answer as the world does."""
        return await self.waiting.answer(order, ToolEnded)

    async def ask(self, order: AskPermission) -> PermissionAnswered:
        """Answer as the world does."""
        return await self.waiting.answer(order, PermissionAnswered)

    async def close(self) -> None:
        """Nothing is held."""


@attrs.frozen
class AskedTools:
    """A user's own tools, and the user of the world who is asked about what they want asked."""

    waiting: Waiting
    tools: Tools

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools on offer."""
        return self.tools.specs()

    def facts(self, call: ToolUse) -> CallFacts:
        """Return what the tools know of a call."""
        return self.tools.facts(call)

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the filled-out copy."""
        return self.tools.filled(call)

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Let the tools run the call."""
        return await self.tools.run(order, progress)

    async def ask(self, order: AskPermission) -> PermissionAnswered:
        """Answer as the world does."""
        return await self.waiting.answer(order, PermissionAnswered)

    async def close(self) -> None:
        """Let the tools give back what they hold."""
        await self.tools.close()


@attrs.frozen
class WaitingHooks:
    """The stop hooks that a config names, for a loop that brings none of its own."""

    waiting: Waiting

    async def ask(self, order: RunHook) -> HookAnswered:
        """Answer, or crash, as the world does."""
        answer = await self.waiting.answer(order, HookAnswered)
        if answer.verdict is HookVerdict.CRASH:
            raise HookCrash(order.hook)
        return answer


@attrs.frozen
class WaitingSides:
    """Summaries of batches, memories and skills."""

    waiting: Waiting

    async def summarise(self, order: Summarise) -> SummaryReady:
        """Answer as the world does."""
        return await self.waiting.answer(order, SummaryReady)

    async def prefetch(self, order: Prefetch) -> Prefetched:
        """Answer as the world does."""
        return await self.waiting.answer(order, Prefetched)


@attrs.define
class CountedIds:
    """Run ids that count up, and one seed."""

    given_seed: int = 0
    _count: int = 0

    def run_id(self) -> str:
        """Return the next run id."""
        self._count += 1
        return f"run-{self._count}"

    def seed(self) -> int:
        """Return the seed of the jitter."""
        return self.given_seed
