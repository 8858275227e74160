"""
What only this file catches: an answer for people or programs that does not say what was found.

Bad input is one line that names the place, a net that could not run is named, and no file is half written.
"""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli.commands.run import Wishes, run_command
from stepfold.adapters.cli.exits import Problem
from stepfold.adapters.proof.command import prove as proving
from stepfold.adapters.proof.command.beside import Beside
from stepfold.adapters.proof.command.prove import (
    BAD_INPUT,
    NOT_PROVED,
    PROVED,
    SKIPPED,
    Question,
    Report,
    answer,
    prove,
)
from stepfold.adapters.proof.command.report import amount
from stepfold.adapters.proof.spec import SHIPPED, read_spec
from stepfold.adapters.proof.verdict import Check, Status
from stepfold.adapters.proof.worst.crosscheck import least
from stepfold.adapters.proof.worst.quantities import Maximum, Quantity, Sure
from stepfold.engine.config import Config

SPEC = read_spec()


def asked(config: Config, json: bool = False, **more: Any) -> tuple[int, str]:
    """Return exit code and output of a question that explores nothing."""
    out = io.StringIO()
    question = Question(config=config, slices=[], small=(least(),), **more)
    return answer(question, SPEC, Report(out, io.StringIO(), json)), out.getvalue()


