"""
The ladders, each with the turns, and one exploration where all of them meet.
"""

from __future__ import annotations

from typing import Final

from stepfold.adapters.proof.environment import World, failed
from stepfold.adapters.proof.explore import Slice
from stepfold.adapters.proof.worlds.facts import (
    AUTOCOMPACT,
    BLOCKING,
    COMPACTED,
    FULL_WINDOW,
    HUGE,
    NOT_COMPACTED,
    SAFE,
    closes,
    rounds,
    small,
)
from stepfold.engine.config import HookSpec
from stepfold.engine.events import (
    AbortKind,
    HookVerdict,
    Stop,
    StreamFailed,
)
from stepfold.engine.failures import Failure, FailureKind

LADDERS: Final[tuple[Slice, ...]] = (
    Slice(
        name="answers",
        about="truncated, refused, paused and clean answers; hooks; budget; turns",
        config=small(stop_hooks=(HookSpec("a", 2),), token_budget_tokens=HUGE),
        world=World(
            blocks=True,
            calls=(SAFE,),
            closes=closes(*(stop for stop in Stop if stop is not Stop.WINDOW_EXCEEDED)),
            aborts=(AbortKind.HARD,),
            deaths=False,
        ),
    ),
    Slice(
        name="context",
        about="what fills the window: staged collapses, autocompact, reactive compaction, media",
        config=small(collapse=True, reactive_compact=True, autocompact=True),
        world=World(
            blocks=True,
            calls=(SAFE,),
            closes=(*closes(Stop.END_TURN, prompts=(10, AUTOCOMPACT, BLOCKING)), FULL_WINDOW),
            fails=failed(FailureKind.PROMPT_TOO_LONG, FailureKind.MEDIA_TOO_LARGE),
            compacted=(COMPACTED[0], *COMPACTED[2:]),
            not_compacted=NOT_COMPACTED,
            aborts=(),
        ),
        messages=rounds(4),
        staged=True,
    ),
    Slice(
        name="short history",
        about="compactions that can drop no round",
        config=small(reactive_compact=True, autocompact=True, fixed_prompt_tokens=0),
        world=World(
            calls=(SAFE,),
            closes=(*closes(prompts=(10, AUTOCOMPACT, BLOCKING)), FULL_WINDOW),
            fails=failed(FailureKind.PROMPT_TOO_LONG, FailureKind.REQUEST_TOO_LARGE),
            compacted=COMPACTED,
            not_compacted=NOT_COMPACTED,
        ),
    ),
    Slice(
        name="failures",
        about="retries, waits, overloads, fallbacks, re-sends, crashes, truncated answers",
        config=small(fallback_models=("second", "third")),
        world=World(
            blocks=True,
            calls=(SAFE,),
            closes=closes(Stop.END_TURN, Stop.TOOL_USE, Stop.MAX_TOKENS, Stop.PAUSE_TURN),
            fails=(
                *failed(FailureKind.TRANSPORT, FailureKind.OVERLOADED, FailureKind.INVALID),
                StreamFailed(0, Failure(FailureKind.RATE_LIMITED, retry_after_ms=HUGE), shown=True),
            ),
            aborts=(AbortKind.SUBMIT,),
        ),
    ),
    Slice(
        name="everything",
        about="all ladders in one run, each with its first rungs",
        config=small(
            collapse=True,
            reactive_compact=True,
            stop_hooks=(HookSpec("a", 2),),
            token_budget_tokens=HUGE,
            fallback_models=("second",),
        ),
        world=World(
            calls=(SAFE,),
            closes=closes(Stop.END_TURN, Stop.TOOL_USE, Stop.MAX_TOKENS),
            fails=failed(FailureKind.PROMPT_TOO_LONG, FailureKind.OVERLOADED),
            compacted=COMPACTED[:1],
            not_compacted=NOT_COMPACTED[2:],
            verdicts=(HookVerdict.PASS, HookVerdict.BLOCK),
            aborts=(),
            deaths=False,
        ),
        messages=rounds(4),
        staged=True,
    ),
)
