"""The lines of a recording that is being written, whatever they are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs
import orjson

from stepfold.adapters.codec import CodecError, dump_event, event_from, plain_event, plain_start, start_from
from stepfold.adapters.recording.format import (
    DELTAS,
    DIGESTS,
    MOST_BYTES,
    OUTCOMES,
    REDACTED,
    KeptDelta,
    Outcome,
    Recording,
    delta_line,
    event_line,
    header_line,
    line_of,
)
from stepfold.adapters.recording.outcome import Fingerprints, outcome_of
from stepfold.adapters.recording.redaction import Redact, redacted
from stepfold.effects.ports import Delta, InputDelta, Start, TextDelta, ThinkingDelta
from stepfold.engine import State, UnexpectedEvent, start, step
from stepfold.engine.effects import Effect
from stepfold.engine.events import Event

DELTA_TAGS: Final[Mapping[type, str]] = MappingProxyType(
    {TextDelta: "text_delta", ThinkingDelta: "thinking_delta", InputDelta: "input_delta"}
)


class Writer:
    """
    Makes the lines of one recording.

    A line that was made counts once ``written`` says so: one that could not be
    written is made again with the same number.

    Where texts are redacted, the recording is another run than the one that
    goes on: what its steps come to is found by stepping through the redacted
    events.  Where those no longer fit together, entries tell no outcome from
    there on.

    Args:
        outcomes, digests, deltas, redact: As for ``JsonlLog``.
        kept: What is there already.
    """

    def __init__(
        self, *, outcomes: bool, digests: bool, deltas: bool, redact: Redact | None, kept: Recording | None
    ) -> None:
        self.begun = kept.begun if kept is not None else None
        self._outcomes = outcomes
        self._digests = digests
        self._redact = redact
        self._deltas = deltas
        self._prints = Fingerprints()
        self._count = len(kept.events) if kept is not None else 0
        self._shadow: State | None = None
        self._next: State | None = None
        self._waiting: KeptDelta | None = None
        if redact is not None and outcomes and kept is not None:
            self._shadow = _folded(kept)

    def header(self, begun: Start) -> bytes:
        """Return the header line; raises ``CodecError``."""
        keeps = {
            OUTCOMES: self._outcomes,
            DIGESTS: self._outcomes and self._digests,
            DELTAS: self._deltas,
            REDACTED: self._redact is not None,
        }
        names = tuple(name for name, kept in keeps.items() if kept)
        return _fitting(header_line(self._cleared(begun), keeps=names))

    def begin(self, begun: Start) -> None:
        """Note that the header is written."""
        self.begun = self._cleared(begun)
        if self._redact is not None and self._outcomes:
            self._shadow = start(self.begun.messages, self.begun.tools, self.begun.collapses)

    def taken_up(self, wanted: Start) -> Start:
        """Return what is kept; with the Config that is wanted, if redacted it is the one that is kept."""
        assert self.begun is not None
        if self._redact is not None and self._cleared(wanted).config == self.begun.config:
            return attrs.evolve(self.begun, config=wanted.config)
        return self.begun

    def _cleared(self, begun: Start) -> Start:
        if self._redact is None:
            return begun
        return start_from(redacted(orjson.loads(line_of(plain_start(begun))), self._redact))

    def entry(
        self,
        event: Event,
        before: State | None = None,
        after: State | None = None,
        effects: tuple[Effect, ...] = (),
    ) -> bytes:
        """Return the lines of *event*, and of the deltas before it; raises ``CodecError``."""
        if self.begun is None:
            raise RuntimeError("begin comes before append")
        outcome: Outcome | None = None
        if self._redact is not None:
            event = event_from(redacted(orjson.loads(line_of(plain_event(event))), self._redact))
            outcome = self._shadowed(event)
        elif self._outcomes and before is not None and after is not None:
            outcome = outcome_of(before, event, after, effects, self._prints, digests=self._digests)
        line = _fitting(event_line(self._count + 1, dump_event(event), outcome))
        return (b"" if self._waiting is None else self._plain(self._waiting)) + line

    def _shadowed(self, event: Event) -> Outcome | None:
        before, self._next = self._shadow, None
        if before is None or self.begun is None:
            return None
        try:
            self._next, effects = step(before, event, self.begun.config)
        except UnexpectedEvent:
            return None
        return outcome_of(before, event, self._next, effects, self._prints, digests=self._digests)

    def written(self) -> None:
        """Note that the lines of ``entry`` are written."""
        self._count += 1
        self._waiting = None
        self._shadow, self._next = self._next, None

    def delta(self, effect_id: int, delta: Delta, at_ms: int) -> bytes:
        """
        Return the line of a piece of a stream; b"" where it waits for the rest.

        Where texts are redacted, pieces of one stream are put together first: a
        secret may lie across two.
        """
        tag = DELTA_TAGS[type(delta)]
        plain: dict[str, Any] = {"$type": tag} | attrs.asdict(delta)
        new = KeptDelta(self._count + 1, effect_id, at_ms, plain)
        if self._redact is None:
            return _fitting(delta_line(new))
        old, self._waiting = self._waiting, new
        if old is None:
            return b""
        if (old.effect_id, old.delta["$type"]) != (effect_id, tag):
            return self._plain(old)
        (field,) = plain.keys() - {"$type"}
        self._waiting = attrs.evolve(old, delta=plain | {field: old.delta[field] + plain[field]})
        return b""

    def _plain(self, kept: KeptDelta) -> bytes:
        assert self._redact is not None
        return _fitting(delta_line(attrs.evolve(kept, delta=redacted(kept.delta, self._redact))))


def _fitting(line: bytes) -> bytes:
    """Return *line*; ``CodecError`` where nothing could read it again."""
    if len(line) > MOST_BYTES:
        raise CodecError(
            f"it makes a line of {len(line):,} bytes; a recording has lines of up to {MOST_BYTES:,}"
        )
    return line


def _folded(kept: Recording) -> State | None:
    """Return the state that a redacted recording ends in; None where its events do not fit together."""
    state = kept.state()
    for event in kept.events:
        try:
            state, _ = step(state, event, kept.begun.config)
        except UnexpectedEvent:
            return None
    return state


def recording_bytes(
    begun: Start,
    steps: Iterable[tuple[Event, State, tuple[Effect, ...]]],
    *,
    forked_from: dict[str, Any] | None = None,
    redacted: bool = False,
) -> bytes:
    """
    Return the contents of a recording's file, with what each step came to.

    Args:
        begun: What its first run starts from.
        steps: Each event with the state after it and what it ordered, as ``trace`` yields them.
        forked_from: See ``Header``.
        redacted: Whether it says that its texts are; they are written as they come.

    Raises:
        CodecError: An event does not go into JSON.
    """
    writer = Writer(outcomes=True, digests=False, deltas=False, redact=None, kept=None)
    keeps = (OUTCOMES, REDACTED) if redacted else (OUTCOMES,)
    lines = [_fitting(header_line(begun, keeps=keeps, forked_from=forked_from))]
    writer.begin(begun)
    before = start(begun.messages, begun.tools, begun.collapses)
    for event, after, effects in steps:
        lines.append(writer.entry(event, before, after, effects))
        writer.written()
        before = after
    return b"".join(lines)
