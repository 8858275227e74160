"""What a run can cost, how it is counted in the orders of the engine, and what is known of its maximum."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from stepfold.engine.config import SUMMARY_RESERVE_TOKENS, Config, ModelSpec
from stepfold.engine.effects import CallModel, Compact, Effect, RunHook, Wait
from stepfold.engine.state import State
from stepfold.engine.terminals import Terminal

PRICE_UNIT: Final = 1_000_000  # prices are in millionths of a currency unit per million tokens


class Quantity(enum.StrEnum):
    """What is counted."""

    MODEL_CALLS = "model_calls"  # requests: retries, re-sends, fallbacks and compactions included
    TOOL_ROUNDS = "tool_rounds"  # answers whose tools were run and answered
    COMPACTIONS = "compactions"  # requests to the compactor
    HOOK_RUNS = "hook_runs"
    WAITS_MS = "waits_ms"  # back-off before a retry
    OUTPUT_TOKENS = "output_tokens"  # what the limits of all requests allow together
    COST = "cost"  # in millionths of a currency unit, every window full


Costs: TypeAlias = Mapping[Quantity, int]
NOTHING: Final[Costs] = dict.fromkeys(Quantity, 0)


class Sure(enum.StrEnum):
    """How much is known of a maximum."""

    REACHED = "reached"  # no run costs more, and a run that costs it was played
    COMPUTED = "computed"  # no run costs more; a run that costs it is too long to be played
    AT_MOST = "at most"  # no run costs more; what the played run costs is less
    ENDLESS = "no bound"  # a run can cost any number; the words say which limit is missing
    UNKNOWN = "unknown"  # the words say what is not known


@attrs.frozen
class Maximum:
    """
    What is known of one quantity.

    Args:
        quantity: What is counted.
        sure: How sure ``most`` is.
        most: The most that a run can cost, or a turn where ``sure`` is ENDLESS; None where unknown.
        seen: What the played run cost, None where none was played.
        words: What is missing, or why it is not sure.
    """

    quantity: Quantity
    sure: Sure
    most: int | None = None
    seen: int | None = None
    words: str = ""


def prices_known(spec: ModelSpec) -> bool:
    """Return whether a model has the prices that every request has to pay."""
    return spec.input_price is not None and spec.output_price is not None


def request_cost(spec: ModelSpec, output_tokens: int) -> int:
    """
    Return the most that one request with this output limit can cost, rounded up; 0 without prices.

    Prompt and answer share the window; the prompt is paid at the dearest of
    the prices of input.  The answer is as long as it may be where that costs
    more, else empty.
    """
    if spec.input_price is None or spec.output_price is None:
        return 0
    inputs = (spec.input_price, spec.cache_read_price, spec.cache_creation_price)
    dearest = max(price for price in inputs if price is not None)
    window = spec.context_window_tokens
    longest = min(output_tokens, window)
    totals = [out * spec.output_price + (window - out) * dearest for out in (0, longest)]
    return -(-max(totals) // PRICE_UNIT)


def summary_limit(spec: ModelSpec) -> int:
    """Return the output limit of a request that writes a summary."""
    return min(SUMMARY_RESERVE_TOKENS, spec.max_output_tokens)


def costs_of(effects: Iterable[Effect], before: State, after: State, config: Config) -> dict[Quantity, int]:
    """Return what one step costs, from its orders; a quantity that costs nothing is left out."""
    found: dict[Quantity, int] = {}

    def add(quantity: Quantity, amount: int) -> None:
        if amount:
            found[quantity] = found.get(quantity, 0) + amount

    models = {spec.name: spec for spec in config.all_models}
    for effect in effects:
        match effect:
            case CallModel():
                spec, limit = models[effect.model], effect.max_output_tokens
            case Compact():
                spec = models[effect.model]
                limit = summary_limit(spec)
                add(Quantity.COMPACTIONS, 1)
            case RunHook():
                add(Quantity.HOOK_RUNS, 1)
                continue
            case Wait():
                add(Quantity.WAITS_MS, effect.ms)
                continue
            case _:
                continue
        add(Quantity.MODEL_CALLS, 1)
        add(Quantity.OUTPUT_TOKENS, limit)
        add(Quantity.COST, request_cost(spec, limit))
    add(Quantity.TOOL_ROUNDS, int(_round_ended(before, after)))
    return found


def _round_ended(before: State, after: State) -> bool:
    """A turn is spent, or none is left for what was just answered."""
    if after.end is not None and after.end.reason is Terminal.MAX_TURNS:
        return True
    return before.control.turn < after.control.turn


def summed(one: Costs, other: Costs) -> dict[Quantity, int]:
    """Return both together."""
    return {quantity: one.get(quantity, 0) + other.get(quantity, 0) for quantity in Quantity}
