"""What only this file catches: a strategy that leaves a class out, or draws what the loop cannot take."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis.errors import NoSuchExample

from stepfold.adapters.codec import dump_event, load_event
from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.scenarios.format import Scenario
from stepfold.adapters.scenarios.judging.invariants import violations
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import loads
from stepfold.adapters.testing.machine.drawing import configs, faults
from stepfold.adapters.testing.strategies.events import events, events_in
from stepfold.adapters.testing.strategies.messages import blocks, broken_histories, histories
from stepfold.adapters.testing.strategies.scenarios import scenarios, worlds
from stepfold.adapters.testing.world import Fault, World
from stepfold.adapters.testing.writing.scenario_text import scenario_text
from stepfold.engine import Config, start, step
from stepfold.engine.effects import CallModel
from stepfold.engine.events import Event, RunStarted
from stepfold.engine.messages import Block, Message, Origin, Text, user_text

QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("kind", Event.__args__, ids=lambda kind: kind.__name__)
def test_there_are_events_of_every_class_and_a_log_holds_them(kind: type) -> None:
    @QUICK
    @given(events(kind))
    def check(event: Event) -> None:
        assert isinstance(event, kind)
        assert event == load_event(dump_event(event))

    check()


def test_there_are_blocks_of_every_class() -> None:
    for kind in Block.__args__:
        assert isinstance(find(blocks(), lambda block, kind=kind: isinstance(block, kind)), kind)


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Message is no event; there are StreamClosed, "):
        events(Message)


@QUICK
@given(histories())
def test_a_history_is_one_that_the_api_takes(history: tuple[Message, ...]) -> None:
    view = start(history).data.messages.append(user_text("and now?", Origin.PROMPT))
    assert [] == complaints(wire_messages(CallModel(0, view, "main", 1)))


@QUICK
@given(broken_histories())
def test_a_broken_history_is_repaired_when_a_run_begins(history: tuple[Message, ...]) -> None:
    _, effects = step(start(history), RunStarted((Text("go"),)), Config())
    [order] = [effect for effect in effects if isinstance(effect, CallModel)]
    assert [] == complaints(wire_messages(order))


@QUICK
@given(configs())
def test_configs_are_configs(config: Config) -> None:
    assert 3 == len(config.models)
    assert config.max_queued_commands == 3


def test_a_config_shrinks_to_the_mildest() -> None:
    assert 3 == find(configs(), lambda config: config.max_turns == 3).max_turns
    plain = find(configs(), lambda config: config.max_turns == 3)
    assert (True, None, ()) == (plain.thinking, plain.max_model_calls, plain.stop_hooks)


def test_faults_shrink_to_the_needed_ones() -> None:
    assert {Fault.DEATHS} == find(faults(), lambda drawn: Fault.DEATHS in drawn)
    assert set() == find(faults(), lambda drawn: True)
    with pytest.raises(NoSuchExample):
        find(faults([Fault.QUEUE]), lambda drawn: Fault.DEATHS in drawn)


@QUICK
@given(worlds(), st.data())
def test_events_in_a_state_are_taken(world: World, data: Any) -> None:
    state, config = start(tools=world.specs), Config(jitter_percent=0)
    for _ in range(12):
        state, _ = step(state, data.draw(events_in(state, world)), config)


@settings(QUICK, max_examples=100)
@given(scenarios())
def test_a_scenario_is_written_read_and_played(scenario: Scenario) -> None:
    assert scenario == loads(scenario_text(scenario))

    played = play(scenario)

    assert [] == violations(played)
    assert all(run.end is not None for run in played.observed.runs)


def test_a_scenario_shrinks_to_a_short_one() -> None:
    def ends_by_limit(scenario: Scenario) -> bool:
        return play(scenario).observed.last.terminal == "max_turns"

    short = find(
        scenarios({Fault.ABORTS, Fault.FAILURES}), ends_by_limit, settings=settings(QUICK, max_examples=2_000)
    )
    assert 2 >= len(short.world.entries)
    assert () == short.world.acts
