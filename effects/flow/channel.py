"""A rendezvous between the loop and its consumer: nothing is handed over that was not asked for."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Generic, TypeVar, final

T = TypeVar("T")


@final
class Closed:
    """What ``take`` returns when nothing comes any more."""


CLOSED: Final = Closed()


class Channel(Generic[T]):
    """
    Hands items from many givers to one taker, in order.

    ``give`` returns when the taker has asked and got the item; there is no
    buffer, so a taker that pauses holds the givers back.
    """

    __slots__ = ("_closed", "_givers", "_loop", "_taker")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._givers: deque[tuple[T, asyncio.Future[None]]] = deque()
        self._taker: asyncio.Future[T | Closed] | None = None
        self._closed = False

    @property
    def blocked(self) -> bool:
        """Whether somebody waits for the taker."""
        return bool(self._givers)

    async def give(self, item: T) -> None:
        """Hand over *item*; wait until it is asked for."""
        taker = self._taker
        if taker is not None and not taker.done():
            self._taker = None
            taker.set_result(item)
            return
        future = self._loop.create_future()
        entry = (item, future)
        self._givers.append(entry)
        try:
            await future
        except asyncio.CancelledError:
            if not future.done() or future.cancelled():
                self._givers.remove(entry)
            raise

    async def take(self) -> T | Closed:
        """Ask for the next item; wait for it.  ``CLOSED`` is the end."""
        while self._givers:
            item, future = self._givers.popleft()
            if not future.done():
                future.set_result(None)
                return item
        if self._closed:
            return CLOSED
        if self._taker is not None:
            raise RuntimeError("a stream has one consumer at a time")
        self._taker = taker = self._loop.create_future()
        try:
            handed: T | Closed = await taker
            return handed
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled():
                self._put_back(taker.result())
            raise
        finally:
            self._taker = None

    def _put_back(self, item: T | Closed) -> None:
        """Keep for the next ``take`` what was handed over to one that was cancelled."""
        if not isinstance(item, Closed):
            self._givers.appendleft((item, self._loop.create_future()))

    def close(self) -> None:
        """Let ``take`` return ``CLOSED`` from now on."""
        self._closed = True
        taker = self._taker
        if taker is not None and not taker.done():
            self._taker = None
            taker.set_result(CLOSED)
