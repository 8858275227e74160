"""
What only this file catches: an event that cannot be, taken all the same, or refused by a crash.

``step`` raises nothing but ``UnexpectedEvent``, and the old state is still good (specification, section 1).
"""

from __future__ import annotations

import pytest

from stepfold.engine import UnexpectedEvent, step
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    Event,
    HookAnswered,
    HookVerdict,
    RunStarted,
    Stop,
    StreamCancelled,
    StreamClosed,
    ToolEnded,
    WaitElapsed,
)
from stepfold.engine.messages import Block, Opaque, Text, Thinking, ToolUse
from tests.engine.driven.company import COMPANY
from tests.engine.driven.drive import Drive
from tests.engine.driven.hostile import ANSWERS, one_of_each


def begun() -> Drive:
    drive = Drive()
    drive.begin()
    return drive


@pytest.mark.parametrize(
    ("block", "facts"),
    [
        (ToolUse("a", "read"), None),
        (Text("x"), CallFacts()),
        (Thinking("x"), CallFacts()),
        (Opaque("x", "{}"), CallFacts()),
    ],
    ids=["a call without facts", "a text with", "a thought with", "an unknown block with"],
)
def test_facts_belong_to_every_call_and_to_nothing_else(block: Block, facts: CallFacts | None) -> None:
    drive = begun()

    with pytest.raises(UnexpectedEvent, match="facts"):
        step(drive.state, BlockCompleted(1, block, facts), drive.config)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (RunStarted((Text("x"),)), "RunStarted in phase sampling"),
        (ToolEnded(1), "ToolEnded cannot answer CallModel 1"),
        (StreamCancelled(1), "StreamCancelled in phase sampling"),
        (StreamClosed(2, Stop.END_TURN), "StreamClosed answers effect 2, which was never issued"),
        (WaitElapsed(0), "never issued"),
        (HookAnswered(-1, HookVerdict.PASS), "never issued"),
    ],
)
def test_the_refusal_names_event_and_phase_or_order(event: Event, words: str) -> None:
    drive = begun()

    with pytest.raises(UnexpectedEvent, match=words):
        step(drive.state, event, drive.config)


@pytest.mark.parametrize("place", COMPANY, ids=str)
def test_an_open_order_takes_only_answers_of_its_kind(place: str) -> None:
    drive = next(make for name, make in COMPANY.items() if name == place)()
    for order in drive.owed.values():
        for event in one_of_each(order.id):
            if type(event) not in ANSWERS[type(order)]:
                assert drive.refuses(event)


@pytest.mark.parametrize("place", COMPANY, ids=str)
def test_after_a_refusal_the_run_goes_on_as_if_nothing_had_been(place: str) -> None:
    make = next(made for name, made in COMPANY.items() if name == place)
    drive, other = make(), make()
    for event in (RunStarted((Text("x"),)), ToolEnded(10**9), StreamClosed(-1, Stop.OTHER)):
        assert drive.refuses(event)

    assert other.state == drive.state
    assert other.resume() == drive.resume()
    assert other.state == drive.state


def test_time_never_falls() -> None:
    drive = Drive()
    drive.now_ms = 1_000
    drive.begin()
    drive.now_ms = 10
    drive.text()

    assert [1_000, 1_000] == [state.now_ms for state in drive.states]


def test_a_refused_event_does_not_move_the_clock() -> None:
    drive = begun()
    with pytest.raises(UnexpectedEvent):
        step(drive.state, WaitElapsed(99, at_ms=5_000), drive.config)

    assert 0 == drive.state.now_ms


def test_ids_rise_and_are_never_used_again() -> None:
    drive = COMPANY[next(iter(COMPANY))]()
    numbers = [effect.id for effect in drive.effects if type(effect) in ANSWERS]  # type: ignore[union-attr]

    assert numbers == sorted(set(numbers))
    assert 1 == numbers[0]
