"""The table of public reports is complete, and what it names is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "scenarios" / "reports"
CASES = ROOT.parent / "shared" / "cases" / "bug_reports.json"
# The collection may be absent: these are its numbers.
NUMBERS = (
    1, 4, 5, 6, 7, 9, 10, 11, 16, 18, 20, 21, 22, 23, 24, 25, 27, 28, 29, 33, 34, 39, 40, 41, 42, 43, 44, 45,
    48, 49, 50, 51, 52, 53, 54, 55, 57, 58, 62, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79,
    80, 82, 83, 84, 86, 87, 89, 90, 91, 92, 95, 100, 101, 102, 106, 108, 109, 110, 111, 115, 117, 121, 123,
    124, 125, 127, 130, 131, 132, 133, 134, 136, 137, 138, 139, 140, 141, 143, 146,
)  # fmt: skip
NOT_HERE = "not here"


@attrs.frozen
class Row:
    """One line of the table: what it names in backticks, and what it says of it."""

    number: int
    report: str
    where: str
    what: str

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(re.findall(r"`([^`]+)`", self.where))

    @property
    def own_files(self) -> tuple[str, ...]:
        """The scenarios of this folder that it names."""
        return tuple(name for name in self.named if not name.startswith("tests/"))


def rows() -> list[Row]:
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [Row(int(number), *rest) for number, *rest in cells if number.isdigit()]


ROWS = rows()


def test_each_report_has_one_line() -> None:
    assert list(NUMBERS) == [row.number for row in ROWS]
    assert 93 == len(ROWS) == len({row.report for row in ROWS})


@pytest.mark.skipif(not CASES.is_file(), reason="the collection of reports is not here")
def test_the_lines_are_those_of_the_collection() -> None:
    collected = json.loads(CASES.read_text(encoding="utf-8"))

    assert [(one["n"], f"{one['repo']}#{one['number']}") for one in collected] == [
        (row.number, row.report) for row in ROWS
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.report)
def test_what_a_line_names_is_there(row: Row) -> None:
    assert row.what
    assert row.named or row.where == NOT_HERE
    for name in row.named:
        path, _, test = name.partition("::")
        file = ROOT / path if path.startswith("tests/") else FOLDER / path
        assert file.is_file(), name
        assert bool(test) == (file.suffix == ".py"), name
        if test:
            assert re.search(rf"^(async )?def {test}\(", file.read_text(encoding="utf-8"), re.MULTILINE), name


def test_each_scenario_here_stands_in_one_line() -> None:
    named = [name for row in ROWS for name in row.own_files]

    assert sorted(named) == sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.toml"))


@pytest.mark.parametrize("row", [row for row in ROWS if row.own_files], ids=lambda row: row.report)
def test_a_scenario_names_the_report_that_it_is_of(row: Row) -> None:
    for name in row.own_files:
        assert f'about = "{row.report}.' in (FOLDER / name).read_text(encoding="utf-8")
