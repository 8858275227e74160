"""
What only this file catches: a call that starts too early, beside a wrong neighbour, or under a wrong name.

The specification, section 6, one rule a test.
"""

from __future__ import annotations

import pytest

from stepfold.engine.effects import AskPermission, BlockShown, CallShown, Cancel, CancelTool, RunTool
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    HookStop,
    Stop,
    StreamClosed,
    ToolEnded,
    ToolSpec,
    Verdict,
)
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Message, Origin, Role, Text, ToolResult, ToolUse, user_text
from tests.engine.driven.drive import SAFE, UNSAFE, Drive

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


# ---------------------------------------------------------------- when a call begins


def test_a_safe_call_begins_while_the_answer_streams() -> None:
    drive = begun()
    drive.call("a")

    assert ["a"] == started(drive)


def test_with_the_gate_off_no_call_begins_before_the_answer_is_whole() -> None:
    drive = begun(streaming_tools=False)
    drive.call("a")
    drive.call("b")
    before = started(drive)
    drive.close(Stop.TOOL_USE)

    assert ([], ["a", "b"]) == (before, started(drive))


def test_an_unsafe_call_waits_for_the_answer_and_for_all_before_it_and_runs_alone() -> None:
    drive = begun()
    drive.call("read")
    drive.call("write", facts=UNSAFE)
    drive.call("read after")
    at_first = started(drive)
    drive.close(Stop.TOOL_USE)
    when_whole = started(drive)
    drive.tool("read")
    alone = started(drive)
    drive.tool("write")

    assert ["read"] == at_first == when_whole
    assert ["read", "write"] == alone
    assert ["read", "write", "read after"] == started(drive)


def test_unsafe_calls_run_one_after_the_other() -> None:
    drive = begun()
    drive.call("a", facts=UNSAFE)
    drive.call("b", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    one = started(drive)
    drive.tool("a")

    assert (["a"], ["a", "b"]) == (one, started(drive))


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_no_more_than_so_many_run_at_once(limit: int) -> None:
    drive = begun(max_parallel_tools=limit)
    names = [f"t{number}" for number in range(limit + 3)]
    for name in names:
        drive.call(name)
    drive.close(Stop.TOOL_USE)
    full = started(drive)
    drive.tool(names[limit - 1])

    assert names[:limit] == full
    assert names[: limit + 1] == started(drive)


def test_ten_is_the_default() -> None:
    drive = begun()
    for number in range(12):
        drive.call(f"t{number}")

    assert 10 == len(started(drive))


def test_a_call_of_an_answer_that_failed_is_cancelled_and_in_no_request() -> None:
    drive = begun()
    drive.call("a")
    drive.fail(FailureKind.CUT)

    assert [drive.all(RunTool)[0].id] == [order.id for order in drive.all(CancelTool)]
    assert {"a": CallStatus.CANCELLED} == drive.statuses
    assert 1 == drive.stones
    assert 1 == len(drive.messages)


# ---------------------------------------------------------------- results


def test_results_come_in_call_order_whatever_ended_first() -> None:
    drive = begun()
    for name in ("a", "b", "c"):
        drive.call(name)
    drive.close(Stop.TOOL_USE)
    for name in ("c", "a", "b"):
        drive.tool(name, f"result of {name}")

    assert ["a", "b", "c"] == [result.use_id for result in results(drive)]
    assert (Text("result of c"),) == results(drive)[2].content


@pytest.mark.parametrize("status", [CallStatus.COMPLETED, CallStatus.FAILED, CallStatus.CANCELLED])
def test_only_a_completed_call_is_no_error(status: CallStatus) -> None:
    drive = begun()
    drive.call("a")
    drive.close(Stop.TOOL_USE)
    drive.tool("a", "words", status)

    (result,) = results(drive)
    assert (status is not CallStatus.COMPLETED, (Text("words"),)) == (result.is_error, result.content)
    assert {"a": status} == drive.statuses


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (CallFacts(known=False, problem="no such tool"), CallStatus.FAILED),
        (CallFacts(valid=False, problem="no such tool"), CallStatus.FAILED),
        (CallFacts(verdict=Verdict.DENY, problem="no such tool"), CallStatus.DENIED),
        (CallFacts(safe=True, known=False, problem="no such tool"), CallStatus.FAILED),
    ],
)
def test_a_refused_call_is_an_error_result_and_never_runs(facts: CallFacts, status: CallStatus) -> None:
    drive = begun()
    drive.call("a", facts=facts)
    drive.close(Stop.TOOL_USE)

    assert [] == started(drive)
    assert {"a": status} == drive.statuses
    assert ToolResult("a", (Text("no such tool"),), is_error=True) == results(drive)[0]
    assert drive.last(CallShown).synthetic


