"""
Effects: orders to the world, data only.

An effect with an ``id`` is owed an answer that carries this id (a model call:
many, up to its end).  The others are told and forgotten.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from stepfold.engine.events import CallStatus, PrefetchKind, ToolSpec
from stepfold.engine.failures import Failure
from stepfold.engine.frozen import frozen
from stepfold.engine.history import History
from stepfold.engine.messages import Block, Message, ResultBlock, ToolUse
from stepfold.engine.terminals import End


@frozen
class TaskBudget:
    """The server-side budget of the task; ``remaining`` None until the first compaction."""

    total: int
    remaining: int | None = None


@frozen
class CallModel:
    """
    Send one request and stream the answer.

    ``messages`` is the view, by reference; ``stepfold.engine.context.request``
    makes the list that goes out.  ``resend`` says that the view ends with a
    paused answer.  ``cleared`` are the call ids whose results the server's
    cache edits shall remove.  ``tool_choice_none`` keeps the tools in the
    request but lets the model call none; ``system`` is the system prompt.
    """

    id: int
    messages: History[Message]
    model: str
    max_output_tokens: int
    tools: tuple[ToolSpec, ...] = ()
    thinking: bool = True
    resend: bool = False
    task_budget: TaskBudget | None = None
    cleared: tuple[str, ...] = ()
    tool_choice_none: bool = False
    system: str = ""


@frozen
class CancelModel:
    """Close the stream; its ``StreamCancelled`` brings what was received."""

    id: int


@frozen
class RunTool:
    """Run one call.  ``input`` is what the tool gets: a hook may have changed it."""

    id: int
    call: ToolUse
    input: str


@frozen
class CancelTool:
    """Stop a running call; its answer, if any, will be late."""

    id: int


@frozen
class Cancel:
    """Stop any other effect, by id."""

    id: int


@frozen
class AskPermission:
    """Ask the hooks before the tool, then the user, about one call."""

    id: int
    call: ToolUse


class CompactReason(enum.StrEnum):
    """Who asked for a compaction."""

    AUTO = "auto"
    REACTIVE = "reactive"


@frozen
class Compact:
    """
    Summarise ``head``; ``tail`` stays as it is behind the summary.

    ``attempt`` counts from 0 the requests of this compaction; rounds were
    dropped from ``head`` where the one before was itself too long.
    ``restore`` is what recent files may take in tokens; ``floor`` the fixed
    part that the estimate of the new view includes.
    """

    id: int
    reason: CompactReason
    head: tuple[Message, ...]
    tail: tuple[Message, ...]
    model: str
    attempt: int = 0
    strip_media: bool = False
    restore: int = 0
    floor: int = 0


@frozen
class StageCollapse:
    """Summarise ``span`` in the background; it ends at index ``through`` of the view."""

    id: int
    span: tuple[Message, ...]
    through: int = 0


@frozen
class RunHook:
    """Ask one stop hook.  ``active`` says that a stop hook has sent the model back in this run."""

    id: int
    hook: str
    active: bool
    messages: History[Message]


@frozen
class Wait:
    """Wait ``ms``, of which ``jitter_ms`` is jitter, before trying again."""

    id: int
    ms: int
    jitter_ms: int = 0


@frozen
class Summarise:
    """Let a small model write one line about a tool batch."""

    id: int
    calls: tuple[ToolUse, ...]
    results: Message


@frozen
class Prefetch:
    """Look for memories or skills beside the run."""

    id: int
    kind: PrefetchKind
    messages: History[Message]


@frozen
class Background:
    """Classification, suggestions, memory extraction: decides nothing, nobody waits for it."""

    messages: History[Message]


class NoticeKind(enum.StrEnum):
    """Notices for people and hosts; none decides anything."""

    CONTEXT_WARNING = "context_warning"
    MANY_TURNS = "many_turns"
    REPAIRED = "repaired"
    HOOK_CRASHED = "hook_crashed"
    HOOK_TIMED_OUT = "hook_timed_out"
    STOP_FAILURE = "stop_failure"
    SNIPPED = "snipped"
    MICROCOMPACTED = "microcompacted"
    COLLAPSED = "collapsed"
    COMPACTED = "compacted"
    COMPACTION_FAILED = "compaction_failed"
    RETRYING = "retrying"
    FALLBACK = "fallback"
    RESENDING = "resending"
    REPEATED_CALL = "repeated_call"
    QUEUE_FULL = "queue_full"
    RESUMED = "resumed"


@frozen
class Notice:
    """Something worth telling; ``count`` is tokens, turns, rounds or ms, as the text says."""

    kind: NoticeKind
    text: str
    count: int = 0


@frozen
class BlockShown:
    """A whole block of the answer to call ``call_id``."""

    call_id: int
    block: Block


@frozen
class CallShown:
    """A tool call ended; ``synthetic`` where the loop and not the tool wrote the result."""

    use_id: str
    status: CallStatus
    content: tuple[ResultBlock, ...] = ()
    synthetic: bool = False
    original_id: str = ""  # the id as the model gave it


@frozen
class MessageShown:
    """A message that joined the view other than through a block or a call."""

    message: Message


@frozen
class ErrorShown:
    """An error that no rung recovered; only the terminal follows."""

    failure: Failure


@frozen
class SummaryShown:
    """What a tool batch did, in one line."""

    summary_id: int
    text: str


@frozen
class Continued:
    """The loop goes round again; ``count`` is the payload (collapses committed, attempt)."""

    reason: str
    count: int = 0
    turn: int = 1


Shown: TypeAlias = BlockShown | CallShown | MessageShown | ErrorShown | SummaryShown | Continued | Notice


@frozen
class Show:
    """Hand something to the consumer."""

    item: Shown


@frozen
class Tombstone:
    """Withdraw what the consumer saw of call ``call_id``."""

    call_id: int


class Mark(enum.StrEnum):
    """What became of queued words so far."""

    STARTED = "started"
    REFUSED = "refused"


@frozen
class MarkCommand:
    """Tell the queue that a command joined or was refused."""

    command_id: str
    mark: Mark


@frozen
class Finish:
    """The run is over."""

    end: End


Owed: TypeAlias = (
    CallModel | RunTool | AskPermission | Compact | StageCollapse | RunHook | Wait | Summarise | Prefetch
)
Effect: TypeAlias = (
    Owed | CancelModel | CancelTool | Cancel | Background | Show | Tombstone | MarkCommand | Finish
)
