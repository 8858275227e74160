"""An answer streams in and ends."""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.events import (
    BlockCompleted,
    Stop,
    StreamClosed,
)
from stepfold.engine.guards.facts import AnyEvent, current_model
from stepfold.engine.guards.spending import requests_spent_after
from stepfold.engine.state import Continue, Control

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
WINDOW_EXCEEDED: Final = Stop.WINDOW_EXCEEDED
MAX_TOKENS: Final = Stop.MAX_TOKENS
REFUSAL: Final = Stop.REFUSAL

PAUSES = (Stop.PAUSE_TURN, Stop.COMPACTION)


def answer_overflows(c: Control, e: BlockCompleted, k: Config) -> bool:
    """The answer has as many blocks as one may have."""
    return c.blocks >= k.max_answer_blocks


def a_call(c: Control, e: BlockCompleted, k: Config) -> bool:
    """The block is a client tool call."""
    return e.facts is not None


def drainable(c: Control, e: AnyEvent, k: Config) -> bool:
    """Collapses are staged, and the previous continue was not a drain."""
    return (
        k.collapse
        and not k.nested
        and c.recovery.staged > 0
        and (c.transition is None or c.transition.reason is not Continue.COLLAPSE_DRAIN_RETRY)
    )


def reactable(c: Control, e: AnyEvent, k: Config) -> bool:
    """Reactive compaction is on and unspent."""
    return k.reactive_compact and not k.nested and not c.recovery.reactive_compacted


def window_exceeded(c: Control, e: StreamClosed, k: Config) -> bool:
    """The answer filled the context window."""
    return e.stop is WINDOW_EXCEEDED


def window_drainable(c: Control, e: StreamClosed, k: Config) -> bool:
    """The window is full and a drain may help."""
    return e.stop is WINDOW_EXCEEDED and drainable(c, e, k)


def window_barred(c: Control, e: StreamClosed, k: Config) -> bool:
    """The window is full, a compaction may help, but no request may leave."""
    return e.stop is WINDOW_EXCEEDED and reactable(c, e, k) and requests_spent_after(c, e.usage, k)


def window_reactable(c: Control, e: StreamClosed, k: Config) -> bool:
    """The window is full and reactive compaction may help."""
    return e.stop is WINDOW_EXCEEDED and reactable(c, e, k)


def truncated(c: Control, e: StreamClosed, k: Config) -> bool:
    """The answer hit its output limit."""
    return e.stop is MAX_TOKENS


def escalatable(c: Control, e: StreamClosed, k: Config) -> bool:
    """
    Truncated under the default cap, which the model and the user let us raise once.

    A raise to the cap that is in force already would only repeat the cut.
    """
    return (
        e.stop is MAX_TOKENS
        and not k.nested
        and k.max_output_tokens is None
        and c.recovery.output_limit_override is None
        and k.default_output_tokens < k.escalated_output_tokens
        and current_model(c, k).max_output_tokens >= k.escalated_output_tokens
    )


def resumable(c: Control, e: StreamClosed, k: Config) -> bool:
    """Truncated, with a resume message left."""
    return truncated(c, e, k) and not k.nested and c.recovery.output_recoveries < k.max_output_recoveries


def refused(c: Control, e: StreamClosed, k: Config) -> bool:
    """The model refused."""
    return e.stop is REFUSAL


def paused(c: Control, e: StreamClosed, k: Config) -> bool:
    """The server paused the turn and no client call is open."""
    return e.stop in PAUSES and c.batch.total == 0


def resendable(c: Control, e: StreamClosed, k: Config) -> bool:
    """Paused, with a re-send left."""
    return e.stop in PAUSES and c.batch.total == 0 and not k.nested and c.attempts.resends < k.max_resends


def has_calls(c: Control, e: StreamClosed, k: Config) -> bool:
    """The answer holds whole client calls."""
    return c.batch.total > 0


def hooks_due(c: Control, e: StreamClosed, k: Config) -> bool:
    """A stop hook is registered that has not spent its blocks."""
    return c.hooks.due > 0 and not k.nested
