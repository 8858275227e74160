"""Faults of rows, of what the continues do to each field, and of what a run counts."""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.engine.state import Stay
from stepfold.engine.terminals import Terminal
from tests.mutants.planting import Planting
from tests.proof.planted.fault import EXPLORER, MATRIX, MEASURE, SECOND_COPY, Fault, Plant, sets

# ---------------------------------------------------------------- rows


def gone(phase: str, event: str, when: str) -> Plant:
    return lambda p: p.drop(phase, event, when)


def swapped(phase: str, event: str, first: str, second: str) -> Plant:
    def plant(p: Planting) -> None:
        one = p.rows.index(p.the_row(phase, event, first))
        two = p.rows.index(p.the_row(phase, event, second))
        p.rows[one], p.rows[two] = p.rows[two], p.rows[one]

    return plant


def other(phase: str, event: str, when: str, **parts: Any) -> Plant:
    def plant(p: Planting) -> None:
        place = p.rows.index(p.the_row(phase, event, when))
        p.rows[place] = attrs.evolve(p.rows[place], **parts)

    return plant


def asks_spent_hooks(p: Planting) -> None:
    p.swap("unspent", lambda old: lambda blocks, k: tuple(range(len(k.stop_hooks))), "moves.hooks")


ROWS = (
    (
        "a late answer",
        "its row is gone in one phase",
        gone("Running", "Late", "always"),
        "Running, Late, row 1",
    ),
    (
        "an abort at rest",
        "its row is gone",
        gone("Done", "AbortRequested", "always"),
        "Done, AbortRequested, row 1",
    ),
    (
        "escalatable",
        "stands behind the resumes",
        swapped("Sampling", "StreamClosed", "escalatable", "resumable"),
        "Sampling, StreamClosed, row 5",
    ),
    (
        "compaction_barred",
        "stands behind what it bars",
        swapped("Fitting", "Entered", "compaction_barred", "compaction_due"),
        "Fitting, Entered, row 2",
    ),
    (
        "turns_spent",
        "ends as another terminal",
        other("Scheduling", "Entered", "turns_spent", outcome=Terminal.COMPLETED),
        "Scheduling, Entered, row 8",
    ),
    (
        "a wait that is over",
        "is told as something else",
        other("Waiting", "WaitElapsed", "always", outcome=Stay.RESUMED),
        "Waiting, WaitElapsed, row 1",
    ),
)

# ---------------------------------------------------------------- the matrix, and what is counted

FIELDS = (
    ("next_turn", "keeps the resumes that were made", "answers", "continues.next_turn.output_recoveries",
     sets("next_turn", "recovery", output_recoveries=lambda c: c.recovery.output_recoveries)),
    ("next_turn", "keeps the higher output limit", "answers", "continues.next_turn.output_limit_override",
     sets("next_turn", "recovery", output_limit_override=lambda c: c.recovery.output_limit_override)),
    ("stop_hook_blocking", "gives reactive compaction back", "blocked after a compaction",
     "continues.stop_hook_blocking.reactive_compacted",
     sets("stop_hook_blocking", "recovery", reactive_compacted=False)),
    ("stop_hook_blocking", "is not remembered", "hooks", "continues.stop_hook_blocking.stop_hook_active",
     sets("stop_hook_blocking", "recovery", stop_hook_active=False)),
    ("reactive_compact_retry", "forgets the breaker's count", "short history",
     "continues.reactive_compact_retry.compaction", sets("reactive_compact_retry", "compaction", failures=0)),
    ("max_output_tokens_recovery", "loses the higher output limit", "answers",
     "continues.max_output_tokens_recovery.output_limit_override",
     sets("max_output_tokens_recovery", "recovery", output_limit_override=None)),
    ("token_budget_continuation", "is not counted", "budget", "continues.token_budget_continuation.ledgers",
     sets("token_budget_continuation", "spending", continuations=lambda c: c.spending.continuations)),
)
COUNTS = (
    ("reactive_compacted", "is never set", MEASURE, "short history", "it rose",
     sets("reactive_compact_retry", "recovery", reactive_compacted=False)),
    ("output_recoveries", "are set back by an escalation", MEASURE, "answers", "it rose",
     sets("max_output_tokens_escalate", "recovery", output_recoveries=-1)),
    ("stop_hook_blocks", "are not spent", MEASURE, "hooks", "",
     sets("stop_hook_blocking", "hooks", blocks_left=lambda c: c.hooks.blocks_left)),
    ("max_blocks of a hook", "a hook is asked though its blocks are spent", EXPLORER, "hooks",
     "blocked 3 times", asks_spent_hooks),
    ("max_retries", "a failed call is not counted", MEASURE, "failures", "it rose",
     sets("wait", "attempts", retries=lambda c: c.attempts.retries)),
)
OTHERS = (
    *(Fault(of, words, SECOND_COPY, "rows", told, plant=plant) for of, words, plant, told in ROWS),
    *(Fault(of, words, MATRIX, where, told, plant=plant) for of, words, where, told, plant in FIELDS),
    *(Fault(of, words, net, where, told, plant=plant) for of, words, net, where, told, plant in COUNTS),
)
