"""Where answers and the user's wishes wait for the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """
    First in, first out; one reader, in the same asyncio loop as its writers.

    Whoever posts gets a number and can wait until that entry, with all that it
    caused, has been dealt with: so a stream never runs ahead of the loop.  What
    waits here is bounded by the effects that are owed, and by the user.
    """

    __slots__ = ("_loop", "_posted", "_reader", "_waiting", "items", "settled")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader: asyncio.Future[None] | None = None
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._posted = 0
        self.items: deque[T] = deque()
        self.settled = 0

    def post(self, item: T) -> int:
        """Add *item*; return its number."""
        self.items.append(item)
        self._posted += 1
        reader = self._reader
        if reader is not None:
            self._reader = None
            if not reader.done():
                reader.set_result(None)
        return self._posted

    async def next(self) -> T:
        """Return the oldest item, as soon as there is one."""
        while not self.items:
            self._reader = reader = self._loop.create_future()
            await reader
        return self.items.popleft()

    def settle(self) -> None:
        """Note that the oldest item taken has been dealt with."""
        self.settled += 1
        waiting = self._waiting
        while waiting and waiting[0][0] <= self.settled:
            future = waiting.popleft()[1]
            if not future.done():
                future.set_result(None)

    async def until_settled(self, number: int) -> None:
        """Return once item *number* has been dealt with."""
        if self.settled < number:
            future = self._loop.create_future()
            self._waiting.append((number, future))
            await future
