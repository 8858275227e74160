"""The ten ends of a run, each with its payload (specification, section 4)."""

from __future__ import annotations

import enum
from typing import ClassVar, TypeAlias

from stepfold.engine.events import AbortKind
from stepfold.engine.failures import RETRYABLE, Failure
from stepfold.engine.frozen import frozen


class Terminal(enum.StrEnum):
    """Why the loop ended.  There are ten reasons."""

    COMPLETED = "completed"
    BLOCKING_LIMIT = "blocking_limit"
    PROMPT_TOO_LONG = "prompt_too_long"
    IMAGE_ERROR = "image_error"
    MODEL_ERROR = "model_error"
    ABORTED_STREAMING = "aborted_streaming"
    ABORTED_TOOLS = "aborted_tools"
    STOP_HOOK_PREVENTED = "stop_hook_prevented"
    HOOK_STOPPED = "hook_stopped"
    MAX_TURNS = "max_turns"


class Ending(enum.StrEnum):
    """How a ``completed`` run ended."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    PAUSED = "paused"
    MISSING_CALL = "missing_call"
    OTHER = "other"


class Limit(enum.StrEnum):
    """Which hard limit blocked a request."""

    CONTEXT = "context"
    MODEL_CALLS = "model_calls"
    RUN_TOKENS = "run_tokens"
    COST = "cost"


@frozen
class Completed:
    """The normal end."""

    reason: ClassVar = Terminal.COMPLETED
    ending: Ending
    details: str = ""
    spent_hooks: tuple[str, ...] = ()
    budget_cut_short: bool = False

    @property
    def ok(self) -> bool:
        """True for a whole answer only."""
        return self.ending in (Ending.END_TURN, Ending.STOP_SEQUENCE)

    @property
    def retryable(self) -> bool:
        """Whether the same prompt may do better later."""
        return self.ending is Ending.PAUSED

    @property
    def why(self) -> str:
        """One line for people."""
        hooks = f"; hooks not asked again: {', '.join(self.spent_hooks)}" if self.spent_hooks else ""
        short = "; the token budget was cut short" if self.budget_cut_short else ""
        words = f": {self.details}" if self.details else ""
        return f"completed ({self.ending}){words}{hooks}{short}"


@frozen
class BlockingLimit:
    """A hard limit stood before a request.  ``floor`` is the fixed part if that alone is too big, else 0."""

    reason: ClassVar = Terminal.BLOCKING_LIMIT
    ok: ClassVar = False
    retryable: ClassVar = False
    which: Limit
    estimate: int
    limit: int
    floor: int = 0

    @property
    def why(self) -> str:
        """One line for people."""
        floor = f" (the fixed part alone is {self.floor})" if self.floor else ""
        return f"{self.which} limit: {self.estimate} of {self.limit}{floor}"


@frozen
class PromptTooLong:
    """The prompt stayed too long after every rung."""

    reason: ClassVar = Terminal.PROMPT_TOO_LONG
    ok: ClassVar = False
    retryable: ClassVar = False
    failure: Failure

    @property
    def why(self) -> str:
        """One line for people."""
        return f"prompt too long: {self.failure.message}"


@frozen
class ImageError:
    """Media was rejected and not recovered."""

    reason: ClassVar = Terminal.IMAGE_ERROR
    ok: ClassVar = False
    retryable: ClassVar = False
    failure: Failure

    @property
    def why(self) -> str:
        """One line for people."""
        return f"media rejected: {self.failure.message}"


@frozen
class ModelError:
    """Any other model failure, after ``attempts`` tries."""

    reason: ClassVar = Terminal.MODEL_ERROR
    ok: ClassVar = False
    failure: Failure
    attempts: int

    @property
    def retryable(self) -> bool:
        """Whether the kind of failure passes with time."""
        return self.failure.kind in RETRYABLE

    @property
    def why(self) -> str:
        """One line for people."""
        return f"model failed after {self.attempts} attempts: {self.failure.kind}: {self.failure.message}"


@frozen
class AbortedStreaming:
    """The user aborted before the response was complete, or outside tools."""

    reason: ClassVar = Terminal.ABORTED_STREAMING
    ok: ClassVar = False
    retryable: ClassVar = True
    abort: AbortKind

    @property
    def why(self) -> str:
        """One line for people."""
        return f"aborted by the user ({self.abort}) while the model answered"


@frozen
class AbortedTools:
    """The user aborted while calls of a complete response were open."""

    reason: ClassVar = Terminal.ABORTED_TOOLS
    ok: ClassVar = False
    retryable: ClassVar = True
    abort: AbortKind

    @property
    def why(self) -> str:
        """One line for people."""
        return f"aborted by the user ({self.abort}) while tools ran"


@frozen
class StopHookPrevented:
    """A stop hook forbade continuing."""

    reason: ClassVar = Terminal.STOP_HOOK_PREVENTED
    ok: ClassVar = False
    retryable: ClassVar = False
    hook: str
    words: str = ""

    @property
    def why(self) -> str:
        """One line for people."""
        return f"stop hook {self.hook} prevented continuing: {self.words}"


@frozen
class HookStopped:
    """A hook before or after a tool asked to stop."""

    reason: ClassVar = Terminal.HOOK_STOPPED
    ok: ClassVar = False
    retryable: ClassVar = False
    hook: str
    words: str = ""

    @property
    def why(self) -> str:
        """One line for people."""
        return f"tool hook {self.hook} stopped the run: {self.words}"


@frozen
class MaxTurns:
    """No turn is left; ``turns`` is the count that would have come next (limit + 1)."""

    reason: ClassVar = Terminal.MAX_TURNS
    ok: ClassVar = False
    retryable: ClassVar = False
    turns: int

    @property
    def why(self) -> str:
        """One line for people."""
        return f"no turn left: the next would be number {self.turns}"


End: TypeAlias = (
    Completed
    | BlockingLimit
    | PromptTooLong
    | ImageError
    | ModelError
    | AbortedStreaming
    | AbortedTools
    | StopHookPrevented
    | HookStopped
    | MaxTurns
)
