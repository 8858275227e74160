"""Deadlines of many effects, kept by one sleeper: nothing is spent on those that answer in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from stepfold.effects.ports import Clock


class Deadlines:
    """
    Calls *expire* with the id of every effect whose time is up.

    Args:
        clock: The time; a virtual one works.
        spawn: Starts the sleeper as a task of the run.
        expire: Called once an id, in the order of the deadlines; it drops the
            id, or sets it anew.
    """

    __slots__ = ("_clock", "_due", "_expire", "_sleeper", "_spawn", "_until")

    def __init__(
        self,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        expire: Callable[[int], None],
    ) -> None:
        self._clock = clock
        self._spawn = spawn
        self._expire = expire
        self._due: dict[int, int] = {}
        self._sleeper: asyncio.Task[None] | None = None
        self._until = 0

    def set(self, effect_id: int, due_ms: int) -> None:
        """Give an effect until *due_ms* on the clock."""
        self._due[effect_id] = due_ms
        sleeper = self._sleeper
        if sleeper is None or due_ms < self._until:
            if sleeper is not None:
                sleeper.cancel()
            self._until = due_ms
            self._sleeper = self._spawn(self._watch())

    def drop(self, effect_id: int) -> None:
        """Forget an effect that was answered or cancelled; the sleeper notices when it wakes."""
        self._due.pop(effect_id, None)

    def stop(self) -> None:
        """Forget all and end the sleeper."""
        self._due.clear()
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper = None

    async def _watch(self) -> None:
        while self._due:
            now = self._clock.now_ms()
            late = sorted((due, effect_id) for effect_id, due in self._due.items() if due <= now)
            for _, effect_id in late:
                self._expire(effect_id)
            if not late:
                self._until = min(self._due.values())
                await self._clock.sleep(self._until - now)
        self._sleeper = None
