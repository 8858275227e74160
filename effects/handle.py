"""The user's hands on a run that goes on: abort, queue words, change the tools."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable
from typing import Final

from stepfold.effects.interpreter import Happening, Interpreter
from stepfold.effects.options import SPEC, user_words
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    Command,
    CommandQueued,
    ToolsChanged,
    ToolSpec,
)
from stepfold.engine.messages import Block

KINDS: Final = (AbortKind.HARD, AbortKind.SUBMIT)

logger = logging.getLogger(__name__)


class Handle:
    """
    One handle belongs to one run.  Its methods may be called from any thread.

    What is said before the run begins happens right after it began.
    """

    def __init__(self) -> None:
        self._early: list[Happening] = []
        self._loop: Interpreter | None = None
        self._thread_loop: asyncio.AbstractEventLoop | None = None
        self._specs: Callable[[], tuple[ToolSpec, ...]] = tuple
        self._events = 0
        self._queued = 0
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self._over

    def abort(self, kind: AbortKind = AbortKind.HARD) -> None:
        """
        Stop the run: hard (as by Ctrl+C), or because the user sent a new message (submit).

        Does nothing when the run is over.

        Raises:
            ValueError: *kind* is neither.
        """
        if kind not in KINDS:
            raise ValueError(f"abort: {kind!r} is no kind of abort; wanted {' or '.join(KINDS)}")
        chosen = AbortKind(kind)
        if not self._over:
            self._say(lambda now: AbortRequested(chosen, now))

    def queue(self, text: str | Iterable[Block]) -> str:
        """
        Queue words for the model; they join after the next tool batch.

        Returns:
            The id by which ``on_command`` tells what became of them.

        Raises:
            RuntimeError: The run is over, so the words would be lost.
            TypeError, ValueError: They are no words, or empty.
        """
        blocks = user_words("queue", "text", text)
        if self._over:
            raise RuntimeError("the run is over: begin a new one with these words")
        self._queued += 1
        # Unique in the log, a resumed one too: the place of the next event, once that is known.
        place = uuid.uuid4().hex if self._loop is None else str(self._events + self._loop.taken)
        command = Command(f"command-{place}.{self._queued}", blocks)
        self._say(lambda now: CommandQueued(command, now))
        return command.id

    def change_tools(self, tools: Iterable[ToolSpec] | None = None) -> None:
        """Offer *tools* from the next request on; None: what the run's ``Tools`` port offers now."""
        if self._over:
            raise RuntimeError("the run is over")
        given = None if tools is None else tuple(tools)
        for place, each in enumerate(given or ()):
            SPEC.check("change_tools", f"tools[{place}]", each)
        self._say(lambda now: ToolsChanged(self._specs() if given is None else given, now))

    def _say(self, happening: Happening) -> None:
        loop, thread_loop = self._loop, self._thread_loop
        if loop is None or thread_loop is None:
            self._early.append(happening)
        elif _here() is thread_loop:
            loop.happen(happening)
        else:
            thread_loop.call_soon_threadsafe(self._say_here, happening)

    def _say_here(self, happening: Happening) -> None:
        """Say what came from another thread; the run may have ended in between."""
        if self._loop is not None and not self._over:
            self._loop.happen(happening)
        else:
            logger.warning("the run was over before it could hear: %r", happening(0))

    # ------------------------------------------------------- for the run itself

    def bind(self, loop: Interpreter, specs: Callable[[], tuple[ToolSpec, ...]], events: int) -> None:
        """Belong to a run; *events* is how many its log held before."""
        if self._loop is not None or self._over:
            raise RuntimeError("a handle belongs to one run")
        self._thread_loop = asyncio.get_running_loop()
        self._loop, self._specs, self._events = loop, specs, events

    def early(self) -> tuple[Happening, ...]:
        """Return what was said before the run began."""
        return tuple(self._early)

    def unbind(self) -> None:
        """The run is over."""
        self._over = True


def _here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
