"""
What only this file catches: a call under a wrong name, or one that runs without leave.

The specification, section 6: ids, permissions, hooks of tools.
"""

from __future__ import annotations

import pytest

from stepfold.engine.effects import BlockShown, CallShown, RunTool
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    HookStop,
    Stop,
    Verdict,
)
from stepfold.engine.messages import Message, Role, Text, ToolResult, ToolUse
from tests.engine.driven.drive import UNSAFE, Drive

SHELL = CallFacts(safe=True, shell=True)
ASK = CallFacts(safe=True, verdict=Verdict.ASK)


def begun(**config: object) -> Drive:
    drive = Drive(**config)  # type: ignore[arg-type]
    drive.begin()
    return drive


def started(drive: Drive) -> list[str]:
    """Return the ids of the calls whose tools were run, in order."""
    return [order.call.id for order in drive.all(RunTool)]


def results(drive: Drive) -> list[ToolResult]:
    """Return the results in the view, in order."""
    return [block for m in drive.messages for block in m.content if isinstance(block, ToolResult)]


# ---------------------------------------------------------------- ids


def test_the_same_call_twice_in_one_answer_is_one_call() -> None:
    drive = begun()
    drive.call("a", "read", '{"x":1}')
    drive.call("a", "read", '{"x":1}')
    drive.close(Stop.TOOL_USE)
    drive.tool("a")

    assert ["a"] == started(drive)
    assert 1 == len(drive.all(BlockShown)) == len(results(drive))


@pytest.mark.parametrize(("name", "input"), [("read", '{"x":2}'), ("write", '{"x":1}')])
def test_another_call_under_the_same_id_gets_a_new_one(name: str, input: str) -> None:
    drive = begun()
    drive.call("a", "read", '{"x":1}')
    drive.call("a", name, input)
    first, second = started(drive)

    assert "a" == first != second
    shown = [block.block.id for block in drive.all(BlockShown) if isinstance(block.block, ToolUse)]
    assert [first, second] == shown


def test_the_copy_of_a_renamed_call_is_one_call_too() -> None:
    drive = begun()
    drive.call("a", "read", '{"x":1}')
    drive.call("a", "read", '{"x":2}')
    drive.call("a", "read", '{"x":2}')

    assert 2 == len(started(drive))


def test_an_id_of_an_earlier_answer_is_not_used_again() -> None:
    drive = begun()
    drive.turn("a")
    drive.call("a")
    new = started(drive)[-1]
    drive.close(Stop.TOOL_USE)
    drive.tool(new)
    shown = drive.last(CallShown)

    assert "a" != new
    assert (new, "a") == (shown.use_id, shown.original_id)
    assert ["a", new] == [result.use_id for result in results(drive)]


def test_an_id_of_the_given_history_is_not_used_again() -> None:
    history = (
        Message(Role.USER, (Text("q"),)),
        Message(Role.ASSISTANT, (ToolUse("a", "read"),)),
        Message(Role.USER, (ToolResult("a", (Text("r"),)),)),
    )
    drive = Drive(history)
    drive.begin()
    drive.call("a")

    assert "a" != started(drive)[0]


def test_a_call_without_an_id_gets_one() -> None:
    drive = begun()
    drive.call("")

    assert started(drive)[0]


def test_new_ids_step_around_those_that_the_model_made() -> None:
    drive = begun()
    for number in range(1, 9):
        drive.call(f"call_{number}")
    drive.call("call_1", "other")

    assert 9 == len(set(started(drive)))


# ---------------------------------------------------------------- permissions


def test_a_call_that_is_asked_about_runs_when_it_is_allowed() -> None:
    drive = begun()
    drive.call("a", facts=ASK)
    before = started(drive)
    drive.permit("a")

    assert ([], ["a"]) == (before, started(drive))


def test_a_changed_input_goes_to_the_tool_and_not_into_the_history() -> None:
    drive = begun()
    drive.call("a", input='{"path":"x"}', facts=ASK)
    drive.permit("a", input='{"path":"y"}')
    drive.close(Stop.TOOL_USE)
    order = drive.running("a")
    drive.tool("a")

    assert '{"path":"y"}' == order.input
    uses = [block for m in drive.messages for block in m.content if isinstance(block, ToolUse)]
    assert ['{"path":"x"}'] == [use.input for use in uses] == [order.call.input]


def test_a_denied_call_is_an_error_with_the_words_of_the_user() -> None:
    drive = begun()
    drive.call("a", facts=ASK)
    drive.close(Stop.TOOL_USE)
    drive.permit("a", allowed=False, words="not that file")

    assert [] == started(drive)
    assert {"a": CallStatus.DENIED} == drive.statuses
    assert ToolResult("a", (Text("not that file"),), is_error=True) == results(drive)[0]


def test_an_unsafe_call_that_is_asked_about_holds_back_what_is_behind_it() -> None:
    drive = begun()
    drive.call("a", facts=CallFacts(verdict=Verdict.ASK))
    drive.call("b")
    drive.close(Stop.TOOL_USE)
    asked = started(drive)
    drive.permit("a")
    allowed = started(drive)
    drive.tool("a")

    assert ([], ["a"], ["a", "b"]) == (asked, allowed, started(drive))


# ---------------------------------------------------------------- a hook of a tool that asks to stop


def test_after_a_hook_asked_to_stop_running_calls_finish_and_no_other_begins() -> None:
    drive = begun()
    drive.call("a")
    drive.call("b")
    drive.call("c", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    drive.tool("a", stop=HookStop("guard", "enough"))
    still_on = drive.state.end
    drive.tool("b")

    assert still_on is None
    assert ["a", "b"] == started(drive)
    assert {"a", "b"} == {name for name, s in drive.statuses.items() if s is CallStatus.COMPLETED}
    assert CallStatus.CANCELLED is drive.statuses["c"]
    assert ["a", "b", "c"] == [result.use_id for result in results(drive)]
    assert "hook_stopped" == drive.end.reason


def test_the_first_hook_that_asks_to_stop_is_named() -> None:
    drive = begun()
    drive.call("a")
    drive.call("b")
    drive.close(Stop.TOOL_USE)
    drive.tool("a", stop=HookStop("first"))
    drive.tool("b", stop=HookStop("second"))

    assert "first" in drive.end.why
