"""
What stands beside the ladders: hooks, budget, hard limits, company, nested runs.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.adapters.proof.environment import World, failed
from stepfold.adapters.proof.explore import Slice
from stepfold.adapters.proof.worlds.facts import (
    AUTOCOMPACT,
    BLOCKING,
    CALLS,
    COMPACTED,
    DONE,
    FULL_WINDOW,
    HUGE,
    NOT_COMPACTED,
    SAFE,
    TWO_HOOKS,
    closes,
    rounds,
    small,
)
from stepfold.engine.config import HookSpec
from stepfold.engine.events import (
    AbortKind,
    HookVerdict,
    Stop,
    StreamClosed,
    Usage,
)
from stepfold.engine.failures import FailureKind

LIMITS: Final[dict[str, dict[str, Any]]] = {
    "model calls": {"max_model_calls": 3},
    "run tokens": {"max_run_tokens": HUGE},
    "cost": {"max_cost": HUGE, "max_turns": 1},
}


def limits(name: str, **values: Any) -> Slice:
    """Return the exploration of one hard limit, which may be met before every request there is."""
    spent = Usage(10, HUGE)
    return Slice(
        name=name,
        about=f"the limit of {name}, before every kind of request",
        config=small(reactive_compact=True, autocompact=True, max_output_recoveries=0, **values),
        world=World(
            calls=(SAFE,),
            closes=(
                *closes(prompts=(AUTOCOMPACT,)),
                attrs.evolve(FULL_WINDOW, usage=spent),
                attrs.evolve(CALLS, usage=spent),
            ),
            fails=(
                *failed(FailureKind.PROMPT_TOO_LONG, FailureKind.MEDIA_TOO_LARGE),
                *failed(FailureKind.PROMPT_TOO_LONG, FailureKind.MEDIA_TOO_LARGE, usage=spent),
                *failed(FailureKind.TRANSPORT, usage=spent),
            ),
            compacted=COMPACTED[:1],
            not_compacted=(NOT_COMPACTED[0], attrs.evolve(NOT_COMPACTED[0], usage=spent)),
            aborts=(),
        ),
        messages=rounds(4),
        counters=frozenset({"turn", "model_calls", "compactor", "reactor"}),
    )


OTHERS: Final[tuple[Slice, ...]] = (
    Slice(
        name="hooks",
        about="two stop hooks, every verdict, crashes",
        config=small(stop_hooks=TWO_HOOKS),
        world=World(calls=(SAFE,), closes=(DONE, CALLS), verdicts=tuple(HookVerdict)),
    ),
    Slice(
        name="budget",
        about="the token budget: answers that bring much, little and nothing",
        config=small(token_budget_tokens=1_500),
        world=World(
            calls=(SAFE,),
            closes=tuple(StreamClosed(0, Stop.END_TURN, usage=Usage(1, tokens)) for tokens in (0, 499, 500)),
            aborts=(),
            deaths=False,
        ),
    ),
    *(limits(name, **values) for name, values in LIMITS.items()),
    Slice(
        name="no room",
        about="the fixed part alone is over the limit",
        config=small(fixed_prompt_tokens=BLOCKING, reactive_compact=True, autocompact=True),
        world=World(),
    ),
    Slice(
        name="company",
        about="what crosses the loop in every phase: queued words, other tools, summaries of batches",
        config=small(
            stop_hooks=(HookSpec("a", 1),),
            max_output_recoveries=1,
            max_retries=1,
            tool_summaries=True,
            reactive_compact=True,
            autocompact=True,
        ),
        world=World(
            calls=(SAFE,),
            closes=closes(Stop.END_TURN, Stop.MAX_TOKENS, prompts=(AUTOCOMPACT,)),
            fails=failed(FailureKind.PROMPT_TOO_LONG, FailureKind.TRANSPORT),
            compacted=COMPACTED[:1],
            verdicts=(HookVerdict.PASS, HookVerdict.BLOCK),
            aborts=(AbortKind.SUBMIT,),
            deaths=False,
            company=True,
        ),
    ),
    Slice(
        name="memories",
        about="memories and skills that are found in every phase, or not",
        config=small(
            stop_hooks=(HookSpec("a", 2),),
            prefetch_memories=True,
            prefetch_skills=True,
            reactive_compact=True,
            autocompact=True,
        ),
        world=World(
            calls=(SAFE,),
            closes=closes(Stop.END_TURN, prompts=(AUTOCOMPACT,)),
            fails=failed(FailureKind.PROMPT_TOO_LONG, FailureKind.TRANSPORT),
            compacted=COMPACTED[:1],
            verdicts=(HookVerdict.PASS,),
            aborts=(AbortKind.SUBMIT,),
        ),
    ),
    Slice(
        name="staging",
        about="collapses staged beside the loop, arriving in every phase; one run after another",
        config=small(
            stop_hooks=(HookSpec("a", 2),),
            collapse=True,
            collapse_staging=True,
            reactive_compact=True,
            autocompact=True,
        ),
        world=World(
            calls=(SAFE,),
            closes=closes(Stop.END_TURN, prompts=(BLOCKING,)),
            fails=failed(FailureKind.PROMPT_TOO_LONG, FailureKind.TRANSPORT),
            compacted=COMPACTED[:1],
            not_compacted=NOT_COMPACTED[2:],
            verdicts=(HookVerdict.PASS, HookVerdict.BLOCK),
            aborts=(AbortKind.SUBMIT,),
            again=True,
        ),
        messages=rounds(4),
    ),
    Slice(
        name="nested",
        about="a run that writes a summary: no tools, no layers, no retries",
        config=small(source="compact", stop_hooks=TWO_HOOKS, reactive_compact=True, autocompact=True),
        world=World(
            blocks=True,
            calls=(SAFE,),
            closes=closes(*Stop, prompts=(BLOCKING,)),
            fails=failed(*FailureKind),
        ),
    ),
)
