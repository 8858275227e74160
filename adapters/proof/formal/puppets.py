"""
A path of the model, driven through the real interpreter.

Every port is a puppet: it answers an order when, and as, the path says.  A
crash is a run that is torn down and gone on with from its log.  What the log
holds is folded and must be the states of the path.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

import attrs

from stepfold.adapters.proof.formal.covering import Path
from stepfold.adapters.proof.formal.graph import Graph, changes
from stepfold.adapters.proof.formal.happenings import WORD, Speaker
from stepfold.adapters.proof.formal.projection import did, variables
from stepfold.adapters.proof.formal.slices import GraphSlice, beginning
from stepfold.effects import Handle, run
from stepfold.effects.ports import TextDelta
from stepfold.engine.config import Config
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    RunHook,
    RunTool,
    StageCollapse,
)
from stepfold.engine.events import (
    AbortRequested,
    BlockCompleted,
    CallFacts,
    CollapseStaged,
    Event,
    Resumed,
    RunStarted,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    ToolSpec,
    WaitElapsed,
)
from stepfold.engine.messages import ToolUse
from stepfold.engine.state import State
from stepfold.engine.step import step

NEVER_MS: Final = 10**9  # deadlines that no path meets
PATIENCE_S: Final = 10.0
_STAGED: Final = re.compile(r'(?<=staged \|-> ")\w+')
WAIT: Final = 0  # under which a back-off is open; ids of orders begin with 1


class Broken(Exception):
    """The interpreter did something else than the path says."""


class Puppets:
    """All ports of one run, the log included; ``open`` holds what waits for its answer."""

    def __init__(self) -> None:
        self.open: dict[int, Any] = {}
        self.events: list[Event] = []
        self._facts = CallFacts()
        self._changed = asyncio.Event()

    # ---------------------------------------------------------------- what the path says

    async def until(self, holds: Callable[[], bool], words: str) -> None:
        """Wait until *holds*; raise ``Broken`` with *words* where it never does."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Broken(words) from None

    async def say(self, event: Any) -> None:
        """Let the port that is asked answer with *event*."""
        id = WAIT if isinstance(event, WaitElapsed) else event.effect_id
        await self.until(lambda: id in self.open, f"{type(event).__name__}: order {id} never began")
        waits = self.open[id]
        match event:
            case BlockCompleted(block=block, facts=facts):
                self._facts = facts or CallFacts()
                waits.put_nowait(block)
            case StreamClosed() | StreamFailed():
                if event.shown:
                    waits.put_nowait(TextDelta("x"))
                waits.put_nowait(event)
            case _:
                waits.set_result(event)

    async def _answer(self, id: int) -> Any:
        answer = self.open[id] = asyncio.get_running_loop().create_future()
        self._changed.set()
        try:
            return await answer
        finally:
            if self.open.get(id) is answer:
                del self.open[id]

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()

    # ---------------------------------------------------------------- the ports

    async def call(self, order: CallModel) -> AsyncIterator[Any]:
        parts: asyncio.Queue[Any] = asyncio.Queue()
        self.open[order.id] = parts
        self._changed.set()
        try:
            while True:
                part = await parts.get()
                yield part
                if isinstance(part, StreamClosed | StreamFailed):
                    return
        finally:
            if self.open.get(order.id) is parts:
                del self.open[order.id]

    def specs(self) -> tuple[ToolSpec, ...]:
        return ()

    def facts(self, call: ToolUse) -> CallFacts:
        return self._facts

    def filled(self, call: ToolUse) -> ToolUse:
        return call

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> Any:
        return await self._answer(order.id)

    async def ask(self, order: AskPermission | RunHook) -> Any:
        return await self._answer(order.id)

    async def compact(self, order: Compact) -> Any:
        return await self._answer(order.id)

    async def stage(self, order: StageCollapse) -> CollapseStaged:
        raise AssertionError("no path stages")

    def now_ms(self) -> int:
        return 0

    async def sleep(self, ms: int) -> None:
        if ms >= NEVER_MS:
            await asyncio.Event().wait()
        await self._answer(WAIT)

    async def append(self, event: Event, *, durable: bool) -> None:
        self.events.append(event)
        self._changed.set()

    async def read(self) -> list[Event]:
        return list(self.events)

    async def close(self) -> None:
        pass


