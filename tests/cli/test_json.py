"""What only this file catches: a field of ``--json`` that the page does not know, or one that never comes."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from stepfold.adapters.cli.commands.explain import explain
from stepfold.adapters.cli.commands.graph import graph_command
from stepfold.adapters.cli.commands.prove import prove_command
from stepfold.adapters.cli.commands.replay import ReplayWishes, replay_command
from stepfold.adapters.cli.terminal.json_view import JsonView
from stepfold.adapters.config_file import Settings
from stepfold.adapters.scenarios.check import check_file, check_paths
from stepfold.adapters.scripted import ScriptedModel
from stepfold.effects import run_sync
from stepfold.effects.ports import ToolProgress
from stepfold.engine import effects as ef
from stepfold.engine import messages as m
from stepfold.engine.events import CallStatus
from stepfold.engine.failures import Failure, FailureKind
from tests.cli.test_demo import LADDERS
from tests.cli.test_help import PAGE

Object = dict[str, Any]


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The rows of a table under *heading* in the page, cell by cell."""
    part = PAGE.split(f"### {heading}\n")[1].split("\n#")[0]
    tables = re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE)
    return [
        [cell.strip() for cell in row.strip("| ").split(" | ")] for row in tables[number].splitlines()[2:]
    ]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


def documented(heading: str, number: int = 0) -> dict[str, str]:
    """Each field with what the page says of it."""
    return {name: row[-1] for row in table(heading, number) for name in names(row[0])}


def objects(text: str) -> list[Object]:
    return [json.loads(line) for line in text.splitlines()]


def always(fields: dict[str, str]) -> set[str]:
    return {name for name, words in fields.items() if not words.startswith("only ")}


def agrees(fields: dict[str, str], found: list[Object]) -> None:
    """Every object has the fields that are always there; each of the others comes once at least."""
    for each in found:
        assert always(fields) <= set(each) <= set(fields)
    assert set(fields) == {name for each in found for name in each}


def test_check(tmp_path: Path) -> None:
    good = (LADDERS / "05_turns.toml").read_text()
    (tmp_path / "good.toml").write_text(good)
    (tmp_path / "bad.toml").write_text(good.replace('"max_turns"', '"completed"'))
    (tmp_path / "broken.toml").write_text(good + "colour = 1\n")
    out = io.StringIO()

    assert 2 == check_paths([tmp_path, tmp_path / "no.toml"], json=True, out=out)

    bad, broken, whole, missing = objects(out.getvalue())
    fields = documented("An object of `check --json`")
    agrees(fields, [bad, broken, whole, missing])
    assert always(fields) == set(whole) == set(bad)
    assert set(fields) == set(broken) == set(missing)
    assert (True, "max_turns", ["max_turns"]) == (whole["ok"], whole["terminal"], whole["terminals"])
    assert (False, None, [], 0) == (missing["ok"], missing["terminal"], missing["terminals"], missing["line"])
    assert broken["line"] == good.count("\n") + 1
    assert [broken["error"]] == broken["differences"]
    (tmp_path / "malformed").mkdir()
    lines = io.StringIO()
    check_paths([tmp_path], out=lines)
    assert ["FAIL", "MALFORMED", "ok"] == [line.split()[0] for line in lines.getvalue().splitlines()[:-1]]


def test_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_file(LADDERS / "05_turns.toml", tmp_path)
    whole = tmp_path / "05_turns.jsonl"
    torn, unfit = tmp_path / "torn.jsonl", tmp_path / "unfit.jsonl"
    torn.write_bytes(whole.read_bytes()[:-10])
    lines = whole.read_text().splitlines(keepends=True)
    unfit.write_text("".join(line.replace('"effect_id":1,', '"effect_id":99,') for line in lines))
    fields = documented("An object of `replay --json`")

    limits = tmp_path / "limits.toml"
    limits.write_text("max_turns = 1\n")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n")
    files = [whole, torn, unfit, broken]
    replay_command(ReplayWishes(files=files, config=limits, json=True))
    plain = objects(capsys.readouterr().out)
    replay_command(ReplayWishes(files=files, same=True, json=True))
    compared = objects(capsys.readouterr().out)

    assert {"recording", "ok", "error"} == set(plain.pop()) == set(compared.pop())
    agrees(fields, [*plain, *compared])
    assert always(fields) == set(plain[0]) - {"what_if"} == set(plain[1]) - {"what_if"}
    assert always(fields) == set(compared[0]) - {"difference"}
    assert names(fields["what_if"]) == set(plain[0]["what_if"])
    assert {"event", "field", "problem", "recorded", "now", "cause"} == set(plain[2]) - always(fields)
    assert (0, True) == (plain[0]["torn"], plain[1]["torn"] > 0)
    assert None is compared[0]["difference"]
    assert names(fields["runs"]) == set(plain[0]["runs"][0])
    assert names(fields["difference"].split("recording:")[1]) == set(compared[2]["difference"])


