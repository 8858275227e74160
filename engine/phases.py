"""
The phases: what is going on, each with the scratch of its own time only.

A junction is left in the same step in which it is entered.
"""

from __future__ import annotations

import enum
from typing import ClassVar, Final, TypeAlias

from stepfold.engine.effects import Compact
from stepfold.engine.events import CallFacts, CallStatus, HookStop, Stop
from stepfold.engine.failures import Failure
from stepfold.engine.frozen import frozen
from stepfold.engine.messages import Block, Message, ToolResult, ToolUse
from stepfold.engine.terminals import End


class PhaseKind(enum.StrEnum):
    """The names of the phases, for control alone."""

    IDLE = "idle"
    PREPARING = "preparing"
    FITTING = "fitting"
    CALLING = "calling"
    SAMPLING = "sampling"
    WAITING = "waiting"
    COMPACTING = "compacting"
    REACTING = "reacting"
    SCHEDULING = "scheduling"
    RUNNING = "running"
    CHECKING = "checking"
    SETTLING = "settling"
    ABORTING = "aborting"
    UNWINDING = "unwinding"
    DONE = "done"


class CallState(enum.StrEnum):
    """Where one call is."""

    WAITING = "waiting"
    ASKING = "asking"
    ACTIVE = "active"
    ENDED = "ended"


@frozen
class Call:
    """One call of the answer; ``original_id`` is the id as the model gave it."""

    use: ToolUse
    facts: CallFacts
    original_id: str
    state: CallState = CallState.WAITING
    effect_id: int = 0
    status: CallStatus | None = None
    result: ToolResult | None = None
    input: str | None = None  # what a hook made of the input
    rerun: bool = False  # run again (idempotent) or asked again after a crash: once each


@frozen
class Schedule:
    """The calls of one answer: the second, smaller machine, stepped by the rows of Scheduling."""

    calls: tuple[Call, ...] = ()
    head: int = 0  # place of the first call that waits
    stop: HookStop | None = None  # a tool hook asked to stop
    broken_by: str = ""  # the shell call that failed
    extra: tuple[Message, ...] = ()  # further messages that tools brought


@frozen
class Closing:
    """
    How the stream of an answer ended.

    ``open_text`` is the text of a block that never closed; ``tokens`` what
    the answer takes in the view, reported or estimated.
    """

    stop: Stop = Stop.END_TURN
    open_text: str = ""
    tokens: int = 0
    details: str = ""


@frozen
class Reply:
    """The answer to effect ``call_id`` so far: its whole blocks, the schedule of its calls, its end."""

    call_id: int
    blocks: tuple[Block, ...] = ()
    schedule: Schedule = Schedule()
    closing: Closing = Closing()


@frozen
class Idle:
    """No run has begun."""

    kind: ClassVar = PhaseKind.IDLE


@frozen
class Preparing:
    """Junction: a new iteration begins."""

    kind: ClassVar = PhaseKind.PREPARING


@frozen
class Fitting:
    """Junction: does the view fit?"""

    kind: ClassVar = PhaseKind.FITTING


@frozen
class Calling:
    """Junction: may a request leave?"""

    kind: ClassVar = PhaseKind.CALLING


@frozen
class Sampling:
    """A model call is open."""

    kind: ClassVar = PhaseKind.SAMPLING
    reply: Reply


@frozen
class Waiting:
    """Back-off before a call is made again."""

    kind: ClassVar = PhaseKind.WAITING
    failure: Failure


@frozen
class Compacting:
    """Autocompact is at work."""

    kind: ClassVar = PhaseKind.COMPACTING
    compact: Compact


@frozen
class Reacting:
    """Reactive compaction is at work; ``failure`` is withheld, ``partial`` is kept for behind the view."""

    kind: ClassVar = PhaseKind.REACTING
    compact: Compact
    failure: Failure
    partial: tuple[Message, ...] = ()


@frozen
class Scheduling:
    """Junction: which call may begin; is the batch done?"""

    kind: ClassVar = PhaseKind.SCHEDULING
    reply: Reply


@frozen
class Running:
    """The response is whole, calls are open."""

    kind: ClassVar = PhaseKind.RUNNING
    reply: Reply


@frozen
class Checking:
    """Stop hooks are asked, one after the other; ``waiting`` are still to ask (places in the config)."""

    kind: ClassVar = PhaseKind.CHECKING
    reply: Reply
    asked: int
    waiting: tuple[int, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()  # (hook, words) of those that block
    prevented: HookStop | None = None


@frozen
class Settling:
    """Junction: the hooks let it end; does the token budget?"""

    kind: ClassVar = PhaseKind.SETTLING
    reply: Reply


@frozen
class Aborting:
    """The user aborted; a stream or calls are still to come in."""

    kind: ClassVar = PhaseKind.ABORTING
    reply: Reply


@frozen
class Unwinding:
    """Junction: has everything come in after an abort?"""

    kind: ClassVar = PhaseKind.UNWINDING
    reply: Reply


@frozen
class Done:
    """The run is over.  No field here can hold unfinished work."""

    kind: ClassVar = PhaseKind.DONE
    end: End


PREPARING: Final = Preparing()
FITTING: Final = Fitting()
CALLING: Final = Calling()

Phase: TypeAlias = (
    Idle
    | Preparing
    | Fitting
    | Calling
    | Sampling
    | Waiting
    | Compacting
    | Reacting
    | Scheduling
    | Running
    | Checking
    | Settling
    | Aborting
    | Unwinding
    | Done
)
