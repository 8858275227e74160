"""
What a step came to, in a form whose size does not depend on the history.

Small values stand as they are; texts, rows and messages stand as a
fingerprint.  Fingerprints are taken part by part and remembered by identity:
what a step shares with the one before it costs nothing again.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, get_args

import attrs

from stepfold.adapters.recording.format import Outcome
from stepfold.engine import State
from stepfold.engine.effects import Continued, Effect, Show, Shown
from stepfold.engine.events import Event
from stepfold.engine.history import CHUNK, History
from stepfold.engine.messages import Message

LITERAL_CHARS: Final = 100  # a text up to this length stands as it is
REMEMBERED: Final = 20_000  # fingerprints of what was met lately; what a step meets again stays
CHUNKS: Final = 4_096  # full chunks of histories that are remembered; then they are taken anew
SIZE: Final = 8  # bytes of a fingerprint


def _snake(kind: type) -> str:
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__)
    return words.lstrip("_")


TAGS: Final[Mapping[type, str]] = MappingProxyType(
    {kind: _snake(kind) for kind in (*get_args(Effect), *get_args(Shown))}
)
"""The names of effects, and of what is shown, in a recording (a test holds them)."""


@cache
def _tag(kind: type[Any]) -> str:
    return TAGS.get(kind) or _snake(kind)


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Return the names of the fields that make up an object of the class *kind*, and what reads them all."""
    names = tuple(field.name for field in attrs.fields(kind) if field.init)
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda value: tuple(getattr(value, name) for name in names)


class Fingerprints:
    """Takes fingerprints of what the engine holds: equal contents, equal fingerprints."""

    def __init__(self) -> None:
        self._lately: dict[int, tuple[object, bytes]] = {}
        self._before: dict[int, tuple[object, bytes]] = {}
        self._chunks: dict[int, tuple[object, bytes]] = {}  # met once in a long while only

    def of(self, value: object) -> str:
        """Return the fingerprint of *value*, in hexadecimal digits."""
        return hashlib.blake2b(_unframed(self._part(value)), digest_size=SIZE).hexdigest()

    def _part(self, value: object) -> bytes:
        """
        Return what stands for *value* in the whole that holds it: short, and different where that is.

        Its length comes first, so that parts in a row are not mistaken for others.
        """
        kind: type[Any] = type(value)
        if kind is str:
            text = value.encode(errors="surrogatepass")  # type: ignore[attr-defined]
            if len(text) <= 2 * SIZE:
                return b"%d:s%b" % (len(text) + 1, text)
            return b"%d:s#%b" % (SIZE + 2, _hash(text))
        if value is None or kind is bool or kind is int:
            return _framed(b"%a" % value)
        if kind is tuple and len(value) == CHUNK:  # type: ignore[arg-type]
            return self._chunk(value, kind)
        name = id(value)
        known = self._lately.get(name)
        if known is None:
            known = self._before.get(name) or (value, self._whole(value, kind))
            if len(self._lately) >= REMEMBERED:
                self._before, self._lately = self._lately, {}
            self._lately[name] = known  # it holds the value, so no other one gets its id
        return known[1]

    def _chunk(self, value: object, kind: type[Any]) -> bytes:
        known = self._chunks.get(id(value))
        if known is None:
            known = (value, self._whole(value, kind))
            if len(self._chunks) >= CHUNKS:
                self._chunks.clear()
            self._chunks[id(value)] = known
        return known[1]

    def _whole(self, value: Any, kind: type[Any]) -> bytes:
        if kind is tuple:
            head, parts = b"t", self._parts(value)
        elif kind is frozenset:
            head, parts = b"f", sorted(self._parts(value), key=_unframed)
        elif isinstance(value, enum.Enum):
            return _framed(b"e" + str(value.value).encode())
        elif attrs.has(kind):
            head, parts = b"a" + kind.__name__.encode(), self._parts(_fields(kind)[1](value))
        else:
            raise TypeError(f"{value!r} has no fingerprint")
        return _framed(head + _hash(b"".join(parts)))

    def _parts(self, values: Iterable[object]) -> list[bytes]:
        known, part = self._lately.get, self._part  # only what is remembered has an id that is found there
        return [found[1] if (found := known(id(value))) is not None else part(value) for value in values]


def _framed(part: bytes) -> bytes:
    return b"%d:%b" % (len(part), part)


def _unframed(part: bytes) -> bytes:
    return part.partition(b":")[2]


def _hash(whole: bytes) -> bytes:
    return hashlib.blake2b(whole, digest_size=SIZE).digest()


def outcome_of(
    before: State,
    event: Event,
    after: State,
    effects: tuple[Effect, ...],
    prints: Fingerprints,
    *,
    digests: bool = False,
) -> Outcome:
    """
    Return what a step came to, as its entry tells it.

    Args:
        before: The state before *event*.
        event: What happened.
        after: The state after it.
        effects: What it ordered.
        prints: Taken over from step to step.
        digests: Whether the whole state stands there, as a fingerprint.
    """
    told: Outcome = {}
    id = getattr(event, "effect_id", None)
    if id is not None:
        for order in before.data.ledger.owed:
            if order.id == id:
                told["answers"] = TAGS[type(order)]
                break
    continued = [
        str(effect.item.reason)
        for effect in effects
        if type(effect) is Show and type(effect.item) is Continued
    ]
    if continued:
        told["continued"] = continued
    if after.end is not None and before.end is not after.end:
        told["ended"] = after.end.reason.value
    told["effects"] = [plain_effect(effect, prints) for effect in effects]
    if digests:
        told["state"] = prints.of(after)
    return told


def plain_effect(effect: Effect, prints: Fingerprints) -> dict[str, Any]:
    """Return *effect* as an entry tells it."""
    plain: dict[str, Any] = _plain(effect, prints)
    return plain


def _plain(value: Any, prints: Fingerprints) -> Any:
    """Return *value* with all that can be long replaced by a fingerprint."""
    kind: type[Any] = type(value)
    if value is None or kind is bool or kind is int:
        return value
    if kind is str:
        return value if len(value) <= LITERAL_CHARS and value.isprintable() else _sha(value, prints)
    if isinstance(value, enum.Enum):
        return value.value
    if kind is Show:
        return {"$type": "show", "item": _plain(value.item, prints)}
    if kind is tuple:
        return {"$n": len(value)} | _sha(value, prints) if value else []
    if kind is History or kind is Message:
        return _sha(value, prints)
    told: dict[str, Any] = {"$type": _tag(value.__class__)}
    names, read = _fields(value.__class__)
    for name, item in zip(names, read(value), strict=True):
        inner = type(item)
        short = inner is str and len(item) <= LITERAL_CHARS and item.isprintable()
        literal = short or item is None or inner is bool or inner is int
        told[name] = item if literal else _plain(item, prints)
    return told


def _sha(value: object, prints: Fingerprints) -> dict[str, Any]:
    return {"$sha": prints.of(value)}
