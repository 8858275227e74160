"""
``stepfold prove``: every net that needs nothing but Python, one after the other, and what they say together.

Progress goes to the error output, and only to a terminal.
"""

from __future__ import annotations

import json as jsons
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import attrs

from stepfold.adapters.config_file import ConfigFileError, read_settings
from stepfold.adapters.proof.comparison import differences
from stepfold.adapters.proof.explore import Slice
from stepfold.adapters.proof.spec import SHIPPED, Spec, read_spec
from stepfold.adapters.proof.toml_text import SpecError
from stepfold.adapters.proof.verdict import Check, Status, Summary, apart, explored
from stepfold.adapters.proof.worlds.everything import all_slices
from stepfold.engine.config import Config

PROVED: Final = 0
NOT_PROVED: Final = 1  # a property fails, or a bound was hit
BAD_INPUT: Final = 2
STATES_MAX: Final = 400_000


@attrs.frozen(kw_only=True)
class Question:
    """What is to be proved, of which config, and how far the search goes (in states of one exploration)."""

    config: Config
    spec: Path = SHIPPED
    states: int = STATES_MAX
    slices: Sequence[Slice] | None = None  # all there are


@attrs.define
class Report:
    """Where the answer goes."""

    out: TextIO
    err: TextIO
    json: bool

    def line(self, words: str, **facts: Any) -> None:
        """Print *words*, or *facts* as one JSON object."""
        print(jsons.dumps(facts) if self.json else words, file=self.out, flush=True)

    def progress(self, name: str, done: int, known: int) -> None:
        """Show how far an exploration is, on a terminal."""
        if self.err.isatty():
            print(f"\r\033[K{name}: {done} of {known} states", end="", file=self.err, flush=True)

    def cleared(self) -> None:
        """Take the progress away."""
        if self.err.isatty():
            print("\r\033[K", end="", file=self.err, flush=True)


def prove(
    config_file: Path | None = None,
    *,
    json: bool = False,
    states: int = STATES_MAX,
    spec: Path = SHIPPED,
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
) -> int:
    """
    Prove what can be proved and print it.

    Args:
        config_file: The config whose limits are explored beside the small ones; None: the defaults.
        json: Print one JSON object a line.
        states: States at which one exploration gives up.
        spec: The second copy of the machine.
        out, err: Where the answer goes, and progress and complaints.

    Returns:
        0 everything is proved; 1 a property fails or a bound was hit; 2 the config or spec cannot be used.
    """
    try:
        config = Config() if config_file is None else read_settings(config_file).config()
        question = Question(config=config, spec=spec, states=states)
        read = read_spec(spec)
    except (ConfigFileError, SpecError, ValueError) as problem:
        print(f"stepfold: {' '.join(str(problem).split())}", file=err)
        return BAD_INPUT
    return answer(question, read, Report(out, err, json))


def answer(question: Question, spec: Spec, report: Report) -> int:
    """Run the nets, tell what each found, and return the exit code."""
    began = time.monotonic()
    checks = [_second_copy(spec)]
    _tell(checks[0], report)
    slices = all_slices(question.config) if question.slices is None else question.slices
    report.line(f"explorations, of at most {question.states} states each:", bound=question.states)
    checks += _explorations(slices, spec, question, report)
    for check in checks[1:]:
        _tell(check, report)
    status = _together(checks)
    seconds = time.monotonic() - began
    for words in _meaning(question.config, status):
        report.line(words, meaning=words)
    report.line(f"{status} in {seconds:.0f} s", verdict=status.value, seconds=round(seconds, 1))
    return PROVED if status is Status.PROVED else NOT_PROVED


def _second_copy(spec: Spec) -> Check:
    found = differences(spec)
    words = f"{len(spec.rows)} rows, {len(spec.limits)} limits, {len(spec.terminals)} terminals"
    return Check("second copy", Status.FAILED if found else Status.PROVED, words, tuple(found))


def _explorations(slices: Sequence[Slice], spec: Spec, question: Question, report: Report) -> list[Check]:
    def told(one: Summary) -> None:
        report.cleared()
        more = "" if one.complete else ", UNKNOWN: the bound was hit"
        words = f"  {one.name:14} {one.states:7} states {one.steps:8} steps  {one.about}{more}"
        report.line(words, exploration=one.name, **_facts(one))

    properties, matrix, _ = explored(slices, spec, question.states, report.progress, told)
    return apart(properties, matrix)


def _facts(one: Summary) -> dict[str, Any]:
    return {"states": one.states, "steps": one.steps, "complete": one.complete, "digest": one.digest}


def _tell(check: Check, report: Report) -> None:
    facts = {"status": check.status.value, "about": check.words, "findings": list(check.findings)}
    lines = [f"{check.name}: {check.status}: {check.words}", *(f"  {each}" for each in check.findings)]
    report.line("\n".join(lines), check=check.name, **facts)


def _together(checks: Sequence[Check]) -> Status:
    statuses = {check.status for check in checks}
    for worst in (Status.FAILED, Status.UNKNOWN):
        if worst in statuses:
            return worst
    return Status.PROVED


def _meaning(config: Config, status: Status) -> Iterator[str]:
    """Yield what the answer says of this config, in words for people."""
    if status is not Status.PROVED:
        return
    if config.max_turns is not None or config.nested:
        yield (
            "Every run ends, whatever model, tools, hooks and user do, if every effect is answered and no"
            " process dies for ever with a permission prompt open (docs/verification.md)."
        )
    elif config.max_model_calls is not None:
        yield (
            "max_turns is off: between two turns there are boundedly many steps, and max_model_calls"
            f" ({config.max_model_calls}) ends the run, if every effect is answered."
        )
    else:
        yield (
            "max_turns and max_model_calls are off: a run need not end (a model that calls a tool in"
            " every answer goes round for ever, with next_turn); between two turns the steps are bounded."
        )