@pytest.fixture(autouse=True)
def nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploration of nothing reaches no row; that is not what is asked here."""

    def explored(*_: Any) -> tuple[Check, Check, tuple[()]]:
        return Check("explorer", Status.PROVED, ""), Check("matrix", Status.PROVED, ""), ()

    monkeypatch.setattr(proving, "explored", explored)


def config_file(folder: Path, *lines: str) -> Path:
    path = folder / "config.toml"
    path.write_text("\n".join(["# limits", *lines, ""]), encoding="utf-8")
    return path


# ---------------------------------------------------------------- what is said


def test_people_see_a_table_of_the_nets_and_one_of_the_worst_case() -> None:
    code, out = asked(least(max_turns=3))

    assert PROVED == code
    assert re.search(r"^second copy +proved +\d+ rows", out, re.M)
    assert re.search(r"^requests to the model and the compactor +3 +reached$", out, re.M)
    assert re.search(r"^runs of stop hooks +0 +reached$", out, re.M)
    assert re.search(r"^money, every window full +0\.31 +reached$", out, re.M)
    assert re.search(r"^proved, in \d+ s$", out.splitlines()[-1])


def test_programs_get_one_object_a_line() -> None:
    code, out = asked(least(max_turns=3), json=True)

    lines = [json.loads(line) for line in out.splitlines()]
    worst = {line["worst"]: (line["most"], line["sure"], line["played"]) for line in lines if "worst" in line}
    assert PROVED == code
    assert (3, "reached", 3) == worst["model_calls"]
    assert set(Quantity) == set(worst)
    assert "proved" == lines[-1]["verdict"]


def test_the_scenarios_are_written_where_it_was_asked(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "worst"

    code, out = asked(least(max_turns=2), json=True, witness=folder)

    lines = [json.loads(line) for line in out.splitlines()]
    files = {line["scenario"] for line in lines if line.get("scenario")}
    assert PROVED == code
    assert files == {str(path) for path in folder.iterdir()}
    assert str(folder / "worst_tool_rounds.toml") in files


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (Maximum(Quantity.WAITS_MS, Sure.REACHED, 1_500), "2 s"),
        (Maximum(Quantity.WAITS_MS, Sure.REACHED, 5_400_000), "5,400 s (1.5 h)"),
        (Maximum(Quantity.COST, Sure.REACHED, 1_234_567_890), "1,234.57"),
        (Maximum(Quantity.COST, Sure.UNKNOWN), "?"),
        (Maximum(Quantity.TOOL_ROUNDS, Sure.ENDLESS, 1), "1 a turn"),
    ],
)
def test_numbers_are_written_for_people(one: Maximum, words: str) -> None:
    assert words == amount(one)


# ---------------------------------------------------------------- a run that need not end


def test_a_config_that_need_not_end_is_not_proved_and_says_where(tmp_path: Path) -> None:
    path = config_file(tmp_path, 'max_model_calls = "off"', 'max_turns = "off"')
    config = Config(max_turns=None, max_model_calls=None)

    code, out = asked(config, config_file=path, witness=tmp_path / "worst")

    assert NOT_PROVED == code
    assert f"{path}:3: max_turns: is off" in out
    assert f"{path}:2: max_model_calls: is off" in out
    assert ["cycle.toml"] == [each.name for each in (tmp_path / "worst").iterdir()]
    assert re.search(r"^rounds of tools +1 a turn +no bound", out, re.M)


# ---------------------------------------------------------------- nets that need more than Python


NETS = "tests.proof.casts"


def test_a_deep_net_is_cast_only_if_asked_for() -> None:
    assert "for all limits" not in asked(least())[1]
    code, out = asked(least(), deep={"here": f"{NETS}:sound"})
    assert PROVED == code
    assert re.search(r"^sound +proved +for all limits$", out, re.M)


def test_a_net_that_cannot_run_is_named_and_nothing_is_proved() -> None:
    code, out = asked(least(), deep={"here": f"{NETS}:sound", "there": f"{NETS}:lacking"})

    assert SKIPPED == code
    assert re.search(r"^lacking +skipped +there is no Java here$", out, re.M)
    assert re.search(r"^every run ends +proved", out, re.M)
    assert out.splitlines()[-1].startswith("skipped; skipped: lacking, in ")


def test_a_net_that_cannot_be_imported_is_skipped() -> None:
    code, out = asked(least(), deep={"nowhere": "tests.proof.nowhere:cast"})

    assert SKIPPED == code
    assert re.search(r"^nowhere +skipped +cannot be imported: No module named", out, re.M)


def test_what_fails_wins_over_what_was_skipped() -> None:
    code, out = asked(least(), deep={"there": f"{NETS}:lacking", "here": f"{NETS}:broken"})

    assert NOT_PROVED == code
    assert "broken: it rose" in out


@pytest.mark.parametrize(
    ("net", "told"),
    [("raising", "it broke off: ZeroDivisionError: "), ("dying", "its process died with exit code 9")],
)
def test_a_net_that_breaks_off_has_proved_nothing(net: str, told: str) -> None:
    code, out = asked(least(), deep={net: f"{NETS}:{net}"})

    assert NOT_PROVED == code
    assert f"{net}: {told}" in out


def test_how_far_other_processes_are_is_told() -> None:
    seen: list[tuple[str, int, int]] = []
    with Beside({"here": f"{NETS}:sound"}, least(), lambda *told: seen.append(told)) as beside:
        found = [check.name for check in beside.checks()]

    assert (["sound"], [("sound", 1, 2)]) == (found, seen)


def test_a_net_that_is_not_waited_for_is_ended_with_what_it_started(tmp_path: Path) -> None:
    path = tmp_path / "started"
    with Beside({"long": f"{NETS}:lasting"}, least(system_prompt=str(path)), lambda *told: None) as beside:
        while not path.exists():
            beside.look()

    assert not beside.processes["long"].is_alive()
    assert not alive(int(path.read_text(encoding="utf-8")))


def alive(process: int) -> bool:
    """Return whether there is a process of this number that has not ended."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("fixed_prompt_tokens = 990_000", "fixed_prompt_tokens: 990000 is at or over the blocking limit of"),
        (
            "max_model_calls = 0",
            "max_model_calls: 0 lets no request leave; wanted a whole number >= 1, or off",
        ),
        ("max_run_tokens = 0", "max_run_tokens: 0 lets no request leave"),
        ("tail_min_tokens = 50_000", "tail_min_tokens: 50000 is over tail_max_tokens, which is 40000"),
        ("max_turns = 0", "max_turns: 0 is not allowed"),
        ("max_turns = -1", "max_turns: -1 is not allowed"),
        (
            "max_cost = 5\nmodel = 'nobody'",
            "max_cost: models has no input_price and output_price for 'nobody'",
        ),
        ("escalated_output_tokens = 1", "escalated_output_tokens: 1 is under default_output_tokens"),
    ],
)
def test_limits_that_cannot_be_are_one_line_with_the_place(tmp_path: Path, line: str, told: str) -> None:
    path = config_file(tmp_path, line)
    out, err = io.StringIO(), io.StringIO()

    assert BAD_INPUT == prove(path, out=out, err=err)
    assert "" == out.getvalue()
    assert err.getvalue().startswith(f"stepfold: {path}:2: {told}")
    assert 1 == err.getvalue().count("\n")


