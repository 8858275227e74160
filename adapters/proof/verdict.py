"""What all explorations together say: proved, failed, or unknown."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

import attrs

from stepfold.adapters.proof.canonical import COUNTERS
from stepfold.adapters.proof.explore import Exploration, Progress, Slice, explore
from stepfold.adapters.proof.graph import graph_findings
from stepfold.adapters.proof.invariants import FALLS
from stepfold.adapters.proof.matrix import Matrix
from stepfold.adapters.proof.spec import FIELDS, Spec
from stepfold.engine.config import Config
from stepfold.engine.phases import Idle
from stepfold.engine.state import Continue, Late
from stepfold.engine.table import TABLE
from stepfold.engine.terminals import Terminal

TOTAL: Final = len(Continue) * len(FIELDS)
# Before a first run nothing was ordered, so no answer can be late.
NEVER: Final = (Late.__name__, Idle.__name__)


class Status(enum.StrEnum):
    """What became of a check."""

    PROVED = "proved"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"  # it could not run here; its words say why


@attrs.frozen
class Check:
    """One net: its name, what became of it, one line about it, and what fails."""

    name: str
    status: Status
    words: str
    findings: tuple[str, ...] = ()


class Net(Protocol):
    """
    What only ``prove --deep`` casts: ``cast`` in ``symbolic.nets`` and in ``formal.nets``.

    Yields one ``Check`` a thing that is proved, as soon as it is known; one
    that cannot run here (no Java, an extra that is not installed) is
    ``SKIPPED``, its words say why, and nothing is raised.

    Args:
        config: The config that is asked about, for nets that depend on it.
        told: Called now and then with (name of the check, done, of how many); the last is 0 where not known.
    """

    def __call__(self, config: Config, told: Progress) -> Iterator[Check]: ...


@attrs.frozen
class Summary:
    """One exploration in figures."""

    name: str
    about: str
    states: int
    steps: int
    complete: bool
    digest: str


def explored(
    slices: Iterable[Slice],
    spec: Spec,
    limit: int,
    progress: Progress,
    told: Callable[[Summary], None] = lambda summary: None,
) -> tuple[Check, Check, tuple[Summary, ...]]:
    """Explore *slices*; return the check of the properties, that of the matrix, and the figures."""
    matrix, rows, ends = Matrix(spec), Counter[tuple[int, str]](), set[tuple[str, ...]]()
    findings, summaries = list[str](), list[Summary]()
    for piece in slices:
        found = explore(piece, spec, matrix, limit, progress)
        findings += found.findings
        if found.complete:
            findings += graph_findings(found, exempt=bool(piece.counters & set(COUNTERS[1:])))
        rows += found.rows
        ends |= found.ends
        summaries.append(_summary(piece, found))
        told(summaries[-1])
    whole = all(one.complete for one in summaries)
    missing = [*_missing(rows, ends, spec)]
    if whole:
        findings += missing
    states, steps = sum(one.states for one in summaries), sum(one.steps for one in summaries)
    words = f"{len(summaries)} explorations, {states} states, {steps} steps"
    status = Status.PROVED
    if findings:
        status = Status.FAILED
    elif not whole:
        cut = ", ".join(one.name for one in summaries if not one.complete)
        status, words = Status.UNKNOWN, f"{words}; the limit of {limit} states was hit in: {cut}"
    check = Check("explorer", status, words, tuple(findings))
    return check, _matrix_check(matrix, findings, whole), tuple(summaries)


def apart(properties: Check, matrix: Check) -> list[Check]:
    """Return the checks of explorer, matrix and measure, each finding in the one that it belongs to."""
    falls = tuple(line for line in properties.findings if FALLS in line)
    rest = tuple(line for line in properties.findings if line not in falls and line not in matrix.findings)
    bound = Status.UNKNOWN if Status.UNKNOWN in (properties.status, matrix.status) else Status.PROVED
    words = "never rises, and falls with every continue, request, retry and wait of the explorations"
    return [
        attrs.evolve(properties, status=Status.FAILED if rest else bound, findings=rest),
        matrix,
        Check("measure", Status.FAILED if falls else bound, words, falls),
    ]


def _summary(piece: Slice, found: Exploration) -> Summary:
    return Summary(piece.name, piece.about, found.states, found.steps, found.complete, found.digest())


def _missing(rows: Counter[tuple[int, str]], ends: set[tuple[str, ...]], spec: Spec) -> Iterator[str]:
    """Yield what should be reached sometimes and never is."""
    for number, row in enumerate(TABLE):
        for phase in row.phases:
            if (number, phase.__name__) not in rows and (row.event.__name__, phase.__name__) != NEVER:
                words = f"{phase.__name__}, {row.event.__name__}, {row.when.__name__} -> {row.outcome}"
                yield f"sometimes every row: never taken: {words}"
    outcomes = {TABLE[number].outcome for number, _ in rows}
    yield from (f"sometimes every continue: never {each}" for each in Continue if each not in outcomes)
    yield from (f"sometimes every terminal: never {each}" for each in Terminal if each not in outcomes)
    for ending in (*spec.endings_ok, *spec.endings_not_ok):
        if ("completed", ending) not in {end[:2] for end in ends}:
            yield f"sometimes every ending: never completed ({ending})"
    for limit in spec.blocked_by:
        if ("blocking_limit", limit) not in {end[:2] for end in ends}:
            yield f"sometimes every limit: never blocking_limit ({limit})"


def _matrix_check(matrix: Matrix, findings: list[str], whole: bool) -> Check:
    broken = tuple(line for line in findings if ": continues." in line)
    unseen = matrix.unseen()
    words = "every continue that was taken does to each field what the spec says"
    if unseen:
        words += f"; not told apart from another value here: {', '.join(unseen)}"
    status = Status.FAILED if broken else Status.PROVED if whole else Status.UNKNOWN
    words = f"{TOTAL - len(unseen)} of {TOTAL} cells: {words}"
    return Check("matrix", status, words, broken)
