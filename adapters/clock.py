"""Clocks: the system's, and one that a test moves by hand."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

from stepfold.effects.ready.system import SystemClock

__all__ = ["ManualClock", "SystemClock"]


class ManualClock:
    """Stands still until ``advance`` is called."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def now_ms(self) -> int:
        """Return the time in ms."""
        return self._now_ms

    async def sleep(self, ms: int) -> None:
        """Sleep until the time has been moved on by *ms*."""
        if ms <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now_ms + ms, next(self._numbers), future))
        await future

    @property
    def next_ms(self) -> int | None:
        """When the next sleeper wakes, or None."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    async def advance(self, ms: int, *, rounds: int = 20) -> None:
        """
        Move the time on by *ms*, waking sleepers in the order of their times.

        After each, the event loop turns *rounds* times so that what they caused can happen.
        """
        until = self._now_ms + ms
        await self._turn(rounds)
        while (due := self.next_ms) is not None and due <= until:
            self._now_ms = due
            _, _, sleeper = heapq.heappop(self._sleepers)
            sleeper.set_result(None)
            await self._turn(rounds)
        self._now_ms = until

    async def _turn(self, rounds: int) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
