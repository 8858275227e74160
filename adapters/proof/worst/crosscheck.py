"""The closed forms held against the exhaustive search: a few small configs, each limit at work in some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.proof.verdict import Check, Status
from stepfold.adapters.proof.worst.closed import closed_forms
from stepfold.adapters.proof.worst.quantities import Costs
from stepfold.adapters.proof.worst.search import STATES_MAX, Endless, TooLarge, longest
from stepfold.engine.config import Config, HookSpec, ModelSpec
from stepfold.engine.state import Continue

NAME: Final = "worst case"
NOT_HERE: Final = Continue.COLLAPSE_DRAIN_RETRY  # nothing is staged before the runs that are counted
MAIN: Final = ModelSpec("main", 100_000, 20_000, 1_000_000, 5_000_000)
SECOND: Final = attrs.evolve(MAIN, name="second")
FULL: Final[dict[str, Any]] = {"reactive_compact": True, "autocompact": True}
RAISED: Final[dict[str, Any]] = {"escalated_output_tokens": 2_000}
HOOKS: Final[dict[str, Any]] = {"stop_hooks": (HookSpec("a", 2), HookSpec("b", 1))}


def least(**more: Any) -> Config:
    """Return a config with every limit at its least and every layer off, but for *more*."""
    values: dict[str, Any] = {
        "models": (MAIN, SECOND),
        "default_output_tokens": 1_000,
        "escalated_output_tokens": 1_000,
        "max_turns": 1,
        "max_model_calls": None,
        "max_output_recoveries": 0,
        "max_compactor_retries": 0,
        "max_retries": 0,
        "max_resends": 0,
        "collapse": False,
        "reactive_compact": False,
        "autocompact": False,
        "jitter_percent": 0,
        "max_answer_blocks": 2,
        **more,
    }
    return Config(**values)


CONFIGS: Final[tuple[Config, ...]] = (
    least(),
    least(max_turns=3, max_retries=2),
    least(max_turns=2, max_retries=2, max_retry_after_ms=600, max_resends=1, fallback_models=("second",)),
    least(max_turns=2, max_compactor_retries=1, **FULL),
    least(max_turns=2, max_output_recoveries=2, **RAISED, **HOOKS),
    least(token_budget_tokens=1_200, **HOOKS),
    least(max_turns=3, max_compactor_retries=1, max_model_calls=9, **FULL),
    least(max_turns=2, max_retries=1, max_output_recoveries=1, max_model_calls=7, **FULL, **RAISED),
    least(max_turns=2, max_retries=1, max_resends=1, max_model_calls=5, fallback_models=("second",)),
    least(max_model_calls=4, **HOOKS),
    least(source="compact", max_retries=2, **HOOKS),
)


def crosscheck(
    told: Callable[[str, int, int], None], configs: tuple[Config, ...] = CONFIGS, limit: int = STATES_MAX
) -> Check:
    """Compare both on *configs*; one line a difference, and one a continue that no shipped config takes."""
    found, reached = list[str](), set[Continue]()
    for place, config in enumerate(configs):
        told(NAME, place, len(configs))
        try:
            searched = longest(config, limit)
            found += _differences(config, searched.costs)
            reached |= searched.reached
        except TooLarge:
            words = f"the limit of {limit} states was hit with {_given(config)}"
            return Check(NAME, Status.UNKNOWN, words)
        except Endless:
            found.append(f"a circle that costs something, with {_given(config)}")
    if configs is CONFIGS:
        missing = [each for each in Continue if each not in reached and each is not NOT_HERE]
        found += [f"the search never takes {each}: what it costs is not known" for each in missing]
    words = f"closed forms and exhaustive search agree on every maximum of {len(configs)} small configs"
    return Check(NAME, Status.FAILED if found else Status.PROVED, words, tuple(found))


def _differences(config: Config, searched: Costs) -> Iterator[str]:
    closed = closed_forms(config)
    for quantity, most in searched.items():
        if quantity in closed and closed[quantity] != most:
            words = f"the closed form says {closed[quantity]}, the search {most}"
            yield f"{quantity}: {words}, with {_given(config)}"


def _given(config: Config) -> str:
    plain = least()
    changed = [
        f"{field.name} = {getattr(config, field.name)!r}"
        for field in attrs.fields(Config)
        if field.init and getattr(config, field.name) != getattr(plain, field.name)
    ]
    return ", ".join(changed) or "the least limits"
