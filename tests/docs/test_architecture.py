"""What only this file catches: a page of architecture that draws another machine than the table's."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from stepfold.engine import Config, start, step
from stepfold.engine.effects import CallModel, RunTool
from stepfold.engine.events import BlockCompleted, CallFacts, RunStarted, Stop, StreamClosed, ToolEnded
from stepfold.engine.messages import Text, ToolUse
from stepfold.engine.phases import Scheduling
from stepfold.engine.state import Control, Data, Entered, Ledger
from stepfold.engine.table import JUNCTIONS, TABLE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_scheduler_is_the_one_of_the_table() -> None:
    rows = [row for row in TABLE if Scheduling in row.phases and row.event is Entered]
    drawn = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\w+) \| ", PAGE, re.MULTILINE)
    assert [(row.when.__name__, str(row.outcome), row.enters.__name__) for row in rows] == drawn


def test_a_turn_goes_the_way_that_is_drawn() -> None:
    """Only where each step rests; the junctions on the way are named, at least, in the table."""
    config = Config()
    state, effects = step(start(), RunStarted((Text("go"),)), config)
    call = next(effect.id for effect in effects if isinstance(effect, CallModel))
    rests = []
    state, effects = step(state, BlockCompleted(call, ToolUse("t", "read"), CallFacts(safe=True)), config)
    tool = next(effect.id for effect in effects if isinstance(effect, RunTool))
    rests.append(type(state.phase).__name__)
    state, _ = step(state, StreamClosed(call, Stop.TOOL_USE), config)
    rests.append(type(state.phase).__name__)
    state, _ = step(state, ToolEnded(tool), config)
    rests.append(type(state.phase).__name__)

    ways = [way.split(" > ") for way in re.findall(r"(\w+(?: > \w+)+)$", PAGE, re.MULTILINE)]
    turn = [ways[-4], ways[-3], [*ways[-2], *ways[-1]]]
    assert rests == [way[-1] for way in turn]
    names = {kind.__name__ for kind in JUNCTIONS} | {"Sampling", "Running", "next_turn"}
    assert {name for way in turn for name in way} <= names


def test_what_is_named_is_there() -> None:
    for path in re.findall(r"`((?:engine|effects|adapters|tests|docs)/[\w./]+)`", PAGE):
        assert (ROOT / path).exists(), path
    assert "batch" in {field.name for field in attrs.fields(Control)}
    assert "ledger" in {field.name for field in attrs.fields(Data)}
    assert "owed" in {field.name for field in attrs.fields(Ledger)}
