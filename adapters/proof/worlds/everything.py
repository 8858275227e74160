"""
All explorations, and that of a given config.
"""

from __future__ import annotations

import attrs

from stepfold.adapters.proof.canonical import COUNTERS
from stepfold.adapters.proof.environment import World, failed
from stepfold.adapters.proof.explore import Slice
from stepfold.adapters.proof.worlds.beside import OTHERS
from stepfold.adapters.proof.worlds.calls import KINDS, MORE_KINDS, batch
from stepfold.adapters.proof.worlds.facts import (
    COMPACTED,
    NOT_COMPACTED,
    SAFE,
    closes,
    rounds,
)
from stepfold.adapters.proof.worlds.ladders import LADDERS
from stepfold.engine.config import Config
from stepfold.engine.events import (
    HookVerdict,
    Stop,
)
from stepfold.engine.failures import FailureKind


def of_config(config: Config) -> Slice:
    """Return the exploration of *config* as it is, all ladders in one, counters as {left, last}."""
    window = min(config.thresholds, key=lambda each: each.window)
    failing = FailureKind  # an overload is told from another failure only where a fallback is left
    kinds = (failing.PROMPT_TOO_LONG, failing.MEDIA_TOO_LARGE, failing.TRANSPORT, failing.OVERLOADED)
    return Slice(
        name="this config",
        about="the limits of the config, all ladders in one",
        config=config,
        world=World(
            calls=(SAFE,),
            closes=(
                *closes(
                    Stop.END_TURN, Stop.MAX_TOKENS, Stop.PAUSE_TURN, prompts=(max(1, window.autocompact),)
                ),
            ),
            fails=failed(*(kinds if config.fallback_models else kinds[:-1])),
            compacted=COMPACTED[:1],
            not_compacted=(NOT_COMPACTED[0], NOT_COMPACTED[2]),
            verdicts=(HookVerdict.PASS, HookVerdict.BLOCK),
            aborts=(),
            deaths=False,
        ),
        messages=rounds(4),
        staged=config.collapse_staging,
        counters=frozenset(COUNTERS),
    )


def all_slices(config: Config) -> tuple[Slice, ...]:
    """Return every exploration, that of *config* last."""
    pairs = attrs.evolve(batch((*KINDS, *MORE_KINDS), 2), name="pairs")
    return (*LADDERS, *OTHERS, batch(), pairs, of_config(config))
