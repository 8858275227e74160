"""What only this file catches: a plugin that helps nobody, or is in the way of those who do not use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepfold.adapters.recording import read_recording
from stepfold.adapters.scenarios.check import judge
from stepfold.adapters.scenarios.reading.load import load

pytest_plugins = ["pytester"]

AGENT = """
    import pytest
    from stepfold.effects import run_sync
    from stepfold.testing import calls, fails, says
    from stepfold.adapters.tools import tool

    @tool(read_only=True, safe=True)
    def read(path: str) -> str:
        '''Read.'''
        return "contents"
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("STEPFOLD_FORBID_REQUESTS", raising=False)
    return pytester


def section(output: str) -> dict[str, str]:
    """Return the lines of the report's own section by their first word."""
    lines = output.split("- stepfold -")[1].splitlines()[1:]
    pairs = (re.fullmatch(r"(\w+): +(.*)", line) for line in lines)
    return {found[1]: found[2] for found in pairs if found}


# ---------------------------------------------------------------- scripted_model


def test_a_scripted_model_answers(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        AGENT
        + """
    def test_it(scripted_model):
        model = scripted_model([calls("read", {"path": "a"}), "All done."])
        assert run_sync("go", model=model, tools=[read]).output == "All done."
    """
    )
    inner.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ('["one", "two"]', "1 of 2 answers were not asked for"),
        ('[calls("read", {"path": "a"})]', "call 2 was not expected: the script has 1 answers"),
    ],
)
def test_unused_and_unexpected_calls_fail_the_test(inner: pytest.Pytester, answers: str, words: str) -> None:
    inner.makepyfile(
        AGENT
        + f"""
    def test_it(scripted_model):
        run_sync("go", model=scripted_model({answers}), tools=[read])
    """
    )
    result = inner.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    assert f"ScriptError: {words}" in result.stdout.str()


def test_a_test_that_fails_is_not_blamed_for_its_script(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        AGENT
        + """
    def test_it(scripted_model):
        scripted_model(["unused"])
        assert 1 == 2
    """
    )
    result = inner.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    assert "assert 1 == 2" in result.stdout.str()
    assert "ScriptError" not in result.stdout.str()


# ---------------------------------------------------------------- world


def test_a_world_runs_in_virtual_time_and_tells_where_a_failure_lies(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        AGENT
        + """
    def test_it(world):
        world.at("call 2 opened", "crash")
        world.at("call 3 opened", "queue and this")
        result = world.run("go", model=[calls("read", {"path": "a"}), "lost", "yes"], tools=[read])
        assert result.output == "yes"
        assert [t.reason for t in result.transitions] == ["next_turn"]
        assert world.record.model_calls == 3
        assert world.record.config.max_turns == 1
    """
    )
    result = inner.runpytest_inprocess()

    result.assert_outcomes(failed=1)
    told = section(result.stdout.str())
    assert "next_turn, completed (8 events)" == told["transitions"]
    assert "0 (of the jitter)" == told["seed"]
    assert 8 == len(read_recording(inner.path / told["recording"]).events)
    written = load(inner.path / told["scenario"])
    assert judge(written, "it").ok
    assert ["crash", "queue"] == [type(act.do).__name__.lower() for act in written.world.acts]


def test_back_off_takes_no_time_and_a_wrong_act_is_named(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        AGENT
        + """
    from stepfold.engine.failures import Failure, FailureKind

    def test_it(world):
        down = fails(Failure(FailureKind.OVERLOADED))
        assert world.run("go", model=[down, down, "yes"]).ok

    def test_acts(world):
        with pytest.raises(ValueError, match="'call two' is no point of a run; allowed: call N opened"):
            world.at("call two", "crash")
        with pytest.raises(ValueError, match="'explode' is nothing that can happen here; allowed: abort"):
            world.at("call 1 opened", "explode")

    def test_unused(world):
        world.run("go", model=["yes", "more"])
    """
    )
    result = inner.runpytest_inprocess()
    result.assert_outcomes(passed=2, failed=1)
    assert "1 of 2 answers were not asked for" in result.stdout.str()


# ---------------------------------------------------------------- a search


SEARCH = """
    from hypothesis.stateful import invariant
    from stepfold.effects import StopHook
    from stepfold.engine import Config
    from stepfold.testing import LiveWorld, world_settings

    def lint(stopping):
        return "3 errors"

    class Mine(LiveWorld):
        faults = ()  # with deaths, there is another way to three requests
        stop_hooks = [StopHook(lint, "lint", max_blocks=5)]
        config = Config(max_turns=5)

        @invariant()
        def two_calls(self):
            assert self.record.model_calls <= 2

    TestMine = Mine.TestCase
    TestMine.settings = world_settings(max_examples=30, stateful_step_count=15, derandomize=False)
"""


