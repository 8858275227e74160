"""
Virtual time: nothing sleeps, and things happen one at a time.

Whenever every task waits, the earliest thing that is due happens: first by its
time, then by the order in which it was asked for (a cause before its effects).
So a run in this world is the same on every machine.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import attrs

T = TypeVar("T")


class Stuck(RuntimeError):
    """Everything waits and nothing is due: the run would hang for ever."""


@attrs.define(order=True)
class _Due:
    at_ms: int
    order: int
    future: asyncio.Future[None] = attrs.field(order=False)


@attrs.define
class VirtualClock:
    """The clock port, in virtual ms from 0; ``after`` reserves a place in the order beforehand."""

    now: int = 0
    _due: list[_Due] = attrs.field(factory=list)
    _order: int = 0
    _soon: deque[Callable[[], None]] = attrs.field(factory=deque)

    def now_ms(self) -> int:
        """Return the virtual time in ms."""
        return self.now

    async def sleep(self, ms: int) -> None:
        """Wait *ms* of virtual time; 0 lets everything asked for before happen first."""
        await self.after(ms)

    def after(self, ms: int) -> asyncio.Future[None]:
        """Return what is done in *ms* from now: its place among equals is that of this call."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._due, _Due(self.now + max(0, ms), self._order, future))
        return future

    def soon(self, deed: Callable[[], None]) -> None:
        """Do *deed* when everything waits, before what is due; what it raises ends the loop."""
        self._soon.append(deed)

    def forget_soon(self) -> None:
        """Do nothing of what ``soon`` was asked for and has not come to."""
        self._soon.clear()

    def do_soon(self) -> bool:
        """Do the oldest deed; return whether there was one."""
        if not self._soon:
            return False
        self._soon.popleft()()
        return True

    def next_ms(self) -> int | None:
        """Return when the next thing is due, or None."""
        while self._due and self._due[0].future.done():
            heapq.heappop(self._due)
        return self._due[0].at_ms if self._due else None

    def advance(self) -> None:
        """Let the next thing happen."""
        due = heapq.heappop(self._due)
        self.now = max(self.now, due.at_ms)
        due.future.set_result(None)


class _Selector(selectors.DefaultSelector):
    """Where the loop would wait for the world, it moves the clock on."""

    clock: VirtualClock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return []
        if self.clock.do_soon():
            return []
        due = self.clock.next_ms()
        timer = None if timeout is None else self.clock.now + max(1, round(timeout * 1000))
        if due is not None and (timer is None or due <= timer):
            self.clock.advance()
        elif timer is not None:
            self.clock.now = timer
        else:
            raise Stuck("everything waits and nothing is due")
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of a ``VirtualClock``."""

    def __init__(self, clock: VirtualClock) -> None:
        selector = _Selector()
        selector.clock = clock
        self._virtual = clock
        super().__init__(selector)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual.now / 1000


def run_virtual(work: Coroutine[Any, Any, T], clock: VirtualClock, broken: Callable[[], None]) -> T:
    """
    Run *work* to its end in virtual time.

    Args:
        work: The coroutine.
        clock: Its time.
        broken: Called where the loop breaks off, before what is left is cleared away.

    Raises:
        Stuck: It would wait for ever.
        BaseException: What a deed of ``clock.soon`` raised.
    """
    loop = VirtualLoop(clock)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work)
    except BaseException:
        broken()
        raise
    finally:
        clock.forget_soon()
        _clear(loop)
        asyncio.set_event_loop(None)
        loop.close()


def _clear(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left and let it end, as ``asyncio.run`` does."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
