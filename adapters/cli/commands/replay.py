"""``stepfold replay``: fold recordings again, print what they come to, and find where two differ."""

from __future__ import annotations

import json as jsons
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from stepfold.adapters.cli.exits import FAILED, OK, Problem
from stepfold.adapters.cli.terminal.words import end_line, line_of, transition_line
from stepfold.adapters.codec import digest
from stepfold.adapters.recording import Recording, RecordingError, compare, read_recording
from stepfold.effects import trace
from stepfold.engine import State, UnexpectedEvent
from stepfold.engine.effects import Continued, Effect, Show
from stepfold.engine.events import Event, RunStarted
from stepfold.engine.messages import texts
from stepfold.engine.terminals import End


@attrs.define
class FoldedRun:
    """One run of a recording; no end where it was never finished."""

    prompt: str
    transitions: list[Continued] = attrs.field(factory=list)
    end: End | None = None


@attrs.define
class Folded:
    """
    What a recording comes to.

    Args:
        path: The file.
        recording: What it holds.
        runs: Its runs, in order.
        state: The last state.
        problem: Where it went wrong: number of the event from 1, field, words.
    """

    path: str
    recording: Recording
    state: State
    runs: list[FoldedRun] = attrs.field(factory=list)
    problem: tuple[int, str, str] | None = None

    @property
    def ok(self) -> bool:
        """Whether the recording replays."""
        return self.problem is None

    def data(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        data: dict[str, Any] = {"recording": self.path, "ok": self.ok, "events": len(self.recording.events)}
        data["torn"] = self.recording.torn
        data["runs"] = [_run_data(run) for run in self.runs]
        data["digest"] = digest(self.state)
        if self.problem is not None:
            data["event"], data["field"], data["problem"] = self.problem
        return data


def fold_recording(path: str | Path) -> Folded:
    """Fold one recording; raises ``RecordingError`` where the file cannot be read."""
    recording = read_recording(path)
    folded = Folded(str(path), recording, recording.state())
    number = 0
    try:
        for event, state, effects in trace(recording.events, folded.state, recording.begun.config):
            number += 1
            folded.state = state
            _note(folded, event, effects)
            if folded.runs and state.end is not None:
                folded.runs[-1].end = state.end
    except UnexpectedEvent as error:
        folded.problem = (number + 1, _field_of(recording.events[number]), line_of(str(error), 300))
    return folded


def _field_of(event: Event) -> str:
    """Return the field that ties an event to what came before."""
    return "effect_id" if hasattr(event, "effect_id") else "$type"


def _note(folded: Folded, event: Event, effects: tuple[Effect, ...]) -> None:
    if isinstance(event, RunStarted):
        folded.runs.append(FoldedRun(texts(event.prompt)))
    for effect in effects:
        if isinstance(effect, Show) and isinstance(effect.item, Continued) and folded.runs:
            folded.runs[-1].transitions.append(effect.item)


def replay_command(files: Sequence[Path], *, same: bool, json: bool) -> int:
    """Fold *files* and print; 0 all replay (and are the same), 1 one does not, 2 one cannot be read."""
    try:
        folds = [fold_recording(file) for file in files]
    except RecordingError as error:
        raise Problem(str(error)) from error
    fine = all(folded.ok for folded in folds)
    differences: dict[str, dict[str, Any]] = {}
    for folded in folds[1:] if same else ():
        if (found := compare(folds[0].recording, folded.recording)) is not None:
            fine = False
            differences[folded.path] = attrs.asdict(found) | {"words": str(found)}
    for folded in folds:
        difference = differences.get(folded.path)
        if json:
            data = folded.data()
            if same:
                data["difference"] = difference
            print(jsons.dumps(data, ensure_ascii=False))
        else:
            _print(folded)
            if difference is not None:
                print(f"   differs from {folds[0].path} at {line_of(difference['words'], 400)}")
    return OK if fine else FAILED


def _run_data(run: FoldedRun) -> dict[str, Any]:
    return {
        "prompt": run.prompt,
        "transitions": [str(item.reason) for item in run.transitions],
        "terminal": None if run.end is None else run.end.reason.value,
        "ok": False if run.end is None else run.end.ok,
        "why": "the run was never finished" if run.end is None else run.end.why,
    }


def _print(folded: Folded) -> None:
    recording = folded.recording
    torn = f", {recording.torn} bytes of a torn last line left out" if recording.torn else ""
    print(f"{folded.path}: {len(recording.events)} events{torn}, state {digest(folded.state)[:12]}")
    for run in folded.runs:
        print(f"   prompt: {line_of(run.prompt)}")
        for item in run.transitions:
            print(f"-- {transition_line(item.reason, item.count, item.turn)}")
        print(f"== {'not finished' if run.end is None else end_line(run.end)}")
    if folded.problem is not None:
        number, field, words = folded.problem
        print(f"   does not replay: event {number}, {field}: {words}")
