"""Only this file lets real processes die, before and after each append, and counts what tools really did."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("dying")
    command = [sys.executable, "-m", "tests.effects.dying", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_append_was_died_at(cases: list[dict[str, Any]]) -> None:
    whole = [case for case in cases if not case["died"]]
    assert 2 == len(whole)
    appends = len(whole[0]["events"])
    assert [*range(1, appends + 1)] * 2 == [case["at"] for case in cases if case["died"]]
    for case in cases:
        if case["died"]:
            assert case["at"] - (not case["after"]) == case["left"]


def test_the_next_process_comes_to_the_same_end(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert (0, "completed") == (case["code"], case.get("terminal")), case
        resumed = case["events"].count("Resumed")
        finished = case["died"] and case["left"] == len(case["events"])
        assert (1 if case["died"] and case["left"] and not finished else 0) == resumed
        assert case["uses"] == case["results"]
        assert len(case["uses"]) == len(set(case["uses"]))


def test_no_tool_does_its_work_twice_but_one_that_may(cases: list[dict[str, Any]]) -> None:
    reran = 0
    for case in cases:
        for call, times in Counter(case["ran"]).items():
            assert times <= (2 if call.startswith("again") else 1), case
            reran += times > 1
        for call, status in case["calls"].items():
            if status == "unknown":
                assert case["ran"].count(call) <= (2 if call.startswith("again") else 1)
            elif status == "completed":
                assert call in case["ran"]
    assert reran


def test_a_tool_that_had_started_is_unknown(cases: list[dict[str, Any]]) -> None:
    assert any("unknown" in case["calls"].values() for case in cases)
    assert all("unknown" not in case["calls"].values() for case in cases if not case["died"])
