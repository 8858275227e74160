"""A call failed."""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.events import (
    StreamFailed,
)
from stepfold.engine.failures import RETRYABLE, TOO_LONG, FailureKind
from stepfold.engine.guards.answer import drainable, reactable
from stepfold.engine.guards.facts import AnyEvent
from stepfold.engine.guards.spending import requests_spent_after
from stepfold.engine.state import Control

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
MEDIA_TOO_LARGE: Final = FailureKind.MEDIA_TOO_LARGE
OVERLOADED: Final = FailureKind.OVERLOADED


def too_long(c: Control, e: StreamFailed, k: Config) -> bool:
    """The prompt is too long, as 400 or 413."""
    return e.failure.kind in TOO_LONG


def too_long_drainable(c: Control, e: StreamFailed, k: Config) -> bool:
    """Too long, and a drain may help."""
    return too_long(c, e, k) and drainable(c, e, k)


def too_long_reactable(c: Control, e: StreamFailed, k: Config) -> bool:
    """Too long, and reactive compaction may help."""
    return too_long(c, e, k) and reactable(c, e, k)


def too_long_barred(c: Control, e: StreamFailed, k: Config) -> bool:
    """Too long, a compaction may help, but no request may leave."""
    return too_long_reactable(c, e, k) and requests_spent_after(c, e.usage, k)


def media_too_large(c: Control, e: StreamFailed, k: Config) -> bool:
    """An image or document exceeds a maximum."""
    return e.failure.kind is MEDIA_TOO_LARGE


def media_reactable(c: Control, e: StreamFailed, k: Config) -> bool:
    """Media too large, and reactive compaction (which strips media) may help."""
    return media_too_large(c, e, k) and reactable(c, e, k)


def media_barred(c: Control, e: StreamFailed, k: Config) -> bool:
    """Media too large, a compaction may help, but no request may leave."""
    return media_reactable(c, e, k) and requests_spent_after(c, e.usage, k)


def _fallback_left(c: Control, k: Config) -> bool:
    return not k.nested and c.attempts.fallbacks + 1 < len(k.all_models)


def overloaded_thrice(c: Control, e: StreamFailed, k: Config) -> bool:
    """The third overload in a row, and a fallback model is left."""
    return (
        e.failure.kind is OVERLOADED
        and c.attempts.overloads + 1 >= k.overloads_before_fallback
        and _fallback_left(c, k)
    )


def wait_too_long(c: Control, e: StreamFailed, k: Config) -> bool:
    """The server wants a longer wait than is allowed."""
    wait = e.failure.retry_after_ms
    return e.failure.kind in RETRYABLE and wait is not None and wait > k.max_retry_after_ms


def wait_too_long_replaceable(c: Control, e: StreamFailed, k: Config) -> bool:
    """The wait is too long, and a fallback model is left."""
    return wait_too_long(c, e, k) and _fallback_left(c, k)


def retries_left(c: Control, e: AnyEvent, k: Config) -> bool:
    """This iteration and model may try again."""
    return not k.nested and c.attempts.retries < k.max_retries


def retryable(c: Control, e: StreamFailed, k: Config) -> bool:
    """The failure passes with time, and a retry is left."""
    return e.failure.kind in RETRYABLE and retries_left(c, e, k)
