"""Only this plays the scenario files in the tests themselves, each by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepfold.adapters.scenarios.check import Verdict, check_file
from stepfold.adapters.scenarios.reading.load import load
from stepfold.engine.state import Continue
from stepfold.engine.terminals import Ending, Terminal

FOLDER = Path(__file__).parent.parent / "scenarios"
FILES = sorted(FOLDER.rglob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_scenario(file: Path) -> None:
    verdict = check_file(file)

    assert isinstance(verdict, Verdict), verdict.line()
    assert () == verdict.differences


def test_there_are_enough_and_each_says_what_it_is_about() -> None:
    scenarios = [load(file) for file in FILES]

    assert len(scenarios) >= 40
    assert all(scenario.title and scenario.about for scenario in scenarios)
    assert len({scenario.title for scenario in scenarios}) == len(scenarios)


def test_every_continue_terminal_and_ending_is_expected_somewhere() -> None:
    ends = [load(file).expect.ends for file in FILES]

    assert set(Continue) == {reason for end in ends for reason in end.transitions or ()}
    assert {*Terminal, "none"} == {
        name for end in ends for name in (end.terminal, *(end.terminals or ())) if name is not None
    }
    assert set(Ending) == {end.ending for end in ends if end.ending is not None}
