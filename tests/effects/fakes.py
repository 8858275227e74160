"""Small ports for the tests of the loop: each answers as told and notes what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from stepfold.effects.ports import ModelPart, TextDelta
from stepfold.engine.effects import CallModel, RunTool
from stepfold.engine.events import CallFacts, Interrupt, Stop, StreamClosed, ToolEnded, ToolSpec
from stepfold.engine.messages import Text, ToolUse

Part = ModelPart | Callable[[], Any] | BaseException


class FakeModel:
    """Plays one list of parts a call; a callable among them is called, awaited, and not yielded."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)
        self.orders: list[CallModel] = []
        self.yielded = 0
        self.closed = 0

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        self.orders.append(order)
        try:
            for part in self.answers[len(self.orders) - 1]:
                if isinstance(part, BaseException):
                    raise part
                if callable(part):
                    made = part()
                    if asyncio.iscoroutine(made) or isinstance(made, asyncio.Future):
                        await made
                    continue
                self.yielded += 1
                yield part
        finally:
            self.closed += 1


def text(words: str, *, stop: Stop = Stop.END_TURN) -> list[Any]:
    """Return an answer of one text."""
    return [TextDelta(words), Text(words), StreamClosed(0, stop, stop.value)]


def use(*calls: tuple[str, str]) -> list[Any]:
    """Return an answer that calls tools, given as (id, name)."""
    blocks = [ToolUse(id, name, "{}") for id, name in calls]
    return [*blocks, StreamClosed(0, Stop.TOOL_USE, "tool_use")]


async def forever() -> None:
    """Wait until cancelled."""
    await asyncio.get_running_loop().create_future()


class FakeTools:
    """Tools from functions ``(order, progress) -> ToolEnded | text``, plain or async."""

    def __init__(self, *, safe: bool = True, interrupt: Interrupt = Interrupt.WAIT, **functions: Any) -> None:
        self.functions = functions
        self.given = CallFacts(safe=safe, interrupt=interrupt)
        self.runs: list[str] = []
        self.cancelled: list[str] = []
        self.closes = 0

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(name) for name in self.functions)

    def facts(self, call: ToolUse) -> CallFacts:
        if call.name not in self.functions:
            return CallFacts(known=False, valid=False, problem=f"no tool {call.name}")
        return self.given

    def filled(self, call: ToolUse) -> ToolUse:
        return call

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> Any:
        self.runs.append(order.call.id)
        try:
            made = self.functions[order.call.name](order, progress)
            if asyncio.iscoroutine(made):
                made = await made
        except asyncio.CancelledError:
            self.cancelled.append(order.call.id)
            raise
        return ToolEnded(order.id, (Text(made),)) if isinstance(made, str) else made

    async def close(self) -> None:
        self.closes += 1