def test_what_a_tool_brings_stands_behind_the_results() -> None:
    drive = begun()
    drive.call("a")
    drive.close(Stop.TOOL_USE)
    extra = user_text("an image was attached", Origin.ATTACHMENT)
    drive.tool("a", messages=(extra,))

    assert extra == drive.messages[-1]


def test_an_oversized_result_becomes_a_preview_and_the_full_one_is_shown() -> None:
    drive = Drive((), (ToolSpec("tool", max_result_chars=100),))
    drive.begin()
    drive.call("a")
    drive.close(Stop.TOOL_USE)
    drive.tool("a", "y" * 5_000)

    (part,) = results(drive)[0].content
    assert isinstance(part, Text)
    assert part.text.startswith("y" * 2_000)
    assert len(part.text) < 2_200
    assert (Text("y" * 5_000),) == drive.last(CallShown).content


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


# ---------------------------------------------------------------- a shell call that fails


def test_a_failed_shell_call_cancels_its_siblings() -> None:
    drive = begun()
    drive.call("shell", facts=SHELL)
    drive.call("beside")
    drive.call("asked", facts=ASK)
    drive.call("later", facts=UNSAFE)
    beside, asked = drive.running("beside").id, drive.last(AskPermission).id
    drive.close(Stop.TOOL_USE)
    drive.tool("shell", "exit 1", CallStatus.FAILED)

    assert [beside] == [order.id for order in drive.all(CancelTool)]
    assert [asked] == [order.id for order in drive.all(Cancel)]
    assert {
        "shell": CallStatus.FAILED,
        "beside": CallStatus.CANCELLED,
        "asked": CallStatus.CANCELLED,
        "later": CallStatus.CANCELLED,
    } == drive.statuses
    assert all("shell" in str(result.content) for result in results(drive)[1:])
    assert ["next_turn"] == drive.continued


def test_a_call_that_comes_after_the_failed_shell_call_does_not_run() -> None:
    drive = begun()
    drive.call("shell", facts=SHELL)
    drive.tool("shell", "exit 1", CallStatus.FAILED)
    drive.call("late")

    assert ["shell"] == started(drive)
    assert CallStatus.CANCELLED is drive.statuses["late"]


@pytest.mark.parametrize(
    ("facts", "status"),
    [(SHELL, CallStatus.COMPLETED), (SHELL, CallStatus.CANCELLED), (SAFE, CallStatus.FAILED)],
)
def test_nothing_else_cancels_siblings(facts: CallFacts, status: CallStatus) -> None:
    drive = begun()
    drive.call("a", facts=facts)
    drive.call("b")
    drive.tool("a", status=status)

    assert [] == drive.all(CancelTool)


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


# ---------------------------------------------------------------- answers that hold calls


@pytest.mark.parametrize("stop", [Stop.MAX_TOKENS, Stop.REFUSAL, Stop.WINDOW_EXCEEDED])
def test_a_cut_answer_runs_none_of_its_tools_that_have_not_begun(stop: Stop) -> None:
    drive = begun(max_output_recoveries=0, max_output_tokens=10, reactive_compact=False)
    drive.call("done")
    drive.tool("done")
    drive.call("runs")
    drive.call("waits", facts=UNSAFE)
    drive.close(stop)

    assert ["done", "runs"] == started(drive)
    assert {
        "done": CallStatus.COMPLETED,
        "runs": CallStatus.CANCELLED,
        "waits": CallStatus.CANCELLED,
    } == drive.statuses
    assert ["done", "runs", "waits"] == [result.use_id for result in results(drive)]


@pytest.mark.parametrize("stop", [Stop.PAUSE_TURN, Stop.COMPACTION, Stop.END_TURN, Stop.OTHER])
def test_an_answer_with_a_whole_call_counts_as_a_tool_answer(stop: Stop) -> None:
    drive = begun()
    drive.call("a", facts=UNSAFE)
    drive.close(stop)
    drive.tool("a")

    assert ["next_turn"] == drive.continued


def test_a_nested_run_runs_no_tool() -> None:
    drive = begun(source="compact")
    drive.call("a")
    drive.close(Stop.TOOL_USE)

    assert [] == started(drive)
    assert "max_turns" == drive.end.reason


def test_a_result_that_comes_twice_changes_nothing() -> None:
    drive = begun()
    drive.call("a")
    number = drive.running("a").id
    drive.close(Stop.TOOL_USE)
    drive.tool("a")
    before = drive.state

    assert () == drive.do(ToolEnded(number, (Text("other"),)))
    assert () == drive.do(StreamClosed(1, Stop.END_TURN))
    assert before == drive.state
