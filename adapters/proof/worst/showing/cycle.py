"""The way round that nothing ends, where neither turns nor requests are limited."""

from __future__ import annotations

from typing import Final

from stepfold.adapters.proof.canonical import Key, Quotient, controls_of, key_of
from stepfold.adapters.proof.worst.quantities import NOTHING
from stepfold.adapters.proof.worst.search import BEGIN, before_the_run
from stepfold.adapters.proof.worst.showing.acting import Script
from stepfold.adapters.proof.worst.showing.scenario_text import scenario_text
from stepfold.adapters.proof.worst.world import Answer, Says, events_of, waited_for
from stepfold.engine.config import Config
from stepfold.engine.effects import CallModel, RunTool
from stepfold.engine.events import ToolEnded
from stepfold.engine.history import History
from stepfold.engine.messages import Message
from stepfold.engine.state import State
from stepfold.engine.step import step

TURNS: Final = 4
ABOUT: Final = """\
Every answer calls a tool: nothing ends this run but the user, who does so after a few turns here. \
What decides is the same after each turn."""
USER: Final = f"""
[[act]]
at = "call {TURNS} opened"
do = "abort hard"
"""


def cycle_text(config: Config) -> tuple[str, bool]:
    """Return a scenario that goes round for ever, and whether what decides is the same after every turn."""
    script = Script(
        (Answer(Says.CALLS),), (), tuple(() for _ in config.stop_hooks), False, dict(NOTHING), (), ""
    )
    text = scenario_text(config, script, "a run that nothing ends", ABOUT)
    world = text.partition("[expect]")[0].replace("\n\n[[tool]]", '\ntimes = "forever"\n\n[[tool]]', 1)
    turns = ", ".join(['"next_turn"'] * (TURNS - 1))
    expect = f'[expect]\nterminal = "aborted_streaming"\ntransitions = [{turns}]\nmodel_calls = {TURNS}\n'
    return f"{world.rstrip()}\n{USER}\n{expect}", len(set(_keys(config))) == 1


def _keys(config: Config) -> list[Key]:
    """Return what decides after each of a few turns, the number of the turn left out."""
    state, _ = step(before_the_run(config, full=False), BEGIN, config)
    keys = []
    for _ in range(TURNS):
        state = _turn(state, config)
        quotient = Quotient(frozenset(), History[Message]())
        control = controls_of(state.control, state.control, config, quotient)[0]
        keys.append(key_of(control, state.phase, state.data, config, quotient))
    return keys


def _turn(state: State, config: Config) -> State:
    order = waited_for(state)
    assert isinstance(order, CallModel)
    for event in events_of(Answer(Says.CALLS), order.id, config):
        state, _ = step(state, event, config)
    tool = waited_for(state)
    assert isinstance(tool, RunTool)
    return step(state, ToolEnded(tool.id), config)[0]
