"""What only this file catches: an arithmetic that is read as something else than was written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.proof.spec import SHIPPED, read_spec
from stepfold.adapters.proof.symbolic.arithmetic import read_arithmetic
from stepfold.adapters.proof.symbolic.expressions import ExpressionError, Plain, read_expression
from stepfold.adapters.proof.toml_text import SpecError

TEXT = SHIPPED.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + 2 * b - 1", 16),
        ("ceil(a, 2)", 3),
        ("max(a, b) - a", 1),
        ("a if a > b else b", 6),
        ("word in ('x', 'y') and not off", True),
        ("on(limit)", False),
        ("on(a)", True),
        ("false or on(limit) and limit > 3", False),
        ("c.d == 7", True),
        ("a != b", True),
    ],
)
def test_an_expression_means_what_it_says(text: str, value: Any) -> None:
    names = {"a": 5, "b": 6, "word": "y", "off": False, "limit": None, "c.d": 7}

    assert value == read_expression(text).close(Plain())(lambda name: names[name.removeprefix("on ")])


@pytest.mark.parametrize(
    "text", ["a +", "a / b", "f(a)", "[a]", "a < b < c", "a = 1", "lambda: 1", "max(a)", ""]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        read_expression(text)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('drainable = "collapse', 'drainable = "collaps', "there is no 'collaps' to read"),
        ('resumable = "truncated and', 'resumable = "truncated an', "is no expression"),
        ('resumable = "truncated', 'resumable_ = "truncated', "resumable: is missing"),
        ("harder = \"event.kind", "harder = \"event.stop", "AbortRequested says no 'event.stop'"),
        ('"attempts.crashed" = "true"\n"spending', '"attempts.crash" = "true"\n"spending', ""),
        ('[changes.next_turn]', '[changes.next_turns]', "is missing, and so is one for all 'next_turn'"),
        ('[changes.fits]', '[changes.fits]\n[changes.fitted]', "no row is meant by it"),
        ('like = "again"\nturn = "1"', 'like = "agan"\nturn = "1"', "'agan' is no set, or takes up itself"),
        ('turn = "number"\ndrained', 'turn = 3\ndrained', "3 is not allowed; wanted number, flag"),
        ('[heights.rank]\nDone = 0', '[heights.rank]\nDone = "no"', "wanted a whole number"),
        ('Aborting = "batch.open == batch.active', 'Abort = "batch.open == batch.active', "no such phase"),
        ('[progress.stutter]', '[progress.stutters]', "progress.stutter: is missing"),
        ('noted = "true"', 'notes = "true"', "no row is meant by it"),
        ('reactive = "0 if', 'reaction = "0 if', "wanted, in this order, turns, hook_blocks"),
        ('[facts.ToolEnded]', '[facts.ToolFinished]', "there is no such event"),
        ('"called", "compacting",', '"calling", "compacting",', "no row is meant by 'calling'"),
    ],
)
def test_a_bad_arithmetic_is_one_line_with_file_and_key(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    found = TEXT.count(old)
    assert 1 == found or told == "", (old, found)
    path = tmp_path / "machine.toml"
    path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(SpecError) as caught:
        read_arithmetic(read_spec(path))

    words = str(caught.value)
    assert told in words
    assert "\n" not in words
    assert re.match(rf"{re.escape(str(path))}:\d+: ", words)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('turn = "turn + 1"', 'turn = "turns + 1"', "changes.next_turn.turn"),
        ('"attempts.resends + 1"', '"resends + 1"', "changes.resending.attempts.resends"),
        ('"hooks.left - 1"', '"left - 1"', "changes.Checking HookAnswered more_hooks.hooks.left"),
        ('Fitting = "1 if', 'Fitting = "2 of', "heights.within.Fitting"),
    ],
)
def test_the_line_is_that_of_the_change(tmp_path: Path, old: str, new: str, key: str) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(SpecError) as caught:
        read_arithmetic(read_spec(path))

    number = re.match(r".*?:(\d+): (.*?): ", str(caught.value))
    assert number is not None, caught.value
    assert key in number[2]
    assert new in path.read_text(encoding="utf-8").splitlines()[int(number[1]) - 1]