def test_a_search_that_finds_something_tells_seed_transitions_and_files(inner: pytest.Pytester) -> None:
    inner.makepyfile(SEARCH)
    result = inner.runpytest_inprocess("-p", "no:cacheprovider")

    result.assert_outcomes(failed=1)
    told = section(result.stdout.str())
    assert told["transitions"].startswith("stop_hook_blocking, ")
    assert re.fullmatch(r"(\d+) \(again: --hypothesis-seed=\1\)", told["seed"])
    assert ".stepfold/findings/Mine-two_calls.jsonl" == told["recording"]
    assert judge(load(inner.path / told["scenario"]), "it").ok

    again = inner.runpytest_inprocess(f"--hypothesis-seed={told['seed'].split()[0]}")
    assert f"{told['seed'].split()[0]} (by --hypothesis-seed)" == section(again.stdout.str())["seed"]


def test_a_search_that_is_the_same_every_time_has_no_seed(inner: pytest.Pytester) -> None:
    inner.makepyfile(SEARCH.replace("derandomize=False", "derandomize=True"))
    told = section(inner.runpytest_inprocess("-p", "no:cacheprovider").stdout.str())
    assert "none: the search is the same every time (derandomize)" == told["seed"]


# ---------------------------------------------------------------- real requests


REAL = """
    import pytest
    from stepfold.adapters.anthropic_api.client import AnthropicModel
    from stepfold.effects import run_sync
    from stepfold.engine import Config

    def ask(url):
        import anthropic

        client = anthropic.AsyncAnthropic(api_key="x", base_url=url)
        return run_sync("go", model=AnthropicModel(client), config=Config(max_retries=0))
"""


def test_real_requests_are_forbidden(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        REAL
        + """
    def test_it():
        ask("http://model.invalid:9")
    """
    )
    result = inner.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    assert "RealRequest: a real request to model.invalid was about to leave" in result.stdout.str()


@pytest.mark.parametrize("how", ["marker", "setting"])
def test_they_can_be_allowed(inner: pytest.Pytester, how: str) -> None:
    """What is allowed goes out: here to a name that no network knows."""
    inner.makeini(f"[pytest]\nstepfold_real_requests = {str(how == 'setting').lower()}\n")
    mark = "@pytest.mark.stepfold_real_requests" if how == "marker" else ""
    inner.makepyfile(
        REAL
        + f"""
    {mark}
    def test_it():
        assert "model_error" == ask("http://model.invalid:9").terminal
    """
    )
    inner.runpytest_inprocess("--strict-markers").assert_outcomes(passed=1)


def test_this_machine_is_never_a_real_api(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        REAL
        + """
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
    def test_it(host):
        assert "model_error" == ask(f"http://{host}:9").terminal

    def test_child_processes_are_bound_too():
        import subprocess, sys
        code = "import os; print(os.environ['STEPFOLD_FORBID_REQUESTS'])"
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "1" == shown.stdout.strip()
    """
    )
    inner.runpytest_inprocess().assert_outcomes(passed=4)


