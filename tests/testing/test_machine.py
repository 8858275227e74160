"""What only this file catches: a machine that does not play what it says, or finds and does not tell."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from stepfold.adapters.recording import read_recording
from stepfold.adapters.scenarios.check import judge
from stepfold.adapters.scenarios.reading.load import load
from stepfold.adapters.testing.machine import live_loop
from stepfold.adapters.testing.machine.hostile import HostileWorld, LiveWorld
from stepfold.adapters.testing.machine.judge import Violation
from stepfold.adapters.testing.machine.played import PlayedWorld, world_settings
from stepfold.adapters.testing.machine.whole import nearness
from stepfold.adapters.testing.world import ALL_FAULTS, Fault
from stepfold.adapters.tools import tool
from stepfold.effects import StopHook, Stopping
from stepfold.engine import Config, Continue, Terminal
from stepfold.engine.events import CallStatus
from stepfold.engine.messages import Origin, user_text
from stepfold.engine.state import Late


def search(machine: type[PlayedWorld], runs: int = 40, **more: Any) -> None:
    """Search as a test would, always the same way."""
    given = {"max_examples": runs, "derandomize": True, "database": None, **more}
    run_state_machine_as_test(machine, settings=world_settings(**given))


@tool(read_only=True, safe=True)
def read(path: str) -> str:
    """Read a file."""
    return f"contents of {path}"


@tool
async def build(target: str = "all") -> str:
    """Build for a while."""
    await asyncio.sleep(30)
    return "built"


def lint(stopping: Stopping) -> str | None:
    """Want a yes."""
    return None if "yes" in stopping.answer else "3 errors"


# ---------------------------------------------------------------- nothing is found where nothing is wrong


class Engine(HostileWorld):
    """The engine itself, with everything that may go wrong."""


class Agent(LiveWorld):
    """The interpreter with tools, a hook and a policy."""

    tools = (read, build)
    stop_hooks = (StopHook(lint, "lint", max_blocks=2),)
    config = Config(max_turns=5, max_model_calls=30)

    def can_use_tool(self, name: str, input: dict[str, Any]) -> bool:
        return name == "read"


class Nobody(LiveWorld):
    """The interpreter in a world that plays tools and hooks as well."""


@pytest.mark.parametrize("machine", [Engine, Agent, Nobody])
def test_nothing_is_found_where_nothing_is_wrong(machine: type[PlayedWorld]) -> None:
    search(machine)


def test_a_friendly_world_completes_every_run() -> None:
    ends: set[Terminal | None] = set()

    class Friendly(HostileWorld):
        faults = ()
        config = Config()

        def teardown(self) -> None:
            if self.state.end is not None:
                ends.add(self.record.terminal)
            super().teardown()

    search(Friendly, 60)
    assert {Terminal.COMPLETED} == ends


# ---------------------------------------------------------------- what is found is told


def found_by(machine: type[PlayedWorld], runs: int = 200) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  (what it is, is asserted by the caller)
        search(machine, runs, stateful_step_count=15)
    return caught.value


def test_a_broken_invariant_is_shrunk_and_written_down(tmp_path: Path) -> None:
    class Mine(LiveWorld):
        tools = (read,)
        stop_hooks = (StopHook(lint, "lint", max_blocks=3),)
        config = Config(max_turns=5)
        findings = tmp_path

        @invariant()
        def at_most_three_calls(self) -> None:
            assert self.record.model_calls <= 3, f"{self.record.model_calls} calls"

    problem = found_by(Mine)

    assert "4 calls" in str(problem)
    recording, scenario = (tmp_path / f"Mine-at_most_three_calls.{kind}" for kind in ("jsonl", "toml"))
    assert sorted([recording, scenario]) == sorted(tmp_path.iterdir())
    assert [f"recording:   {recording}", f"scenario:    {scenario}"] == problem.__notes__[1:3]
    assert len(read_recording(recording).events) <= 9
    written = load(scenario)
    assert "at most three calls: 4 calls" == written.title
    assert judge(written, "it").ok, judge(written, "it").differences


def test_a_tool_run_twice_after_a_death_is_found(tmp_path: Path) -> None:
    """An idempotent tool may run again after a crash: an invariant that says otherwise is broken by one."""

    class Once(LiveWorld):
        faults = (Fault.DEATHS,)
        findings = tmp_path
        config = Config()

        def __init__(self) -> None:
            super().__init__()
            self.runs: list[str] = []

            @tool(safe=True, idempotent=True)
            async def pay(to: str) -> str:
                """Pay."""
                self.runs.append(to)
                await asyncio.sleep(1)
                return "paid"

            self.tools = (pay,)

        @invariant()
        def paid_once_a_call(self) -> None:
            assert len(self.runs) <= len(self.record.statuses) + len(self.record.state.data.ledger.owed)

    problem = found_by(Once)

    assert isinstance(problem, AssertionError)
    [scenario] = tmp_path.glob("*.toml")
    assert ["crash"] == [type(act.do).__name__.lower() for act in load(scenario).world.acts]


def test_a_fault_of_the_engine_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the entry for what is late, a late answer cannot be taken."""
    engine: Any = sys.modules["stepfold.engine.step"]
    cells = {
        phase: {event: rows for event, rows in by.items() if event is not Late}
        for phase, by in engine._CELLS.items()
    }
    monkeypatch.setattr(engine, "_CELLS", cells)

    class Broken(HostileWorld):
        findings = tmp_path
        faults = (Fault.STRAYS,)

    problem = found_by(Broken)

    assert "UnexpectedEvent" == type(problem).__name__
    assert list(tmp_path.glob("Broken-*.jsonl"))


