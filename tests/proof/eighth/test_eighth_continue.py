"""
What only this file catches: nets that let an eighth continue pass before it is done right.

The continue is really built, in a copy of the sources, in the order of ``docs/verification.md``; at each
stage the nets say what is still missing, and at the last one nothing is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.proof.eighth import edits
from tests.proof.eighth.edits import apply

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
Told: TypeAlias = dict[str, list[str]]
STAGES = (
    edits.A_ROW,
    edits.IN_THE_SPEC,
    edits.A_LIMIT,
    edits.A_PLACE,
    edits.IN_THE_KEY,
    edits.KEPT_BY_THE_DRAIN,
    edits.IN_THE_SEARCH,
    edits.IN_THE_CLOSED_FORMS,
)


def nets_of(folder: Path) -> Told:
    """Cast the nets over the copy in *folder*."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "proof" / "eighth" / "nets.py")],
        env={**os.environ, "PYTHONPATH": str(folder.parent)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-2_000:]
    told: Told = json.loads(done.stdout)
    assert str(folder) in str(told.pop("table")), "the copy is what was looked at"
    return told


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """What the nets say of the machine as it is, and after each stage."""
    folder = tmp_path_factory.mktemp("eighth") / "stepfold"
    for name in ("engine", "effects", "adapters", "specs"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True
        )
    found = [nets_of(folder)]
    for stage in STAGES:
        apply(folder, stage)
        found.append(nets_of(folder))
    return found


def failing(told: Told) -> set[str]:
    return {net for net, findings in told.items() if findings}


def has(findings: list[str], *words: str) -> bool:
    return any(all(word in line for word in words) for line in findings)


def test_before_it_nothing_fails(told: list[Told]) -> None:
    assert {net: [] for net in told[0]} == told[0]


def test_a_row_alone_fails_in_every_net(told: list[Told]) -> None:
    now = told[1]

    assert {"second copy", "explorer", "measure", "matrix", "worst case"} == failing(now)
    assert has(now["second copy"], "says refused", "the table says refusal_retriable -> again:refusal_retry")
    assert has(now["explorer"], "never a circle without a turn")
    assert has(now["measure"], "it stayed at")
    assert has(now["matrix"], "the spec has no continue refusal_retry")
    assert has(now["worst case"], "the search never takes refusal_retry")


def test_the_spec_quiets_the_matrix_and_not_what_goes_round(told: list[Told]) -> None:
    now = told[2]

    assert {"second copy", "explorer", "measure", "worst case"} == failing(now)
    assert has(now["second copy"], "refusal_retry", "refusals")


def test_a_limit_that_the_measure_does_not_know_still_stays(told: list[Told]) -> None:
    now = told[3]

    assert has(now["measure"], "it stayed at")
    assert has(now["second copy"], "limits.max_refusals: the spec says no such limit; the engine says 1")


def test_a_counter_that_is_not_in_the_key_still_goes_round(told: list[Told]) -> None:
    now = told[4]

    assert [] == now["second copy"]
    assert has(now["explorer"], "never a circle without a turn")


def test_a_drain_that_gives_it_back_makes_the_measure_rise(told: list[Told]) -> None:
    now = told[5]

    assert [] == now["second copy"] + now["explorer"] + now["matrix"]
    assert has(now["measure"], "it rose from")


def test_kept_by_the_drain_only_the_worst_case_is_open(told: list[Told]) -> None:
    now = told[6]

    assert {"worst case"} == failing(now)
    assert ["the search never takes refusal_retry: what it costs is not known"] == now["worst case"]


def test_searched_the_closed_forms_are_too_small(told: list[Told]) -> None:
    now = told[7]

    assert {"worst case"} == failing(now)
    assert has(now["worst case"], "model_calls: the closed form says 2, the search 4", "max_refusals = 1")


def test_done_right_nothing_fails_any_more(told: list[Told]) -> None:
    assert {net: [] for net in told[8]} == told[8]
