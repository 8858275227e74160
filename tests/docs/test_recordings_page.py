"""What only this file catches: a recipe or an example of the pages about recordings that does not work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stepfold.adapters.cli import main
from tests.docs.test_readme import blocks
from tests.recording.test_outcomes import kept

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recordings.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_recipe_for_ci_takes_six_lines_and_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (recipe,) = blocks("yaml")
    assert recipe in PAGE
    assert 6 == len(recipe.splitlines())
    command = shlex.split(recipe.splitlines()[-1].split("- run: ")[1])
    assert "stepfold" == command[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    for name in ("a", "b"):
        kept(tmp_path / "recordings" / f"{name}.jsonl")
    assert 0 == main(command[1:])
    changed = tmp_path / "recordings" / "b.jsonl"
    changed.write_text(changed.read_text().replace('"ended":"completed"', '"ended":"max_turns"'))
    assert 1 == main(command[1:])


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    kept(tmp_path / "run.jsonl")
    file = tmp_path / "example.py"
    file.write_text(EXAMPLES[number], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)
