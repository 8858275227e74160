"""The log in memory: for tests, and for runs that need not survive their process."""

from __future__ import annotations

from collections.abc import Iterable

from stepfold.effects.ports import Start
from stepfold.engine.events import Event


class MemoryLog:
    """Keeps events in a list; ``durable`` tells, event by event, whether it had to be safe."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events = list(events)
        self.durable = [True] * len(self.events)
        self.begun: Start | None = None
        self._held = False

    def hold(self) -> None:
        """Belong to one run; ``RuntimeError`` where it belongs to another."""
        if self._held:
            raise RuntimeError("log: another run is writing it; one log holds one run at a time")
        self._held = True

    def release(self) -> None:
        """Belong to nobody."""
        self._held = False

    async def begin(self, start: Start) -> Start:
        """Keep the first start."""
        if self.begun is None:
            self.begun = start
        return self.begun

    async def append(self, event: Event, *, durable: bool) -> None:
        """Keep one event."""
        self.events.append(event)
        self.durable.append(durable)

    async def read(self) -> list[Event]:
        """Return all events."""
        return list(self.events)

    async def close(self) -> None:
        """Do nothing: the events stay."""
