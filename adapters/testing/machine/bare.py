"""The bare engine as a stage: whatever the world says goes into ``step``, and nothing else happens."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from stepfold.adapters.scenarios.playing.tape import Step
from stepfold.adapters.testing.record import Record
from stepfold.effects.ports import Start
from stepfold.engine import State, UnexpectedEvent, step
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Cancel,
    CancelModel,
    CancelTool,
    Compact,
    Effect,
    Finish,
    Owed,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
    Wait,
)
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    Command,
    CommandQueued,
    Event,
    Resumed,
    RunStarted,
    ToolsChanged,
    ToolSpec,
)
from stepfold.engine.messages import Text

OWED = (CallModel, RunTool, AskPermission, Compact, StageCollapse, RunHook, Wait, Summarise, Prefetch)


class BareStage:
    """
    A log that is written by hand: one event, one step.

    What the world owes is known from the orders alone: what was ordered, less
    what was answered or cancelled.  After a death it is a new process, which
    knows only what that step ordered.

    Args:
        begun: What the runs start from.
        seed: Of the jitter.
    """

    def __init__(self, begun: Start, seed: int = 0) -> None:
        self.record = Record(begun)
        self.state: State = self.record.first
        self.owed: dict[int, Owed] = {}
        self.gone: set[int] = set()  # orders that were answered or cancelled: whatever comes is late
        self.cancelling: set[int] = set()  # streams that are being closed from here
        self.now_ms = 0
        self.runs = 0
        self._seed = seed
        self._commands = 0

    def take(self, event: Event) -> tuple[Effect, ...]:
        """Take one step; return its orders.  Raises ``UnexpectedEvent`` where the table has no row."""
        stamped = attrs.evolve(event, at_ms=self.now_ms)
        self.state, effects = step(self.state, stamped, self.record.config)
        self.record.steps.append(Step(stamped, self.state, effects))
        self._book(stamped, effects)
        return effects

    def refuses(self, event: Event) -> bool:
        """Whether *event* cannot happen now; nothing changes either way."""
        try:
            step(self.state, attrs.evolve(event, at_ms=self.now_ms), self.record.config)
        except UnexpectedEvent:
            return True
        return False

    def _book(self, event: Event, effects: Iterable[Effect]) -> None:
        before = set(self.owed)
        if isinstance(event, Resumed):
            self.owed.clear()
            self.cancelling.clear()
        elif not isinstance(event, BlockCompleted):
            self.owed.pop(getattr(event, "effect_id", 0), None)
        for effect in effects:
            match effect:
                case CancelTool(id) | Cancel(id):
                    self.owed.pop(id, None)
                case CancelModel(id):
                    self.cancelling.add(id)
                case Finish():
                    self.owed.clear()
            if isinstance(effect, OWED):
                self.owed[effect.id] = effect
        if isinstance(event, Resumed):
            self.gone.clear()  # what the dead process had open is in nobody's hands
        else:
            self.gone |= before - set(self.owed)

    # ------------------------------------------------------------ what may happen

    def prompt(self, text: str) -> None:
        """Begin a run."""
        self.runs += 1
        self.take(RunStarted((Text(text),), f"run-{self.runs}", self._seed))

    def answer(self, event: Event) -> None:
        """Let an answer come, or a block of one."""
        self.take(event)

    def abort(self, kind: AbortKind) -> None:
        """Let the user stop the run."""
        self.take(AbortRequested(kind))

    def queue(self, text: str) -> None:
        """Let the user say something beside the run."""
        self._commands += 1
        self.take(CommandQueued(Command(f"command-{self._commands}", (Text(text),))))

    def change_tools(self, tools: tuple[ToolSpec, ...]) -> None:
        """Let the host offer other tools."""
        self.take(ToolsChanged(tools))

    def die(self) -> None:
        """Let the process die, and a new one take up the log."""
        self.take(Resumed())

    def wait(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms

    def close(self) -> None:
        """Nothing is held."""
