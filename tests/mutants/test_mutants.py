"""
The nets are tight: each kept fault, planted in the engine, turns a named scenario or probe red.

Only this file catches a scenario, or a check of the scenario format, that has
gone blind: everything else here is green with and without the check in question.
"""

from __future__ import annotations

from collections import Counter

import pytest

from stepfold.engine.table import TABLE
from tests.mutants import aborting, calling, ladders, retrying, rows, shrinking
from tests.mutants.planting import MACHINE, Catcher, Mutant, planted
from tests.mutants.playing import complaint, scenario

MUTANTS = (
    *ladders.FAULTS,
    *retrying.FAULTS,
    *shrinking.FAULTS,
    *calling.FAULTS,
    *aborting.FAULTS,
    *rows.FAULTS,
)
CATCHERS = tuple(dict.fromkeys(catcher for mutant in MUTANTS for catcher in mutant.caught_by))


def seen_by(catcher: Catcher) -> str:
    return complaint(scenario(catcher)) if isinstance(catcher, str) else catcher()


def named(catcher: Catcher) -> str:
    return catcher if isinstance(catcher, str) else catcher.__name__


@pytest.mark.parametrize("catcher", CATCHERS, ids=named)
def test_without_a_fault_the_catcher_is_green(catcher: Catcher) -> None:
    assert "" == seen_by(catcher)


@pytest.mark.parametrize(
    ("mutant", "catcher"),
    [
        pytest.param(mutant, catcher, id=f"{mutant.name} - {named(catcher)}")
        for mutant in MUTANTS
        for catcher in mutant.caught_by
    ],
)
def test_a_fault_turns_its_catcher_red(mutant: Mutant, catcher: Catcher) -> None:
    with planted(mutant):
        assert "" != seen_by(catcher), f"nothing catches: {mutant.name} ({mutant.planted})"


def test_every_fault_is_named_once_and_has_a_catcher() -> None:
    counts = Counter(mutant.name for mutant in MUTANTS)
    assert [] == [name for name, count in counts.items() if count > 1]
    assert [] == [mutant.name for mutant in MUTANTS if not mutant.caught_by]
    assert len(MUTANTS) >= 30


def test_a_fault_is_gone_afterwards() -> None:
    cells = MACHINE._CELLS
    for mutant in MUTANTS:
        with planted(mutant):
            assert MACHINE._CELLS is not cells
        assert MACHINE._CELLS is cells
    assert MACHINE.cells_of(TABLE) == cells
