"""Ctrl+C in a run: once stops it cleanly, twice gives up waiting for that, thrice ends the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from stepfold.adapters.cli.exits import INTERRUPTED
from stepfold.adapters.cli.signals import heard as heard_at_all
from stepfold.effects import Handle
from stepfold.engine.events import AbortKind


@contextlib.contextmanager
def stopping(handle: Handle, task: asyncio.Task[Any], say: Callable[[str], None]) -> Iterator[None]:
    """Let the signals of the terminal stop the run of *handle*, which *task* carries."""
    loop = asyncio.get_running_loop()
    heard = 0

    def hear() -> None:
        nonlocal heard
        heard += 1
        match heard:
            case 1:
                say("stopping; once more gives up waiting")
                handle.abort(AbortKind.HARD)
            case 2:
                task.cancel()
            case _:
                os._exit(INTERRUPTED)

    before = {number: signal.getsignal(number) for number in heard_at_all()}
    for number in before:
        loop.add_signal_handler(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # Once it ends, an impatient second Ctrl+C must not break into that.
            signal.signal(number, signal.SIG_IGN if heard else handler)
