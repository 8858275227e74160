"""
What CrossHair is told about the engine, in its own process only.

A number in a text is "#": no guard and no move reads a text.  The time of a
wait is 0: it decides nothing, and the shift in it would make a path of every
count of retries.
"""

from __future__ import annotations

from typing import Any, Final

from crosshair import opcode_intercept
from crosshair.libimpl.builtinslib import SymbolicNumberAble
from crosshair.tracers import NoTracing

from stepfold.engine.moves import sampling

STASH: Final[Any] = opcode_intercept.FormatStashingValue
UNTRACED: Final[Any] = NoTracing
FORMATTED: Final[Any] = STASH.__format__


def _without_numbers(self: Any, spec: str) -> Any:
    with UNTRACED():
        number = isinstance(self.value, SymbolicNumberAble)
    if not number:
        return FORMATTED(self, spec)
    self.formatted = "#"
    return ""


def install() -> None:
    """Tell CrossHair, for the rest of this process."""
    STASH.__format__ = _without_numbers
    sampling.backoff_ms = lambda c, data, failure, k: (0, 0)
