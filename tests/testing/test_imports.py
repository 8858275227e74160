"""What only this file catches: Hypothesis or pytest where a plain installation has neither."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = ("hypothesis", "pytest", "_pytest")
PLAIN = (
    "stepfold.adapters.testing.answers",
    "stepfold.adapters.testing.config_space",
    "stepfold.adapters.testing.machine.bare",
    "stepfold.adapters.testing.machine.calling",
    "stepfold.adapters.testing.machine.judge",
    "stepfold.adapters.testing.machine.live",
    "stepfold.adapters.testing.record",
    "stepfold.adapters.testing.told",
    "stepfold.adapters.testing.world",
    "stepfold.adapters.testing.writing.finding",
)


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_only_the_testing_folder_imports_them() -> None:
    shipped = [path for name in ("engine", "effects", "adapters") for path in (ROOT / name).rglob("*.py")]
    testing = ROOT / "adapters" / "testing"
    outside = [path for path in shipped if not path.is_relative_to(testing)]
    assert [] == [str(path.relative_to(ROOT)) for path in outside if imported(path) & set(EXTRAS)]


@pytest.mark.parametrize("name", PLAIN)
def test_what_a_seeded_search_is_built_on_needs_neither(name: str) -> None:
    code = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r})); import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
