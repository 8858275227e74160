"""
Events: facts from the world, in the past tense.  One is one step.

Each carries ``at_ms``; an answer also carries ``effect_id``, the id of the
effect it answers.  Facts about a call are worked out at the border.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from stepfold.engine.failures import Failure
from stepfold.engine.frozen import frozen
from stepfold.engine.messages import Block, Message, ResultBlock


class Stop(enum.StrEnum):
    """Why the model stopped, in the API's words; anything unknown is ``OTHER``."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    WINDOW_EXCEEDED = "model_context_window_exceeded"
    REFUSAL = "refusal"
    PAUSE_TURN = "pause_turn"
    COMPACTION = "compaction"
    OTHER = "other"


class Verdict(enum.StrEnum):
    """What the permission rules say of a call: deny > ask > allow."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Interrupt(enum.StrEnum):
    """What a submit abort does to a running call."""

    WAIT = "wait"
    CANCEL = "cancel"


class CallStatus(enum.StrEnum):
    """How a call ended; exactly one, never rewritten."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class HookVerdict(enum.StrEnum):
    """What a stop hook answered."""

    PASS = "pass"
    BLOCK = "block"
    PREVENT = "prevent"
    CRASH = "crash"
    TIMEOUT = "timeout"


class AbortKind(enum.StrEnum):
    """How the user stopped the run; ``NONE`` in a run that was not."""

    NONE = "none"
    SUBMIT = "submit"
    HARD = "hard"


class PrefetchKind(enum.StrEnum):
    """What was looked for beside the run."""

    MEMORIES = "memories"
    SKILLS = "skills"


@frozen(slots=True)
class Usage:
    """Tokens that the API reported for one response: integers >= 0, cumulative, not increments."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Everything on the input side, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_creation_tokens


@frozen(slots=True)
class CallFacts:
    """
    What the border knows of one call (specification, section 6).

    ``problem`` holds the words for the model where the tool is unknown, the
    input invalid or the call denied by rule.
    """

    known: bool = True
    valid: bool = True
    safe: bool = False
    verdict: Verdict = Verdict.ALLOW
    interrupt: Interrupt = Interrupt.WAIT
    idempotent: bool = False
    shell: bool = False
    problem: str = ""


@frozen
class HookStop:
    """A hook before or after a tool asked to stop the run."""

    hook: str
    words: str = ""


@frozen
class ToolSpec:
    """
    A tool on offer.  Traits are named like MCP's hints.

    ``input_schema`` is JSON text; ``wire`` the JSON text of a whole definition
    for a tool of the server's own.  ``max_result_chars`` None is infinite.
    """

    name: str
    description: str = ""
    input_schema: str = '{"type":"object"}'
    wire: str = ""
    max_result_chars: int | None = 50_000
    clearable: bool = False
    read_only: bool = False


@frozen
class Command:
    """Words queued by the user while a run goes on."""

    id: str
    content: tuple[Block, ...]


@frozen
class RunStarted:
    """The user sent a prompt.  The only source of outside ids: run id and jitter seed."""

    prompt: tuple[Block, ...]
    run_id: str = "run"
    seed: int = 0
    at_ms: int = 0


@frozen(slots=True)
class BlockCompleted:
    """One block of the answer is whole.  ``facts`` is given for a ``ToolUse``."""

    effect_id: int
    block: Block
    facts: CallFacts | None = None
    at_ms: int = 0


@frozen(slots=True)
class StreamClosed:
    """
    The answer ended as the API ends answers.

    ``reason`` is the raw stop reason; ``open_text`` text of a block that began
    and was never closed; ``cleared_tokens`` what the server's context edits
    really removed; ``details`` the words of a refusal.
    """

    effect_id: int
    stop: Stop
    reason: str = ""
    usage: Usage | None = None
    open_text: str = ""
    shown: bool = False
    cleared_tokens: int = 0
    details: str = ""
    at_ms: int = 0


@frozen
class StreamFailed:
    """The call failed, before or in its stream; ``shown`` says whether the consumer saw anything of it."""

    effect_id: int
    failure: Failure
    usage: Usage | None = None
    open_text: str = ""
    shown: bool = False
    at_ms: int = 0


@frozen
class StreamCancelled:
    """The call was cancelled by ``CancelModel``; brings what had been received."""

    effect_id: int
    usage: Usage | None = None
    open_text: str = ""
    shown: bool = False
    at_ms: int = 0


@frozen(slots=True)
class ToolEnded:
    """
    A tool call ended: completed, failed (raised, timed out) or cancelled by itself.

    ``stop`` is set where a hook of the tool asked to stop; ``messages`` are
    further user messages that the tool wants after the results.
    """

    effect_id: int
    content: tuple[ResultBlock, ...] = ()
    status: CallStatus = CallStatus.COMPLETED
    stop: HookStop | None = None
    messages: tuple[Message, ...] = ()
    at_ms: int = 0


@frozen
class PermissionAnswered:
    """Hooks before the tool and the user's callback have spoken; ``input`` is a changed input (JSON text)."""

    effect_id: int
    allowed: bool
    words: str = ""
    input: str | None = None
    stop: HookStop | None = None
    at_ms: int = 0


@frozen
class Compacted:
    """The compactor made a summary.  ``tokens`` is the estimate of the whole new view."""

    effect_id: int
    summary: str
    tokens: int
    attachments: tuple[Message, ...] = ()
    usage: Usage | None = None
    at_ms: int = 0


@frozen
class CompactionFailed:
    """The compactor gave no usable summary."""

    effect_id: int
    failure: Failure
    usage: Usage | None = None
    at_ms: int = 0


@frozen
class CollapseStaged:
    """A span was summarised in the background; ``summary`` None says that it failed."""

    effect_id: int
    summary: str | None
    at_ms: int = 0


@frozen
class HookAnswered:
    """A stop hook answered, crashed or timed out."""

    effect_id: int
    verdict: HookVerdict
    words: str = ""
    at_ms: int = 0


@frozen
class WaitElapsed:
    """A back-off is over."""

    effect_id: int
    at_ms: int = 0


@frozen
class SummaryReady:
    """The small model summarised a tool batch; None says that it failed."""

    effect_id: int
    summary: str | None
    at_ms: int = 0


@frozen
class Prefetched:
    """Memories or skills were found; no text says that there are none."""

    effect_id: int
    texts: tuple[str, ...] = ()
    at_ms: int = 0


@frozen
class ToolsChanged:
    """The host offers other tools from the next request on."""

    tools: tuple[ToolSpec, ...]
    at_ms: int = 0


@frozen
class CommandQueued:
    """The user queued words; they join after the next tool batch."""

    command: Command
    at_ms: int = 0


@frozen
class AbortRequested:
    """The user stopped the run."""

    kind: AbortKind
    at_ms: int = 0


@frozen
class Resumed:
    """A new process took up the log."""

    at_ms: int = 0


StreamEnd: TypeAlias = StreamClosed | StreamFailed | StreamCancelled
Answer: TypeAlias = (
    BlockCompleted
    | StreamClosed
    | StreamFailed
    | StreamCancelled
    | ToolEnded
    | PermissionAnswered
    | Compacted
    | CompactionFailed
    | CollapseStaged
    | HookAnswered
    | WaitElapsed
    | SummaryReady
    | Prefetched
)
Event: TypeAlias = Answer | RunStarted | ToolsChanged | CommandQueued | AbortRequested | Resumed
