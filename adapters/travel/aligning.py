"""Two recordings side by side: where they part, and where they meet again."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, Final, Literal

import attrs
import orjson

from stepfold.adapters.codec import plain_event, plain_start
from stepfold.adapters.recording import Recording
from stepfold.engine.events import Event

MOST: Final = 2_000  # entries between the common ends that are aligned: it costs their square

Kind = Literal["same", "left", "right", "changed"]


@attrs.frozen
class Stretch:
    """
    Entries that belong together.

    Args:
        kind: ``same``; ``left`` or ``right``: only there; ``changed``: others stand in their place.
        left: Numbers of the first and behind the last, counted from 0.
        right: The same in the other recording.
    """

    kind: Kind
    left: tuple[int, int]
    right: tuple[int, int]


@attrs.frozen
class Alignment:
    """
    What two recordings have in common.

    Args:
        header: Fields of what they started from that differ: place, and what stands there in each.
        stretches: All entries of both, in order.
        whole: False: what lies between the common ends is too long, and was not aligned.
    """

    header: tuple[tuple[str, Any, Any], ...]
    stretches: tuple[Stretch, ...]
    whole: bool = True

    @property
    def same(self) -> bool:
        """Whether they do not differ at all, but for times and ids."""
        return not self.header and all(one.kind == "same" for one in self.stretches)


def aligned(left: Recording, right: Recording) -> Alignment:
    """Return how *left* and *right* belong together; times, and the numbers of effects, do not count."""
    one, other = _keys(left.events), _keys(right.events)
    begin = _common(one, other)
    end = _common(one[begin:][::-1], other[begin:][::-1])
    stretches: list[Stretch] = []
    if begin:
        stretches.append(Stretch("same", (0, begin), (0, begin)))
    inner, outer = one[begin : len(one) - end], other[begin : len(other) - end]
    whole = max(len(inner), len(outer)) <= MOST
    if whole:
        stretches += _between(inner, outer, begin)
    else:
        stretches.append(Stretch("changed", (begin, begin + len(inner)), (begin, begin + len(outer))))
    if end:
        stretches.append(Stretch("same", (len(one) - end, len(one)), (len(other) - end, len(other))))
    return Alignment(tuple(_header(left, right)), tuple(stretches), whole)


_KINDS: Final[dict[str, Kind]] = {
    "equal": "same",
    "delete": "left",
    "insert": "right",
    "replace": "changed",
}


def _between(one: Sequence[bytes], other: Sequence[bytes], offset: int) -> list[Stretch]:
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return [
        Stretch(_KINDS[tag], (a + offset, b + offset), (c + offset, d + offset))
        for tag, a, b, c, d in matcher.get_opcodes()
    ]


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _keys(events: Sequence[Event]) -> list[bytes]:
    return [orjson.dumps(without_numbers(plain_event(event))) for event in events]


def without_numbers(plain: dict[str, Any]) -> dict[str, Any]:
    """Return an event without what differs between any two runs."""
    return {key: value for key, value in plain.items() if key not in ("at_ms", "effect_id", "run_id", "seed")}


def _header(left: Recording, right: Recording) -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = []
    one, other = plain_start(left.begun), plain_start(right.begun)
    for key in sorted({*one, *other}):
        here, there = one.get(key), other.get(key)
        if here == there:
            continue
        if isinstance(here, dict) and isinstance(there, dict):
            found += [
                (f"{key}.{name}", here.get(name), there.get(name))
                for name in sorted({*here, *there})
                if here.get(name) != there.get(name)
            ]
        else:
            found.append((key, here, there))
    return found
