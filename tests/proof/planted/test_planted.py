"""
The nets of ``stepfold prove`` are tight: a fault for each guard and each limit, and the net that is red.

Only this file catches a net that has gone blind: everything else here is
green with and without it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepfold.adapters.proof.symbolic.arithmetic import Number, read_arithmetic
from stepfold.engine.guards import always
from stepfold.engine.table import TABLE
from tests.mutants.planting import Planting
from tests.proof.planted.casting import NETS, SPEC, right, said
from tests.proof.planted.fault import CONFORMANCE, CROSSHAIR, TLC, Fault
from tests.proof.planted.guards import GUARDS
from tests.proof.planted.limits import LIMITS
from tests.proof.planted.rows import OTHERS

ROWS_MAX = 10**7
FAULTS = (*GUARDS, *LIMITS, *OTHERS)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "verification.md"


@pytest.fixture(scope="module", autouse=True)
def from_the_root() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PAGE.parents[1])  # CrossHair's process imports the tests from here
        yield


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.net} - {fault.name}")
def test_a_fault_turns_its_net_red(fault: Fault) -> None:
    with pytest.MonkeyPatch.context() as patch:
        planting = Planting(patch)
        if fault.plant is not None and fault.net != CROSSHAIR:
            fault.plant(planting)
        planting.grow(most=ROWS_MAX)
        found = said(fault, tuple(planting.rows))

    assert [line for line in found if fault.told in line], found or "nothing catches it"


# Green elsewhere: two graphs in test_model.py, the contracts in test_crosshair.py.
ELSEWHERE = {(CONFORMANCE, "hooks"), (CONFORMANCE, "pairs")}
CAST = {(fault.net, fault.where) for fault in FAULTS if fault.net not in (TLC, CROSSHAIR)}
WHERE = sorted(CAST - ELSEWHERE)


@pytest.mark.parametrize(("net", "where"), WHERE)
def test_without_a_fault_the_net_is_green(net: str, where: str) -> None:
    assert [] == right(net, where)


# ---------------------------------------------------------------- the table is whole


def test_every_guard_has_a_fault() -> None:
    guards = {row.when.__name__ for row in TABLE if row.when is not always}

    assert sorted(guards) == sorted(fault.of for fault in GUARDS)


NO_LIMITS = ("stop_hooks", "fixed_prompt_tokens")  # a count and a size


def test_every_limit_that_decides_has_a_fault() -> None:
    limits = {
        name
        for name, domain in read_arithmetic(SPEC).limits.items()
        if isinstance(domain, Number) and "." not in name and name not in NO_LIMITS
    }

    assert set() == limits - {fault.of for fault in LIMITS}


def test_every_net_has_a_fault_and_every_fault_a_name_of_its_own() -> None:
    assert {fault.net for fault in FAULTS} == set(NETS)
    counts = Counter((fault.net, fault.name) for fault in FAULTS)
    assert [] == [name for name, count in counts.items() if count > 1]
    assert len(FAULTS) >= 30


def test_the_page_shows_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    part = text[text.index("## Planted faults") :]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", part.split("\n## ")[0], re.MULTILINE)

    assert [("of", "fault", "net"), *((fault.of, fault.words, fault.net) for fault in FAULTS)] == rows
