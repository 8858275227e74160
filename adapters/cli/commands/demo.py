"""``stepfold demo``: a session, every ladder, what was seen, and everything replayed."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console

from stepfold.adapters.cli import signals
from stepfold.adapters.cli.demo.seen import Seen
from stepfold.adapters.cli.demo.session import PROMPT, play_session
from stepfold.adapters.cli.exits import FAILED, OK, Problem
from stepfold.adapters.cli.terminal.view import View
from stepfold.adapters.cli.terminal.words import end_line
from stepfold.adapters.codec import digest
from stepfold.adapters.replay.folding import fold_recording
from stepfold.adapters.scenarios.check import Verdict, check_file
from stepfold.engine import State

LADDERS = "stepfold.adapters.cli.demo.ladders"


def demo_command(keep: Path | None) -> int:
    """
    Show everything, and keep the recordings in the folder *keep* if one is given.

    Returns 0 only if all seven continues and all ten terminals were seen, and
    every recording folds to the state that its run came to.
    """
    where = "--keep" if keep is not None else "the temporary folder"
    try:
        if keep is None:
            with signals.raised(), tempfile.TemporaryDirectory(prefix="stepfold-demo-") as folder:
                return _demo(Path(folder))
        _make(keep)
        with signals.raised():  # the session's files and its recording are whole
            return _demo(keep)
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        raise Problem(f"{where}: {path}it cannot be written: {error.strerror or error}", FAILED) from error


def _make(keep: Path) -> None:
    if keep.exists() and not keep.is_dir():
        raise Problem(f"--keep: {keep} is not a folder")
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise Problem(f"--keep: {keep} is not empty")
    except OSError as error:
        raise Problem(f"--keep: {keep}: {error.strerror or error}") from error


def _demo(folder: Path) -> int:
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    view, seen = View(sys.stdout), Seen()
    states: dict[Path, State] = {}
    problems: list[str] = []

    _title(console, "A whole session, with real files", PROMPT)
    recording = folder / "session.jsonl"
    session = asyncio.run(play_session(view, folder / "project", recording))
    console.print(f"   {session.counts}", style="dim")
    problems += [f"session: {each}" for each in session.problems]
    states[recording] = session.result.state
    transitions = [each.reason.value for each in session.result.transitions]
    seen.note("session", transitions, session.result.terminal.value)

    for file in _ladders():
        _ladder(console, view, seen, file, folder, states, problems)

    _title(console, "What was seen", "")
    seen.print(console)
    if not seen.complete:
        problems.append("not every continue and terminal was seen")
    _title(console, "Every recording, folded again", "")
    problems += _replayed(console, states)
    for each in problems:
        console.print(f"wrong: {each}", style="bold red")
    return FAILED if problems else OK


def _title(console: Console, title: str, words: str) -> None:
    console.print(f"\n### {title}", style="bold")
    if words:
        console.print(f"   prompt: {words}", style="dim")


def _ladders() -> Iterator[Path]:
    with as_file(files(LADDERS)) as folder:
        yield from sorted(folder.glob("*.toml"))


def _ladder(
    console: Console,
    view: View,
    seen: Seen,
    file: Path,
    folder: Path,
    states: dict[Path, State],
    problems: list[str],
) -> None:
    """Play one scenario and print it."""
    outcome = check_file(file, folder)
    if not isinstance(outcome, Verdict) or outcome.played is None:
        problems.append(outcome.line())
        return
    played = outcome.played
    _title(console, outcome.title, " / ".join(played.scenario.prompts))
    for run in played.observed.runs:
        for item in run.items:
            view.show(item)
        view.pause()
        if run.end is not None:
            view.line(f"== {end_line(run.end)}", "bold green" if run.end.ok else "bold yellow")
        seen.note(file.stem, run.transitions, run.terminal)
    problems += [f"{file.stem}: {each}" for each in outcome.differences]
    states[folder / f"{file.stem}.jsonl"] = played.takes[0].tape.state


def _replayed(console: Console, states: dict[Path, State]) -> list[str]:
    """Fold every recording and compare the state at its end with the one that the run came to."""
    problems: list[str] = []
    for path, state in states.items():
        folded = fold_recording(path)
        same = folded.ok and digest(folded.state) == digest(state)
        words = "the same state" if same else "ANOTHER STATE"
        console.print(f"   {path.name}: {folded.events} events, {words} {digest(state)[:12]}")
        if not same:
            problems.append(f"{path.name} does not replay to the state that the run came to")
    good = len(states) - len(problems)
    console.print(f"{good} of {len(states)} recordings replayed and found equal", style="bold")
    return problems
