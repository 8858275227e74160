"""The keys of Config in a TOML file, the same wherever one holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from stepfold.adapters.toml.reader import Table
from stepfold.engine.config import MOST, PRICES, Config, ConfigError, HookSpec, ModelSpec, Thresholds

OFF: Final = "off"
KEYS: Final = tuple(field.name for field in attrs.fields(Config) if field.init)
OPTIONAL: Final = frozenset(
    field.name for field in attrs.fields(Config) if field.init and "None" in str(field.type)
)
TABLES: Final = ("models", "stop_hooks")  # read by the functions below
MODEL_KEYS: Final = tuple(field.name for field in attrs.fields(ModelSpec))
ONE_TO_START: Final = "a whole number >= 1"


def values_of(table: Table, *others: str) -> dict[str, Any]:
    """
    Return the keywords of Config that *table* gives, ``stop_hooks`` left out.

    Args:
        table: The table that has them.
        others: Keys of the table that are none of Config.
    """
    values: dict[str, Any] = {}
    for key, value in table.values.items():
        if key in others or key == "stop_hooks":
            continue
        if key == "models":
            values[key] = unique(table, key, [_model(each) for each in table.tables(key, *MODEL_KEYS)])
        elif value == OFF and key in OPTIONAL:
            values[key] = None
        elif key == "fallback_models" and isinstance(value, list):
            values[key] = table.texts(key)
        else:
            values[key] = value
    return values


def unique(table: Table, key: str, named: Iterable[Any]) -> tuple[Any, ...]:
    """Return what was read from the tables *key*; refuse a name that is there twice."""
    found: dict[str, Any] = {}
    for index, each in enumerate(named):
        if each.name in found:
            path = (*table.path, key, index, "name")
            table.source.refuse(path, f"{each.name!r} is there twice", "a name of its own")
        found[each.name] = each
    return tuple(found.values())


def hook_of(table: Table) -> HookSpec:
    """Return a stop hook as Config knows it."""
    return HookSpec(table.text("name", empty=False), table.whole("max_blocks", 1, 1))


def _model(table: Table) -> ModelSpec:
    return ModelSpec(
        table.text("name", empty=False),
        table.whole("context_window_tokens", None, 1),
        table.whole("max_output_tokens", None, 1),
        *(table.whole_or_none(price) for price in PRICES),
    )


def config_of(table: Table, values: dict[str, Any]) -> Config:
    """
    Return the Config of *values*; what it refuses is refused where it stands in *table*.

    A window that answers alone would fill is refused too: Config takes it, since
    whoever calls the engine by hand may want to see every run end at once.
    """
    try:
        config = Config(**values)
    except ConfigError as error:
        known = error.key in table.values
        problem = error.problem if known else f"{error.key}: {error.problem}"
        table.refuse(error.key if known else "", problem, error.allowed)
    if not config.nested:
        for spec, limits in zip(config.all_models, config.thresholds, strict=True):
            if limits.effective < 1:
                _refuse_window(table, spec, limits)
    return config


def without_prices(values: dict[str, Any]) -> dict[str, Any]:
    """Return *values* with prices for every model: those that a file lacks may come from elsewhere."""
    if values.get("max_cost") is None:
        return values
    plain = Config(**{**values, "max_cost": None})
    priced = (attrs.evolve(spec, input_price=0, output_price=0) for spec in plain.all_models)
    return {**values, "models": tuple(priced)}


def _refuse_window(table: Table, spec: ModelSpec, limits: Thresholds) -> None:
    least = limits.window - limits.effective + 1
    problem = f"{spec.name!r} has a window of {limits.window} tokens, all of it kept free for the answer"
    allowed = f"a whole number >= {least} and <= {MOST}"
    for index, given in enumerate(table.values.get("models", ())):
        if given["name"] == spec.name:
            path = (*table.path, "models", index, "context_window_tokens")
            table.source.refuse(path, problem, allowed)
    key = "context_window_tokens"
    table.refuse(key if key in table else "", problem, allowed)
