"""
What the interpreter needs from the outside.  Each port is replaced by a test in one line.

Adapters answer with events whose ``effect_id`` is the order's ``id``; the
interpreter stamps ``at_ms``.  Exceptions of an adapter become events at the
border (a tool that raises has failed); only bugs escape.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from stepfold.engine.config import Config
from stepfold.engine.effects import (
    AskPermission,
    Background,
    CallModel,
    Compact,
    Effect,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
)
from stepfold.engine.events import (
    CallFacts,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    PermissionAnswered,
    Prefetched,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolSpec,
    Usage,
)
from stepfold.engine.messages import Block, Message, ToolUse
from stepfold.engine.state import Collapse, State


class PortFault(AssertionError):
    """
    A port stands for the outside wrongly: a scripted one has no answer left.

    No fact of the run: the interpreter turns it into no event, and the run raises it.
    """


@attrs.frozen
class TextDelta:
    """A piece of text, straight to the consumer; never an event."""

    text: str


@attrs.frozen
class ThinkingDelta:
    """A piece of thinking."""

    text: str


@attrs.frozen
class InputDelta:
    """A piece of a tool call's input, as JSON text."""

    partial_json: str


@attrs.frozen
class ToolProgress:
    """A running tool tells how far it is."""

    use_id: str
    text: str


Delta: TypeAlias = TextDelta | ThinkingDelta | InputDelta
ModelPart: TypeAlias = Delta | Usage | Block | StreamClosed | StreamFailed


class Model(Protocol):
    """
    The model call.

    ``call`` yields deltas, usage as far as known, each whole block, and at
    last exactly one ``StreamClosed`` or ``StreamFailed``.  It never raises for
    what the API, the network or a deadline did.  The interpreter closes the
    iterator to cancel, and fills in ``open_text`` and ``shown`` itself.  What
    the port holds (connections, a client that it made) is its maker's to
    close: a run never closes it, the next one may use it.
    """

    def call(self, order: CallModel) -> AsyncIterator[ModelPart]: ...


class Compactor(Protocol):
    """Summarises the head of a view, and spans of it in the background."""

    async def compact(self, order: Compact) -> Compacted | CompactionFailed: ...

    async def stage(self, order: StageCollapse) -> CollapseStaged: ...


class Microcompactor(Protocol):
    """Turns ``order.cleared`` into what the server's cache edits need; by default the request tells."""

    def edit(self, order: CallModel) -> CallModel: ...


class Ids(Protocol):
    """The only source of randomness: a run's id and its jitter seed."""

    def run_id(self) -> str: ...

    def seed(self) -> int: ...


class Tools(Protocol):
    """The tools of a run: what is known of a call before it runs, and running it."""

    def specs(self) -> tuple[ToolSpec, ...]: ...

    def facts(self, call: ToolUse) -> CallFacts:
        """Look up, validate and judge a call; never raises."""
        ...

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the copy for hooks and consumer, with defaults and full paths filled in."""
        ...

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded: ...

    async def close(self) -> None: ...


class Permission(Protocol):
    """The hooks before a tool, then the user's callback."""

    async def ask(self, order: AskPermission) -> PermissionAnswered: ...


class Hooks(Protocol):
    """The stop hooks."""

    async def ask(self, order: RunHook) -> HookAnswered: ...


class Summariser(Protocol):
    """One line about a tool batch, by a small model."""

    async def summarise(self, order: Summarise) -> SummaryReady: ...


class Prefetcher(Protocol):
    """Memories and skills."""

    async def prefetch(self, order: Prefetch) -> Prefetched: ...


class Clock(Protocol):
    """Time in ms since an epoch of the clock's own, and sleeping."""

    def now_ms(self) -> int: ...

    async def sleep(self, ms: int) -> None: ...


class Log(Protocol):
    """
    Keeps events in order, append only.

    ``append`` with ``durable`` True returns once the entry would survive a
    crash of the machine; otherwise once it would survive a crash of the process.
    ``close`` is for its maker: a run does not call it.
    """

    async def append(self, event: Event, *, durable: bool) -> None: ...

    async def read(self) -> list[Event]: ...

    async def close(self) -> None: ...


@attrs.frozen
class Start:
    """
    What the runs of one log started from: with the events, all that a replay needs.

    ``prompt`` is the text of the first run's prompt, for whoever looks at the log; its event holds it whole.
    """

    config: Config
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    collapses: tuple[Collapse, ...] = ()
    prompt: str = ""


@runtime_checkable
class Recorder(Protocol):
    """
    A log that also keeps what its runs started from.

    ``begin`` is called once before anything else: on a new log it keeps the
    start it is given, on one that exists it changes nothing; it returns the
    start that is kept.
    """

    async def begin(self, start: Start) -> Start: ...


@runtime_checkable
class OutcomeLog(Protocol):
    """
    A log that keeps with each event what its step came to.

    A run calls ``append_outcome`` in place of ``append``: the step is pure and
    has been taken, but nothing of it has been carried out.
    """

    async def append_outcome(
        self, event: Event, before: State, after: State, effects: tuple[Effect, ...], *, durable: bool
    ) -> None: ...


@runtime_checkable
class DeltaLog(Protocol):
    """A log that also keeps the pieces of streams, if ``keeps_deltas`` says so; they decide nothing."""

    keeps_deltas: bool

    async def append_delta(self, effect_id: int, delta: Delta, at_ms: int) -> None: ...


@runtime_checkable
class Held(Protocol):
    """
    A log that one run at a time may write.

    A run holds it from its first look at it to its end; ``hold`` raises
    ``RuntimeError`` where another run does.
    """

    def hold(self) -> None: ...

    def release(self) -> None: ...


BackgroundWork: TypeAlias = Callable[[Background], Awaitable[None]]