def test_a_window_that_is_too_small_for_any_request_is_told(tmp_path: Path) -> None:
    path = config_file(tmp_path, "model = 'small'", "context_window_tokens = 22_000")
    err = io.StringIO()

    assert BAD_INPUT == prove(path, out=io.StringIO(), err=err)
    assert err.getvalue().startswith(f"stepfold: {path}:3: context_window_tokens: ")
    assert "22000 of 'small' leaves no room for any request; wanted 23001 or more" in err.getvalue()


def test_a_place_for_scenarios_that_is_a_file_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = config_file(tmp_path)
    out, err = io.StringIO(), io.StringIO()

    assert BAD_INPUT == prove(witness=path, out=out, err=err)
    assert ("", f"stepfold: --witness: {path} is not a folder\n") == (out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '["Waiting", "WaitElapsed", "always"',
            '["Waiting", "WaitElapsed", "retryable"',
            "Waiting, WaitElapsed",
        ),
        ("max_retries = 10", "max_retries = 11", "limits.max_retries: the spec says 11; the engine says 10"),
    ],
)
def test_a_spec_that_was_edited_alone_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(SHIPPED.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    out = io.StringIO()

    code = answer(
        Question(config=least(), slices=[], small=(least(),)),
        read_spec(path),
        Report(out, io.StringIO(), json=False),
    )

    assert NOT_PROVED == code
    assert f"second copy: {told}" in out.getvalue() or told in out.getvalue()


# ---------------------------------------------------------------- before a run


def explained(capsys: pytest.CaptureFixture[str], **wishes: Any) -> tuple[int, str]:
    code = run_command(Wishes(prompt=None, explain=True, **wishes))
    return code, capsys.readouterr().out


def test_a_run_is_explained_without_prompt_key_or_network(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    path = config_file(tmp_path, "max_turns = 3", "max_retries = 0", "max_resends = 0")

    code, out = explained(capsys, config=path)

    assert 0 == code
    assert out.startswith("A run with claude-sonnet-5-5 can cost at most:\n")
    assert re.search(r"^rounds of tools +3 +computed$", out, re.M)
    assert re.search(r"^money, every window full +[\d,.]+ +computed$", out, re.M)


def test_a_run_is_explained_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = explained(capsys, json=True, model="nobody")

    lines = [json.loads(line) for line in out.splitlines()]
    assert 0 == code
    assert {"explains": "nobody"} == lines[0]
    assert [(200, "computed")] == [
        (each["most"], each["sure"]) for each in lines if each.get("worst") == "tool_rounds"
    ]
    assert ["unknown"] == [each["sure"] for each in lines if each.get("worst") == "cost"]


def test_a_run_that_need_not_end_is_explained_as_that(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = config_file(tmp_path, 'max_turns = "off"', 'max_model_calls = "off"')

    code, out = explained(capsys, config=path)

    assert 0 == code
    assert "a run need not end" in out


def test_what_cannot_be_explained_is_one_line(tmp_path: Path) -> None:
    path = config_file(tmp_path, "max_cost = 5", "model = 'nobody'")

    with pytest.raises(Problem, match=f"{re.escape(str(path))}:2: max_cost: models has no input_price"):
        run_command(Wishes(prompt=None, explain=True, config=path))
