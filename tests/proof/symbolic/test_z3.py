"""
What only this file catches: a limit that bounds nothing for some value that no exploration has.

Each edit below breaks one thing of ``specs/machine.toml``; z3 names the row.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from stepfold.adapters.proof.spec import SHIPPED, Cell, read_spec
from stepfold.adapters.proof.symbolic.arithmetic import read_arithmetic
from stepfold.adapters.proof.symbolic.nets import by_z3
from stepfold.adapters.proof.symbolic.solver import Proof
from stepfold.adapters.proof.verdict import Status

TEXT = SHIPPED.read_text(encoding="utf-8")


def failing(folder: Path, cell: Cell, *edits: tuple[str, str]) -> list[str]:
    """Return what z3 says against *cell* of the spec with *edits*, each of which has one place."""
    text = TEXT
    for old, new in edits:
        assert 1 == text.count(old), old
        text = text.replace(old, new)
    path = folder / "machine.toml"
    path.write_text(text, encoding="utf-8")
    spec = read_spec(path)
    proof = Proof(spec, read_arithmetic(spec))
    return [f"{row.outcome}: {each}" for row, words in proof.cells({cell}) for each in words]


def test_every_row_is_proved_for_all_limits() -> None:
    told: list[tuple[str, int, int]] = []
    spec = read_spec()

    check = by_z3(spec, read_arithmetic(spec), lambda *each: told.append(each))

    assert () == check.findings
    assert Status.PROVED is check.status
    assert ("z3", len(spec.rows), len(spec.rows)) == told[-1]


BREAKS: dict[str, tuple[Cell, list[tuple[str, str]]]] = {
    "resumed: the measure falls": (
        ("Waiting", "Resumed"),
        [
            (
                '[changes."Waiting Resumed retries_left"]\n"attempts.retries" = "attempts.retries + 1"',
                '[changes."Waiting Resumed retries_left"]',
            )
        ],
    ),
    "max_output_tokens_recovery: the measure falls": (
        ("Sampling", "StreamClosed"),
        [('"recovery.output_recoveries + 1"', '"recovery.output_recoveries"')],
    ),
    "reactive_compact_retry: the measure falls": (
        ("Reacting", "Compacted"),
        [('"recovery.reactive_compacted" = "true"', '"recovery.reactive_compacted" = "false"')],
    ),
    "max_output_tokens_escalate: the measure falls": (
        ("Sampling", "StreamClosed"),
        [("and recovery.output_limit_override == 0 and", "and")],
    ),
    "next_turn: the invariant 'turns' holds again": (
        ("Scheduling", "Entered"),
        [("on(max_turns) and turn + 1 > max_turns", "on(max_turns) and turn > max_turns")],
    ),
    "token_budget_continuation: the measure falls": (
        ("Settling", "Entered"),
        [("- spending.last_total < budget_delta_tokens and", "< 0 and")],
    ),
    "resending: the measure is never negative": (
        ("Sampling", "StreamClosed"),
        [("attempts.resends < max_resends", "attempts.resends <= max_resends")],
    ),
    "fallback: the measure falls": (
        ("Sampling", "StreamFailed"),
        [('"attempts.fallbacks + 1"', '"0"')],
    ),
    "checking: the invariant 'Checking' holds again": (
        ("Sampling", "StreamClosed"),
        [('"hooks.left" = "hooks.due - 1"', '"hooks.left" = "hooks.due"')],
    ),
    "compacting: the invariant 'Compacting' holds again": (
        ("Fitting", "Entered"),
        [("compaction.tried == 'not' and compaction.failures", "compaction.failures")],
    ),
    "resumed: the finer order falls": (
        ("Running", "Resumed"),
        [('untried = "0" # each', 'untried = "untried" # each')],
    ),
    "fits: a row that can be taken: never": (
        ("Fitting", "Entered"),
        [('"Fitting", "Entered", "context_full"', '"Fitting", "Entered", "always"')],
    ),
    "settling: some row of this phase and event applies": (
        ("Checking", "HookAnswered"),
        [
            ('["Checking", "HookAnswered", "always",', '["Checking", "HookAnswered", "prevented",'),
            ('[changes."Checking HookAnswered always"]', '[changes."Checking HookAnswered prevented"]'),
        ],
    ),
}


@pytest.mark.parametrize("told", BREAKS)
def test_a_row_that_breaks_the_measure_is_named(tmp_path: Path, told: str) -> None:
    cell, edits = BREAKS[told]

    found = failing(tmp_path, cell, *edits)

    assert [line for line in found if line.startswith(told)], found


def test_without_the_extra_it_is_skipped_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    spec = read_spec()

    check = by_z3(spec, read_arithmetic(spec), lambda name, done, known: None)

    assert Status.SKIPPED is check.status
    assert "stepfold[proof]" in check.words
