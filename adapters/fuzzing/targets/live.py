"""One fuzzed run of a user's agent: the real interpreter, a hostile model, virtual time."""

from __future__ import annotations

import contextlib
import io
import logging
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

import attrs

from stepfold.adapters.fuzzing.driver.machine import Machine
from stepfold.adapters.fuzzing.driver.orders import MOVING
from stepfold.adapters.fuzzing.driver.rules import Broken, Rule
from stepfold.adapters.fuzzing.driver.runs import GENE, SPEAKS, Invariant, Played, ask, friendly, picks
from stepfold.adapters.fuzzing.driver.setups import HEADER, near, setup_of
from stepfold.adapters.fuzzing.driver.watch import Watch
from stepfold.adapters.fuzzing.targets.target import AgentTarget
from stepfold.adapters.testing.answers import answer, block
from stepfold.adapters.testing.machine.calling import Caller
from stepfold.adapters.testing.machine.live import LiveStage
from stepfold.adapters.testing.machine.live_loop import TooSlow
from stepfold.adapters.testing.world import Fault, Pick, World
from stepfold.engine import Config
from stepfold.engine.effects import CallModel
from stepfold.engine.events import StreamFailed

HANGS_S: Final = 10  # real seconds that one run may take
PATIENCE: Final = 400  # things that may happen after the choices have come to their end
AGAIN: Final = 16  # one run in so many is played twice


class Hangs(BaseException):
    """A run of the target does not come back."""


class LiveDriver:
    """
    Plays runs of an agent.

    Args:
        target: The agent.
        machine: Notes the rows that the runs take.
        invariants: As for ``Driver``.
    """

    def __init__(self, target: AgentTarget, machine: Machine, invariants: tuple[Invariant, ...] = ()) -> None:
        self.machine = machine
        self.printed: tuple[str, bytes] | None = None  # what a run printed first, and its choices
        self._target = target
        self._invariants = invariants
        self._runs = 0
        logging.getLogger("stepfold").setLevel(logging.CRITICAL)

    def useful(self, header: bytes) -> bool:
        """Every header is."""
        return True

    def play(self, tape: bytes, *, keep: bool = False, stem: int = 0) -> Played:
        """Play the run that *tape* says, from its start; some runs twice: does one leave something behind?"""
        self._runs += 1
        played = self._once(tape)
        if played.broken is None and (keep or self._runs % AGAIN == 1):
            second = self._once(tape)
            if _course(second) != _course(played):
                words = "the same choices gave another run: the target keeps something from run to run"
                played.broken = Broken(Rule.REPLAY, words)
        return played

    def _once(self, tape: bytes) -> Played:
        setup = setup_of(tape[:HEADER])
        played = Played(setup, [], setup.first)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), _watched():
                _LiveRun(self._target, setup.world, tape, played).whole()
        except Broken as broken:
            played.broken = broken
        except Hangs:
            words = f"it had not come back after {HANGS_S} s; what blocks has to be async, or to end"
            played.broken = Broken(Rule.AWAY, words)
        except TooSlow as problem:
            played.broken = Broken(Rule.AWAY, str(problem))
        except Exception as problem:
            played.broken = Broken(Rule.RAISED, f"the run raised {type(problem).__name__}: {problem}")
        if said.getvalue().strip() and self.printed is None:
            self.printed = said.getvalue().strip().splitlines()[0], tape
        if played.broken is None:
            self._judged(played)
        return played

    def _judged(self, played: Played) -> None:
        """Let the watch see each step, and the machine note its rows."""
        trail, state = self.machine.trail, played.setup.first
        trail.clear()
        config = played.setup.config
        watch = Watch(config)
        played.steps = 0
        try:
            for event in played.events:
                after, effects = self.machine.step(state, event, config)
                played.steps += 1
                watch.saw(state, event, effects, after)
                for invariant in self._invariants:
                    ask(invariant, state, event, effects, after)
                state = after
        except Broken as broken:
            played.broken = broken
            played.events = played.events[: played.steps]
        played.state = state


def _course(played: Played) -> list[str]:
    return [repr(event) for event in played.events]


class _LiveRun:
    """The run while it is played."""

    def __init__(self, target: AgentTarget, world: World, tape: bytes, played: Played) -> None:
        options = target.fresh()
        caller = Caller(options.get("tools", ()), {})
        self._caller = caller
        self._world = caller.named(near(world, options.get("config") or Config()))
        self._stage = LiveStage(options, self._world, 1)
        self._tape = tape
        self._played = played
        self._count = 0

    def whole(self) -> None:
        """Play to the end; what the log holds then is what was played."""
        stage = self._stage
        try:
            stage.prompt("go")
            for place in range(HEADER, len(self._tape) - GENE + 1, GENE):
                if stage.result is not None:
                    break
                self._gene(self._tape[place], picks(self._tape, place + 1))
            left = PATIENCE
            while stage.result is None:
                self._go_on(friendly)
                left -= 1
                if left < 0:
                    raise Broken(Rule.ENDS, f"it goes on after {PATIENCE} friendly answers")
        finally:
            record = stage.record
            played = self._played
            played.events = list(record.events)
            played.steps, played.state = len(played.events), record.state
            played.setup = attrs.evolve(
                played.setup,
                config=record.config,
                messages=record.begun.messages,
                collapses=record.begun.collapses,
                first=record.first,
            )
            stage.close()

    def _gene(self, what: int, pick: Pick) -> None:
        stage, world = self._stage, self._world
        outside = [
            fault for fault in (Fault.ABORTS, Fault.DEATHS, Fault.QUEUE, Fault.IDLE_TIME) if world.has(fault)
        ]
        if what < 190 or not outside:
            self._go_on(pick)
            return
        match pick(outside):
            case Fault.ABORTS:
                stage.abort(pick(world.aborts))
            case Fault.DEATHS:
                stage.die()
            case Fault.QUEUE:
                stage.queue("also this")
            case _:
                stage.wait(60_000)

    def _go_on(self, pick: Pick) -> None:
        """An order is answered; where the target itself is at work, time passes."""
        stage = self._stage
        orders = list(stage.owed.values())
        moving = [order for order in orders if type(order) in MOVING]
        if not orders or (stage.busy and (pick is friendly or pick((True, False)))):
            if not stage.busy and not orders:
                raise Broken(Rule.DEADLOCK, "nothing is open, and the run is not over")
            stage.wait(0)
            return
        order = (moving or orders)[-1]
        if type(order) is CallModel:
            self._model(order, pick)
        else:
            stage.answer(answer(self._world, order, pick))

    def _model(self, order: CallModel, pick: Pick) -> None:
        stage, world = self._stage, self._world
        self._count += 1
        match pick(SPEAKS):
            case "call":
                stage.answer(self._caller.call(world, order.id, pick, f"t{self._count}"))
            case "block":
                stage.answer(block(world, order.id, pick))
            case "fail" if world.said.failures:
                stage.answer(StreamFailed(order.id, pick(world.said.failures)))
            case _:
                stage.answer(answer(world, order, pick))


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    """Break off what does not come back; only where this is the main thread of its process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: FrameType | None) -> Any:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
