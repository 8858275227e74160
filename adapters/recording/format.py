"""The lines of a recording, and what they are read into (docs/recordings.md)."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TypeAlias

import attrs
import orjson

from stepfold.adapters.codec import SCHEMA, CodecError, canonical, plain_start
from stepfold.effects.ports import Start
from stepfold.engine import Config, State, start
from stepfold.engine.events import Event

FORMAT: Final = 1
MOST_BYTES: Final = 64 << 20  # of one line: longer ones are neither written nor read
NO_HEADER: Final = "it is no recording (wanted a header with the key 'stepfold')"
HEADER_KEYS: Final = (
    "stepfold",
    "schema",
    "version",
    "config_hash",
    "prompt",
    "keeps",
    "forked_from",
    "config",
    "messages",
    "tools",
    "collapses",
)
ENTRY_KEYS: Final = frozenset({"n", "event", "answers", "continued", "ended", "effects", "state"})
DELTA_KEYS: Final = frozenset({"d", "effect_id", "at_ms", "delta"})
OUTCOMES: Final = "outcomes"
DIGESTS: Final = "digests"
DELTAS: Final = "deltas"
REDACTED: Final = "redacted"
KEEPS: Final = (DELTAS, DIGESTS, OUTCOMES, REDACTED)

Outcome: TypeAlias = dict[str, Any]
"""What a step came to, by the keys that its entry has: answers, continued, ended, effects, state."""


class RecordingError(ValueError):
    """A file is no recording, or a damaged one; the text names file and line."""


@attrs.frozen
class Header:
    """
    What a recording tells of itself.

    Args:
        schema: Of its lines, as they were written.
        version: Of the package that wrote it; "" where it does not tell.
        config_hash: SHA-256 of the Config's canonical form; "" where it does not tell.
        keeps: What it holds beside events: ``deltas``, ``digests``, ``outcomes``; ``redacted`` says that
            texts were replaced.
        forked_from: The recording that its beginning comes from: its ``sha``, and how many entries; None:
            it is none's fork.
        sha: SHA-256 of the header line as it stands in the file, its line break left out; "": it was
            read from none.
    """

    schema: int = SCHEMA
    version: str = ""
    config_hash: str = ""
    keeps: tuple[str, ...] = ()
    forked_from: dict[str, Any] | None = None
    sha: str = attrs.field(default="", eq=False)


@attrs.frozen
class KeptDelta:
    """A piece of a stream: before which entry it came (counted from 1), when, of which effect, and what."""

    before: int
    effect_id: int
    at_ms: int
    delta: dict[str, Any]


@attrs.frozen
class Recording:
    """
    A recording.

    Args:
        begun: What its first run started from.
        events: In order.
        length: Bytes of the file up to the end of the last whole line.
        torn: Bytes behind that: a line that was being written when the machine or the process died.
        header: What it tells of itself.
        outcomes: What each entry tells of its step; an empty one tells nothing.
    """

    begun: Start
    events: tuple[Event, ...]
    length: int = 0
    torn: int = 0
    header: Header = Header()
    outcomes: tuple[Outcome, ...] = ()

    def state(self) -> State:
        """Return the state before the first event; ``fold(events, state(), begun.config)`` replays it."""
        return start(self.begun.messages, self.begun.tools, self.begun.collapses)


@cache
def package_version() -> str:
    """Return the version of this package; "0" where it is not installed."""
    try:
        return version("stepfold")
    except PackageNotFoundError:
        return "0"


def header_line(
    begun: Start,
    *,
    keeps: tuple[str, ...] = (),
    forked_from: dict[str, Any] | None = None,
) -> bytes:
    """Return the first line of a recording; raises ``CodecError`` where it does not go into JSON."""
    told: dict[str, Any] = {"stepfold": FORMAT, "schema": SCHEMA, "version": package_version()}
    told["config_hash"] = config_hash(begun.config)
    if keeps:
        told["keeps"] = sorted(keeps)
    if forked_from is not None:
        told["forked_from"] = forked_from
    return line_of(told | plain_start(begun))


def config_hash(config: Config) -> str:
    """Return the SHA-256 of *config* in its canonical form; raises ``CodecError``."""
    return hashlib.sha256(line_of(canonical(config))[:-1]).hexdigest()


def event_line(number: int, json: bytes, outcome: Outcome | None = None) -> bytes:
    """Return the line of event *number*, counted from 1, with what its step came to."""
    if not outcome:
        return b'{"n":%d,"event":%b}\n' % (number, json)
    return b'{"n":%d,"event":%b,%b' % (number, json, line_of(outcome)[1:])


def delta_line(kept: KeptDelta) -> bytes:
    """Return the line of a piece of a stream; raises ``CodecError``."""
    return line_of({"d": kept.before, "effect_id": kept.effect_id, "at_ms": kept.at_ms, "delta": kept.delta})


def line_of(value: dict[str, Any]) -> bytes:
    """Return *value* as a line; raises ``CodecError`` where it does not go into JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as problem:  # lone surrogates, integers of more than 64 bits
        raise CodecError(f"it does not go into JSON: {problem}") from problem
