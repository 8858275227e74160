"""What only this file catches: a demo that shows less than it says, and recordings that do not replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli.demo import session
from stepfold.adapters.cli.demo.seen import Seen
from stepfold.adapters.scenarios.check import check_file
from stepfold.engine.state import Continue
from stepfold.engine.terminals import Terminal
from tests.cli.process import Ended, told

LADDERS = Path(session.__file__).parent / "ladders"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Path]:
    folder = tmp_path_factory.mktemp("demo folder")
    return told(folder, "demo", "--keep", "kept"), folder / "kept"


def test_everything_is_shown_and_said(shown: tuple[Ended, Path]) -> None:
    ended, _ = shown

    assert (0, "") == (ended.code, ended.err)
    for reason in Continue:
        assert f"-- {reason}" in ended.out
        assert f"yes │ {reason}" in ended.out
    for terminal in Terminal:
        assert f"== {terminal}: " in ended.out
        assert f"yes │ {terminal}" in ended.out
    assert "7 of 7 continues" in ended.out
    assert "10 of 10 terminals" in ended.out
    assert "14 of 14 recordings replayed and found equal" in ended.out


def test_the_session_is_the_worked_example(shown: tuple[Ended, Path]) -> None:
    ended, kept = shown
    first = ended.out.split("###")[1]

    assert "Fix the null pointer bug in src/auth/validate.ts" in first
    assert "3 model calls, 2 tools, 1 permission asked" in first
    order = ["-> read", "<- read completed", "-- next_turn", "-> edit", "?  may edit", "<- edit completed"]
    places = [first.index(each) for each in [*order, "guard clause", "== completed"]]
    assert places == sorted(places)
    assert session.FIXED in (kept / "project" / session.FILE).read_text()


def test_the_bug_is_on_the_line_that_the_model_names() -> None:
    assert session.source().splitlines()[session.BUG_LINE - 1].strip() == session.BROKEN
    assert session.source().count(session.BROKEN) == 1


def test_the_recordings_replay(shown: tuple[Ended, Path]) -> None:
    _, kept = shown
    files = sorted(str(path) for path in kept.glob("*.jsonl"))

    ended = told(kept, "replay", "--json", *files)

    data = [json.loads(line) for line in ended.out.splitlines()]
    assert (0, 14) == (ended.code, len(data))
    assert all(each["ok"] for each in data)
    seen = {reason for each in data for run in each["runs"] for reason in run["transitions"]}
    assert {str(reason) for reason in Continue} == seen
    ends = {run["terminal"] for each in data for run in each["runs"]}
    assert {str(terminal) for terminal in Terminal} == ends


@pytest.mark.parametrize("file", sorted(LADDERS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_ladder_is_a_scenario_that_holds(file: Path) -> None:
    assert check_file(file).line().startswith("ok  ")


@pytest.mark.parametrize("left_out", [Continue.NEXT_TURN, Terminal.MAX_TURNS])
def test_what_was_not_seen_is_missed(left_out: Any) -> None:
    seen = Seen()
    for reason in set(Continue) - {left_out}:
        seen.note("here", [reason], Terminal.COMPLETED)
    for terminal in set(Terminal) - {left_out}:
        seen.note("here", [], terminal)

    assert seen.complete is False
    seen.note("there", [left_out], left_out)
    assert seen.complete is True
