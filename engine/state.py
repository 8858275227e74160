"""
Where a run can be, and what it carries.

``Control`` is everything that decides: integers, booleans, enums.  ``Data`` is
what requests are made of.  A phase holds the scratch of its own time only.
The ten fields of the loop's state, by the names of the specification:
``messages``, ``tool_context``, ``pending_tool_summary`` in ``Data``;
``turn``, ``transition``, ``compaction`` in ``Control``; ``output_recoveries``,
``reactive_compacted``, ``output_limit_override``, ``stop_hook_active`` in
``Control.recovery``.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeAlias

from stepfold.engine.effects import Effect, Owed
from stepfold.engine.events import (
    AbortKind,
    Answer,
    Command,
    Stop,
    ToolSpec,
    Usage,
)
from stepfold.engine.frozen import frozen
from stepfold.engine.history import History
from stepfold.engine.ids import Ids
from stepfold.engine.messages import Message
from stepfold.engine.phases import Done, Phase, PhaseKind
from stepfold.engine.terminals import End, Terminal


class Continue(enum.StrEnum):
    """Why the loop goes round again.  There are seven reasons."""

    COLLAPSE_DRAIN_RETRY = "collapse_drain_retry"
    REACTIVE_COMPACT_RETRY = "reactive_compact_retry"
    MAX_OUTPUT_TOKENS_ESCALATE = "max_output_tokens_escalate"
    MAX_OUTPUT_TOKENS_RECOVERY = "max_output_tokens_recovery"
    STOP_HOOK_BLOCKING = "stop_hook_blocking"
    TOKEN_BUDGET_CONTINUATION = "token_budget_continuation"
    NEXT_TURN = "next_turn"


class Stay(enum.StrEnum):
    """The loop neither goes round nor ends."""

    STARTED = "started"
    PREPARED = "prepared"
    DRAINED = "drained"
    COMPACTING = "compacting"
    COMPACTED = "compacted"
    COMPACTED_SHORT = "compacted_short"
    COMPACTION_FAILED = "compaction_failed"
    COMPACTOR_RETRY = "compactor_retry"
    REACTING = "reacting"
    FITS = "fits"
    CALLED = "called"
    STREAMING = "streaming"
    RETRYING = "retrying"
    FALLBACK = "fallback"
    RESENDING = "resending"
    ANSWERED = "answered"
    REFUSED_CALL = "refused_call"
    ASKED = "asked"
    STARTED_CALL = "started_call"
    SKIPPED_CALL = "skipped_call"
    ENDED_CALL = "ended_call"
    RUNNING = "running"
    CHECKING = "checking"
    SETTLING = "settling"
    ABORTING = "aborting"
    NOTED = "noted"
    RESUMED = "resumed"
    LATE = "late"


Outcome: TypeAlias = Continue | Terminal | Stay


@frozen
class Transition:
    """Why the previous iteration continued; ``count`` is collapses committed or the attempt."""

    reason: Continue
    count: int = 0


class Tried(enum.StrEnum):
    """What autocompact came to in this iteration."""

    NOT = "not"
    WORKED = "worked"
    FAILED = "failed"


class Withheld(enum.StrEnum):
    """What kind of recoverable failure is kept back while a compaction runs."""

    NOTHING = "nothing"
    TOO_LONG = "too_long"
    MEDIA = "media"


class Head(enum.StrEnum):
    """What the first call that has not begun is, to the scheduler."""

    NONE = "none"
    SAFE = "safe"
    UNSAFE = "unsafe"


@frozen
class Compaction:
    """Autocompact's book: compacted in this run, turns since, consecutive failures."""

    compacted: bool = False
    turns_since: int = 0
    failures: int = 0
    tried: Tried = Tried.NOT  # in this iteration
    retries: int = 0  # too-long summary requests of autocompact since the last continue
    reactive_retries: int = 0  # the same of reactive compaction


@frozen
class Recovery:
    """The one-shot guards and counters of the ladders."""

    output_recoveries: int = 0
    reactive_compacted: bool = False
    output_limit_override: int | None = None
    stop_hook_active: bool = False
    withheld: Withheld = Withheld.NOTHING
    staged: int = 0  # collapses that a drain would commit


@frozen
class Attempts:
    """Tries inside one iteration; ``fallbacks`` is the place of the current model in the chain."""

    fallbacks: int = 0
    retries: int = 0
    overloads: int = 0
    resends: int = 0
    crashed: bool = False  # the first crash in this hook or compaction


