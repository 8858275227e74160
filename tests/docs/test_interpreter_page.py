"""What only this file catches: a page for writers of interpreters that does not run, or misses an order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from stepfold.effects.interpreter import REACHES_OUT
from stepfold.engine import effects, events

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "interpreter.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.split("```python\n")[1].split("```")[0]


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {}

    exec(compile(EXAMPLE, "docs/interpreter.md", "exec"), space)

    assert "There is wine." in capsys.readouterr().out
    assert [type(event).__name__ for event in space["log"]] == [
        "RunStarted",
        "BlockCompleted",
        "BlockCompleted",
        "StreamClosed",
        "ToolEnded",
        "BlockCompleted",
        "StreamClosed",
    ]


def test_every_order_is_in_the_table() -> None:
    first = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    listed = set(re.findall(r"`(\w+)", " ".join(first)))

    assert {kind.__name__ for kind in get_args(effects.Effect)} == listed


def test_the_orders_that_reach_out_are_those_of_the_interpreter() -> None:
    named = PAGE.split("reaches the outside")[1].split(")")[0]

    assert {kind.__name__ for kind in REACHES_OUT} == set(re.findall(r"`(\w+)`", named))


def test_every_order_that_is_owed_an_answer_gets_one_in_the_example() -> None:
    for kind in get_args(effects.Owed):
        assert f"effects.{kind.__name__}(id)" in EXAMPLE
    for name in re.findall(r"events\.([A-Z]\w+)", EXAMPLE):
        assert hasattr(events, name)
