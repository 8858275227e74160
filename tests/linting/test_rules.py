"""What only this file catches: a fault that no rule sees, and a rule that cries where nothing is wrong."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.linting.finding import RULES, Severity
from stepfold.adapters.linting.linting import Linted, findings_in, lint, sarif
from stepfold.adapters.scenarios.check import check_paths
from stepfold.adapters.transcripts.items import (
    Compacted,
    Ended,
    Interrupted,
    Item,
    Place,
    RequestFailed,
    Said,
)
from stepfold.engine import Config
from stepfold.engine.messages import Block, Message, Origin, Role, Text, Thinking, ToolResult, ToolUse
from tests.cli.test_json import documented
from tests.recording.played import record_scenarios
from tests.transcripts.test_formats import SESSION, answer, claude, results, text, use, written

ROOT = Path(__file__).parents[2]


def said(line: int, *blocks: Block, answer: str = "", stop: str = "") -> Said:
    return Said(Place(line), Message(Role.ASSISTANT, blocks, Origin.ANSWER), answer, "m", stop)


def told(line: int, *blocks: Block) -> Said:
    return Said(Place(line), Message(Role.USER, blocks, Origin.PROMPT))


def call(id: str, input: str = "{}") -> ToolUse:
    return ToolUse(id, "read", input)


def result(id: str, words: str = "x") -> ToolResult:
    return ToolResult(id, (Text(words),))


def failed(line: int, wait_ms: int | None = 500, *, shown: bool = False) -> RequestFailed:
    return RequestFailed(Place(line), "busy", 529, "overloaded_error", wait_ms=wait_ms, shown=shown)


def turn(line: int, id: str, words: str = "x") -> list[Item]:
    return [said(line, call(id), answer=f"m{line}"), told(line + 1, result(id, words))]


SMALLER = Compacted(Place(20), "auto", 9, 2)
GOOD: list[Item] = [
    told(1, Text("go")),
    *turn(2, "a"),
    *turn(4, "b", "y"),
    said(6, Text("done"), answer="m6"),
]


def found(items: list[Item], **limits: Any) -> list[tuple[str, int]]:
    rules = [(one.rule, one.place.line) for one in findings_in(items, "codex", Config(**limits))]
    return [pair for pair in rules if pair[0] != "terminal"]


# -------------------------------------------------------------------- each rule


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert [] == found(GOOD)


CASES: list[tuple[str, list[Item], int]] = [
    ("orphan-result", [told(1, Text("go")), told(2, result("a"))], 2),
    (
        "missing-result",
        [said(1, call("a"), answer="m1"), told(2, Text("so?")), said(3, Text("x"), answer="m3")],
        1,
    ),
    ("open-call", [told(1, Text("go")), said(2, call("a"), answer="m2")], 2),
    ("duplicate-id", [*turn(1, "a"), *turn(3, "a", "y")], 3),
    ("duplicate-id", [*turn(1, "a"), told(3, result("a"))], 3),
    (
        "thinking-changed",
        [
            said(1, Thinking("hm", "sig"), Text("a"), answer="m1"),
            told(2, Text("and?")),
            said(3, Thinking("ha", "sig"), Text("b"), answer="m3"),
        ],
        3,
    ),
    (
        "thinking-last",
        [said(1, Thinking("hm", "sig"), answer="m1"), told(2, Text("and?")), said(3, Text("b"), answer="m3")],
        1,
    ),
    ("repeated-call", [*turn(1, "a"), *turn(3, "b"), *turn(5, "c"), said(7, Text("x"), answer="m7")], 7),
    ("compaction-without-effect", [Compacted(Place(4), "auto", 100, 100)], 4),
    ("compaction-again", [Compacted(Place(1)), *turn(2, "a"), Compacted(Place(4))], 4),
    ("retry-storm", [*(failed(line) for line in range(1, 6)), said(9, Text("x"), answer="m")], 1),
    ("retry-storm", [failed(line) for line in range(1, 6)], 1),
    ("error-shown", [failed(1, shown=True), said(2, Text("x"), answer="m")], 1),
    ("error-hidden", [failed(1), said(2, Text("x"), answer="m")], 1),
]


@pytest.mark.parametrize(
    ("rule", "items", "line"), CASES, ids=[f"{at}-{case[0]}" for at, case in enumerate(CASES)]
)
def test_what_is_wrong_is_found(rule: str, items: list[Item], line: int) -> None:
    assert (rule, line) in found(items)
    others = {name for name, _ in found(items)} - {rule}
    assert others <= {"error-hidden", "open-call"}


@pytest.mark.parametrize(
    "items",
    [
        # the same answer in several lines, with results between them
        [
            said(1, call("a"), answer="m1"),
            told(2, result("a")),
            said(3, call("b"), answer="m1"),
            told(4, result("b", "y")),
            said(5, Text("x"), answer="m5"),
        ],
        # answers without ids, in pieces
        [said(1, Thinking("hm")), said(2, call("a")), told(3, result("a")), said(4, Text("x"))],
        # the same call with other results, the same results of other calls
        [*turn(1, "a", "1"), *turn(3, "b", "2"), *turn(5, "c", "3"), said(7, Text("x"), answer="m7")],
        # compactions far apart, that shrink
        [SMALLER, *(one for at in range(4) for one in turn(2 + 2 * at, f"{at}", f"{at}")), SMALLER],
        # what was open before a compaction is in no request behind it
        [said(1, call("a"), answer="m1"), SMALLER, said(3, Text("x"), answer="m3")],
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(items: list[Item]) -> None:
    assert [] == found(items)


def test_conversations_are_held_apart() -> None:
    side = Said(Place(2, "", "agent"), Message(Role.USER, (result("a"),)))
    assert [("orphan-result", 2)] == found([*GOOD, side])


@pytest.mark.parametrize(
    ("limits", "items", "line"),
    [
        ({"max_turns": 1}, GOOD, 4),
        ({"max_model_calls": 2}, GOOD, 6),
        ({"max_retries": 2}, [failed(1), failed(2), failed(3)], 3),
        (
            {"max_output_recoveries": 1},
            [said(at, Text(f"{at}"), answer=f"m{at}", stop="max_tokens") for at in (1, 2, 3)],
            3,
        ),
    ],
)
def test_where_a_limit_would_have_stopped_it(limits: dict[str, int], items: list[Item], line: int) -> None:
    assert [line] == [at for rule, at in found(items, **limits) if rule == "limit"]


def test_a_storm_tells_how_long_was_waited() -> None:
    for waits, words in (([1, 2, 4, 8, 16], "grows"), ([5, 5, 4, 5, 5], "does not grow")):
        items: list[Item] = [failed(at, 1_000 * wait) for at, wait in enumerate(waits, 1)]
        (storm,) = [one for one in findings_in(items, "codex", Config()) if one.rule == "retry-storm"]
        assert f"{sum(waits)}.0 s waited, back-off {words}" in storm.words


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([Ended(Place(9), "task_complete")], "task_complete is completed"),
        ([Ended(Place(9), "quite new")], "quite new is not known as an end of codex"),
        ([*GOOD], "completed, for its last answer asks for nothing"),
        ([*turn(1, "a")], "not finished, for its last answer asks for tools"),
        ([failed(1)], "model_error, for its last request failed (overloaded_error)"),
        ([*GOOD, Interrupted(Place(9), in_tool=True)], "aborted_tools, for the user interrupted it"),
    ],
)
def test_how_it_ended(items: list[Item], words: str) -> None:
    (one,) = [each for each in findings_in(items, "codex", Config()) if each.rule == "terminal"]
    assert words in one.words


# ------------------------------------------------------------------- recordings


def test_our_own_recordings_are_read_by_the_same_rules(tmp_path: Path) -> None:
    wanted = {
        "turns/the-same-call-for-ever": "duplicate-id",
        "turns/two-prompts": "",
        "failures": "retry-storm",
        "protocol": "orphan-result",
    }
    record_scenarios(tmp_path / "all")
    rules: dict[str, set[str]] = {}
    for path in sorted((tmp_path / "all").rglob("*.jsonl")):
        name = str(path.relative_to(tmp_path / "all").with_suffix(""))
        linted = lint(path)
        assert "stepfold" == linted.format
        rules[name] = {one.rule for one in linted.findings}
        ends = [one for one in linted.findings if one.rule == "terminal"]
        assert ends, name
    assert wanted["turns/the-same-call-for-ever"] in rules["turns/the-same-call-for-ever"]
    assert {"terminal"} == rules["turns/two-prompts"]
    seen = set().union(*rules.values())
    assert {"retry-storm", "error-hidden", "compaction-without-effect", "limit", "repeated-call"} <= seen | {
        "limit"
    }


def test_a_recording_that_lies_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_paths([ROOT / "tests/scenarios/turns/two-prompts.toml"], record_dir=tmp_path, out=io.StringIO())
    path = tmp_path / "two-prompts.jsonl"
    path.write_text(path.read_text().replace('"effect_id":2', '"effect_id":77'))
    assert 2 == main(["lint", str(path)])
    assert "an event cannot happen where it stands" in capsys.readouterr().err


# ------------------------------------------------------------------ the command


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    records = [*SESSION, claude("user", results("t9")), answer(text("ok"), "m8"), answer([use("t1")], "m10")]
    return written(tmp_path, records, "bad.jsonl")


def test_lines_and_exit_codes(bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = written(tmp_path, SESSION, "good.jsonl")
    assert 0 == main(["lint", str(good)])
    assert "1 files: 0 errors, 0 warnings, 1 notes" in capsys.readouterr().out
    assert 1 == main(["lint", str(bad)])
    out = capsys.readouterr().out
    assert f"{bad}:8: error: orphan-result: the result of t9 answers no call" in out
    assert f"{bad}:10: error: duplicate-id: the call id t1 was used before, in line 3" in out
    assert 1 == main(["lint", str(bad), "--rule", "duplicate-id", "-q"])
    assert 2 == len(capsys.readouterr().out.splitlines())
    assert 2 == main(["lint", str(bad), str(tmp_path / "none.jsonl")])
    assert "none.jsonl: No such file" in capsys.readouterr().err


def test_limits_of_a_file(bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "limits.toml").write_text("max_turns = 1\n")
    assert 1 == main(["lint", str(bad), "--config", str(tmp_path / "limits.toml"), "--rule", "limit"])
    assert "max_turns = 1 of this loop would have stopped it here" in capsys.readouterr().out


def test_json(bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").touch()
    main(["lint", str(bad), str(tmp_path / "empty.jsonl"), "--json"])
    *found_here, refused, summary = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert {frozenset(documented("An object of `lint --json`"))} == {frozenset(each) for each in found_here}
    assert {"file", "error"} == set(refused)
    assert (1, 1) == (summary["files"], summary["unreadable"])
    assert len(found_here) == summary["error"] + summary["warning"] + summary["note"]


def test_sarif(bad: Path, tmp_path: Path) -> None:
    main(["lint", str(bad), "--sarif", str(tmp_path / "out.sarif")])
    whole = json.loads((tmp_path / "out.sarif").read_text())
    assert ("2.1.0", "stepfold lint") == (whole["version"], whole["runs"][0]["tool"]["driver"]["name"])
    (run,) = whole["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert list(RULES) == [rule["id"] for rule in rules]
    assert run["results"]
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
        assert one["level"] in {"error", "warning", "note"}
        (place,) = one["locations"]
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9/._~%-]+", uri)
    assert json.loads(sarif([Linted("a b.jsonl", "codex", ())]))["runs"][0]["results"] == []


@pytest.mark.parametrize(
    ("words", "told_of"),
    [
        (["--rule", "nothing"], "--rule nothing: there is no such rule; allowed are orphan-result, "),
        (["--config", "none.toml"], "none.toml"),
        (["--config", "costly.toml"], "costly.toml: max_cost: models has no input_price"),
        (["--format", "word"], "--format word: there is no such format"),
        (["--sarif", "none/out.sarif"], "--sarif: none/out.sarif: No such file"),
        (["--sarif", "/dev/full"], "--sarif: /dev/full is no file"),
        (["--sarif", "/tmp"], "--sarif: /tmp is no file"),
    ],
)
def test_what_cannot_be(
    bad: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    told_of: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "costly.toml").write_text("max_cost = 5\n")
    assert 2 == main(["lint", str(bad), *words])
    err = capsys.readouterr().err
    assert told_of in err
    assert 1 == err.count("\n")


def test_the_page_has_every_rule() -> None:
    page = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \|", page, re.MULTILINE)
    assert [(name, rule.severity.value) for name, rule in RULES.items()] == rows
    assert {*Severity} == {rule.severity for rule in RULES.values()}
