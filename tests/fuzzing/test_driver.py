"""
What only this file catches: a driver that plays other runs than its choices say, or that sees nothing.

The unmutated engine yields nothing; the same choices give the same run; a run
is played to its end whatever the choices are.
"""

from __future__ import annotations

import random

import attrs
import pytest

from stepfold.adapters.fuzzing.driver.ladders import Ladders
from stepfold.adapters.fuzzing.driver.machine import machine_of
from stepfold.adapters.fuzzing.driver.open_answer import OpenAnswer
from stepfold.adapters.fuzzing.driver.runs import GENE, Driver
from stepfold.adapters.fuzzing.driver.search import Search
from stepfold.adapters.fuzzing.driver.setups import HEADER, random_header
from stepfold.adapters.testing.world import Fault
from stepfold.engine import start, step
from stepfold.engine.config import Config
from stepfold.engine.events import RunStarted
from stepfold.engine.messages import Text
from stepfold.engine.moves import tools
from stepfold.engine.step import cells_of, stepping
from stepfold.engine.table import TABLE

RUNS = 3_000
SPOILT = tuple(row for row in TABLE if row.by is not tools.end_call)


@pytest.fixture(scope="module")
def search() -> Search:
    made = Search(Driver(machine_of()), seed=7)
    while made.tally.runs < RUNS:
        made.one()
    return made


def test_the_engine_as_it_is_breaks_no_rule(search: Search) -> None:
    assert {} == search.tally.broken


def test_most_rows_are_taken(search: Search) -> None:
    assert len(search.tally.rows) > 0.85 * len(TABLE)


def test_the_same_seed_gives_the_same_runs() -> None:
    ways = []
    for _ in range(2):
        made = Search(Driver(machine_of()), seed=3)
        while made.tally.runs < 150:
            made.one()
        ways.append((made.tally.steps, made.tally.rows, made.tally.corpus))
    assert ways[0] == ways[1]


def test_every_run_comes_to_its_end() -> None:
    driver, source = Driver(machine_of()), random.Random(5)
    for _ in range(200):
        tape = random_header(source) + source.randbytes(GENE * source.randrange(6))
        played = driver.play(tape, keep=True)
        assert played.state.end is not None
        assert len(played.events) == played.steps


def test_a_run_that_begins_as_another_did_is_the_run_that_its_choices_say() -> None:
    """Steps, rows, state and what is broken are those of the run that is played from its start."""
    futures, alone, source = Driver(machine_of(SPOILT)), Driver(machine_of(SPOILT)), random.Random(11)
    broken = shared = 0
    for _ in range(150):
        head = random_header(source) + source.randbytes(GENE * source.randrange(1, 7))
        for _ in range(3):
            tape = head + source.randbytes(GENE * source.randrange(4))[:-1] + b"\0"  # read thoroughly
            one = futures.play(tape, stem=len(head))
            rows = list(futures.machine.trail)
            other = alone.play(tape)
            assert (one.state, one.steps) == (other.state, other.steps)
            assert rows == alone.machine.trail
            assert str(one.broken) == str(other.broken)
            broken += one.broken is not None
            shared += one.stem
    assert 10 < broken < 400
    assert shared > 100


def test_a_watch_that_is_forked_has_seen_the_same_and_goes_its_own_way() -> None:
    run = Driver(machine_of()).begun(bytes(HEADER)).run
    before = attrs.asdict(run.watch, recurse=False)
    fork = run.watch.fork()
    assert fork == run.watch
    for name, value in attrs.asdict(fork, recurse=False).items():
        assert not isinstance(value, list | dict | set | OpenAnswer | Ladders) or value is not before[name]


def test_the_plainest_choices_are_a_prompt_and_an_answer() -> None:
    played = Driver(machine_of()).play(bytes(HEADER), keep=True)
    assert ["RunStarted", "StreamClosed"] == [type(event).__name__ for event in played.events]


def test_only_the_faults_that_are_wanted_happen() -> None:
    made = Search(Driver(machine_of()), seed=1, faults=[Fault.TRUNCATION])
    events = set()
    while made.tally.runs < 300:
        made.one()
    driver = Driver(machine_of())
    for tape in made.tally.corpus:
        events |= {type(event).__name__ for event in driver.play(tape, keep=True).events}
    assert {"AbortRequested", "Resumed", "StreamFailed", "CommandQueued"}.isdisjoint(events)


def test_a_machine_of_another_table_leaves_the_engine_as_it_is() -> None:
    prompt = RunStarted((Text("go"),))
    other = stepping(cells_of(TABLE[1:]))
    with pytest.raises(Exception, match="RunStarted in phase idle"):
        other(start(), prompt, Config())
    assert step(start(), prompt, Config())[0].end is None


def test_an_invariant_of_the_users_own_is_asked_and_named() -> None:
    def at_most_two(before: object, event: object, effects: object, after: object) -> str:
        calls: int = after.control.spending.model_calls  # type: ignore[attr-defined]
        return "three requests" if calls > 2 else ""

    made = Search(Driver(machine_of(), (at_most_two,)), seed=1)
    while not made.tally.broken and made.tally.runs < 500:
        made.one()
    assert ["OWN"] == [rule.name for rule in made.tally.broken]
