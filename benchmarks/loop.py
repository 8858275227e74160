"""What a turn, a delta, a parallel call and a recording cost through the interpreter, and a scenario."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.memory_log import MemoryLog
from stepfold.adapters.scenarios.check import judge
from stepfold.adapters.scenarios.reading.load import loads
from stepfold.effects import run_sync, stream
from stepfold.effects.fold import fold
from stepfold.effects.ports import Log, ModelPart, TextDelta
from stepfold.engine import Config, start
from stepfold.engine.effects import CallModel, RunTool
from stepfold.engine.events import CallFacts, Stop, StreamClosed, ToolEnded, ToolSpec, Usage
from stepfold.engine.messages import Text, ToolUse

FACTS = CallFacts(safe=True)
RESULT = (Text("x" * 200),)
SCENARIO = """
format = 1
title = "two tools side by side, then an answer"
[[user]]
text = "look"
[[model]]
blocks = [{ tool_use = { id = "t1", name = "read" } }, { tool_use = { id = "t2", name = "read" } }]
[[model]]
blocks = [{ text = "done" }]
[[tool]]
name = "read"
safe = true
result = "contents"
[expect]
terminal = "completed"
"""


class Model:
    """Calls *width* tools a turn for *turns* turns, then says that it is done, in *deltas* pieces."""

    def __init__(self, turns: int, width: int = 1, deltas: int = 1) -> None:
        self.turns, self.width, self.deltas, self.made = turns, width, deltas, 0
        self.marks: list[int] = []  # CPU ns at each request

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Stream one answer."""
        self.made += 1
        self.marks.append(time.process_time_ns())
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


def turns(count: int, width: int = 1, log: Log | None = None) -> list[int]:
    """Run so many turns of *width* calls each; return the CPU ns at each request."""
    model = Model(count, width)
    result = run_sync("go", model=model, tools=Tool(), config=config(width), log=log)
    assert result.ok
    return model.marks


def tenths(count: int) -> float:
    """Return what the last tenth of a run's turns costs against the first."""
    tenth = count // 10
    first = last = float("inf")
    for _ in range(3):
        gc.collect()
        marks = turns(count, log=MemoryLog())
        first = min(first, marks[tenth] - marks[0])
        last = min(last, marks[-1] - marks[-1 - tenth])
    return last / first


def kept_bytes(count: int, log: Log | None = None) -> float:
    """Return what a turn keeps in memory until the run is over, in bytes."""
    model = Model(count)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = run_sync("go", model=model, tools=Tool(), config=config(), log=log)
    gc.collect()
    kept = (tracemalloc.get_traced_memory()[0] - before) / count
    tracemalloc.stop()
    assert result.ok
    return kept


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


def journal_bytes(count: int) -> float:
    """Return what a turn takes in a recording on disk, its header left out, in bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        log = JsonlLog(path, fsync=False)
        turns(count, log=log)
        asyncio.run(log.close())
        content = path.read_bytes()
    return (len(content) - content.index(b"\n")) / count


def replay(log: MemoryLog) -> None:
    """Fold a recording."""
    assert log.begun is not None
    fold(log.events, start(log.begun.messages, log.begun.tools), log.begun.config)


def check_scenario() -> None:
    """Play a scenario with all its invariants, a crash after every event included."""
    assert judge(loads(SCENARIO), "two tools").ok
