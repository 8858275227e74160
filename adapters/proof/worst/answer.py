"""What is said of the worst case of a config: each maximum, how sure it is, and the file that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs

from stepfold.adapters.proof.worst.closed import Bound, bounds
from stepfold.adapters.proof.worst.quantities import (
    Maximum,
    Quantity,
    Sure,
    prices_known,
)
from stepfold.adapters.proof.worst.rungs import FOREVER, money_prices, output_prices
from stepfold.adapters.proof.worst.showing.acting import Script, TooLong, act
from stepfold.adapters.proof.worst.showing.cycle import cycle_text
from stepfold.adapters.proof.worst.showing.witness import Witness, witness_of
from stepfold.engine.config import Config

Told = Callable[[str, int, int], None]
NAMES: Final[Mapping[Quantity, str]] = {
    Quantity.MODEL_CALLS: "requests to the model and the compactor",
    Quantity.TOOL_ROUNDS: "rounds of tools",
    Quantity.COMPACTIONS: "requests to the compactor",
    Quantity.HOOK_RUNS: "runs of stop hooks",
    Quantity.WAITS_MS: "time waited before retries",
    Quantity.OUTPUT_TOKENS: "output tokens that the requests allow",
    Quantity.COST: "money, every window full",
}
OPEN: Final = "max_turns and max_model_calls are off; the number is that of one turn"
ABOUT: Final = "A run of this config that comes to the most {what}: {most}."


@attrs.frozen
class Worst:
    """The maxima, in the order of ``Quantity``; the files that show them; what went wrong in playing them."""

    maxima: tuple[Maximum, ...]
    files: Mapping[str, str]
    problems: tuple[str, ...] = ()

    @property
    def ends(self) -> bool:
        """Whether every run ends."""
        return all(one.sure is not Sure.ENDLESS for one in self.maxima)


def computed(config: Config) -> tuple[Maximum, ...]:
    """Return the maxima of *config* from the closed forms alone: nothing is played."""
    return tuple(_computed(config))


def _computed(config: Config) -> Iterator[Maximum]:
    found, one_turn = bounds(config), bounds(attrs.evolve(config, max_turns=1))
    for quantity in Quantity:
        if quantity not in found:
            missing = [spec.name for spec in config.all_models if not prices_known(spec)]
            words = f"models has no input_price and output_price for {', '.join(map(repr, missing))}"
            yield Maximum(quantity, Sure.UNKNOWN, words=words)
        elif found[quantity].most >= FOREVER:
            yield Maximum(quantity, Sure.ENDLESS, one_turn[quantity].most, words=OPEN)
        else:
            yield Maximum(quantity, Sure.COMPUTED, found[quantity].most, words=_remark(quantity, config))


def _remark(quantity: Quantity, config: Config) -> str:
    """Return what a hard limit on what is reported makes of a maximum: the dearest request may go over it."""
    limit, name, prices = config.max_run_tokens, "max_run_tokens", output_prices(config)
    if quantity is Quantity.COST:
        limit, name, prices = config.max_cost, "max_cost", money_prices(config) or prices
    if limit is None or quantity not in (Quantity.OUTPUT_TOKENS, Quantity.COST):
        return ""
    most = limit - 1 + max(prices.answer, prices.raised, prices.summary) if limit else 0
    return f"{name} stops the run under {most + 1} if every request reports its usage"


def worst_case(config: Config, told: Told = lambda name, done, known: None) -> Worst:
    """
    Return the maxima of *config*, with a scenario for each that was played.

    Args:
        config: The config.
        told: Called with ("worst case", quantities done, quantities).
    """
    found, files, problems = bounds(config), dict[str, str](), list[str]()
    played: dict[Script, Witness] = {}
    maxima = []
    for place, one in enumerate(computed(config)):
        told("worst case", place, len(Quantity))
        if one.most and one.sure is Sure.COMPUTED:
            name = f"worst_{one.quantity}.toml"
            one, witness = _shown(one, found[one.quantity], config, played)
            if witness is not None:
                files[name] = witness.text
                problems += [f"{name}: {each}" for each in witness.problems]
        elif one.most == 0:
            one = attrs.evolve(one, sure=Sure.REACHED, seen=0)
        maxima.append(one)
    worst = Worst(tuple(maxima), files, tuple(problems))
    if worst.ends:
        return worst
    text, goes_round = cycle_text(config)
    problems += [] if goes_round else ["cycle.toml: the state changes from turn to turn"]
    return Worst(worst.maxima, {**files, "cycle.toml": text}, tuple(problems))


def _shown(
    one: Maximum, bound: Bound, config: Config, played: dict[Script, Witness]
) -> tuple[Maximum, Witness | None]:
    """Act the plan of *bound* out, play it, and say how sure the maximum is."""
    try:
        script = act(config, bound.plan())
    except TooLong:
        return _too_long(one, config), None
    if script not in played:
        what = NAMES[one.quantity]
        about = ABOUT.format(what=what, most=one.most)
        played[script] = witness_of(config, script, f"worst case: {what}", about)
    witness = played[script]
    seen = witness.costs[one.quantity]
    if seen == one.most:
        return attrs.evolve(one, sure=Sure.REACHED, seen=seen), witness
    words = "the run that was played comes to less"
    return attrs.evolve(one, sure=Sure.AT_MOST, seen=seen, words=words), witness


def _too_long(one: Maximum, config: Config) -> Maximum:
    """Say how sure a maximum is whose run is too long: as sure as that of the config with small limits."""
    few = few_of(config)
    bound = bounds(few)[one.quantity]
    words = "a run that reaches it makes too many requests to be played"
    try:
        reached = act(few, bound.plan()).costs[one.quantity] == bound.most
    except TooLong:
        reached = False
    return attrs.evolve(one, sure=Sure.COMPUTED if reached else Sure.AT_MOST, words=words)


def few_of(config: Config) -> Config:
    """Return *config* with small limits, so that its worst runs are short; what is off stays off."""
    budget = config.token_budget_tokens
    return attrs.evolve(
        config,
        max_turns=min(config.max_turns or 2, 2),
        max_model_calls=None,
        max_retries=min(config.max_retries, 1),
        max_resends=min(config.max_resends, 1),
        max_output_recoveries=min(config.max_output_recoveries, 1),
        max_compactor_retries=min(config.max_compactor_retries, 1),
        fallback_models=config.fallback_models[:1],
        token_budget_tokens=None if budget is None else min(budget, 2 * config.budget_delta_tokens),
        stop_hooks=tuple(
            attrs.evolve(hook, max_blocks=min(hook.max_blocks, 2)) for hook in config.stop_hooks[:2]
        ),
    )
