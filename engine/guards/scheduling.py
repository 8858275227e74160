"""Which call may begin, and is the turn over?"""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.events import (
    PermissionAnswered,
)
from stepfold.engine.guards.facts import AnyEvent
from stepfold.engine.state import Control, Head

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
NONE: Final = Head.NONE
SAFE: Final = Head.SAFE
UNSAFE: Final = Head.UNSAFE


def head_skipped(c: Control, e: AnyEvent, k: Config) -> bool:
    """A call waits, but no further call of this answer may run."""
    return c.batch.head is not NONE and (c.batch.stopped or c.batch.broken)


def _may_begin(c: Control, k: Config) -> bool:
    batch = c.batch
    if batch.head is SAFE:
        early = batch.complete or k.streaming_tools
        return early and not batch.alone and batch.active < k.max_parallel_tools
    return batch.head is UNSAFE and batch.complete and batch.active == 0


def head_refused(c: Control, e: AnyEvent, k: Config) -> bool:
    """The next call may begin, but is unknown, invalid or denied."""
    return c.batch.refused and _may_begin(c, k)


def head_asks(c: Control, e: AnyEvent, k: Config) -> bool:
    """The next call may begin once it is permitted."""
    return c.batch.asks and _may_begin(c, k)


def head_starts(c: Control, e: AnyEvent, k: Config) -> bool:
    """The next call may begin."""
    return _may_begin(c, k)


def permitted(c: Control, e: PermissionAnswered, k: Config) -> bool:
    """The call may run, and no hook or failed shell call holds the batch."""
    return e.allowed and e.stop is None and not c.batch.stopped and not c.batch.broken


def stream_open(c: Control, e: AnyEvent, k: Config) -> bool:
    """The answer still streams."""
    return c.batch.streaming


def calls_open(c: Control, e: AnyEvent, k: Config) -> bool:
    """Calls of the answer are open."""
    return c.batch.open > 0


def tool_hook_stopped(c: Control, e: AnyEvent, k: Config) -> bool:
    """A hook before or after a tool asked to stop."""
    return c.batch.stopped


def turns_spent(c: Control, e: AnyEvent, k: Config) -> bool:
    """No turn is left."""
    limit = 1 if k.nested else k.max_turns
    return limit is not None and c.turn + 1 > limit