def test_graph(capsys: pytest.CaptureFixture[str]) -> None:
    graph_command(full=False, json=True)

    agrees(documented("An object of `graph --json`"), objects(capsys.readouterr().out))


def kinds(found: list[Object]) -> dict[str, set[str]]:
    """The other fields of each object, by its first."""
    return {next(iter(each)): set(list(each)[1:]) for each in found}


def test_prove(capsys: pytest.CaptureFixture[str]) -> None:
    prove_command(None, json=True, states=1)
    found = objects(capsys.readouterr().out)
    rows = {name: names(row[1]) for row in table("An object of `prove --json`") for name in names(row[0])}

    assert rows == {"meaning": set(), **kinds(found)}  # nothing is proved of one state
    assert "verdict" in found[-1]


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    explain(Settings(), None, None, None, json=True)
    found = kinds(objects(capsys.readouterr().out))
    rows = {name: names(row[1]) for row in table("An object of `prove --json`") for name in names(row[0])}

    assert ["explains", "worst", "meaning"] == list(found)
    assert {"explains": set(), "worst": rows["worst"], "meaning": rows["meaning"]} == found


# ------------------------------------------------------------------------ a run

FAILURE = Failure(FailureKind.OVERLOADED, "busy", 529)
ITEMS: tuple[object, ...] = (
    ef.BlockShown(1, m.Text("hi")),
    ef.CallShown("t1", CallStatus.COMPLETED, (m.Text("x"),)),
    ef.MessageShown(m.Message(m.Role.USER, (m.Text("more"),), m.Origin.NUDGE)),
    ef.ErrorShown(FAILURE),
    ef.SummaryShown(1, "read it"),
    ef.Continued("next_turn", 0, 2),
    ef.Notice(ef.NoticeKind.RETRYING, "try 2", 500),
    ef.Tombstone(1),
    ToolProgress("t1", "half"),
)


def printed(*items: object) -> list[Object]:
    out = io.StringIO()
    view = JsonView(out)
    for item in items:
        view.show(item)
    view.say("stopping")
    view.finish(run_sync("x", model=ScriptedModel(["done"])))
    return objects(out.getvalue())


def test_run() -> None:
    assert set(get_args(ef.Shown)) | {ef.Tombstone, ToolProgress} == {type(item) for item in ITEMS}
    rows = {name: names(row[1]) for row in table("An object of `run --json`") for name in names(row[0])}
    found = printed(*ITEMS)

    *others, result = found
    assert [*rows] == [
        each["type"] for each in sorted(found, key=lambda each: list(rows).index(each["type"]))
    ]
    assert all({"type", *rows[each["type"]]} == set(each) for each in others)
    fields = documented("An object of `run --json`", 1)
    assert {"type", *fields} == set(result)
    assert names(fields["usage"]) == set(result["usage"])


@pytest.mark.parametrize("text", ["1" * 5_000, "[" * 50_000, "[NaN]", "{", ""])
def test_an_input_that_cannot_be_read_is_a_text(text: str) -> None:
    use, media = printed(
        ef.BlockShown(1, m.ToolUse("t1", "read", text)), ef.BlockShown(1, m.Media("image", text))
    )[:2]

    assert text == use["block"]["input"]
    assert {"type": "image", "wire": text} == media["block"]


def test_a_long_number_comes_through_unchanged() -> None:
    use = printed(ef.BlockShown(1, m.ToolUse("t1", "read", '{"n":123456789012345678901234567890}')))[0]

    assert {"n": 123456789012345678901234567890} == use["block"]["input"]
