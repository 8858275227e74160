"""
What only this file catches: a fuzzer that has gone blind to a fault, or that shrinks badly.

Every exhibit of the museum is found and shrunk; without its fault, the same
run is no finding.
"""

from __future__ import annotations

import pytest

from stepfold.adapters.fuzzing.driver.machine import machine_of
from stepfold.adapters.fuzzing.driver.runs import Driver
from stepfold.adapters.fuzzing.driver.search import Search
from stepfold.adapters.fuzzing.findings.shrinking import shrink
from stepfold.adapters.fuzzing.findings.shrunk import SHAPE, breaks
from stepfold.adapters.fuzzing.museum.catalogue import EXHIBITS
from stepfold.adapters.fuzzing.museum.planting import Exhibit
from stepfold.adapters.testing.world import ALL_FAULTS
from stepfold.engine.table import TABLE

RUNS_MAX = 20_000
EVENTS_MAX = 15


def test_there_are_enough() -> None:
    assert len(EXHIBITS) >= 25


def test_each_says_what_happened_and_what_is_planted() -> None:
    assert [] == [name for name, one in EXHIBITS.items() if len(one.story) < 40 or not one.planted]


@pytest.mark.slow
@pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=lambda exhibit: exhibit.name)
def test_it_is_found_and_shrunk(exhibit: Exhibit) -> None:
    driver = Driver(machine_of(exhibit.plant(TABLE)))
    search = Search(driver, seed=1, faults=exhibit.faults or ALL_FAULTS)
    while not search.tally.broken and search.tally.runs < RUNS_MAX:
        search.one()
    ((rule, tape),) = search.tally.broken.items()

    shrunk = shrink(tape, SHAPE, breaks(driver, rule))

    assert shrunk.events <= EVENTS_MAX
    assert breaks(driver, rule)(shrunk.tape) == shrunk.events
    assert Driver(machine_of()).play(shrunk.tape).broken is None, "the engine as it is breaks it, too"
