"""What only this file catches: a picture that leaves out a way of the run, or is no Mermaid."""

from __future__ import annotations

import json
import re

from stepfold.adapters.cli.commands.graph import mermaid, rows_json
from stepfold.engine.state import Continue
from stepfold.engine.table import JUNCTIONS, TABLE
from stepfold.engine.terminals import Terminal

NODE = re.compile(r'    (\w+)(?:\["\w+"\]:::phase|\{"\w+"\}:::junction|\(\["\w+"\]\):::terminal)')
ARROW = re.compile(r'    (\w+) (-->|==>)(?:\|"[^"|]+"\|)? (\w+)')
CLASS = re.compile(r"    classDef (phase|junction|terminal) [\w:#,-]+")


def test_every_line_is_one_that_mermaid_knows() -> None:
    for full in (False, True):
        lines = mermaid(TABLE, full=full).splitlines()
        body = [line for line in lines if not line.startswith("%%")]
        assert body[0] == "flowchart TD"
        for line in body[1:]:
            assert any(form.fullmatch(line) for form in (NODE, ARROW, CLASS)), line


def test_all_seven_all_ten_and_every_phase_are_drawn() -> None:
    picture = mermaid(TABLE)

    arrows = [ARROW.fullmatch(line) for line in picture.splitlines()]
    ends = {arrow[3] for arrow in arrows if arrow}
    for reason in Continue:
        assert f"<b>{reason}</b>" in picture
    assert {terminal.value for terminal in Terminal} <= ends
    phases = {phase.__name__ for row in TABLE for phase in row.phases}
    drawn = {match[1] for line in picture.splitlines() if (match := NODE.fullmatch(line))}
    assert phases | {terminal.value for terminal in Terminal} == drawn


def test_thick_arrows_are_the_continues_and_go_to_a_new_iteration() -> None:
    thick = [line for line in mermaid(TABLE).splitlines() if "==>" in line]

    assert all(line.endswith("| Preparing") for line in thick)
    assert {str(reason) for reason in Continue} == {re.findall(r"<b>(\w+)</b>", line)[0] for line in thick}


def test_junctions_are_left_by_every_way_the_table_has() -> None:
    picture = mermaid(TABLE)

    for row in TABLE:
        for phase in row.phases:
            if phase in JUNCTIONS and row.enters is not phase:
                target = row.outcome.value if isinstance(row.outcome, Terminal) else row.enters.__name__
                assert re.search(rf"    {phase.__name__} (-->|==>)(\|.*\|)? {target}$", picture, re.MULTILINE)


def test_json_has_a_row_a_line_in_order() -> None:
    rows = [json.loads(line) for line in rows_json(TABLE).splitlines()]

    assert len(TABLE) == len(rows)
    assert [row.when.__name__ for row in TABLE] == [row["when"] for row in rows]
    assert {"continue", "terminal", "stay"} == {row["kind"] for row in rows}
    assert {"phases", "event", "when", "outcome", "kind", "enters", "by"} == set(rows[0])
