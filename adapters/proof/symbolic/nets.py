"""
The three nets of the symbolic proof, as checks: the arithmetic by execution, z3, CrossHair.

What needs an extra that is not installed is skipped, and says how to get it.
z3 is imported, and CrossHair started, only when their net is cast.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from stepfold.adapters.proof.explore import Progress, Slice
from stepfold.adapters.proof.spec import Spec, SpecRow, read_spec
from stepfold.adapters.proof.symbolic.arithmetic import Arithmetic, read_arithmetic
from stepfold.adapters.proof.symbolic.confirming import SECONDS
from stepfold.adapters.proof.symbolic.executed import Comparison, executed
from stepfold.adapters.proof.toml_text import SpecError
from stepfold.adapters.proof.verdict import NEVER, Check, Status
from stepfold.adapters.proof.worlds.everything import all_slices
from stepfold.engine.config import Config
from stepfold.engine.table import TABLE

ARITHMETIC: Final = "arithmetic"
Z3: Final = "z3"
CROSSHAIR: Final = "crosshair"
INSTALL: Final = "pip install 'stepfold[proof]'"
CONFIRMED: Final = "confirmed"
NOT_CONFIRMED: Final = "cannot_confirm"


def cast(config: Config, told: Progress) -> Iterator[Check]:
    """
    Yield the checks of the three nets, each as soon as it is known.

    Args:
        config: Explored beside the small ones for the arithmetic; z3 and CrossHair are about all configs.
        told: Called now and then with (name of the check, done, of how many).
    """
    spec = read_spec()
    try:
        arithmetic = read_arithmetic(spec)
    except SpecError as problem:
        yield Check(ARITHMETIC, Status.FAILED, "the arithmetic of the spec cannot be read", (str(problem),))
        return
    yield by_execution(spec, arithmetic, all_slices(config), told)
    yield by_z3(spec, arithmetic, told)
    yield by_crosshair((), told)


def by_execution(spec: Spec, arithmetic: Arithmetic, slices: Iterable[Slice], told: Progress) -> Check:
    """Hold the arithmetic of *spec* against the shipped table in the states of *slices*."""

    def progress(name: str, done: int, known: int) -> None:
        told(ARITHMETIC, done, known)

    found = executed(slices, Comparison(spec, arithmetic), told=progress)
    every = {
        (number, phase.__name__)
        for number, row in enumerate(TABLE)
        for phase in row.phases
        if (row.event.__name__, phase.__name__) != NEVER
    }
    missing = tuple(
        f"never compared: {phase}, {TABLE[number].event.__name__} {TABLE[number].when.__name__}"
        for number, phase in sorted(every - set(found.compared))
    )
    words = (
        f"{len(found.compared)} of {len(every)} rows compared with the table"
        f" {sum(found.compared.values())} times: conditions, changes, places of the measure, invariants"
    )
    findings = (*found.findings, *missing)
    return Check(ARITHMETIC, Status.FAILED if findings else Status.PROVED, words, findings)


def by_z3(spec: Spec, arithmetic: Arithmetic, told: Progress) -> Check:
    """Prove the measure over the rows of *spec*, for all limits."""
    if importlib.util.find_spec("z3") is None:
        return Check(Z3, Status.SKIPPED, f"skipped: z3-solver is not installed ({INSTALL})")
    from stepfold.adapters.proof.symbolic.solver import Proof

    proof, findings, rows = Proof(spec, arithmetic), list[str](), len(spec.rows)
    for done, (row, words) in enumerate(proof.cells(), 1):
        told(Z3, done, rows)
        findings += [f"{_named(row)}: {each}" for each in words]
    about = (
        f"{rows} rows, {proof.questions} questions, all limits symbolic: invariants, one row applies,"
        " the measure falls and is never negative, no spin between two turns"
    )
    status = Status.FAILED if findings else Status.PROVED
    if findings and proof.unanswered == len(findings):
        status = Status.UNKNOWN
    return Check(Z3, status, about, tuple(findings))


def by_crosshair(names: Sequence[str], told: Progress, seconds: float = SECONDS) -> Check:
    """Confirm the contracts in *names*, all if there are none, each in *seconds* of computing at most."""
    if importlib.util.find_spec("crosshair") is None:
        return Check(CROSSHAIR, Status.SKIPPED, f"skipped: crosshair-tool is not installed ({INSTALL})")
    from stepfold.adapters.proof.symbolic.contracts import every

    asked = list(names) or list(every())
    said, problem = list[dict[str, Any]](), ""
    for line in _lines(asked, seconds):
        told(CROSSHAIR, len(said), len(asked))
        if line.startswith("{"):
            said.append(json.loads(line))
        else:
            problem = line.strip() or problem
    return verdict(asked, said, problem)


def verdict(asked: Sequence[str], said: Sequence[dict[str, Any]], problem: str = "") -> Check:
    """
    Return the check: proved only where CrossHair confirmed each contract that was *asked* for.

    Its exit code is 0 for "not confirmed", so the confirmations are counted.
    """
    states = {each["contract"]: each["state"] for each in said}
    confirmed = [name for name in asked if states.get(name) == CONFIRMED]
    open_ = [name for name in asked if states.get(name) == NOT_CONFIRMED]
    broken = [each for each in said if each["state"] not in (CONFIRMED, NOT_CONFIRMED)]
    missing = [name for name in asked if name not in states]
    findings = [f"{each['contract']}: {each['state']}: {each['words']}" for each in broken]
    findings += [f"{name}: not confirmed" for name in open_]
    findings += [f"{name}: no answer{': ' + problem if problem else ''}" for name in missing]
    words = f"{len(confirmed)} of {len(asked)} contracts on the shipped step confirmed over all paths"
    status = Status.PROVED if asked and len(confirmed) == len(asked) else Status.UNKNOWN
    return Check(CROSSHAIR, Status.FAILED if broken else status, words, tuple(findings))


def _lines(names: Sequence[str], seconds: float) -> Iterator[str]:
    """Yield what the process prints, complaints last."""
    command = [sys.executable, "-m", "stepfold.adapters.proof.symbolic.confirming"]
    command += ["--seconds", str(seconds), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            yield from process.stdout
            if code := process.wait():
                yield f"its process ended with exit code {code}"
        finally:
            process.kill()


def _named(row: SpecRow) -> str:
    return f"{row.phase}, {row.event}, {row.condition} -> {row.outcome} (line {row.line})"
