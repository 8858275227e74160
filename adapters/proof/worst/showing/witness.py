"""A script played through the real loop by the checker of scenarios, and what it cost there."""

from __future__ import annotations

import attrs

from stepfold.adapters.proof.worst.quantities import NOTHING, Quantity, costs_of
from stepfold.adapters.proof.worst.showing.acting import Script
from stepfold.adapters.proof.worst.showing.scenario_text import scenario_text
from stepfold.adapters.scenarios.judging.expect import differences
from stepfold.adapters.scenarios.judging.invariants import violations
from stepfold.adapters.scenarios.playing.play import Played, play
from stepfold.adapters.scenarios.playing.tape import state_before
from stepfold.adapters.scenarios.reading.load import loads
from stepfold.engine.config import Config
from stepfold.engine.events import RunStarted


@attrs.frozen
class Witness:
    """A scenario file, what its last run cost when it was played, and what did not hold there."""

    text: str
    costs: dict[Quantity, int]
    problems: tuple[str, ...]


def witness_of(config: Config, script: Script, title: str, about: str) -> Witness:
    """Write the scenario of *script*, play it, and count."""
    text = scenario_text(config, script, title, about)
    played = play(loads(text))
    problems = (
        *played.observed.journal.problems,
        *differences(played.scenario.expect, played.observed),
        *violations(played),
    )
    return Witness(text, costs_played(played), problems)


def costs_played(played: Played) -> dict[Quantity, int]:
    """Return what the last run of *played* cost, from the orders that its log caused."""
    costs = dict(NOTHING)
    for take in played.takes:
        before = state_before(take.tape.begun)
        for one in take.tape.steps:
            if isinstance(one.event, RunStarted):
                costs = dict(NOTHING)
            for quantity, cost in costs_of(one.effects, before, one.state, take.tape.begun.config).items():
                costs[quantity] += cost
            before = one.state
    return costs
