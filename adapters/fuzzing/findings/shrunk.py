"""Shrinking the runs of the driver: how their choices are laid out, and whether they still break a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stepfold.adapters.fuzzing.driver.rules import Rule
from stepfold.adapters.fuzzing.driver.runs import GENE
from stepfold.adapters.fuzzing.driver.search import Player
from stepfold.adapters.fuzzing.driver.setups import FAULT_BYTES, HEADER
from stepfold.adapters.fuzzing.findings.shrinking import Shape

SHAPE: Final = Shape(HEADER, FAULT_BYTES, GENE)


def breaks(driver: Player, rule: Rule) -> Callable[[bytes], int | None]:
    """Return what plays choices and tells how many events broke *rule*, None where it held."""

    def events_of(tape: bytes) -> int | None:
        played = driver.play(tape)
        return played.steps if played.broken is not None and played.broken.rule is rule else None

    return events_of
