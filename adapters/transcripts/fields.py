"""Fields of records that anybody may have written: of the wanted type, or as if they were not there."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def text(value: Any, key: str) -> str:
    """Return the text of a field; "" where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def whole(value: Any, key: str) -> int | None:
    """Return the whole number of a field."""
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return found if type(found) is int else None


def nested(value: Any, *keys: str) -> dict[str, Any]:
    """Return the object at the end of *keys*; an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def rows(value: Any, key: str) -> list[Any]:
    """Return the list of a field; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def time_ms(value: Any) -> int | None:
    """Return a time since the epoch in ms: of ISO 8601 text, or of a number of seconds or ms."""
    if isinstance(value, str):
        try:
            return round(datetime.fromisoformat(value).timestamp() * 1_000)
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
        return None
    return round(value if value > 1e11 else value * 1_000)
