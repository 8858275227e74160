"""
What only this file catches: an abort that forgets something, or waits for the wrong call.

The specification, section 8, first point; every place in which a user may stop a run.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepfold.engine.effects import (
    CallModel,
    Cancel,
    CancelModel,
    CancelTool,
    Finish,
    Prefetch,
    StageCollapse,
    Summarise,
)
from stepfold.engine.events import AbortKind, CallFacts, CallStatus, Interrupt, Stop, Usage, Verdict
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Origin, Text, Thinking, ToolResult, ToolUse
from stepfold.engine.phases import PhaseKind
from tests.engine.driven.company import COMPANY
from tests.engine.driven.drive import UNSAFE, Drive
from tests.engine.driven.friendly import complete
from tests.engine.driven.judge import valid_history

KINDS = (AbortKind.HARD, AbortKind.SUBMIT)
QUICK = CallFacts(safe=True, interrupt=Interrupt.CANCEL)


def begun(**config: object) -> Drive:
    drive = Drive(**config)  # type: ignore[arg-type]
    drive.begin()
    return drive


def origins(drive: Drive) -> list[str]:
    """Return where the messages of the view came from."""
    return [message.origin.value for message in drive.messages]


# ---------------------------------------------------------------- in the stream


@pytest.mark.parametrize("kind", KINDS)
def test_an_abort_of_a_stream_waits_for_what_was_received(kind: AbortKind) -> None:
    drive = begun()
    drive.text("whole")
    effects = drive.abort(kind)
    before = drive.state.end
    drive.cancelled(open_text="half", usage=Usage(100, 7))

    assert (CancelModel(1),) == effects
    assert before is None
    assert ("aborted_streaming", kind) == (drive.end.reason, drive.end.abort)  # type: ignore[union-attr]
    assert (Text("whole"), Text("half")) == drive.messages[1].content
    assert Usage(100, 7) == drive.state.data.book.usage


def test_only_a_hard_abort_says_so_to_the_model() -> None:
    told = []
    for kind in KINDS:
        drive = begun()
        drive.text()
        drive.abort(kind)
        drive.cancelled()
        told.append(origins(drive))

    assert [["prompt", "answer", "interruption"], ["prompt", "answer"]] == told


def test_a_hard_abort_of_an_empty_answer_adds_its_text_alone() -> None:
    drive = begun()
    drive.abort()
    drive.cancelled()

    assert ["prompt", "interruption"] == origins(drive)


def test_trailing_thinking_of_what_is_kept_is_dropped() -> None:
    drive = begun()
    drive.text("said")
    drive.block(Thinking("hm", "sig"))
    drive.abort()
    drive.cancelled()

    assert (Text("said"),) == drive.messages[1].content


def test_blocks_that_cross_the_abort_are_kept_and_their_calls_not_run() -> None:
    drive = begun()
    drive.abort()
    drive.text("crossed")
    drive.call("late")
    drive.cancelled()

    assert (Text("crossed"), ToolUse("late", "tool")) == drive.messages[1].content
    assert {"late": CallStatus.CANCELLED} == drive.statuses
    valid_history(drive.state)


@pytest.mark.parametrize("how", ["closed", "failed"])
def test_a_stream_that_ends_by_itself_ends_the_abort_too(how: str) -> None:
    drive = begun()
    drive.text()
    drive.abort()
    if how == "closed":
        drive.close(Stop.END_TURN)
    else:
        drive.fail(FailureKind.TRANSPORT)

    assert "aborted_streaming" == drive.end.reason
    assert [] == drive.errors


# ---------------------------------------------------------------- calls


def test_a_hard_abort_cancels_every_running_call_at_once() -> None:
    drive = begun()
    drive.call("waits")
    drive.call("quick", facts=QUICK)
    drive.call("later", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    drive.abort()

    assert 2 == len(drive.all(CancelTool))
    assert {CallStatus.CANCELLED} == set(drive.statuses.values())
    assert "aborted_tools" == drive.end.reason
    assert ["prompt", "answer", "results", "interruption"] == origins(drive)


def test_a_submit_abort_waits_for_the_calls_that_say_so() -> None:
    drive = begun()
    drive.call("waits")
    drive.call("quick", facts=QUICK)
    drive.call("later", facts=UNSAFE)
    drive.call("asked", facts=CallFacts(safe=True, verdict=Verdict.ASK))
    drive.close(Stop.TOOL_USE)
    quick = drive.running("quick").id
    drive.abort(AbortKind.SUBMIT)
    waiting = drive.state.end
    drive.tool("waits", "its result")

    assert waiting is None
    assert [quick] == [order.id for order in drive.all(CancelTool)]
    assert {
        "waits": CallStatus.COMPLETED,
        "quick": CallStatus.CANCELLED,
        "later": CallStatus.CANCELLED,
        "asked": CallStatus.CANCELLED,
    } == drive.statuses
    assert ["prompt", "answer", "results"] == origins(drive)
    results = drive.messages[-1].content
    assert ["waits", "quick", "later", "asked"] == [r.use_id for r in results if isinstance(r, ToolResult)]


def test_an_open_permission_is_cancelled_by_an_abort() -> None:
    drive = begun()
    drive.call("a", facts=CallFacts(safe=True, verdict=Verdict.ASK))
    drive.close(Stop.TOOL_USE)
    drive.abort(AbortKind.SUBMIT)

    assert 1 == len(drive.all(Cancel))
    assert "aborted_tools" == drive.end.reason


def test_a_hard_abort_during_a_submit_abort_cancels_what_is_waited_for() -> None:
    drive = begun()
    drive.call("waits")
    drive.close(Stop.TOOL_USE)
    drive.abort(AbortKind.SUBMIT)
    drive.abort(AbortKind.HARD)

    assert ("aborted_tools", "hard") == (drive.end.reason, drive.end.abort)  # type: ignore[union-attr]
    assert Origin.INTERRUPTION is drive.messages[-1].origin


@pytest.mark.parametrize(
    ("first", "second"), [(AbortKind.HARD, AbortKind.SUBMIT), (AbortKind.HARD,) * 2, (AbortKind.SUBMIT,) * 2]
)
def test_other_repeats_do_nothing(first: AbortKind, second: AbortKind) -> None:
    drive = begun()
    drive.call("a")
    drive.abort(first)
    before = drive.state

    assert () == drive.abort(second)
    assert before == drive.state


def test_safe_calls_of_an_open_answer_end_as_streaming_even_if_they_ran() -> None:
    drive = begun()
    drive.call("a")
    drive.abort(AbortKind.SUBMIT)
    drive.cancelled()
    drive.tool("a")

    assert "aborted_streaming" == drive.end.reason
    assert {"a": CallStatus.COMPLETED} == drive.statuses


def test_a_submit_abort_waits_for_the_stream_and_the_call_in_either_order() -> None:
    drive = begun()
    drive.call("a")
    drive.abort(AbortKind.SUBMIT)
    drive.tool("a")
    between = drive.state.end
    drive.cancelled()

    assert between is None
    assert "aborted_streaming" == drive.end.reason


# ---------------------------------------------------------------- anywhere else


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "place", [PhaseKind.WAITING, PhaseKind.COMPACTING, PhaseKind.REACTING, PhaseKind.CHECKING], ids=str
)
def test_in_back_off_compaction_and_hooks_it_ends_as_streaming_at_once(
    place: PhaseKind, kind: AbortKind
) -> None:
    drive = COMPANY[place]()
    failures = drive.state.control.compaction.failures
    drive.abort(kind)

    assert ("aborted_streaming", kind) == (drive.end.reason, drive.end.abort)  # type: ignore[union-attr]
    assert failures == drive.state.control.compaction.failures, "an aborted compaction counts as neither"
    assert (kind is AbortKind.HARD) is (Origin.INTERRUPTION is drive.messages[-1].origin)


def test_an_abort_in_a_hook_keeps_the_answer_that_was_judged() -> None:
    drive = COMPANY[PhaseKind.CHECKING]()
    drive.abort(AbortKind.SUBMIT)

    assert "answer" == drive.texts[-1]


@pytest.mark.parametrize("make", COMPANY.values(), ids=COMPANY)
def test_everything_beside_the_run_is_cancelled_before_the_end(make: Callable[[], Drive]) -> None:
    drive = make()
    beside = {order.id for kind in (Prefetch, Summarise, StageCollapse) for order in drive.opened(kind)}
    drive.abort(AbortKind.HARD)
    if drive.opened(CallModel):
        drive.cancelled()

    assert isinstance(drive.effects[-1], Finish)
    assert 3 <= len(beside)
    assert beside <= {order.id for order in drive.all(Cancel)}
    valid_history(drive.state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", COMPANY.values(), ids=COMPANY)
def test_a_next_run_goes_on_after_an_abort_anywhere(make: Callable[[], Drive], kind: AbortKind) -> None:
    drive = make()
    drive.abort(kind)
    complete(drive)
    drive.begin("go on")
    complete(drive)

    assert drive.end.ok
    assert "none" == drive.state.control.abort
    valid_history(drive.state)


def test_an_abort_at_rest_does_nothing() -> None:
    drive = Drive()
    assert () == drive.abort()
    drive.begin()
    drive.finish()
    before = drive.state

    assert () == drive.abort()
    assert before == drive.state


# ---------------------------------------------------------------- queued words


def test_queued_words_are_started_when_they_join_and_stay_when_they_do_not() -> None:
    drive = begun()
    drive.queue("first")
    drive.turn("a")
    drive.queue("second")
    drive.abort()
    drive.cancelled()

    assert ["started"] == [effect.mark for effect in drive.effects if hasattr(effect, "mark")]
    assert ["second"] == [command.id for command in drive.state.data.side.queue]
    drive.begin("next")
    drive.turn("b")
    assert [] == list(drive.state.data.side.queue)
