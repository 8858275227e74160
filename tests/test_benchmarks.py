"""The benchmarks run and tell their figures; no figure is judged here, machines are too noisy for that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def ran(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{name}", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_quick_figures_as_json() -> None:
    done = ran("quick", "--tiny", "--json")
    assert (0, "") == (done.returncode, done.stderr)
    told = json.loads(done.stdout)
    assert told["floor_us"] > 0
    names = {figure["name"] for figure in told["figures"]}
    assert {"turn with one tool", "kept in memory a turn", "replay, an event"} <= names
    assert "of it the new records, built alone, average" in names
    for figure in told["figures"]:
        assert (figure["allowed"] is None) == (figure["target"] is None) == (figure["ok"] is None)
        if figure["ok"] is not None:
            assert figure["ok"] == (figure["value"] <= figure["allowed"])


def test_the_figures_of_fuzzing_as_json() -> None:
    done = ran("fuzz", "--tiny", "--json")
    assert (0, "") == (done.returncode, done.stderr)
    told = json.loads(done.stdout)
    assert told["floors"] == pytest.approx(told["run_us"] / told["floor_us"], rel=0.01)
    assert told["runs_a_second"] == pytest.approx(1e6 / told["run_us"], rel=0.01)
    assert told["events_a_run"] > 1
    assert told["two_processes"] > 0


def test_the_figures_of_recordings_as_json() -> None:
    done = ran("recordings", "--tiny", "--json")
    assert (0, "") == (done.returncode, done.stderr)
    told = json.loads(done.stdout)
    assert {"replay_entries_a_second", "import_mb_a_second", "bytes_an_entry"} <= set(told)
    assert all(value > 0 for value in told.values())


@pytest.mark.parametrize("name", ["quick", "fuzz", "recordings"])
def test_a_word_that_is_not_known(name: str) -> None:
    done = ran(name, "--fast")
    assert (2, "") == (done.returncode, done.stdout)
    assert f"benchmarks.{name}: --fast is not known; allowed: --json, --tiny\n" == done.stderr
