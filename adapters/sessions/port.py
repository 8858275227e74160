"""What a store of sessions can do, and the words that all of them share."""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from stepfold.adapters.recording import Outcome, Recording
from stepfold.effects.ports import Start
from stepfold.engine import State
from stepfold.engine.effects import Effect
from stepfold.engine.events import BlockCompleted, CommandQueued, Event, RunStarted, ToolEnded
from stepfold.engine.messages import Block, ResultBlock, Text, ToolUse

MAX_NAME_BYTES: Final = 80  # each may take three in the name of a file, which 255 are allowed


class SessionError(ValueError):
    """A store cannot do what it is asked; the text names the session or the file, and why."""


@attrs.frozen
class SessionInfo:
    """
    A session in figures.

    Args:
        name: Under which it is kept.
        began_ms: When its first run began, since the epoch; None: it has none.
        touched_ms: When the last event came.
        runs: How many were begun.
        events: How many it holds.
        model: Which is asked.
        prompt: Text of the first run's prompt.
        end: Reason of the last run's end; None: it is not finished, or there is none.
        problem: Why it cannot be read; "" where it can.
    """

    name: str
    began_ms: int | None
    touched_ms: int | None
    runs: int
    events: int
    model: str
    prompt: str
    end: str | None
    problem: str = ""


@attrs.frozen
class Hit:
    """
    An event that a search found.

    Args:
        session: Its session.
        event: Its number, counted from 1.
        run: Number of its run, counted from 1; 0: it came before any.
        text: All that it says.
    """

    session: str
    event: int
    run: int
    text: str


class SessionLog(Protocol):
    """The log of one session, as ``run(log=...)`` takes it; ``Sessions.open`` makes it."""

    def hold(self) -> None: ...

    def release(self) -> None: ...

    async def begin(self, start: Start) -> Start: ...

    async def append(self, event: Event, *, durable: bool) -> None: ...

    async def append_outcome(
        self, event: Event, before: State, after: State, effects: tuple[Effect, ...], *, durable: bool
    ) -> None: ...

    async def read(self) -> list[Event]: ...

    async def close(self) -> None: ...


class Sessions(Protocol):
    """
    A store of sessions.

    Every method raises ``SessionError`` where the store cannot be read or
    written, a name is none, or a session is not there.
    """

    def open(self, name: str) -> SessionLog:
        """Return the log of *name*, which is made with its first run; one log at a time may have it."""
        ...

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions, the one that was touched last first."""
        ...

    def search(self, words: str, limit: int = 100) -> list[Hit]:
        """Return events that say each of *words* (in any case, parts of words too), newest sessions first."""
        ...

    def rename(self, name: str, to: str) -> None:
        """Keep *name* under another name; refused where that is taken, or a log is open."""
        ...

    def delete(self, name: str) -> None:
        """Remove a session; refused while a log is open."""
        ...

    def recording(self, name: str) -> Recording:
        """Return what a session holds, as a recording."""
        ...

    def export(self, name: str) -> bytes:
        """Return a session as the contents of a recording's file."""
        ...

    def close(self) -> None:
        """Let go of what the store holds."""
        ...


def checked_name(name: str) -> str:
    """Return *name*; raises ``SessionError`` where it cannot be one."""
    size = len(name.encode(errors="surrogatepass"))
    if not name.strip() or not name.isprintable() or size > MAX_NAME_BYTES:
        raise SessionError(
            f"session {name[:60]!r}: it is no name; wanted 1 to {MAX_NAME_BYTES} bytes of printable text"
        )
    return name


def said(event: Event) -> str:
    """Return what *event* says to people: prompts, answers, calls and their results; "" for the others."""
    match event:
        case RunStarted(prompt=blocks):
            return "\n".join(filter(None, map(_text, blocks)))
        case CommandQueued(command=command):
            return "\n".join(filter(None, map(_text, command.content)))
        case BlockCompleted(block=block):
            return _text(block)
        case ToolEnded(content=blocks):
            return "\n".join(filter(None, map(_text, blocks)))
        case _:
            return ""


def _text(block: Block | ResultBlock) -> str:
    match block:
        case Text(text=text):
            return text
        case ToolUse(name=name, input=given):
            return f"{name} {given}"
        case _:
            return ""


def matches(text: str, words: str) -> bool:
    """Whether *text* says each of *words*."""
    folded = text.casefold()
    return all(word in folded for word in words.casefold().split())


class Summing:
    """Sums a session up, event by event."""

    def __init__(self) -> None:
        self.began_ms: int | None = None
        self.touched_ms: int | None = None
        self.runs = 0
        self.events = 0
        self.end: str | None = None

    def add(self, event: Event, outcome: Outcome) -> None:
        """Take an event and what its entry tells of its step."""
        self.events += 1
        self.touched_ms = event.at_ms
        if isinstance(event, RunStarted):
            self.runs += 1
            self.end = None
            if self.began_ms is None:
                self.began_ms = event.at_ms
        self.end = outcome.get("ended", self.end)

    def info(self, name: str, begun: Start) -> SessionInfo:
        """Return the session in figures."""
        return SessionInfo(
            name,
            self.began_ms,
            self.touched_ms,
            self.runs,
            self.events,
            begun.config.model,
            begun.prompt,
            self.end,
        )
