"""Plays a scenario through the public ``stream``, again and again where the process dies."""

from __future__ import annotations

import asyncio

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.judging.observe import Journal, Observed, RunSeen
from stepfold.adapters.scenarios.playing.acts import Counts, Director, ProcessDied
from stepfold.adapters.scenarios.playing.tape import Step, Tape
from stepfold.adapters.scenarios.playing.virtual_time import VirtualClock, run_virtual
from stepfold.adapters.scenarios.playing.world import (
    Position,
    ScenarioCompactor,
    ScenarioHooks,
    ScenarioIds,
    ScenarioModel,
    ScenarioSides,
    ScenarioTools,
    Scene,
    tool_specs,
)
from stepfold.effects import Handle, Result, stream
from stepfold.effects.ports import Start
from stepfold.engine.effects import CallModel, Compact, Owed, RunHook, RunTool, Wait
from stepfold.engine.state import Collapse


@attrs.frozen
class Take:
    """One log, what its effects were given of the script, and where the script stood when it began."""

    tape: Tape
    began: Position
    given: dict[int, int] = attrs.field(factory=dict)


@attrs.frozen
class Played:
    """
    What a scenario came to.

    Args:
        scenario: The file.
        observed: What ports and consumers saw.
        takes: One log, and one more for each run that its consumer left.
        results: What ``stream`` returned, one a run that ended.
        fired: Which act came to its point, and after how many events of all takes.
    """

    scenario: f.Scenario
    observed: Observed
    takes: tuple[Take, ...]
    results: tuple[Result, ...]
    fired: dict[int, int]


@attrs.define
class Theatre:
    """One log with the world that its runs happen in."""

    scene: Scene
    tape: Tape
    director: Director
    ids: ScenarioIds

    def run(self, prompt: str | None) -> tuple[RunSeen, Result | None]:
        """Play one run to its end, over every death of the process."""
        items: list[object] = []
        while True:
            self.tape.dead = False
            try:
                result = run_virtual(self._consume(prompt, items), self.scene.clock, self._dies)
            except ProcessDied:
                self.director.died()
                prompt = None
                continue
            return RunSeen(tuple(items), None if result is None else result.end), result

    def _dies(self) -> None:
        """From here on nothing that the dying process does is written."""
        self.tape.dead = True

    async def _consume(self, prompt: str | None, items: list[object]) -> Result | None:
        handle = Handle()
        self.director.bind(handle, asyncio.current_task())
        scene = self.scene
        begun = self.tape.begun
        sides = ScenarioSides(scene)
        running = stream(
            prompt,
            handle=handle,
            model=ScenarioModel(scene),
            compactor=ScenarioCompactor(scene),
            tools=ScenarioTools(scene),
            stop_hooks=ScenarioHooks(scene),
            summariser=sides,
            prefetcher=sides,
            clock=scene.clock,
            ids=self.ids,
            log=self.tape,
            config=begun.config,
            messages=begun.messages,
            collapses=begun.collapses,
        )
        try:
            async for item in running:
                items.append(item)
        except asyncio.CancelledError:
            await running.aclose()
            if not self.director.closed:
                raise
            return None
        return running.result


def play(scenario: f.Scenario) -> Played:
    """
    Play every prompt of *scenario*, one run after the other on one log.

    A run that its consumer left has no terminal; the next one begins on what
    its view held, in a log of its own.
    """
    clock, journal, position, ids = VirtualClock(), Journal(), Position(), ScenarioIds()
    director = Director(scenario.world.acts, clock, journal)
    takes: list[Take] = []
    runs: list[RunSeen] = []
    results: list[Result] = []
    for prompt in scenario.prompts:
        if not runs or runs[-1].end is None:
            tape = Tape(_beginning(scenario, takes), happened=director.happened)
            takes.append(Take(tape, position.copy()))
        scene = Scene(scenario.world, position, clock, journal, takes[-1].given)
        seen, result = Theatre(scene, takes[-1].tape, director, ids).run(prompt)
        runs.append(seen)
        if result is not None:
            results.append(result)
    journal.problems += director.missed()
    return Played(
        scenario, Observed(tuple(runs), journal), tuple(takes), tuple(results), dict(director.fired)
    )


def _beginning(scenario: f.Scenario, takes: list[Take]) -> Start:
    tools = tool_specs(scenario.world.tools)
    if takes:
        return Start(scenario.config, tuple(takes[-1].tape.state.data.messages), tools)
    collapses = tuple(Collapse(staged.through, staged.summary) for staged in scenario.staged)
    return Start(scenario.config, scenario.history, tools, collapses)


def resume(played: Played, take: Take, events: int) -> tuple[RunSeen, Journal, Tape]:
    """
    Let the process die after the first *events* of *take*, and resume in a new world.

    What had not answered answers the same again; what the user did later is
    done again where its point comes.

    Returns:
        The run as the second process showed it, what its ports saw, and its log.
    """
    kept = take.tape.steps[:events]
    clock = VirtualClock(now=max((step.event.at_ms for step in kept), default=0))
    journal = Journal()
    position = _position(take, kept)
    director = Director(_acts_left(played, take, events), clock, journal)
    for step in kept:
        director.note(step.event, step.effects)
    waits = director.counts.waits - any(isinstance(order, Wait) for order in _owed(kept))
    director.counts = Counts(position.model, position.compactions, waits)
    new = Tape(take.tape.begun, list(kept), director.happened)
    scene = Scene(played.scenario.world, position, clock, journal, {})
    seen, _ = Theatre(scene, new, director, ScenarioIds()).run(None)
    return seen, journal, new


def _owed(steps: list[Step]) -> tuple[Owed, ...]:
    return steps[-1].state.data.ledger.owed if steps else ()


def _position(take: Take, steps: list[Step]) -> Position:
    """Return the script's position after *steps*: what is still owed is given again."""
    position = take.began.copy()
    owed = {order.id for order in _owed(steps)}
    for step in steps:
        for effect in step.effects:
            if not isinstance(effect, CallModel | Compact | RunHook | RunTool) or effect.id not in take.given:
                continue
            place = take.given[effect.id]
            again = effect.id in owed and not isinstance(effect, RunTool)
            used = place if again else place + 1
            match effect:
                case CallModel():
                    position.model = used
                case Compact():
                    position.compactions = used
                case RunHook(_, hook):
                    position.hooks[hook] = used
                case RunTool(_, call):
                    position.tools[call.name] = used
    return position


def _acts_left(played: Played, take: Take, events: int) -> tuple[f.Act, ...]:
    """Return what may still happen: neither deaths nor departures, nor what has happened already."""
    earlier = played.takes[: played.takes.index(take)]
    before = events + sum(len(other.tape.steps) for other in earlier)
    return tuple(
        act
        for index, act in enumerate(played.scenario.world.acts)
        if not isinstance(act.do, f.Crash | f.Close) and played.fired.get(index, before) >= before
    )
