"""
Ctrl+C, hang-up and termination: the same for the whole program.

As long as there is nothing to clean up they end the process at once, also in
the middle of an import; what is ignored already (``nohup``, a job in the
background) stays ignored.  A run has its own way (terminal/stopping.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from stepfold.adapters.cli.exits import INTERRUPTED

NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ERROR_OUTPUT: Final = 2


def heard() -> tuple[signal.Signals, ...]:
    """Return the signals that are not ignored."""
    return tuple(number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN)


def take() -> Mapping[signal.Signals, Any]:
    """Let them end the process; return what they did before.  Outside of the main thread nothing is done."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, leave) for number in heard()}


def give_back(before: Mapping[signal.Signals, Any]) -> None:
    """Let them do what they did before."""
    for number, handler in before.items():
        signal.signal(number, handler)


def leave(number: int, frame: object) -> None:
    """End the process now."""
    with contextlib.suppress(OSError):
        os.write(ERROR_OUTPUT, b"stepfold: interrupted\n")
    os._exit(INTERRUPTED)


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """
    Do what Ctrl+C would do now.

    A running asyncio loop takes Ctrl+C by cancelling its work first; what is
    raised in the middle of a task would be reported a second time.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        handler = signal.default_int_handler
    handler(number, frame)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Within, they raise ``KeyboardInterrupt``: there is something to clean up."""
    ours = [number for number in NUMBERS if signal.getsignal(number) is leave]
    try:
        for number in ours:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _as_interrupt)
        yield
    finally:
        for number in ours:
            signal.signal(number, leave)