def test_the_switch_is_put_back(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_it(): pass")
    inner.runpytest_inprocess().assert_outcomes(passed=1)
    assert "STEPFOLD_FORBID_REQUESTS" not in os.environ


# ---------------------------------------------------------------- record and replay


RECORDED = (
    AGENT
    + """
    import os
    from stepfold.adapters.scripted import ScriptedModel

    def real():
        answers = [calls("read", {"path": "a"}, text="Let me look."), "It is null."]
        if os.environ.get("NO_MODEL"):
            raise RuntimeError("the real model was made")
        return ScriptedModel(answers)

    def test_it(recording):
        prompt = os.environ.get("PROMPT", "go")
        result = run_sync(prompt, **recording.of(real), tools=[read])
        assert result.output == os.environ.get("WANTED", "It is null.")
"""
)


def test_a_run_is_recorded_and_replayed_without_the_model(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner.makepyfile(RECORDED)
    inner.runpytest_inprocess("--stepfold-record", "kept").assert_outcomes(passed=1)
    [kept] = (inner.path / "kept").iterdir()
    assert "test_a_run_is_recorded_and_replayed_without_the_model.py.test_it.jsonl" == kept.name

    monkeypatch.setenv("NO_MODEL", "1")
    inner.runpytest_inprocess("--stepfold-replay", "kept").assert_outcomes(passed=1)
    inner.runpytest_inprocess().assert_outcomes(failed=1)


def test_a_replay_that_asks_something_else_fails(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner.makepyfile(RECORDED)
    inner.runpytest_inprocess("--stepfold-record", "kept").assert_outcomes(passed=1)

    monkeypatch.setenv("PROMPT", "stop")
    result = inner.runpytest_inprocess("--stepfold-replay", "kept")

    result.assert_outcomes(failed=1)
    words = "NotAsRecorded: call 1 asks something else than was recorded: message 1 is {'role': 'user'"
    assert words in result.stdout.str()


def test_a_recording_of_a_test_that_fails_does_not_take_the_place_of_a_good_one(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner.makepyfile(RECORDED)
    inner.runpytest_inprocess("--stepfold-record", "kept").assert_outcomes(passed=1)
    [kept] = (inner.path / "kept").iterdir()
    good = kept.read_bytes()

    monkeypatch.setenv("WANTED", "something else")
    result = inner.runpytest_inprocess("--stepfold-record", "kept")

    result.assert_outcomes(failed=1)
    assert good == kept.read_bytes()
    told = section(result.stdout.str())
    assert "next_turn, completed (7 events)" == told["transitions"]
    assert (inner.path / told["scenario"]).exists()


def test_what_is_missing_is_said(inner: pytest.Pytester) -> None:
    inner.makepyfile(RECORDED)
    (inner.path / "empty").mkdir()
    result = inner.runpytest_inprocess("--stepfold-replay", "empty")
    result.assert_outcomes(failed=1)
    assert "No such file or directory; record it with --stepfold-record" in result.stdout.str()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--stepfold-replay", "nowhere"], "--stepfold-replay: nowhere is not a folder"),
        (["--stepfold-record", "file.txt"], "--stepfold-record: file.txt is not a folder"),
        (["--stepfold-record", "a", "--stepfold-replay", "b"], "exclude each other"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(
    inner: pytest.Pytester, options: list[str], words: str
) -> None:
    (inner.path / "file.txt").write_text("")
    inner.makepyfile("def test_it(): pass")
    result = inner.runpytest_subprocess(*options)
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    assert words in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


# ---------------------------------------------------------------- those who do not use it


def test_a_project_that_does_not_use_it_imports_nothing_and_keeps_its_names(inner: pytest.Pytester) -> None:
    inner.makeconftest(
        """
    import pytest

    @pytest.fixture
    def world():
        return "mine"

    @pytest.fixture
    def recording():
        return "mine too"
    """
    )
    inner.makepyfile(
        """
    import sys

    def test_it(world, recording):
        assert ("mine", "mine too") == (world, recording)

    def test_what_is_loaded():
        loaded = {name.split(".")[0] for name in sys.modules} & {"attrs", "attr", "cattrs", "anthropic"}
        own = {name for name in sys.modules if name.startswith("stepfold.")}
        light = {"stepfold.adapters", "stepfold.adapters.testing", "stepfold.adapters.testing.plugin",
                 "stepfold.adapters.testing.told"}
        assert (set(), light) == (loaded, own)

    def test_that_fails():
        assert False
    """
    )
    result = inner.runpytest_subprocess("-p", "no:hypothesispytest")
    result.assert_outcomes(passed=2, failed=1)
    assert "- stepfold -" not in result.stdout.str()
    assert not (inner.path / ".stepfold").exists()


def test_it_costs_little_when_pytest_starts() -> None:
    """Beside pytest itself, which is there anyway."""
    code = (
        "import pytest, time; before = time.process_time();"
        "import stepfold.adapters.testing.plugin; print(time.process_time() - before)"
    )
    spent = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(spent) < 0.05


def test_it_can_be_turned_off(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_it(world): pass")
    result = inner.runpytest_subprocess("-p", "no:stepfold")
    result.assert_outcomes(errors=1)
    assert "fixture 'world' not found" in result.stdout.str()


def test_help_tells_of_it(inner: pytest.Pytester) -> None:
    result = inner.runpytest_inprocess("--help")
    for words in ("--stepfold-record=DIR", "--stepfold-replay=DIR", "stepfold_real_requests"):
        assert words in result.stdout.str()
    assert "xdist" not in {Path(name).name for name in sys.modules}