def test_a_finding_that_cannot_be_written_is_still_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    class Mine(HostileWorld):
        findings = tmp_path / "file"

        @invariant()
        def never(self) -> None:
            raise Violation("no")

    problem = found_by(Mine)
    assert any("the finding could not be written" in note for note in problem.__notes__)


# ---------------------------------------------------------------- what a subclass may do


def test_rules_of_a_subclass_are_played_too(tmp_path: Path) -> None:
    class Patient(LiveWorld):
        tools = (build,)
        config = Config()
        findings = tmp_path
        faults = ()
        prompts = ("build it",)
        inputs = {"build": [{"target": "all"}]}  # noqa: RUF012

        @precondition(lambda self: self.stage.busy)
        @rule()
        def an_hour_passes(self) -> None:
            self.stage.wait(3_600_000)

        @invariant()
        def nothing_is_built(self) -> None:
            assert CallStatus.COMPLETED not in self.record.statuses.values()

    problem = found_by(Patient)

    assert isinstance(problem, AssertionError)
    [recording] = tmp_path.glob("*.jsonl")
    events = read_recording(recording).events
    assert 30_000 <= events[-1].at_ms


def test_a_policy_is_asked(tmp_path: Path) -> None:
    class Denying(LiveWorld):
        tools = (build,)
        config = Config()
        findings = tmp_path
        faults = ()

        def can_use_tool(self, name: str, input: dict[str, Any]) -> str:
            return "not today"

        @invariant()
        def nothing_runs(self) -> None:
            assert set(self.record.statuses.values()) <= {CallStatus.DENIED}

        @invariant()
        def nothing_is_denied(self) -> None:
            assert not self.record.statuses, "denied"

    assert "denied" in str(found_by(Denying))


def test_a_history_and_a_space_of_configs_are_used(tmp_path: Path) -> None:
    seen: set[int | None] = set()

    class Varied(HostileWorld):
        config = Config(max_turns=7)
        space = {"max_turns": (1, 2)}  # noqa: RUF012
        history = (user_text("earlier", Origin.PROMPT),)

        @invariant()
        def look(self) -> None:
            seen.add(self.record.config.max_turns)
            assert "earlier" == self.record.first.data.messages[0].content[0].text

    search(Varied)
    assert {7, 1, 2} == seen


def test_what_cannot_be_is_refused() -> None:
    class NoTool(LiveWorld):
        tools = (print,)

    class Stranger(LiveWorld):
        tools = (read,)
        inputs = {"write": [{}]}  # noqa: RUF012

    with pytest.raises(TypeError, match="is no Tools port"):
        search(NoTool, 1)
    with pytest.raises(ValueError, match="no tool is named 'write'; there are read"):
        search(Stranger, 1)


def test_a_plain_function_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_loop, "PATIENCE_S", 0.05)

    def hangs(stopping: Stopping) -> None:
        threading.Event().wait(5)

    class Slow(LiveWorld):
        stop_hooks = (hangs,)
        config = Config()
        findings = tmp_path
        faults = ()

    problem = found_by(Slow, 10)
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    assert "hangs has not returned within 0.05 s; make it async, or faster" in str(problem)


# ---------------------------------------------------------------- parts


def test_nearness_is_of_the_nearest_limit() -> None:
    class Near(HostileWorld):
        faults = ALL_FAULTS
        config = Config(max_turns=2, max_model_calls=4)

        def teardown(self) -> None:
            assert 0 <= nearness(self.record) <= 1
            if self.record.terminal is Terminal.MAX_TURNS:
                assert 1 == nearness(self.record)
                assert Continue.NEXT_TURN in self.record.transitions
            super().teardown()

    search(Near)


def test_settings_fit_a_world() -> None:
    made = world_settings(max_examples=7)
    assert (7, None) == (made.max_examples, made.deadline)
    assert set(HealthCheck) == set(made.suppress_health_check)
    assert None is Engine.TestCase.settings.deadline
