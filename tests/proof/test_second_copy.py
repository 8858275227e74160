"""
What only this file catches: a change of the machine that was made on one side alone.

A deleted ``late`` row escapes every run, because nothing happens where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from stepfold.adapters.proof.comparison import differences, row_differences
from stepfold.adapters.proof.spec import SHIPPED, read_spec
from stepfold.adapters.proof.toml_text import SpecError
from stepfold.engine.config import Config
from stepfold.engine.guards import always
from stepfold.engine.phases import Done, Fitting
from stepfold.engine.state import Stay
from stepfold.engine.table import TABLE, Row
from stepfold.engine.terminals import Terminal

ROOT = Path(__file__).resolve().parents[2]
TEXT = SHIPPED.read_text(encoding="utf-8")


def edited(folder: Path, old: str, new: str) -> Path:
    """Return a copy of the spec in which *old*, which stands there once, is *new*."""
    assert 1 == TEXT.count(old), old
    path = folder / "machine.toml"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    return path


def test_the_copy_that_is_shipped_is_the_one_in_specs() -> None:
    assert (ROOT / "specs" / "machine.toml").samefile(SHIPPED)


def test_the_spec_and_the_engine_are_the_same_machine() -> None:
    assert [] == differences(read_spec())


# ---------------------------------------------------------------- the spec edited alone


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('    ["at_rest", "Resumed", "always", "late", "same"],\n', "", "Idle, Resumed, row 1"),
        ('    ["any", "Late", "always", "late", "same"],\n', "", "Sampling, Late, row 1"),
        (
            '"Aborting", "AbortRequested", "always", "late"',
            '"Aborting", "AbortRequested", "always", "noted"',
            "",
        ),
        (
            '"Calling", "Entered", "always", "called", "Sampling"',
            '"Calling", "Entered", "always", "called", "Done"',
            "",
        ),
        ('"truncated", "completed", "Done"', '"truncated", "max_turns", "Done"', "end:max_turns"),
        (
            '    ["Sampling", "StreamClosed", "paused", "completed", "Done"],\n',
            "",
            "Sampling, StreamClosed, row 10",
        ),
        ("max_retries = 10", "max_retries = 9", "limits.max_retries: the spec says 9; the engine says 10"),
        ('max_cost = "off"', "max_cost = 5", "limits.max_cost: the spec says 5; the engine says off"),
        ("max_resends = 10\n", "", "limits.max_resends: the spec says no such limit"),
        ("notice_turn = 20", "notice_turn = 20\nnew_limit = 3", "limits.new_limit"),
        ("autocompact = 167_000", "autocompact = 167_001", "thresholds"),
        ('payload = ["hook", "words"] }\nmax', 'payload = ["hook"] }\nmax', "terminals.hook_stopped"),
        ('"ending", "details", "spent_hooks"', '"ending", "spent_hooks", "details"', "terminals.completed"),
        ('ok = ["end_turn", "stop_sequence"]', 'ok = ["end_turn"]', "endings.ok"),
        (
            '"fallbacks", "resends", "retries"',
            '"resends", "fallbacks", "retries"',
            "the places of the measure",
        ),
        ('limits = ["context", "model_calls"', 'limits = ["model_calls"', "blocked_by.limits"),
        ('"Waiting", "Compacting", "Reacting", "Running"', '"Compacting", "Reacting", "Running"', "phase"),
    ],
)
def test_a_change_of_the_spec_alone_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = edited(tmp_path, old, new)
    try:
        found = differences(read_spec(path))
    except SpecError as error:
        found = [str(error)]

    assert [line for line in found if told in line], found


def test_two_rows_that_changed_places_are_told(tmp_path: Path) -> None:
    one = '    ["Sampling", "StreamClosed", "escalatable", "max_output_tokens_escalate", "Preparing"],\n'
    two = '    ["Sampling", "StreamClosed", "resumable", "max_output_tokens_recovery", "Preparing"],\n'

    found = differences(read_spec(edited(tmp_path, one + two, two + one)))

    assert 1 == len(found)
    line = TEXT[: TEXT.index(one)].count("\n") + 1
    assert f"Sampling, StreamClosed, row 5: line {line} of machine.toml says resumable" in found[0]
    assert "the table says escalatable -> again:max_output_tokens_escalate" in found[0]


# ---------------------------------------------------------------- the table edited alone


def swapped(table: tuple[Row, ...]) -> tuple[Row, ...]:
    place = next(
        p
        for p, row in enumerate(table)
        if row.outcome is Terminal.BLOCKING_LIMIT and row.phases == (Fitting,)
    )
    return (*table[:place], table[place + 1], table[place], *table[place + 2 :])


def without_late(table: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(row for row in table if not (row.event.__name__ == "Resumed" and row.outcome is Stay.LATE))


def with_a_row(table: tuple[Row, ...]) -> tuple[Row, ...]:
    return (*table, attrs.evolve(table[0], phases=(Fitting,), when=always))


def to_another_end(table: tuple[Row, ...]) -> tuple[Row, ...]:
    place = next(p for p, row in enumerate(table) if row.outcome is Terminal.IMAGE_ERROR)
    return (*table[:place], attrs.evolve(table[place], outcome=Terminal.MODEL_ERROR), *table[place + 1 :])


def into_another_phase(table: tuple[Row, ...]) -> tuple[Row, ...]:
    place = next(p for p, row in enumerate(table) if row.outcome is Stay.FITS)
    return (*table[:place], attrs.evolve(table[place], enters=Done), *table[place + 1 :])


@pytest.mark.parametrize("change", [swapped, without_late, with_a_row, to_another_end, into_another_phase])
def test_a_change_of_the_table_alone_is_told(change: Callable[[tuple[Row, ...]], tuple[Row, ...]]) -> None:
    assert list(row_differences(read_spec(), change(TABLE)))


@pytest.mark.parametrize("place", range(len(TABLE)))
def test_every_row_that_is_taken_out_of_the_table_is_told(place: int) -> None:
    assert list(row_differences(read_spec(), (*TABLE[:place], *TABLE[place + 1 :])))


def test_another_default_is_told() -> None:
    assert ["limits.max_turns: the spec says 200; the engine says 201"] == differences(
        read_spec(), config=Config(max_turns=201)
    )


# ---------------------------------------------------------------- a spec that cannot be read


@pytest.mark.parametrize(
    ("old", "new", "line_with", "told"),
    [
        (
            '"Waiting", "WaitElapsed", "always"',
            '"Waitin", "WaitElapsed", "always"',
            "Waitin",
            "there is no phase 'Waitin'",
        ),
        (
            '"Waiting", "WaitElapsed", "always"',
            '"Waiting", "WaitElapse", "always"',
            'WaitElapse"',
            "there is no event",
        ),
        (
            '"harder", "aborting", "Unwinding"',
            '"harder", "aborting", "Unwound"',
            "Unwound",
            "there is no phase 'Unwound'",
        ),
        (
            '["Reacting", "Compacted", "worked", ',
            '["Reacting", "Compacted", ',
            'reactive_compact_retry", "Pre',
            "five texts",
        ),
        (
            "max_retries = 10",
            'max_retries = "ten"',
            "max_retries",
            "limits.max_retries: 'ten' is not allowed",
        ),
        ("format = 1", "format = 2", "format = 2", "machine.format: 2 is not known; wanted 1"),
        ('spends = "drain"', 'spend = "drain"', "spend =", "there is no such key; allowed are spends"),
        ("[blocked_by]", "[blocked]", "[blocked]", "blocked: there is no such key"),
        ("[phases]", "[phases", "[phases", "is not TOML"),
    ],
)
def test_a_bad_spec_is_one_line_with_file_line_and_key(
    tmp_path: Path, old: str, new: str, line_with: str, told: str
) -> None:
    path = edited(tmp_path, old, new)

    with pytest.raises(SpecError) as caught:
        read_spec(path)

    words = str(caught.value)
    assert told in words
    assert "\n" not in words
    number = re.match(rf"{re.escape(str(path))}:(\d+): ", words)
    assert number is not None, words
    if line_with != "[blocked]":  # a table that is not known has no line of its own
        assert line_with in path.read_text(encoding="utf-8").splitlines()[int(number[1]) - 1]


def test_a_spec_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        read_spec(tmp_path / "none.toml")
