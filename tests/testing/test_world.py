"""What only this file catches: a world that says less, or more, than its faults allow."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from stepfold.adapters.testing.answers import ANSWERS, answer, call, friendly, one_of_each, strays
from stepfold.adapters.testing.config_space import SPACE, config_of
from stepfold.adapters.testing.world import ALL_FAULTS, NO_FAULTS, Fault, world_of
from stepfold.engine import events
from stepfold.engine.config import Config
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    CompactReason,
    Owed,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
    Wait,
)
from stepfold.engine.events import (
    CallFacts,
    HookVerdict,
    PrefetchKind,
    Stop,
    StreamClosed,
    StreamFailed,
    Verdict,
)
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Origin, ToolUse, user_text

NOTHING: History[Message] = History()
ORDERS: tuple[Owed, ...] = (
    CallModel(1, NOTHING, "main", 100),
    RunTool(2, ToolUse("t1", "read"), "{}"),
    AskPermission(3, ToolUse("t1", "read")),
    Compact(4, CompactReason.AUTO, (), (), "main"),
    StageCollapse(5, ()),
    RunHook(6, "lint", False, NOTHING),
    Wait(7, 500),
    Summarise(8, (), user_text("x", Origin.RESULTS)),
    Prefetch(9, PrefetchKind.MEMORIES, NOTHING),
)


def first(options: Sequence[Any]) -> Any:
    return options[0]


def everything(faults: Any, order: Owed, tries: int = 300) -> set[Any]:
    pick = random.Random(1).choice
    return {answer(world_of(faults), order, pick) for _ in range(tries)}


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
def test_an_answer_is_of_a_class_that_answers_and_carries_the_id(order: Owed) -> None:
    for event in (*everything(ALL_FAULTS, order), *friendly(order)):
        assert isinstance(event, ANSWERS[type(order)])
        assert order.id == event.effect_id


def test_the_orders_here_are_all_there_are() -> None:
    assert set(Owed.__args__) == {type(order) for order in ORDERS} == set(ANSWERS)
    assert {type(event) for event in one_of_each(1)} == {c for cs in ANSWERS.values() for c in cs}


def test_the_first_choice_is_a_friendly_one() -> None:
    world = world_of(ALL_FAULTS)
    closed = answer(world, ORDERS[0], first)
    assert isinstance(closed, StreamClosed)
    assert Stop.END_TURN is closed.stop
    assert HookVerdict.PASS is answer(world, ORDERS[5], first).verdict  # type: ignore[union-attr]
    assert Config(**{key: values[0] for key, values in SPACE.items()}) == config_of(first)


@pytest.mark.parametrize(
    ("fault", "stop"),
    [
        (Fault.TRUNCATION, Stop.MAX_TOKENS),
        (Fault.REFUSALS, Stop.REFUSAL),
        (Fault.PAUSES, Stop.PAUSE_TURN),
        (Fault.TOO_LONG, Stop.WINDOW_EXCEEDED),
        (Fault.ODD_STOPS, Stop.OTHER),
    ],
)
def test_a_stop_comes_with_its_fault_only(fault: Fault, stop: Stop) -> None:
    stops = {e.stop for e in everything({fault}, ORDERS[0]) if isinstance(e, StreamClosed)}
    others = everything(ALL_FAULTS - {fault}, ORDERS[0])

    assert stop in stops
    assert stop not in {event.stop for event in others if isinstance(event, StreamClosed)}


def test_a_friendly_world_does_nothing_wrong() -> None:
    ends = everything(NO_FAULTS, ORDERS[0])

    assert not [end for end in ends if isinstance(end, StreamFailed)]
    assert {Stop.END_TURN, Stop.TOOL_USE} == {end.stop for end in ends}
    assert {events.CallStatus.COMPLETED} == {e.status for e in everything(NO_FAULTS, ORDERS[1])}
    assert {HookVerdict.PASS} == {e.verdict for e in everything(NO_FAULTS, ORDERS[5])}
    assert strays(world_of(NO_FAULTS), (1,), first) is None


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_changes_what_is_said(fault: Fault) -> None:
    """One that changes nothing would be tested in vain; some are about the course of events."""
    course = {Fault.ABORTS, Fault.DEATHS, Fault.QUEUE, Fault.STRAYS, Fault.MORE_RUNS, Fault.SERVER_CALLS}
    with_it, without = world_of({fault}), world_of(NO_FAULTS)

    parts = ("tools", "said", "done", "other_tools", "minutes")
    same = all(getattr(with_it, part) == getattr(without, part) for part in parts)
    assert same == (fault in course)


def test_calls_without_reuse_get_new_ids() -> None:
    made = call(world_of(NO_FAULTS), 1, first, "call_9")
    assert isinstance(made.block, ToolUse)
    assert ("call_9", CallFacts(safe=True)) == (made.block.id, made.facts)


def test_bad_calls_are_known_to_be_bad() -> None:
    pick = random.Random(2).choice
    made = {call(world_of({Fault.BAD_CALLS}), 1, pick, "c").facts for _ in range(100)}

    assert {True, False} == {facts.known for facts in made if facts is not None}
    assert CallFacts(valid=False, problem="The input is no JSON object.") in made


def test_what_is_unsafe_or_denied_comes_with_its_fault_only() -> None:
    assert all(tool.facts.safe for tool in world_of(ALL_FAULTS - {Fault.UNSAFE_CALLS, Fault.DENIALS}).tools)
    verdicts = {tool.facts.verdict for tool in world_of(ALL_FAULTS - {Fault.DENIALS}).tools}
    assert {Verdict.ALLOW} == verdicts
    assert set(Verdict) == {tool.facts.verdict for tool in world_of({Fault.DENIALS}).tools}
