"""
An event loop that is driven by hand, in virtual time.

It runs until everything waits, then gives the control back; time passes only
where ``advance`` says so.  Plain functions in threads of the loop are waited
for in real time (their threads are named ``stepfold ...``).
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from stepfold.adapters.scenarios.playing.virtual_time import VirtualClock

PATIENCE_S: Final = 10.0  # real seconds for a plain function to return
GLANCE_S: Final = 0.02  # real seconds for sockets and pipes of tools
_THREADS: Final = "stepfold "
_STEPS_MAX: Final = 10_000


class TooSlow(RuntimeError):
    """A plain function has not returned in real time, or a task does not end though it was cancelled."""


class _Selector(selectors.DefaultSelector):
    """Where the loop would wait for the world, it stops."""

    loop: LiveLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return []
        until = time.monotonic() + PATIENCE_S
        while busy := _busy(self.loop.strangers):
            if events := super().select(GLANCE_S):
                return events
            if time.monotonic() > until:
                raise TooSlow(f"{busy} has not returned within {PATIENCE_S:g} s; make it async, or faster")
        if len(self.get_map()) > 1 and (events := super().select(GLANCE_S)):
            return events
        self.loop.rests(None if timeout is None else timeout)
        return []


def _busy(strangers: frozenset[int | None]) -> str:
    """Return the name of a thread in which a plain function of the loop runs, or ""."""
    if threading.active_count() == 1:
        return ""
    own = (thread.name for thread in threading.enumerate() if thread.ident not in strangers)
    return next((name.removeprefix(_THREADS) for name in own if name.startswith(_THREADS)), "")


class LiveLoop(asyncio.SelectorEventLoop):
    """The loop; its time is that of *clock*."""

    def __init__(self, clock: VirtualClock) -> None:
        selector = _Selector()
        selector.loop = self
        self.strangers = frozenset(thread.ident for thread in threading.enumerate())  # of earlier loops
        self._virtual = clock
        self._timer_ms: int | None = None
        super().__init__(selector)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual.now / 1000

    def rests(self, timer_s: float | None) -> None:
        """Everything waits; the next timer of asyncio's own is due in *timer_s*."""
        self._timer_ms = None if timer_s is None else self._virtual.now + max(1, round(timer_s * 1000))
        self.stop()

    def run_in_executor(  # type: ignore[override]  # the types of the arguments are the caller's business
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call *func* here and now: a pool's threads would make the order of events a matter of luck."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as problem:
            future.set_exception(problem)
        return future

    def until_rest(self) -> None:
        """Run until everything waits."""
        self.run_forever()

    @property
    def due_ms(self) -> int | None:
        """When the next thing happens by itself, or None."""
        due = [at for at in (self._virtual.next_ms(), self._timer_ms) if at is not None]
        return min(due, default=None)

    def advance(self) -> bool:
        """Let the next thing that is due happen; False where nothing is."""
        due = self._virtual.next_ms()
        if due is not None and (self._timer_ms is None or due <= self._timer_ms):
            self._virtual.advance()
        elif self._timer_ms is not None:
            self._virtual.now = self._timer_ms
        else:
            return False
        self.until_rest()
        return True

    def clear(self) -> None:
        """Cancel every task and let it end; raises ``TooSlow`` where one does not."""
        for _ in range(_STEPS_MAX):
            left = asyncio.all_tasks(self)
            if not left:
                break
            for task in left:
                if not task.cancelling():
                    task.cancel()
            self.until_rest()
            if asyncio.all_tasks(self) and not self.advance():
                break
        if left := asyncio.all_tasks(self):
            raise TooSlow(f"{len(left)} tasks go on though they were cancelled: {left.pop().get_coro()!r}")
        self.run_until_complete(self.shutdown_asyncgens())
