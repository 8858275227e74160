"""A canonical form of anything the engine holds, and its hash: equal contents, equal digests."""

from __future__ import annotations

import enum
import hashlib
from functools import cache
from typing import Any, Final

import attrs
import orjson

from stepfold.engine.history import History

BIG: Final = 1 << 63  # a sum can be more than JSON holds, though none of its parts is


def digest(value: object) -> str:
    """Return the SHA-256 of ``canonical(value)``: states, effects, events, Config, under any hash seed."""
    return hashlib.sha256(orjson.dumps(canonical(value))).hexdigest()


def canonical(value: object) -> Any:
    """Return *value* as JSON data: every class by name, sets sorted, a history as one list."""
    kind: type[Any] = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if type(value) is int:
        return value if -BIG <= value < BIG else {"$int": hex(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, History | tuple | list):
        return [canonical(item) for item in value]
    if isinstance(value, frozenset | set):
        return {"$set": sorted((canonical(item) for item in value), key=orjson.dumps)}
    if attrs.has(kind):
        return {"$type": kind.__name__} | {name: canonical(getattr(value, name)) for name in _names(kind)}
    raise TypeError(f"{value!r} has no canonical form")


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind) if field.init)