@frozen
class Spending:
    """What the run has used: requests and tokens; ``cost`` in the unit of the prices."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    continuations: int = 0
    last_delta: int = 0
    last_total: int = 0


@frozen
class Fill:
    """The view against the window, in tokens; ``floor`` is the fixed part."""

    tokens: int = 0
    floor: int = 0
    last_round: bool = False  # the open compaction request can drop no further round


@frozen
class Batch:
    """The sums of the scheduler over the calls of this answer."""

    total: int = 0
    open: int = 0  # neither ended nor refused
    active: int = 0  # running, or asking for permission
    alone: bool = False  # the active call is unsafe
    head: Head = Head.NONE
    refused: bool = False  # the head gets an error result without running
    asks: bool = False  # the head needs a permission
    stopped: bool = False  # a tool hook asked to stop
    complete: bool = False  # the response is whole
    broken: bool = False  # a shell call failed: no other call of this answer runs
    streaming: bool = False  # the stream is open


@frozen
class Hooks:
    """The sums of the stop hooks: still to ask now, and what was answered."""

    due: int = 0  # hooks that have not spent their blocks
    left: int = 0
    blocking: int = 0
    prevented: bool = False
    blocks_left: int = 0  # blocks that all hooks together may still spend; spent by the continue


@frozen
class Control:
    """All that decides.  Guards read this and the event, never messages."""

    phase: PhaseKind = PhaseKind.IDLE
    turn: int = 1
    transition: Transition | None = None
    stop: Stop = Stop.END_TURN
    abort: AbortKind = AbortKind.NONE
    compaction: Compaction = Compaction()
    recovery: Recovery = Recovery()
    attempts: Attempts = Attempts()
    spending: Spending = Spending()
    fill: Fill = Fill()
    batch: Batch = Batch()
    hooks: Hooks = Hooks()
    queued: int = 0  # commands in the queue
    blocks: int = 0  # whole blocks of the answer so far
    resending: bool = False  # the view ends with a paused answer


@frozen
class ToolContext:
    """Tools on offer, the current model, the query chain (run id) and its depth."""

    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    chain: str = ""
    depth: int = 0
    result_chars: int = 0  # a batch of results under this is within every limit


@frozen
class Collapse:
    """A stored summary for the view's messages up to index ``through``."""

    through: int
    summary: str


@frozen
class Side:
    """What runs beside the loop and joins when it is there."""

    queue: tuple[Command, ...] = ()
    prefetched: tuple[str, ...] = ()
    summary: str | None = None  # a batch summary that came while an answer streams
    summary_id: int = 0
    last_calls: tuple[tuple[str, str], ...] = ()  # (name, input) of the last batch
    repeats: int = 0
    tools_changed: tuple[ToolSpec, ...] | None = None
    extra: tuple[Message, ...] = ()  # what tools brought while a server-side call was open


@frozen
class Layers:
    """What the context layers have done to this view."""

    collapses: tuple[Collapse, ...] = ()  # staged, oldest first
    committed: int = 0
    edits: tuple[str, ...] = ()  # call ids handed to the server's cache edits
    clearable: tuple[str, ...] = ()  # answered calls of clearable tools, not yet edited, oldest first
    edits_pending: bool = False  # the last request carried new edits
    staging: int = 0  # where the span that is being summarised ends, 0 if none is


@frozen
class Ledger:
    """Effects that nothing has answered, and the next id."""

    owed: tuple[Owed, ...] = ()
    next_id: int = 1


@frozen
class Book:
    """
    What is counted and remembered beside the messages.

    ``task_spent`` is the tokens of views left behind by compactions,
    ``task_remaining`` what the task budget sends since the last one;
    ``hook_blocks`` is spent per hook of ``Config.stop_hooks`` in this run.
    """

    seed: int = 0
    usage: Usage = Usage()
    hook_blocks: tuple[int, ...] = ()
    last_answer_ms: int | None = None
    warned: bool = False
    task_spent: int = 0
    task_remaining: int | None = None


@frozen
class Data:
    """What requests are made of, and what outlives a run."""

    messages: History[Message] = History()
    tool_context: ToolContext = ToolContext()
    pending_tool_summary: int | None = None
    ledger: Ledger = Ledger()
    side: Side = Side()
    layers: Layers = Layers()
    book: Book = Book()
    used_ids: Ids = Ids()


@frozen
class State:
    """One instant of a run: what decides, where it is, what it carries; ``now_ms`` never falls."""

    control: Control
    phase: Phase
    data: Data
    now_ms: int = 0

    @property
    def end(self) -> End | None:
        """How the run ended, or None while it lives."""
        return self.phase.end if isinstance(self.phase, Done) else None


@frozen
class Entered:
    """A junction was entered: the event of rows that need nothing from outside."""


@frozen
class Late:
    """An answer whose effect is no longer outstanding, or was answered already."""

    event: Answer


class Move(NamedTuple):
    """What a row makes of a state; ``payload`` is that of a continue.  Lives for one row only."""

    control: Control
    phase: Phase
    data: Data
    effects: tuple[Effect, ...] = ()
    payload: int = 0


Step: TypeAlias = tuple[State, tuple[Effect, ...]]


# What every step builds: see stepfold.engine.frozen.