@attrs.define
class Stage:
    """One path as it is played; ``state`` is the fold of what the log holds so far."""

    graph: Graph
    config: Config
    first: State
    state: State
    puppets: Puppets
    handle: Handle = attrs.Factory(Handle)
    task: asyncio.Task[Any] | None = None
    taken: int = 0

    async def play(self, path: Path) -> None:
        """Say what *path* says; raise ``Broken`` at the first state that is not that of the path."""
        speaker = Speaker(self.config, self.graph.constants["MaxCalls"])
        try:
            for place, to in path:
                saying = self.graph.said[place]
                event = speaker.spoken(saying, self.state)
                if event is None:
                    raise Broken(f"{saying.written()} cannot be said here")
                await self._say(event)
                await self._compare(saying.written(), self.graph.texts[to])
            await self._over()
        finally:
            await self._tear_down()

    async def _say(self, event: Event) -> None:
        match event:
            case RunStarted():
                await self._over()
                self._begin((WORD,))
            case Resumed():
                await self._tear_down()
                self._begin(None)
            case AbortRequested(kind=kind):
                self.handle.abort(kind)
            case StreamCancelled():
                pass  # the interpreter says so itself
            case _:
                await self.puppets.say(event)

    def _begin(self, prompt: Any) -> None:
        puppets: Any = self.puppets
        puppets.open.clear()
        self.handle = Handle()
        self.task = asyncio.create_task(
            run(
                prompt,
                handle=self.handle,
                **dict.fromkeys(("model", "tools", "compactor", "clock", "log"), puppets),
                **({"stop_hooks": puppets} if self.config.stop_hooks else {}),
                config=self.config,
                messages=tuple(self.first.data.messages),
                collapses=self.first.data.layers.collapses,
            )
        )
        self.task.add_done_callback(lambda _: self.puppets.wake())

    async def _compare(self, words: str, wanted: str) -> None:
        puppets = self.puppets
        await puppets.until(
            lambda: len(puppets.events) > self.taken or self._died(), f"{words}: nothing came"
        )
        if len(puppets.events) <= self.taken:
            raise Broken(f"{words}: the run broke off: {self.task and self.task.exception()!r}")
        event = puppets.events[self.taken]
        self.taken += 1
        after, effects = step(self.state, event, self.config)
        found = self.graph.text_of(variables(after, did(self.state, effects), self.config))
        self.state = after
        if found != wanted:
            there, here = changes(wanted, found), changes(found, wanted)
            raise Broken(f"{words}: {type(event).__name__} came, and led to {there}, not to {here}")

    def _died(self) -> bool:
        return self.task is not None and self.task.done()

    async def _over(self) -> None:
        """Where the run is over, its result must say so, and nothing may have come after it."""
        if self.task is None or self.state.end is None:
            return
        result = await asyncio.wait_for(self.task, PATIENCE_S)
        if result.end != self.state.end:
            raise Broken(f"the result says {result.end}, the log {self.state.end}")
        if len(self.puppets.events) != self.taken:
            raise Broken(f"{len(self.puppets.events)} events in the log, {self.taken} in the path")

    async def _tear_down(self) -> None:
        if self.task is not None and not self.task.done():
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task
        self.task = None


def walked(graph: Graph, piece: GraphSlice, start: int, path: Path) -> str:
    """Return what is wrong when *path* is played by the interpreter, or nothing."""
    staged = _STAGED.search(graph.texts[start])
    assert staged is not None
    first = beginning(staged.group())
    config = attrs.evolve(
        piece.config,
        model_timeout_ms=NEVER_MS,
        tool_timeout_ms=NEVER_MS,
        hook_timeout_ms=NEVER_MS,
        compactor_timeout_ms=NEVER_MS,
        side_timeout_ms=NEVER_MS,
    )

    async def main() -> None:
        await Stage(graph, config, first, first, Puppets()).play(path)

    try:
        asyncio.run(main())
    except Broken as problem:
        said = " ; ".join(graph.said[place].written() for place, _ in path)
        return f"{piece.name}: {problem}\n    after {said}"
    return ""
