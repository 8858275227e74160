"""A run that failed: written down once, where Hypothesis shows its shortest form."""

from __future__ import annotations

import re
from pathlib import Path
from traceback import walk_tb
from typing import Final, Protocol

from hypothesis.control import current_build_context
from hypothesis.errors import HypothesisException

from stepfold.adapters.testing.machine.judge import hold
from stepfold.adapters.testing.record import Record
from stepfold.adapters.testing.told import tell
from stepfold.adapters.testing.writing.finding import write_finding

FINDINGS: Final = Path(".stepfold") / "findings"
_CHECKS: Final = (hold.__name__, "check_invariants", "run_state_machine")


class Failed(Protocol):
    """What a failing state machine has."""

    findings: Path

    @property
    def record(self) -> Record: ...


def report(machine: Failed, problem: BaseException) -> None:
    """
    Write the run of *machine* down and say so on *problem*.

    Nothing is written for what is no failure of the run, and before Hypothesis
    has found the shortest form of it.
    """
    if not isinstance(problem, Exception) or isinstance(problem, HypothesisException):
        return
    if not getattr(current_build_context(), "is_final", True):
        return
    name = f"{type(machine).__name__}-{_where(problem)}"
    words = " ".join(str(problem).split("\n")[0].split()) or type(problem).__name__
    try:
        found = write_finding(
            machine.findings,
            name,
            machine.record.begun,
            machine.record.events,
            title=f"{_where(problem).replace('_', ' ')}: {words}"[:200],
            about=f"Found by {type(machine).__name__}.",
        )
    except OSError as unwritable:
        problem.add_note(f"the finding could not be written: {unwritable}")
        return
    for line in found.lines():
        problem.add_note(line)
    tell(found)


def _where(problem: BaseException) -> str:
    """Return the name of the function that found it."""
    names = [frame.f_code.co_name for frame, _ in walk_tb(problem.__traceback__)]
    own = [name for name in names if name not in _CHECKS and re.fullmatch(r"\w+", name)]
    return own[-1] if own else type(problem).__name__
