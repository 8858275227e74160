"""
The log of a played run, in memory, which folds what it is given beside the interpreter.

So it knows the orders that each event caused, and every state on the way; what
the interpreter made of the same events is compared with it later.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from stepfold.effects.ports import Start
from stepfold.engine import State, start, step
from stepfold.engine.effects import Effect
from stepfold.engine.events import Event

MAX_EVENTS = 200_000
Happened = Callable[[Event, tuple[Effect, ...]], None]


class Endless(RuntimeError):
    """The run goes on and on."""


def state_before(begun: Start) -> State:
    """Return the state before the first event of a log."""
    return start(begun.messages, begun.tools, begun.collapses)


@attrs.frozen
class Step:
    """One event with the state after it and the orders that it caused."""

    event: Event
    state: State
    effects: tuple[Effect, ...]


@attrs.define
class Tape:
    """
    A log port.

    Args:
        begun: What the runs of this log start from.
        steps: What it holds already.
        happened: Told of each event and its orders, once they are recorded.
    """

    begun: Start
    steps: list[Step] = attrs.field(factory=list)
    happened: Happened | None = None
    dead: bool = False  # the process that writes has died: nothing more is written

    @property
    def state(self) -> State:
        """The state after the last event."""
        return self.steps[-1].state if self.steps else state_before(self.begun)

    async def append(self, event: Event, *, durable: bool) -> None:
        """Keep *event*."""
        if self.dead:
            return
        if len(self.steps) >= MAX_EVENTS:
            raise Endless(f"the run has not ended after {MAX_EVENTS} events")
        state, effects = step(self.state, event, self.begun.config)
        self.steps.append(Step(event, state, effects))
        if self.happened is not None:
            self.happened(event, effects)

    async def read(self) -> list[Event]:
        """Return the events so far."""
        return [step.event for step in self.steps]

    async def close(self) -> None:
        """Nothing is held."""
