"""The guide is true: what it shows runs from an empty folder, and comes to what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import stepfold.testing
from stepfold.adapters.recording import read_recording
from stepfold.testing import Fault

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_guide_takes_thirty_lines() -> None:
    assert 30 >= len([line for line in FILES["test_agent.py"].splitlines() if line.strip()])


def test_the_search_finds_what_the_page_says_and_its_files_are_taken(tmp_path: Path) -> None:
    (tmp_path / "test_agent.py").write_text(FILES["test_agent.py"], encoding="utf-8")

    # Where it finds itself in CI, Hypothesis takes its profile "ci", whose searches have no seed.
    done = run(tmp_path, "pytest", "--hypothesis-profile=default", "test_agent.py")

    assert 1 == done.returncode, done.stdout
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    wanted = [line for line in shown[1].splitlines() if not line.startswith("seed")]
    assert [] == [line for line in wanted if line not in done.stdout.splitlines()], done.stdout
    assert re.search(r"^seed: +(\d+) \(again: --hypothesis-seed=\1\)$", done.stdout, re.MULTILINE)
    finding = tmp_path / ".stepfold" / "findings" / "Agent-a_run_costs_at_most_six_calls"
    assert 13 == len(read_recording(finding.with_suffix(".jsonl")).events)
    for command, suffix in (("check", ".toml"), ("replay", ".jsonl")):
        told = run(tmp_path, "stepfold.adapters.cli", command, str(finding.with_suffix(suffix)))
        assert (0, "") == (told.returncode, told.stderr), told.stdout


@pytest.mark.slow
def test_with_the_limit_it_passes(tmp_path: Path) -> None:
    source = FILES["test_agent.py"].replace("max_turns=5", "max_turns=5, max_model_calls=6")
    (tmp_path / "test_agent.py").write_text(source, encoding="utf-8")
    done = run(tmp_path, "pytest", "-q", "test_agent.py")
    assert 0 == done.returncode, done.stdout


@pytest.mark.parametrize("name", sorted(set(FILES) - {"test_agent.py"}))
def test_an_example_passes(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    done = run(tmp_path, "pytest", "-q", name)
    assert 0 == done.returncode, done.stdout


def test_every_fault_stands_on_the_page() -> None:
    table = PAGE[PAGE.index("| about | `Fault` |") : PAGE.index("After every event")]
    assert {fault.name for fault in Fault} == set(re.findall(r"`([A-Z_]+)`", table))


def test_the_public_names_exist_once() -> None:
    assert sorted(stepfold.testing.__all__) == sorted(set(stepfold.testing.__all__))
    for name in stepfold.testing.__all__:
        value = getattr(stepfold.testing, name)
        module = getattr(value, "__module__", "")
        assert not str(module).startswith("stepfold.testing"), name
