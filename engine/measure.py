"""
The measure: what falls with every continue and every inner retry (specification, section 5).

A lexicographic tuple of integers >= 0, most significant first.  A row may
reset only places behind the one that it spends, so with a finite
``max_turns`` every run ends, whatever the world does.  That it falls is
watched at every step of the explorations and of the tests, and proved for all
values of the limits (docs/verification.md, "All values of the limits").
"""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.phases import PhaseKind
from stepfold.engine.state import Continue, Control, Tried

# From an event to the next; within one phase the last places fall.
_RANK: Final = {
    PhaseKind.DONE: 0,
    PhaseKind.IDLE: 0,
    PhaseKind.UNWINDING: 1,
    PhaseKind.ABORTING: 2,
    PhaseKind.SETTLING: 3,
    PhaseKind.CHECKING: 4,
    PhaseKind.RUNNING: 5,
    PhaseKind.SCHEDULING: 6,
    PhaseKind.REACTING: 7,
    PhaseKind.SAMPLING: 8,
    PhaseKind.CALLING: 9,
    PhaseKind.WAITING: 10,
    PhaseKind.COMPACTING: 11,
    PhaseKind.FITTING: 12,
    PhaseKind.PREPARING: 13,
}
PLACES: Final = (
    "turns",
    "hook_blocks",
    "budget",
    "reactive",
    "recoveries",
    "escalation",
    "drain",
    "fallbacks",
    "resends",
    "retries",
    "autocompact_retries",
    "reactive_retries",
    "autocompact",
    "rank",
    "within",
)


def measure(control: Control, config: Config) -> tuple[int, ...]:
    """
    Return the measure of *control*: one integer >= 0 for each of ``PLACES``.

    With ``max_turns`` None the first place is constant: between two turns the
    rest falls, over all of them nothing does.
    """
    recovery, attempts, book = control.recovery, control.attempts, control.compaction
    limit = 1 if config.nested else config.max_turns
    drained = control.transition is not None and control.transition.reason is Continue.COLLAPSE_DRAIN_RETRY
    return (
        0 if limit is None else max(0, limit + 1 - control.turn),
        control.hooks.blocks_left,
        budget_left(control, config),
        int(not recovery.reactive_compacted),
        config.max_output_recoveries - recovery.output_recoveries,
        int(recovery.output_limit_override is None),
        int(not drained),
        len(config.all_models) - 1 - attempts.fallbacks,
        config.max_resends - attempts.resends,
        config.max_retries - attempts.retries,
        config.max_compactor_retries - book.retries,
        config.max_compactor_retries - book.reactive_retries,
        int(book.tried is Tried.NOT),
        _RANK[control.phase],
        _within(control),
    )


def budget_left(control: Control, config: Config) -> int:
    """
    Return how many token-budget continuations may still come at most.

    The first few are free; after that the last two deltas may not both be
    small, so every second one costs ``budget_delta_tokens`` of the 90%.
    """
    budget = config.token_budget_tokens
    if budget is None or config.sub_agent:
        return 0
    spent = control.spending
    free = max(0, config.min_budget_continuations - spent.continuations)
    room = max(0, -(-9 * budget // 10) - spent.last_total)
    worth = 2 * -(-room // config.budget_delta_tokens)
    fading = int(spent.last_delta >= config.budget_delta_tokens)
    return free + worth + fading + 1


def _within(control: Control) -> int:
    """What falls inside one phase: hooks to ask, calls to begin and to end, one crash, one drain."""
    crash = int(not control.attempts.crashed)
    hooks, batch = control.hooks.left, control.batch
    if control.phase in (PhaseKind.SCHEDULING, PhaseKind.RUNNING):
        return 2 * batch.open
    if control.phase is PhaseKind.CHECKING:
        return 2 * hooks + crash
    if control.phase is PhaseKind.FITTING:
        return int(control.recovery.staged > 0)
    if control.phase in (PhaseKind.COMPACTING, PhaseKind.REACTING):
        return crash
    if control.phase is PhaseKind.ABORTING:
        return 2 * batch.active + int(batch.streaming)
    return 0
