"""Two recordings compared, event by event and field by field."""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.adapters.codec import plain_event, plain_start
from stepfold.adapters.recording.format import Recording


@attrs.frozen
class Difference:
    """
    The first place where two recordings differ.

    Args:
        number: Of the event, counted from 1; 0 is the header.
        field: Where in it, as ``block.input``; "" where one recording has no such event.
        left: What the first one has there; None: nothing.
        right: What the second one has there.
    """

    number: int
    field: str
    left: Any
    right: Any

    def __str__(self) -> str:
        where = "the header" if self.number == 0 else f"event {self.number}"
        return f"{where}{', ' if self.field else ''}{self.field}: {self.left!r} and {self.right!r}"


def compare(left: Recording, right: Recording, *, times: bool = True) -> Difference | None:
    """Return the first difference of two recordings, or None; *times* False: ``at_ms`` does not count."""
    found = differ(plain_start(left.begun), plain_start(right.begun), "", times)
    if found is not None:
        return Difference(0, *found)
    for number, (one, other) in enumerate(zip(left.events, right.events, strict=False), 1):
        if one != other:
            found = differ(plain_event(one), plain_event(other), "", times)
            if found is not None:
                return Difference(number, *found)
    shorter = min(len(left.events), len(right.events))
    if len(left.events) == len(right.events):
        return None
    return Difference(
        shorter + 1,
        "",
        plain_event(left.events[shorter]) if len(left.events) > shorter else None,
        plain_event(right.events[shorter]) if len(right.events) > shorter else None,
    )


def differ(left: Any, right: Any, place: str, times: bool) -> tuple[str, Any, Any] | None:
    """Return where plain data first differ: the place, and what stands there; *place* is their own."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}, key=lambda key: (key != "$type", key)):
            if key == "at_ms" and not times:
                continue
            inner = f"{place}.{key}" if place else key
            if (key in left) != (key in right):
                return inner, left.get(key), right.get(key)
            found = differ(left[key], right[key], inner, times)
            if found is not None:
                return found
        return None
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for index in range(max(len(left), len(right))):
            one = left[index] if index < len(left) else None
            other = right[index] if index < len(right) else None
            found = differ(one, other, f"{place}[{index}]", times)
            if found is not None:
                return found
        return None
    return None if left == right and type(left) is type(right) else (place, left, right)
