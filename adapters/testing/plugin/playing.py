"""The fixture ``world``: the real interpreter in virtual time, a scripted model, the user's own parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.judging.invariants import tape_violations
from stepfold.adapters.scenarios.judging.observe import Journal
from stepfold.adapters.scenarios.playing.acts import Director, ProcessDied
from stepfold.adapters.scenarios.playing.tape import Tape
from stepfold.adapters.scenarios.playing.virtual_time import Stuck, VirtualClock
from stepfold.adapters.scenarios.reading.acts import DEEDS, POINTS, deed_of, point_of
from stepfold.adapters.scripted import ScriptedModel
from stepfold.adapters.testing.machine.judge import Violation
from stepfold.adapters.testing.machine.live_loop import LiveLoop
from stepfold.adapters.testing.machine.ports import CountedIds
from stepfold.adapters.testing.record import Record
from stepfold.effects import Handle, Result, run
from stepfold.effects.ports import Model, ModelPart
from stepfold.effects.setup import Options, Setup
from stepfold.engine.effects import CallModel


class World:
    """
    Runs agents where nothing sleeps, and checks what always holds of every run.

    ``seed`` is that of the jitter; ``record`` is what happened in the last run.
    """

    def __init__(self) -> None:
        self.seed = 0
        self.record: Record | None = None
        self.items: list[object] = []
        self._acts: list[f.Act] = []
        self._models: list[ScriptedModel] = []
        self._records: list[Record] = []

    def at(self, point: str, deed: str) -> None:
        """
        Let something happen from outside in the next run.

        Args:
            point: Where: ``"call 2 opened"``, ``"tool t1 started"``, ... (docs/scenarios.md, ``[[act]]``).
            deed: What: ``"abort hard"``, ``"abort submit"``, ``"queue TEXT"``, ``"crash"``.

        Raises:
            ValueError: One of them is not known.
        """
        where, what = point_of(point), deed_of(deed)
        if where is None:
            raise ValueError(f"at: {point!r} is no point of a run; allowed: {POINTS}")
        if what is None or isinstance(what, f.Close):
            raise ValueError(f"at: {deed!r} is nothing that can happen here; allowed: {DEEDS}")
        self._acts.append(f.Act(where, what))

    def run(self, prompt: str, *, model: Any = (), **options: Any) -> Result:
        """
        Run from *prompt* to a terminal, in virtual time.

        Args:
            prompt: A text.
            model: The answers, as ``ScriptedModel`` takes them, or a ``Model`` port.
            options: As ``stepfold.effects.run`` takes them; clock and log are the world's.

        Returns:
            The result; ``record`` and ``items`` tell of the way there.

        Raises:
            Violation: Something does not hold that always does (specification, section 9).
            Stuck: Everything waits and nothing is due.
        """
        port = model if hasattr(model, "call") else ScriptedModel(model)
        if isinstance(port, ScriptedModel):
            self._models.append(port)
        theatre = _Theatre(port, options, tuple(self._acts), self.seed)
        self._acts.clear()
        self.record, self.items = Record(theatre.tape.begun, theatre.tape.steps), theatre.items
        self._records.append(self.record)
        result = theatre.play(prompt)
        for words in tape_violations(theatre.tape):
            raise Violation(words)
        return result

    def stepfold_account(self) -> None:
        """Raise ``ScriptError`` where a model was asked more than it was given, or less."""
        for model in self._models:
            model.check()

    def stepfold_heard(self) -> list[object]:
        """Return what the report of a failed test tells."""
        return list(self._records)

    def close(self) -> None:
        """Nothing is held."""


class _Paced:
    """A model of which every part waits for its turn, so that what comes from outside can come between."""

    def __init__(self, model: Model, clock: VirtualClock) -> None:
        self._model = model
        self._clock = clock

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Yield what the model yields."""
        parts = self._model.call(order)
        try:
            async for part in parts:
                await self._clock.sleep(0)
                yield part
        finally:
            close = getattr(parts, "aclose", None)
            if close is not None:
                await close()


class _Theatre:
    """One log, and the process that runs on it, over every death."""

    def __init__(self, model: Any, options: dict[str, Any], acts: Iterable[f.Act], seed: int) -> None:
        self.items: list[object] = []
        self._clock = VirtualClock()
        paced = _Paced(model, self._clock)
        given = {"ids": CountedIds(seed), **options, "model": paced, "clock": self._clock}
        setup = Setup.of("world.run", given)
        plan = setup.plan("world.run")
        self._director = Director(tuple(acts), self._clock, Journal())
        self.tape = Tape(setup.start(plan.config, plan.world.tools.specs()), happened=self._director.happened)
        self._options = cast(Options, {**given, "log": self.tape})

    def play(self, prompt: str | None) -> Result:
        """Run to the end."""
        while True:
            loop = LiveLoop(self._clock)
            try:
                return self._process(loop, prompt)
            except ProcessDied:
                self.tape.dead = True
                self._director.died()
                prompt = None
            finally:
                self._clock.forget_soon()
                loop.clear()
                loop.close()
                self.tape.dead = False

    def _process(self, loop: LiveLoop, prompt: str | None) -> Result:
        handle = Handle()
        self._director.bind(handle, None)
        task = loop.create_task(run(prompt, handle=handle, on_item=self.items.append, **self._options))
        loop.until_rest()
        while not task.done():
            if self._clock.do_soon():
                loop.until_rest()
            elif not loop.advance():
                raise Stuck("everything waits and nothing is due")
        return task.result()
