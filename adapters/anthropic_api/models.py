"""
What is known of the vendor's models: limits, prices, how they think.

The API itself knows best (``lookup`` asks it); the table is for where there is
no network, and for prices, which the API does not tell.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from stepfold.adapters.anthropic_api.errors import failure_of
from stepfold.adapters.anthropic_api.wire import Wire
from stepfold.engine.config import ModelSpec
from stepfold.engine.failures import Failure, FailureKind

TABLE_DATE: Final = "2026-11-15"  # limits and list prices as published by the vendor around this day
MIN_THINKING_TOKENS: Final = 1_024
MAX_THINKING_TOKENS: Final = 16_000


class Thinks(enum.StrEnum):
    """How a model is told to think."""

    ALWAYS = "always"  # cannot be turned off: "disabled" is refused
    ADAPTIVE = "adaptive"  # "adaptive" or "disabled"
    MANUAL = "manual"  # "enabled" with a budget, off when nothing is said


@attrs.frozen
class Known:
    """
    One model of the table.

    Prices are millionths of a US dollar per million tokens.  Where a price
    depends on the length of the prompt it is that of the long one, so that a
    cost limit stops early rather than late.
    """

    window: int
    max_output: int
    input: int
    output: int
    cache_read: int
    thinks: Thinks


_M: Final = 1_000_000
_K: Final = 1_000
TABLE: Final[Mapping[str, Known]] = {
    "claude-fable-5-2": Known(_M, 128 * _K, 8 * _M, 40 * _M, 200 * _K, Thinks.ALWAYS),
    "claude-mythos-5-2": Known(_M, 128 * _K, 8 * _M, 40 * _M, 200 * _K, Thinks.ALWAYS),
    "claude-fable-5-1": Known(_M, 128 * _K, 10 * _M, 50 * _M, 250 * _K, Thinks.ALWAYS),
    "claude-mythos-5-1": Known(_M, 128 * _K, 10 * _M, 50 * _M, 250 * _K, Thinks.ALWAYS),
    "claude-fable-5": Known(_M, 128 * _K, 10 * _M, 50 * _M, _M, Thinks.ALWAYS),
    "claude-mythos-5": Known(_M, 128 * _K, 10 * _M, 50 * _M, _M, Thinks.ALWAYS),
    "claude-opus-5-5": Known(_M, 128 * _K, 4 * _M, 20 * _M, 200 * _K, Thinks.ALWAYS),
    "claude-opus-5": Known(_M, 128 * _K, 5 * _M, 25 * _M, 500 * _K, Thinks.ADAPTIVE),
    "claude-opus-4-8": Known(_M, 128 * _K, 5 * _M, 25 * _M, 500 * _K, Thinks.ADAPTIVE),
    "claude-opus-4-7": Known(_M, 128 * _K, 5 * _M, 25 * _M, 500 * _K, Thinks.ADAPTIVE),
    "claude-opus-4-6": Known(_M, 128 * _K, 5 * _M, 25 * _M, 500 * _K, Thinks.ADAPTIVE),
    "claude-opus-4-5": Known(200 * _K, 64 * _K, 5 * _M, 25 * _M, 500 * _K, Thinks.MANUAL),
    "claude-sonnet-5-5": Known(_M, 128 * _K, 2 * _M, 10 * _M, 100 * _K, Thinks.ADAPTIVE),
    "claude-sonnet-5": Known(_M, 128 * _K, 2 * _M, 10 * _M, 200 * _K, Thinks.ADAPTIVE),
    "claude-sonnet-4-6": Known(_M, 128 * _K, 3 * _M, 15 * _M, 300 * _K, Thinks.ADAPTIVE),
    "claude-sonnet-4-5": Known(200 * _K, 64 * _K, 3 * _M, 15 * _M, 300 * _K, Thinks.MANUAL),
    "claude-haiku-5-5": Known(_M, 128 * _K, 500 * _K, 2_500 * _K, 50 * _K, Thinks.ADAPTIVE),
    "claude-haiku-4-5": Known(200 * _K, 64 * _K, _M, 5 * _M, 100 * _K, Thinks.MANUAL),
}
# Writing to the cache costs this many hundredths of the input price, by how long it lives.
_WRITE_PERCENT: Final[Mapping[str, int]] = {"5m": 125, "1h": 200}
# What may stand round a name: a region and a vendor before it; a date, a version, a mark after it.
_DRESSED: Final = re.compile(
    r"(?:.*[./])?(?P<name>claude-[a-z0-9-]*?)(?:[-@]\d{8})?(?:-v\d+(?::\d+)?)?(?:@\w+)?(?:\[\w+\])?"
)


def known(model: str) -> Known | None:
    """Return what the table knows of *model*, also under a cloud's name (``us.anthropic.NAME-v1:0``)."""
    found = _DRESSED.fullmatch(model)
    return TABLE.get(found["name"]) if found else None


def spec(model: str, cache: str | None = "5m") -> ModelSpec | None:
    """Return limits and prices of *model* from the table, or None; *cache* is how long the cache lives."""
    found = known(model)
    if found is None:
        return None
    write = found.input * _WRITE_PERCENT.get(cache or "5m", 200) // 100
    prices = (found.input, found.output, found.cache_read, write)
    return ModelSpec(model, found.window, found.max_output, *prices)


async def lookup(client: Any, model: str, cache: str | None = "5m") -> ModelSpec | Failure:
    """
    Return limits and prices of *model*: limits from the API, prices from the table.

    Where the API cannot be asked the table answers; a model that neither
    knows, or that the API says does not exist, is a failure.
    """
    table = spec(model, cache)
    try:
        info = await client.models.retrieve(model)
    except Exception as error:
        failure = failure_of(error)
        if failure is None and not isinstance(error, AttributeError):  # a cloud's client may have no models
            raise
        if failure is not None and failure.kind is FailureKind.NOT_FOUND:
            return failure
        return table or failure or Failure(FailureKind.NOT_FOUND, f"nothing is known of the model {model!r}")
    if not hasattr(info, "max_input_tokens"):  # whoever answers there is not the API
        return Failure(FailureKind.INVALID, "what came back describes no model")
    base = table or ModelSpec(model, 200_000, 64_000)
    return attrs.evolve(
        base,
        context_window_tokens=info.max_input_tokens or base.context_window_tokens,
        max_output_tokens=info.max_tokens or base.max_output_tokens,
    )


def thinking(model: str, on: bool, max_tokens: int) -> Wire | None:
    """
    Return what a request says about thinking, None for nothing.

    A model that is not in the table is told nothing: its own default is
    never refused.  A manual budget is half of *max_tokens*, so that an answer fits too.
    """
    found = known(model)
    if found is None:
        return None
    match found.thinks, on:
        case ((Thinks.ALWAYS | Thinks.ADAPTIVE), True):
            return {"type": "adaptive"}
        case Thinks.ADAPTIVE, False:
            return {"type": "disabled"}
        case Thinks.MANUAL, True:
            budget = min(max_tokens // 2, MAX_THINKING_TOKENS)
            return {"type": "enabled", "budget_tokens": budget} if budget >= MIN_THINKING_TOKENS else None
        case _:
            return None
