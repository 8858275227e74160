"""Stop hooks, the token budget, aborts, crashes and the queue."""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    HookAnswered,
    HookVerdict,
    Resumed,
)
from stepfold.engine.guards.facts import AnyEvent
from stepfold.engine.guards.spending import requests_spent
from stepfold.engine.state import Control

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
PREVENT: Final = HookVerdict.PREVENT
BLOCK: Final = HookVerdict.BLOCK


def more_hooks(c: Control, e: AnyEvent, k: Config) -> bool:
    """Another stop hook is to be asked before the decision."""
    return c.hooks.left > 0


def prevented(c: Control, e: AnyEvent, k: Config) -> bool:
    """A stop hook forbids continuing; that wins over a block."""
    return c.hooks.prevented or (isinstance(e, HookAnswered) and e.verdict is PREVENT)


def blocked(c: Control, e: AnyEvent, k: Config) -> bool:
    """A stop hook sends the model back."""
    return c.hooks.blocking > 0 or (isinstance(e, HookAnswered) and e.verdict is BLOCK)


def budget_left(c: Control, e: AnyEvent, k: Config) -> bool:
    """The token budget says go on: under 90%, and not of falling worth."""
    return under_budget(c, k) and not fading(c, k)


def under_budget(c: Control, k: Config) -> bool:
    """Whether a budget is set, is ours to follow, and less than 90% of it is spent."""
    budget = k.token_budget_tokens
    return budget is not None and not k.sub_agent and 10 * c.spending.output_tokens < 9 * budget


def fading(c: Control, k: Config) -> bool:
    """Whether enough continuations were made and both the last two brought little."""
    spent = c.spending
    return (
        spent.continuations >= k.min_budget_continuations
        and spent.output_tokens - spent.last_total < k.budget_delta_tokens
        and spent.last_delta < k.budget_delta_tokens
    )


def harder(c: Control, e: AbortRequested, k: Config) -> bool:
    """A hard abort while a submit abort is under way."""
    return e.kind is AbortKind.HARD and c.abort is AbortKind.SUBMIT


def still_open(c: Control, e: AnyEvent, k: Config) -> bool:
    """The stream or a call is still to come in."""
    return c.batch.streaming or c.batch.active > 0


def response_complete(c: Control, e: AnyEvent, k: Config) -> bool:
    """The response was complete when the user aborted."""
    return c.batch.complete


def crash_barred(c: Control, e: Resumed, k: Config) -> bool:
    """A compaction would be begun again, but no request may leave."""
    return first_crash(c, e, k) and requests_spent(c, e, k)


def first_crash(c: Control, e: Resumed, k: Config) -> bool:
    """The first crash in this hook or compaction."""
    return not c.attempts.crashed


def queue_full(c: Control, e: AnyEvent, k: Config) -> bool:
    """The queue holds as many commands as it may."""
    return c.queued >= k.max_queued_commands
