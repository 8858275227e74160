"""One recording folded again: no model, no tool, no clock, and nothing outside is touched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from stepfold.adapters.recording import (
    Entries,
    Fingerprints,
    Header,
    Outcome,
    Recording,
    RecordingError,
    outcome_of,
)
from stepfold.adapters.recording.comparing import differ
from stepfold.adapters.recording.format import config_hash, package_version
from stepfold.adapters.recording.reading import opened
from stepfold.effects.ports import Start
from stepfold.engine import State, UnexpectedEvent, start, step
from stepfold.engine.effects import Continued, Effect, Show
from stepfold.engine.events import Event, RunStarted
from stepfold.engine.messages import texts
from stepfold.engine.terminals import End

UNFIT: Final = "cannot happen there"


@attrs.define
class FoldedRun:
    """One run of a recording; no end where it was never finished."""

    prompt: str
    transitions: list[Continued] = attrs.field(factory=list)
    end: End | None = None


@attrs.frozen
class Divergence:
    """
    The first place where today's code and a recording part.

    Args:
        entry: Its number, counted from 1.
        field: Where in it: ``effects[0].model``, ``continued``, ``ended``, ``answers``, ``state``; for an
            event that cannot happen, the field that ties it to what came before.
        recorded: What the recording has there; for an event that cannot happen, the event.
        now: What comes of it today; None: nothing.
        words: Why it cannot happen; "" where it can.
        cause: What may be behind it.
    """

    entry: int
    field: str
    recorded: Any
    now: Any
    words: str
    cause: str

    @property
    def unfit(self) -> bool:
        """Whether the event cannot happen there at all."""
        return bool(self.words)


@attrs.define
class Folded:
    """
    What a recording comes to.

    Args:
        path: The file.
        begun: What its first run started from.
        header: What it tells of itself.
        state: The last state.
        runs: Its runs, in order.
        events: How many it holds, up to where it went wrong.
        compared: How many entries told what their step came to.
        torn: Bytes of a torn last line that was left out.
        divergence: Where it parted from what it tells.
    """

    path: str
    begun: Start
    header: Header
    state: State
    runs: list[FoldedRun] = attrs.field(factory=list)
    events: int = 0
    compared: int = 0
    torn: int = 0
    divergence: Divergence | None = None

    @property
    def ok(self) -> bool:
        """Whether the recording replays, and comes to what it tells."""
        return self.divergence is None


def fold_recording(path: str | Path) -> Folded:
    """Fold one recording; raises ``RecordingError`` where the file cannot be read."""
    with opened(path) as file:
        entries = Entries(file, str(path))
        begun = entries.begun
        state = start(begun.messages, begun.tools, begun.collapses)
        folded = Folded(str(path), begun, entries.header, state)
        _fold(folded, entries)
        folded.torn = entries.torn
    return folded


def fold_again(recording: Recording, name: str) -> Folded:
    """Fold a recording that was read; *name* stands for its file."""
    folded = Folded(name, recording.begun, recording.header, recording.state(), torn=recording.torn)
    _fold(folded, zip(recording.events, recording.outcomes, strict=True))
    return folded


def _fold(folded: Folded, entries: Iterable[tuple[Event, Outcome]]) -> None:
    config, prints = folded.begun.config, Fingerprints()
    state, number = folded.state, 0
    for event, told in entries:
        number += 1
        try:
            after, effects = step(state, event, config)
        except UnexpectedEvent as error:
            field = "effect_id" if hasattr(event, "effect_id") else "$type"
            folded.divergence = Divergence(number, field, None, None, str(error), _cause(folded))
            break
        if told:
            folded.compared += 1
            now = outcome_of(state, event, after, effects, prints, digests="state" in told)
            if now != told:
                folded.divergence = _parted(folded, number, told, now)
                break
        folded.state = state = after
        _note(folded, event, effects)
        if folded.runs and after.end is not None:
            folded.runs[-1].end = after.end
    folded.events = number


def _note(folded: Folded, event: Event, effects: tuple[Effect, ...]) -> None:
    if type(event) is RunStarted:
        folded.runs.append(FoldedRun(texts(event.prompt)))
    for effect in effects:
        if type(effect) is Show and type(effect.item) is Continued and folded.runs:
            folded.runs[-1].transitions.append(effect.item)


def _parted(folded: Folded, number: int, told: Outcome, now: Outcome) -> Divergence:
    """Return the first field that differs, the plainest ones first."""
    for key in ("answers", "continued", "ended", "effects", "state"):
        one, other = ({key: each[key]} if key in each else {} for each in (told, now))
        found = differ(one, other, "", times=True)
        if found is not None:
            place, recorded, today = found
            return Divergence(number, place, _bounded(recorded), today, "", _cause(folded))
    raise AssertionError("outcomes that differ have a field that differs")


def _bounded(value: Any) -> Any:
    """Return what a recording has somewhere, as it is; in words where no program could print it."""
    try:
        orjson.dumps(value)
    except TypeError:
        return "what is nested too deep to be shown"
    return value


def _cause(folded: Folded) -> str:
    """Return what may be behind a divergence."""
    header, here = folded.header, package_version()
    if header.config_hash and header.config_hash != config_hash(folded.begun.config):
        return "the config in the header is not the one that the run had: its hash differs"
    if not header.version:
        return "it does not tell which version wrote it; the code may have changed since"
    if header.version != here:
        return f"it was written by version {header.version}, and this is {here}"
    return "version and config are the same: the engine's code was changed since, or the file was"


def lies(folded: Folded) -> bool:
    """Whether the recording holds an event that cannot happen, though this very version wrote it."""
    found = folded.divergence
    return found is not None and found.unfit and folded.header.version == package_version()


def whole_recording(path: str | Path) -> Recording:
    """
    Return a recording whose events fit together.

    Raises:
        RecordingError: It cannot be read, or an event cannot happen where it stands.
    """
    from stepfold.adapters.recording import read_recording

    recording = read_recording(path)
    state = recording.state()
    for number, event in enumerate(recording.events, 1):
        try:
            state, _ = step(state, event, recording.begun.config)
        except UnexpectedEvent as error:
            raise RecordingError(f"{path}, entry {number}: it {UNFIT}: {error}") from error
    return recording
