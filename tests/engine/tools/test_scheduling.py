"""
What only this file catches: a call that starts too early or beside a wrong neighbour, a result out of order.

The specification, section 6, one rule a test.
"""

from __future__ import annotations

import pytest

from stepfold.engine.effects import AskPermission, CallShown, Cancel, CancelTool, RunTool
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    Stop,
    StreamClosed,
    ToolEnded,
    ToolSpec,
    Verdict,
)
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Origin, Text, ToolResult, user_text
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
    assert not drive.last(CallShown).synthetic


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
