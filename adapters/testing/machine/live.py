"""The real interpreter as a stage: the public ``run`` with the user's tools and hooks, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from stepfold.adapters.scenarios.playing.tape import Tape
from stepfold.adapters.scenarios.playing.virtual_time import VirtualClock
from stepfold.adapters.testing.machine.live_loop import LiveLoop
from stepfold.adapters.testing.machine.ports import (
    AskedTools,
    CountedIds,
    Waiting,
    WaitingCompactor,
    WaitingHooks,
    WaitingModel,
    WaitingSides,
    WaitingTools,
)
from stepfold.adapters.testing.record import Record
from stepfold.adapters.testing.world import World
from stepfold.effects import Handle, Result, run
from stepfold.effects.ready.tools import joined
from stepfold.effects.setup import Options, Setup
from stepfold.engine.effects import Owed, RunHook, RunTool, Wait
from stepfold.engine.events import AbortKind, Event, ToolSpec


class LiveStage:
    """
    Runs of the real interpreter on one log in memory.

    Args:
        options: As ``run`` takes them: tools, stop hooks, permission, config, messages,
            collapses, system.  What is left out is played by the world.
        world: Plays it.
        seed: Of the jitter.
    """

    def __init__(self, options: Options, world: World, seed: int = 0) -> None:
        self.clock = VirtualClock()
        self.loop = LiveLoop(self.clock)
        self.waiting = Waiting()
        self._options = self._complete(options, world, seed)
        setup = Setup.of("LiveWorld", self._options)
        plan = setup.plan("LiveWorld")
        self._specs = plan.world.tools.specs
        self._tape = Tape(setup.start(plan.config, self._specs()))
        self._options["log"] = self._tape
        self.record = Record(self._tape.begun, self._tape.steps)
        self.result: Result | None = None
        self.runs = 0
        self.gone: set[int] = set()
        self.cancelling: set[int] = set()
        self._handle = Handle()
        self._task: asyncio.Task[Result] | None = None

    def _complete(self, options: Options, world: World, seed: int) -> Options:
        """Return *options* with ports that wait for the world in every place that is empty."""
        waiting, sides = self.waiting, WaitingSides(self.waiting)
        whole: Options = {
            "model": WaitingModel(waiting),
            "compactor": WaitingCompactor(waiting),
            "stop_hooks": WaitingHooks(waiting),
            "summariser": sides,
            "prefetcher": sides,
            "ids": CountedIds(seed),
        }
        given: Any = {name: value for name, value in options.items() if value}
        tools: Any = given.pop("tools", None)
        if tools is None:
            whole["tools"] = WaitingTools(waiting, world)
        elif callable(getattr(tools, "ask", None)):
            whole["tools"] = tools  # they are a permission port as well
        else:
            ports = (tools,) if callable(getattr(tools, "facts", None)) else tools
            whole["tools"] = AskedTools(waiting, joined(ports))
        whole.update(given)
        whole["clock"] = self.clock
        return whole

    # ------------------------------------------------------------ what is open

    @property
    def owed(self) -> dict[int, Owed]:
        """The orders that the world may answer."""
        return self.waiting.orders

    @property
    def busy(self) -> bool:
        """Whether something real is under way: a tool or hook of the user's own, or a back-off."""
        real = (order for order in self.record.state.data.ledger.owed if order.id not in self.owed)
        return any(isinstance(order, RunTool | RunHook | Wait) for order in real)

    @property
    def now_ms(self) -> int:
        """The virtual time in ms."""
        return self.clock.now

    # ------------------------------------------------------------ what may happen

    def prompt(self, text: str) -> None:
        """Begin a run."""
        self.runs += 1
        self._begin(text)

    def _begin(self, prompt: str | None) -> None:
        self.result, self._handle = None, Handle()
        self._task = self.loop.create_task(self._run(prompt, self._handle))
        self._go_on()

    async def _run(self, prompt: str | None, handle: Handle) -> Result:
        return await run(prompt, handle=handle, on_item=_taken, **self._options)

    def _go_on(self) -> None:
        """Run until everything waits; raises what ended a run that should not have ended so."""
        self.loop.until_rest()
        task = self._task
        if task is not None and task.done():
            self._task = None
            self.result = task.result()

    def answer(self, event: Event) -> None:
        """Let an answer come, or a block of one."""
        self.waiting.say(event)
        self._go_on()

    def abort(self, kind: AbortKind) -> None:
        """Let the user stop the run."""
        self._handle.abort(kind)
        self._go_on()

    def queue(self, text: str) -> None:
        """Let the user say something beside the run."""
        if self._task is not None:
            self._handle.queue(text)
            self._go_on()

    def change_tools(self, tools: tuple[ToolSpec, ...]) -> None:
        """Let the host offer other tools; None of them where it has no others."""
        if self._task is not None:
            self._handle.change_tools(tools)
            self._go_on()

    def die(self) -> None:
        """Let the process die, and a new one take up the log."""
        if self._task is not None:
            self._end_process()
            self._begin(None)

    def wait(self, ms: int) -> None:
        """Let time pass: 0 lets the next thing happen that is due, whenever that is."""
        until = self.clock.now + ms
        while (due := self.loop.due_ms) is not None and (ms == 0 or due <= until):
            self.loop.advance()
            self._go_on()
            if ms == 0:
                return
        self.clock.now = max(self.clock.now, until)

    def _end_process(self) -> None:
        """Stop everything; what the dying process does is not written any more."""
        self._tape.dead = True
        self.loop.clear()
        self.waiting = self._forgotten()
        self._tape.dead = False
        self._task = None

    def _forgotten(self) -> Waiting:
        for id in tuple(self.waiting.orders):
            self.waiting.close(id)
        return self.waiting

    def close(self) -> None:
        """Stop everything and close the loop."""
        try:
            self._end_process()
        finally:
            self.loop.close()


def _taken(item: object) -> None:
    """Take what is shown: somebody listens, so deltas are handed on."""
