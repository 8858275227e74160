"""From recorded events back to states, without any effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, get_args

import attrs

from stepfold.effects.border import awaited, short
from stepfold.effects.ports import Log, Recorder, Start
from stepfold.effects.result import Tally
from stepfold.engine import Config, State, start, step
from stepfold.engine.effects import Effect
from stepfold.engine.events import Event, RunStarted

EVENTS: Final = frozenset(get_args(Event))
Traced: TypeAlias = tuple[Event, State, tuple[Effect, ...]]


def trace(events: Iterable[Event], state: State, config: Config) -> Iterator[Traced]:
    """
    Yield each event with the state after it and the orders it caused.

    Args:
        events: In the order of the log.
        state: Before the first of them: ``start(messages, tools)``, or the end of an earlier fold.
        config: Of the run that was recorded.

    Raises:
        UnexpectedEvent: The events do not belong together.
        TypeError: One of them is none.
    """
    for number, event in enumerate(events, 1):
        if type(event) not in EVENTS:
            raise TypeError(f"entry {number} is {short(event)}, which is no event of stepfold.engine.events")
        state, effects = step(state, event, config)
        yield event, state, effects


def fold(events: Iterable[Event], state: State, config: Config) -> State:
    """Return the state after *events*; arguments and exceptions as for ``trace``."""
    last = state
    for _, after, _ in trace(events, state, config):
        last = after
    return last


class LogMismatch(ValueError):
    """What the caller wants does not go with what the log holds."""


@attrs.frozen
class TakenUp:
    """
    Where a log stands.

    Args:
        config: Frozen when the first run of the log began.
        state: After the last event.
        tally: What the last run, finished or not, has told so far.
        run: The event that began it; None in a new log.
        events: How many the log holds.
    """

    config: Config
    state: State
    tally: Tally
    run: RunStarted | None
    events: int

    @property
    def unfinished(self) -> bool:
        """Whether a run was begun and never came to its end."""
        return self.run is not None and self.state.end is None


async def take_up(log: Log | None, wanted: Start, config_given: bool) -> TakenUp:
    """
    Read *log* and fold it.

    Args:
        log: May be new, or None.
        wanted: What the caller asks for.
        config_given: False: the caller does not mind, so what was recorded stands.

    Raises:
        LogMismatch: The log was begun with another Config or other messages, or holds no events.
    """
    if log is None:
        state = start(wanted.messages, wanted.tools, wanted.collapses)
        return TakenUp(wanted.config, state, Tally(), None, 0)
    kept = await log.begin(wanted) if isinstance(log, Recorder) else wanted
    events = await awaited(log.read(), "Log.read")
    for number, event in enumerate(events, 1):
        if type(event) not in EVENTS:
            raise LogMismatch(f"log: its entry {number} is {short(event)}, which is no event")
    if config_given:
        _same_config(kept.config, wanted.config)
    if wanted.messages and wanted.messages != kept.messages:
        raise LogMismatch("messages: the log began with others; to go on with it, give none")
    tally, run, state = Tally(), None, start(kept.messages, kept.tools, kept.collapses)
    for event, after, effects in trace(events, state, kept.config):
        if type(event) is RunStarted:
            tally, run = Tally(), event
        tally.note_all(effects)
        state = after
    return TakenUp(kept.config, state, tally, run, len(events))


def _same_config(kept: Config, wanted: Config) -> None:
    other = [
        f"{field.name} (recorded {getattr(kept, field.name)!r}, given {getattr(wanted, field.name)!r})"
        for field in attrs.fields(Config)
        if field.init and getattr(kept, field.name) != getattr(wanted, field.name)
    ]
    if other:
        raise LogMismatch(f"config: the log was begun with another one; they differ in {', '.join(other)}")
