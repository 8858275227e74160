"""The README is true: its examples run, its scenario passes, its picture is the table's."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from stepfold.adapters.cli.commands.graph import mermaid
from stepfold.adapters.cli.exits import (
    BUG,
    BY_TERMINAL,
    FAILED,
    INTERRUPTED,
    OK,
    OUTPUT_LOST,
    PIPE_CLOSED,
    SKIPPED,
    USAGE,
)
from stepfold.adapters.scenarios.check import check_paths
from stepfold.engine.state import Continue
from stepfold.engine.table import TABLE
from stepfold.engine.terminals import Terminal

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def test_the_two_commands_come_first() -> None:
    assert "sh" == BLOCKS[0][0]
    assert ["make demo", "make test"] == re.findall(r"^make \w+", BLOCKS[0][1], re.MULTILINE)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(blocks("python")[number], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_what_the_stream_example_prints(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(blocks("python")[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "I am done.  -> stop_hook_blocking\nNow it is fixed.\n" == done.stdout


def test_the_scenario_passes(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(blocks("toml")[0], encoding="utf-8")
    out = StringIO()
    assert 0 == check_paths([file], out=out), out.getvalue()


def test_the_picture_is_the_table() -> None:
    assert [mermaid(TABLE) + "\n"] == blocks("mermaid")


def test_the_two_lists_are_whole() -> None:
    table = README[README.index("| goes round again") : README.index("## A run written down")]
    left = [row.split("|")[1] for row in table.splitlines() if row.startswith("| ")]
    right = [row.split("|")[2] for row in table.splitlines() if row.startswith("| ")]
    assert set(Continue) == set(re.findall(r"`(\w+)`(?=:)", " ".join(left)))
    assert set(Terminal) <= set(re.findall(r"`(\w+)`", " ".join(right)))


def test_the_exit_codes_are_those_of_the_program() -> None:
    told = README[README.index("Exit codes: 0") : README.index("[docs/cli.md]")]
    ends = {code for end, code in BY_TERMINAL.items() if end != "completed"}
    others = {OK, FAILED, USAGE, SKIPPED, BUG, OUTPUT_LOST, INTERRUPTED, PIPE_CLOSED}
    assert others | {min(ends), max(ends - {INTERRUPTED})} == {
        int(number) for number in re.findall(r"\d+", told)
    }


def test_every_link_leads_somewhere() -> None:
    for target, anchor in re.findall(r"\]\(([^)#]+)(?:#([\w-]+))?\)", README):
        assert (ROOT / target).exists(), target
        headings = re.findall(r"^#+ (.+)$", (ROOT / target).read_text(encoding="utf-8"), re.MULTILINE)
        assert not anchor or anchor in [heading.lower().replace(" ", "-") for heading in headings]


def lines_of_code(path: Path) -> int:
    """Count lines that are neither empty nor comment, docstring or import."""
    text = path.read_text(encoding="utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        words = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if words or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and line.strip()[0] != "#" and at not in left_out for at, line in lines)


def test_the_reading_order_is_short() -> None:
    files = re.findall(r"\]\(((?:engine|effects)/\w+\.py)\)", README)
    assert ["engine/table.py", "engine/state.py", "engine/step.py", "effects/interpreter.py"] == files
    assert 700 == round(sum(lines_of_code(ROOT / file) for file in files), -2)
    assert "some 700 lines of code" in README
