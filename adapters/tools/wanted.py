"""What callers may build tools and guards of: validators that name class and field, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from stepfold.effects.options import TOOLS, shown
from stepfold.engine.events import HookStop
from stepfold.engine.messages import Message

Validator: TypeAlias = Callable[[object, "attrs.Attribute[Any]", Any], None]


def wants(allowed: str, fits: Callable[[Any], bool]) -> Validator:
    """Return a validator that refuses with ``TypeError`` what does not fit."""

    def check(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not fits(value):
            name = f"{type(instance).__name__}: {attribute.name.lstrip('_')}"
            raise TypeError(f"{name} is {shown(value)}; wanted {allowed}")

    return check


def _is_table_of_functions(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) and callable(v) for k, v in value.items())


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


TEXT: Final = wants("a text", lambda value: isinstance(value, str))
TEXT_OR_NOTHING: Final = wants("a text or nothing", lambda value: value is None or isinstance(value, str))
FLAG: Final = wants("True or False", lambda value: type(value) is bool)
FLAG_OR_FUNCTION: Final = wants(
    "True, False or a function (arguments) -> bool", lambda value: type(value) is bool or callable(value)
)
FUNCTION: Final = wants("a function", callable)
FUNCTION_OR_NOTHING: Final = wants("a function or nothing", lambda value: value is None or callable(value))
FUNCTIONS: Final = wants("a table: functions by name", _is_table_of_functions)
TABLE_OR_NOTHING: Final = wants(
    "a table of arguments or nothing", lambda value: value is None or isinstance(value, Mapping)
)
COUNT: Final = wants("a whole number >= 1", _is_count)
COUNT_OR_NOTHING: Final = wants(
    "a whole number >= 1, or nothing (no limit)", lambda value: value is None or _is_count(value)
)
MESSAGES: Final = wants(
    "Message objects of stepfold.engine.messages",
    lambda value: all(isinstance(each, Message) for each in value),
)
STOP_OR_NOTHING: Final = wants(
    "a HookStop of stepfold.engine.events or nothing", lambda value: value is None or type(value) is HookStop
)
TOOLS_PORT: Final = wants(f"{TOOLS.allowed} ({TOOLS.hint})", TOOLS.fits)
