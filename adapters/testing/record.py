"""What has happened in a log so far, for invariants: read it, do not change it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from stepfold.adapters.scenarios.playing.tape import Step, state_before
from stepfold.effects.ports import Start
from stepfold.engine import Config, State
from stepfold.engine.effects import CallModel, CallShown, Compact, Continued, Effect, Notice, Show, Tombstone
from stepfold.engine.events import CallStatus, Event, RunStarted
from stepfold.engine.state import Continue
from stepfold.engine.terminals import End, Terminal


@attrs.define
class Record:
    """
    The log of one history: one run, or several after one another.

    Args:
        begun: What the first run started from.
        steps: Every event, with the state after it and the orders that it caused.
    """

    begun: Start
    steps: list[Step] = attrs.field(factory=list)

    @property
    def config(self) -> Config:
        """The config of the runs."""
        return self.begun.config

    @property
    def first(self) -> State:
        """The state before the first event."""
        return state_before(self.begun)

    @property
    def state(self) -> State:
        """The state now."""
        return self.steps[-1].state if self.steps else self.first

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event, in order."""
        return tuple(one.event for one in self.steps)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Every order, in order."""
        return tuple(effect for one in self.steps for effect in one.effects)

    def run(self) -> Iterator[Step]:
        """Yield the steps of the last run."""
        begins = [place for place, one in enumerate(self.steps) if isinstance(one.event, RunStarted)]
        yield from self.steps[begins[-1] :] if begins else ()

    def _of_run(self) -> Iterator[Effect]:
        return (effect for one in self.run() for effect in one.effects)

    def shown(self) -> Iterator[object]:
        """Yield what the last run showed to its consumer."""
        return (effect.item for effect in self._of_run() if isinstance(effect, Show))

    @property
    def end(self) -> End | None:
        """How the last run ended, or None while it lives."""
        return self.state.end

    @property
    def terminal(self) -> Terminal | None:
        """The reason for which the last run ended, or None while it lives."""
        return None if self.state.end is None else self.state.end.reason

    @property
    def transitions(self) -> tuple[Continue, ...]:
        """Why the last run went round, in order."""
        return tuple(Continue(item.reason) for item in self.shown() if isinstance(item, Continued))

    @property
    def requests(self) -> int:
        """The requests of the last run, those of the compactor included."""
        return sum(isinstance(effect, CallModel | Compact) for effect in self._of_run())

    @property
    def model_calls(self) -> int:
        """The calls of the model in the last run, retries included."""
        return sum(isinstance(effect, CallModel) for effect in self._of_run())

    @property
    def tokens(self) -> int:
        """What the last run has spent, as far as it was reported: input and output tokens."""
        spent = self.state.control.spending
        return spent.input_tokens + spent.output_tokens

    @property
    def statuses(self) -> dict[str, CallStatus]:
        """How each call of the last run ended, by its id."""
        return {item.use_id: item.status for item in self.shown() if isinstance(item, CallShown)}

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the last run gave notice of."""
        return tuple(item for item in self.shown() if isinstance(item, Notice))

    @property
    def tombstones(self) -> int:
        """How often the last run withdrew what it had shown of an attempt."""
        return sum(isinstance(effect, Tombstone) for effect in self._of_run())
