"""A finding: a run that broke something, as a recording and as a scenario file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import attrs

from stepfold.adapters.codec import CodecError, dump_event
from stepfold.adapters.recording.writing import recording_bytes
from stepfold.adapters.testing.writing.scenario_text import scenario_text
from stepfold.adapters.testing.writing.transcript import course, steps_of, transcript
from stepfold.effects.ports import Start
from stepfold.engine.events import Event, RunStarted


@attrs.frozen
class Finding:
    """
    Where a finding lies.

    Args:
        recording: The events, exactly: for ``stepfold replay``.
        scenario: The same run as data, for ``stepfold check``; None where no prompt began it.
        exact: The scenario, played, takes the course of the recording.
        transitions: Why the loop went round, and how it ended, in order.
        events: How many there are.
    """

    recording: Path
    scenario: Path | None
    exact: bool
    transitions: tuple[str, ...]
    events: int

    def lines(self) -> tuple[str, ...]:
        """Return what is told of it, for people."""
        words = "" if self.exact else " (another order of events; the recording is exact)"
        scenario = "none: no prompt began the run" if self.scenario is None else f"{self.scenario}{words}"
        return (
            f"transitions: {', '.join(self.transitions) or 'none'} ({self.events} events)",
            f"recording:   {self.recording}",
            f"scenario:    {scenario}",
        )


def write_finding(
    folder: Path, name: str, begun: Start, events: Iterable[Event], *, title: str, about: str = ""
) -> Finding:
    """
    Write recording and scenario of a run; what has the same name is replaced.

    Args:
        folder: Made if it is not there.
        name: Of both files, without suffix; what no file name can hold is replaced.
        begun: What the runs of the log started from.
        events: Of the log, in order; those from the first that the engine refuses on are left out.
        title: Of the scenario, one line.
        about: What it shows, for people.

    Returns:
        Where they lie.

    Raises:
        OSError: A file cannot be written; nothing half written is left.
    """
    steps = steps_of(begun, map(written, events))
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "finding"
    recording = folder / f"{stem}.jsonl"
    _replace(recording, recording_bytes(begun, ((one.event, one.state, one.effects) for one in steps)))
    scenario, exact = None, False
    if any(isinstance(one.event, RunStarted) for one in steps):
        made = transcript(begun, steps, title=" ".join(title.split()) or stem, about=about)
        scenario, exact = folder / f"{stem}.toml", made.exact
        _replace(scenario, scenario_text(made.scenario).encode())
    return Finding(recording, scenario, exact, tuple(course(steps)), len(steps))


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_bytes(content)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def written(event: Event) -> Event:
    """Return *event* as a log can hold it: lone surrogates are replaced."""
    try:
        dump_event(event)
    except CodecError:
        return cast(Event, _sound(event))
    return event


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, tuple):
        return tuple(map(_sound, value))
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value)) if field.init]
        changed = {name: _sound(getattr(value, name)) for name in names}
        return attrs.evolve(value, **changed)
    return value
