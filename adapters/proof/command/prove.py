"""
``stepfold prove``: one net after the other, the worst case, and what they say together.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

import attrs

from stepfold.adapters.config_file import ConfigFileError
from stepfold.adapters.proof.command.asked import BadInput, config_asked
from stepfold.adapters.proof.command.beside import DEEP, Beside
from stepfold.adapters.proof.command.contradictions import place_of
from stepfold.adapters.proof.command.report import Report
from stepfold.adapters.proof.comparison import differences
from stepfold.adapters.proof.explore import Progress, Slice
from stepfold.adapters.proof.spec import SHIPPED, Spec, read_spec
from stepfold.adapters.proof.toml_text import SpecError
from stepfold.adapters.proof.verdict import Check, Status, apart, explored
from stepfold.adapters.proof.worlds.everything import all_slices
from stepfold.adapters.proof.worst.answer import Worst, worst_case
from stepfold.adapters.proof.worst.crosscheck import CONFIGS, crosscheck
from stepfold.adapters.proof.worst.quantities import Quantity, Sure
from stepfold.engine.config import Config

PROVED: Final = 0
NOT_PROVED: Final = 1  # a property fails, a run need not end, or a bound was hit
BAD_INPUT: Final = 2
SKIPPED: Final = 3  # nothing fails, but a net that was asked for could not run
STATES_MAX: Final = 400_000
CODES: Final[Mapping[Status, int]] = {
    Status.PROVED: PROVED,
    Status.SKIPPED: SKIPPED,
    Status.UNKNOWN: NOT_PROVED,
    Status.FAILED: NOT_PROVED,
}


@attrs.frozen(kw_only=True)
class Question:
    """
    What is to be proved.

    Args:
        config: Of which config.
        config_file: Where it is written, None: nowhere.
        spec: The second copy of the machine.
        states: How far a search goes: states of one exploration.
        slices: The explorations; None: all there are.
        small: The small configs on which closed forms and search are compared.
        deep: The nets that need more than Python: name -> module and function; none are cast by default.
        witness: Where the scenarios of the worst case are written; None: nowhere.
    """

    config: Config
    config_file: Path | None = None
    spec: Path = SHIPPED
    states: int = STATES_MAX
    slices: Sequence[Slice] | None = None
    small: tuple[Config, ...] = CONFIGS
    deep: Mapping[str, str] = attrs.field(factory=dict)
    witness: Path | None = None


def prove(
    config_file: Path | None = None,
    *,
    json: bool = False,
    states: int = STATES_MAX,
    deep: bool = False,
    witness: Path | None = None,
    spec: Path = SHIPPED,
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
) -> int:
    """
    Prove what can be proved and print it.

    Args:
        config_file: The config that is asked about; None: the defaults.
        json: Print one JSON object a line.
        states: States at which one search gives up.
        deep: Cast the nets that need more than Python, too.
        witness: The folder for scenarios that reach the worst case.
        spec: The second copy of the machine.
        out, err: Where the answer goes, and progress and complaints.

    Returns:
        0 everything is proved; 1 a property fails, a run need not end, or a bound was hit;
        2 config, spec or folder cannot be used; 3 nothing fails, but a net could not run.
    """
    report = Report(out, err, json)
    try:
        config = config_asked(config_file)
        _check_folder(witness)
        question = Question(
            config=config,
            config_file=config_file,
            spec=spec,
            states=states,
            deep=DEEP if deep else {},
            witness=witness,
        )
        return answer(question, read_spec(spec), report)
    except (BadInput, ConfigFileError, SpecError) as problem:
        print(f"stepfold: {' '.join(str(problem).split())}", file=err)
        return BAD_INPUT
    finally:
        report.cleared()


def _check_folder(folder: Path | None) -> None:
    if folder is not None and folder.exists() and not folder.is_dir():
        raise BadInput(f"--witness: {folder} is not a folder")


def answer(question: Question, spec: Spec, report: Report) -> int:
    """Run the nets, tell what each found, and return the exit code."""
    began = time.monotonic()
    checks = list[Check]()

    def known(check: Check) -> None:
        report.check(check)
        checks.append(check)

    with Beside(question.deep, question.config, report.told_beside) as beside:

        def told(name: str, done: int, of: int) -> None:
            beside.look()
            report.told(name, done, of)

        for check in _checks(question, spec, report, told):
            known(check)
        worst = worst_case(question.config, told)
        known(_played(worst))
        report.cleared()
        for check in beside.checks():
            known(check)
    known(_ending(question, worst, together(checks)))
    report.cleared()
    report.checks(checks)
    report.maxima(worst.maxima, _written(worst, question.witness))
    status = together(checks)
    for words in _meaning(question.config, worst, status):
        report.line(words, meaning=words)
    seconds = time.monotonic() - began
    skipped = [one.name for one in checks if one.status is Status.SKIPPED]
    more = f"; skipped: {', '.join(skipped)}" if skipped else ""
    report.line(f"{status}{more}, in {seconds:.0f} s", verdict=status.value, seconds=round(seconds, 1))
    return CODES[status]


def _checks(question: Question, spec: Spec, report: Report, told: Progress) -> Iterator[Check]:
    yield _second_copy(spec)
    slices = all_slices(question.config) if question.slices is None else question.slices
    report.line(f"explorations, of at most {question.states} states each:", bound=question.states)
    properties, matrix, _ = explored(slices, spec, question.states, told, report.exploration)
    yield from apart(properties, matrix)
    yield crosscheck(told, question.small, question.states)


def _second_copy(spec: Spec) -> Check:
    found = differences(spec)
    words = f"{len(spec.rows)} rows, {len(spec.limits)} limits, {len(spec.terminals)} terminals"
    return Check("second copy", Status.FAILED if found else Status.PROVED, words, tuple(found))


def _played(worst: Worst) -> Check:
    """Do the runs that cost most hold when they are played?"""
    words = f"{len(worst.files)} scenarios were played, and hold"
    return Check("played", Status.FAILED if worst.problems else Status.PROVED, words, worst.problems)


def _ending(question: Question, worst: Worst, rest: Status) -> Check:
    """Does every run of this config end?  Only as sure as the *rest* of the nets that could run."""
    if worst.ends:
        sure = Status.PROVED if rest is Status.SKIPPED else rest
        return Check("every run ends", sure, "as the measure says; what a run can cost is below")
    places = [place_of(key, question.config_file) for key in ("max_turns", "max_model_calls")]
    words = "a model that calls a tool in every answer goes round for ever, with next_turn"
    return Check("every run ends", Status.FAILED, words, tuple(f"{place}: is off" for place in places))


def _written(worst: Worst, folder: Path | None) -> dict[Quantity, str]:
    """Write the scenarios; return where that of each quantity is."""
    if folder is None:
        return {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in worst.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise BadInput(f"--witness: {folder}: {problem.strerror or problem}") from problem
    names = {quantity: f"worst_{quantity}.toml" for quantity in Quantity}
    for one in worst.maxima:
        if one.sure is Sure.ENDLESS:
            names[one.quantity] = "cycle.toml"
    return {quantity: str(folder / name) for quantity, name in names.items() if name in worst.files}


def together(checks: Sequence[Check]) -> Status:
    """Return what all checks say together: the worst that one says."""
    statuses = {check.status for check in checks}
    for worst in (Status.FAILED, Status.UNKNOWN, Status.SKIPPED):
        if worst in statuses:
            return worst
    return Status.PROVED


def _meaning(config: Config, worst: Worst, status: Status) -> Iterator[str]:
    """Yield what the answer says of this config, in words for people."""
    if not worst.ends:
        yield (
            "max_turns and max_model_calls are off: a run need not end; between two turns the steps are"
            " bounded, and the numbers are those of one turn."
        )
    elif status in (Status.PROVED, Status.SKIPPED):
        limit = "" if config.max_turns is not None or config.nested else " at max_model_calls"
        yield (
            f"Every run ends{limit}, whatever model, tools, hooks and user do, if every effect is answered"
            " (docs/verification.md). No process dies in the runs that are counted."
        )
