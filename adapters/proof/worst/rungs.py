"""
The limits of a config as the closed forms need them, and how many trips of the loop they allow.

The words: a *trip* is one way from Preparing to a continue or an end.  A *wide*
stretch is what lies between two continues that give reactive compaction back
(a turn, a continuation of the budget), a *narrow* one what lies between two
that give the output ladder back (those, and a block of a stop hook).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from stepfold.adapters.proof.worst.quantities import prices_known, request_cost, summary_limit
from stepfold.engine.config import SUMMARY_RESERVE_TOKENS, Config, ModelSpec

FOREVER: Final = 10**15  # a limit that is off: more than any other limit lets happen


@attrs.frozen
class Prices:
    """What one request counts: an answer, one with the raised limit, a summary."""

    answer: int
    raised: int
    summary: int


@attrs.frozen(kw_only=True)
class Rungs:
    """How often each thing may happen; ``requests`` and ``turns`` are FOREVER where they are off."""

    runs: bool  # a first request may leave
    turns: int
    requests: int
    tries: int  # of one call, the first included
    sends: int  # re-sends of a paused answer, the first request included
    fallbacks: int
    recoveries: int
    raises: bool
    reacts: bool
    compacts: bool
    asks: int  # requests of one compaction, the first included
    hooks: tuple[int, ...]
    budget: int  # continuations of the token budget
    drains: bool
    waits_ms: tuple[int, ...]

    @property
    def blocks(self) -> int:
        """Blocks of all stop hooks together."""
        return sum(self.hooks)

    @property
    def wide(self) -> int:
        """Wide stretches."""
        return self.turns + self.budget

    @property
    def narrow(self) -> int:
        """Narrow stretches."""
        return self.wide + self.blocks

    @property
    def reactions(self) -> int:
        """Reactive compactions."""
        return self.wide if self.reacts else 0

    @property
    def steady(self) -> int:
        """Trips that no reactive compaction began."""
        return self.narrow * (1 + self.recoveries + self.raises)

    @property
    def trips(self) -> int:
        """All trips; where collapses are staged beside the loop, each may be made again after a drain."""
        trips = self.steady + self.reactions
        return 2 * trips if self.drains else trips

    @property
    def calls_in_a_trip(self) -> int:
        """Requests to the model in one trip, fallbacks not counted."""
        return self.tries * self.sends

    def calls(self) -> int:
        """Return the requests to the model, without any limit on them."""
        return self.trips * self.calls_in_a_trip + self.fallbacks * self.tries

    def summaries(self) -> int:
        """Return the requests to the compactor, without any limit on requests."""
        return self.asks * (self.trips * self.compacts + self.reactions)


def rungs_of(config: Config) -> Rungs:
    """Return the limits of *config*."""
    free, nested = not config.nested, config.nested
    floor = config.fixed_prompt_tokens
    first = config.thresholds[0]
    turns = 1 if nested else config.max_turns
    budget, hooks = budget_continuations(config), tuple(hook.max_blocks for hook in config.stop_hooks)
    return Rungs(
        runs=(nested or floor < first.blocking) and config.max_model_calls != 0,
        turns=FOREVER if turns is None else turns,
        requests=FOREVER if config.max_model_calls is None else config.max_model_calls,
        tries=1 + config.max_retries * free,
        sends=1 + config.max_resends * free,
        fallbacks=(len(config.all_models) - 1) * free,
        recoveries=config.max_output_recoveries * free,
        raises=free and any(raises(spec, config) for spec in config.all_models),
        reacts=config.reactive_compact and free,
        compacts=config.autocompact and free and any(floor < each.autocompact for each in config.thresholds),
        asks=1 + config.max_compactor_retries,
        hooks=hooks if free else (),
        budget=budget,
        drains=config.collapse and config.collapse_staging and free,
        waits_ms=tuple(wait_ms(retry, config) for retry in range(config.max_retries * free)),
    )


def raises(spec: ModelSpec, config: Config) -> bool:
    """Return whether the output limit of a truncated answer of this model is raised once."""
    return (
        config.max_output_tokens is None
        and config.default_output_tokens < config.escalated_output_tokens <= spec.max_output_tokens
    )


def budget_continuations(config: Config) -> int:
    """
    Return how often the token budget can say "go on".

    The first few times whatever was brought; after that every second answer
    has to bring ``budget_delta_tokens``, and all of them less than 90%.
    """
    budget = config.token_budget_tokens
    if budget is None or config.sub_agent:
        return 0
    most = (9 * budget - 1) // 10
    return config.min_budget_continuations + 2 * (most // config.budget_delta_tokens)


def wait_ms(retry: int, config: Config) -> int:
    """Return the longest wait before retry number *retry* (from 0): the server's, or back-off and jitter."""
    base = min(config.backoff_initial_ms << min(retry, 30), config.backoff_max_ms)
    return max(config.max_retry_after_ms, base + base * config.jitter_percent // 100)


def output_prices(config: Config) -> Prices:
    """Return the output tokens that each kind of request allows; of several models the most."""
    return _prices(config, lambda spec, limit: limit)


def money_prices(config: Config) -> Prices | None:
    """Return what each kind of request can cost; None where the price of a model is not known."""
    if not all(map(prices_known, config.all_models)):
        return None
    return _prices(config, request_cost)


def _prices(config: Config, counted: Callable[[ModelSpec, int], int]) -> Prices:
    plain = config.max_output_tokens or config.default_output_tokens
    if config.nested:
        plain = min(config.max_output_tokens or SUMMARY_RESERVE_TOKENS, SUMMARY_RESERVE_TOKENS)
    answers, raised, summaries = list[int](), list[int](), list[int]()
    for spec in config.all_models:
        answers.append(counted(spec, min(plain, spec.max_output_tokens)))
        higher = config.escalated_output_tokens if raises(spec, config) else plain
        raised.append(counted(spec, min(higher, spec.max_output_tokens)))
        summaries.append(counted(spec, summary_limit(spec)))
    return Prices(max(answers), max(*answers, *raised), max(summaries))
