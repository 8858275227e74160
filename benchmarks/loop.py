"""What a turn, a delta, a parallel call and a recording cost through the interpreter, without a disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from stepfold.adapters.codec import dump_event
from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import run_sync, stream
from stepfold.effects.fold import fold
from stepfold.effects.ports import ModelPart, TextDelta
from stepfold.engine import Config, start
from stepfold.engine.effects import CallModel, RunTool
from stepfold.engine.events import CallFacts, Stop, StreamClosed, ToolEnded, ToolSpec, Usage
from stepfold.engine.messages import Text, ToolUse

FACTS = CallFacts(safe=True)
RESULT = (Text("x" * 200),)


class Model:
    """Calls *width* tools a turn for *turns* turns, then says that it is done, in *deltas* pieces."""

    def __init__(self, turns: int, width: int = 1, deltas: int = 1) -> None:
        self.turns, self.width, self.deltas, self.made = turns, width, deltas, 0

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Stream one answer."""
        self.made += 1
        if self.made > self.turns:
            for _ in range(self.deltas):
                yield TextDelta("a few words ")
            yield Text("done")
            yield StreamClosed(order.id, Stop.END_TURN, usage=Usage(100, 20))
            return
        for place in range(self.width):
            yield ToolUse(f"t{self.made}_{place}", "read", f'{{"line":{self.made}}}')
        yield StreamClosed(order.id, Stop.TOOL_USE, usage=Usage(100, 20))


class Tool:
    """One tool that answers at once."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the one."""
        return (ToolSpec("read"),)

    def facts(self, call: ToolUse) -> CallFacts:
        """Every call is good and safe."""
        return FACTS

    def filled(self, call: ToolUse) -> ToolUse:
        """Nothing to fill in."""
        return call

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Answer."""
        return ToolEnded(order.id, RESULT)

    async def close(self) -> None:
        """Nothing to give back."""


def config(width: int = 1) -> Config:
    """Return limits that do not get in the way."""
    return Config(
        max_turns=None, max_model_calls=None, context_window_tokens=10**9, max_parallel_tools=max(10, width)
    )


def turns(count: int, width: int = 1, log: MemoryLog | None = None) -> None:
    """Run so many turns of *width* calls each."""
    result = run_sync("go", model=Model(count, width), tools=Tool(), config=config(width), log=log)
    assert result.ok


async def deltas(count: int) -> None:
    """Stream an answer in so many pieces to a consumer."""
    async with stream("go", model=Model(0, deltas=count), config=config()) as items:
        async for _ in items:
            pass


def recorded(count: int) -> MemoryLog:
    """Return the log of so many turns."""
    log = MemoryLog()
    turns(count, log=log)
    return log


def journal_bytes(log: MemoryLog, count: int) -> float:
    """Return what a turn takes in a recording, in bytes."""
    return sum(len(dump_event(event)) + 1 for event in log.events) / count


def replay(log: MemoryLog) -> None:
    """Fold a recording."""
    assert log.begun is not None
    fold(log.events, start(log.begun.messages, log.begun.tools), log.begun.config)
