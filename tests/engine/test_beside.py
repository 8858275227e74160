"""
What only this file catches: something beside the loop that decides, is waited for, comes twice or gets lost.

The specification, sections 2 and 8: queued words, batch summaries, changed tools, background work, notices.
"""

from __future__ import annotations

import pytest

from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import (
    Background,
    CallModel,
    MarkCommand,
    MessageShown,
    Notice,
    Summarise,
    SummaryShown,
)
from stepfold.engine.events import AbortKind, Stop, ToolSpec
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Opaque, Origin, Text, user_text
from tests.engine.driven.drive import UNSAFE, Drive


def begun(**config: object) -> Drive:
    drive = Drive(**config)  # type: ignore[arg-type]
    drive.begin()
    return drive


def marks(drive: Drive) -> list[tuple[str, str]]:
    """Return what was told of queued words."""
    return [(mark.command_id, mark.mark.value) for mark in drive.all(MarkCommand)]


# ---------------------------------------------------------------- queued words


def test_queued_words_join_behind_the_results_in_their_order() -> None:
    drive = begun(prefetch_memories=True)
    drive.fetched("a memory")
    drive.call("a")
    drive.queue("c1", "first")
    drive.close(Stop.TOOL_USE)
    drive.queue("c2", "second")
    drive.tool("a", messages=(user_text("from the tool", Origin.ATTACHMENT),))

    assert ["from the tool", "first", "second", "a memory"] == drive.texts[-4:]
    assert [("c1", "started"), ("c2", "started")] == marks(drive)
    shown = [item.message.content[0] for item in drive.all(MessageShown)]
    assert [Text("first"), Text("second")] == shown[2:4]


def test_words_stay_queued_when_the_run_ends_without_a_tool_turn() -> None:
    drive = begun()
    drive.queue("c1")
    drive.finish()

    assert [] == marks(drive)
    assert ["c1"] == [command.id for command in drive.state.data.side.queue]


def test_words_queued_before_the_first_run_wait_for_its_first_batch() -> None:
    drive = Drive()
    drive.queue("c1", "early")
    drive.begin()
    before = list(drive.texts)
    drive.turn("a")

    assert (["go"], "early") == (before, drive.texts[-1])


def test_the_words_of_the_last_turn_join_before_the_end() -> None:
    drive = begun(max_turns=1)
    drive.queue("c1", "words")
    drive.turn("a")

    assert "max_turns" == drive.end.reason
    assert ("words", [("c1", "started")]) == (drive.texts[-1], marks(drive))


def test_a_full_queue_refuses_and_says_so() -> None:
    drive = begun(max_queued_commands=1)
    drive.queue("c1")
    drive.queue("c2")

    assert [("c2", "refused")] == marks(drive)
    assert ["queue_full"] == drive.notices


def test_there_is_room_again_when_words_have_joined() -> None:
    drive = begun(max_queued_commands=1)
    drive.queue("c1")
    drive.turn("a")
    drive.queue("c2")

    assert [("c1", "started")] == marks(drive)


def test_words_wait_while_a_server_call_of_the_answer_is_pending() -> None:
    drive = begun()
    drive.queue("c1", "words")
    wire = '{"type":"server_tool_use","id":"s","name":"web_search","input":{}}'
    drive.block(Opaque("server_tool_use", wire, "s"))
    drive.turn("a")
    held = list(drive.texts)
    drive.block(Opaque("web_search_tool_result", '{"type":"web_search_tool_result"}', answers="s"))
    drive.turn("b")

    assert "words" not in held
    assert "words" == drive.texts[-1]


def asked_the_server(drive: Drive) -> None:
    """An answer with a server-side call that is pending, beside a call whose tool brings a message."""
    wire = '{"type":"server_tool_use","id":"s","name":"web_search","input":{}}'
    drive.block(Opaque("server_tool_use", wire, "s"))
    drive.call("a")
    drive.close(Stop.TOOL_USE)
    drive.tool("a", messages=(user_text("look at this", Origin.ATTACHMENT),))


def test_what_a_tool_brings_waits_while_a_server_call_of_the_answer_is_pending() -> None:
    drive = begun()
    asked_the_server(drive)
    held = [block.call_id for m in request_messages(drive.open(CallModel)) for block in m.content
            if isinstance(block, Opaque)]  # fmt: skip
    assert (["s"], False) == (held, "look at this" in drive.texts)
    assert "look at this" not in str(drive.all(MessageShown))

    drive.block(Opaque("web_search_tool_result", '{"type":"web_search_tool_result"}', answers="s"))
    drive.turn("b")

    assert "look at this" == drive.texts[-1]
    assert 1 == str(drive.all(MessageShown)).count("look at this")


def test_what_a_tool_brought_is_said_before_the_next_prompt_where_no_turn_came() -> None:
    drive = begun()
    asked_the_server(drive)
    drive.finish()
    drive.begin("and now?")

    assert ["look at this", "and now?"] == drive.texts[-2:]
    assert 1 == str(drive.all(MessageShown)).count("look at this")


# ---------------------------------------------------------------- batch summaries


def test_a_summary_that_comes_while_an_answer_streams_is_shown_when_it_ends() -> None:
    drive = begun(tool_summaries=True)
    drive.turn("a")
    order = drive.open(Summarise)
    at_once = drive.summarised("read a file")
    effects = drive.close()

    assert () == at_once
    assert [SummaryShown(order.id, "read a file")] == drive.all(SummaryShown)
    assert any(getattr(effect, "item", None) == SummaryShown(order.id, "read a file") for effect in effects)


def test_a_late_summary_is_shown_on_arrival() -> None:
    drive = begun(tool_summaries=True)
    drive.turn("a")
    order = drive.open(Summarise)
    drive.call("b", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    drive.summarised("late")

    assert [SummaryShown(order.id, "late")] == drive.all(SummaryShown)


def test_a_summary_that_failed_is_none() -> None:
    drive = begun(tool_summaries=True)
    drive.turn("a")
    drive.summarised(None)
    drive.finish()

    assert [] == drive.all(SummaryShown)
    assert drive.state.data.pending_tool_summary is None


def test_a_late_summary_that_failed_shows_nothing() -> None:
    drive = begun(tool_summaries=True)
    drive.turn("a")
    drive.fail(FailureKind.SERVER)

    assert () == drive.summarised(None)


def test_an_older_summary_does_not_clear_the_one_that_is_pending() -> None:
    drive = begun(tool_summaries=True)
    drive.turn("a")
    drive.turn("b")
    older, newer = drive.opened(Summarise)
    from stepfold.engine.events import SummaryReady

    drive.do(SummaryReady(older.id, "the first batch"))
    drive.finish()

    assert older.id < newer.id
    assert [SummaryShown(older.id, "the first batch")] == drive.all(SummaryShown)


@pytest.mark.parametrize("source", ["agent", "agent:x", "compact"])
def test_only_main_runs_are_summarised_and_have_background_work(source: str) -> None:
    drive = begun(tool_summaries=True, source=source)
    if source != "compact":
        drive.turn("a")
    drive.finish()

    assert [] == drive.all(Summarise)
    assert [] == drive.all(Background)


def test_no_summary_of_a_batch_that_was_aborted() -> None:
    drive = begun(tool_summaries=True)
    drive.call("a")
    drive.close(Stop.TOOL_USE)
    drive.abort(AbortKind.SUBMIT)
    drive.tool("a")

    assert [] == drive.all(Summarise)


def test_a_summary_is_made_of_the_calls_and_their_results() -> None:
    drive = begun(tool_summaries=True)
    drive.turn("a", "b")
    order = drive.open(Summarise)

    assert ["a", "b"] == [call.id for call in order.calls]
    assert drive.messages[-1] == order.results


# ---------------------------------------------------------------- background work


def test_background_work_starts_once_at_a_clean_answer_and_is_not_waited_for() -> None:
    drive = begun()
    drive.turn("a")
    before = drive.all(Background)
    drive.finish("the end")
    (work,) = drive.all(Background)

    assert [] == before
    assert (Text("the end"),) == work.messages[-1].content


@pytest.mark.parametrize("stop", [Stop.REFUSAL, Stop.MAX_TOKENS])
def test_no_background_work_after_a_failed_answer(stop: Stop) -> None:
    drive = begun(max_output_tokens=10, max_output_recoveries=0)
    drive.text()
    drive.close(stop)

    assert [] == drive.all(Background)


# ---------------------------------------------------------------- tools that change


def test_other_tools_are_on_offer_from_the_next_turn_on() -> None:
    old, new = ToolSpec("old"), ToolSpec("new")
    drive = Drive((), (old,))
    drive.begin()
    drive.tools(new)
    drive.fail(FailureKind.SERVER)
    drive.waited()
    drive.turn("a")

    assert [(old,), (old,), (new,)] == [order.tools for order in drive.all(CallModel)]


def test_other_tools_that_no_turn_took_up_are_there_in_the_next_run() -> None:
    drive = Drive((), (ToolSpec("old"),))
    drive.begin()
    drive.tools(ToolSpec("new"))
    drive.finish()
    drive.begin("again")

    assert (ToolSpec("new"),) == drive.open(CallModel).tools


def test_at_rest_tools_change_at_once() -> None:
    drive = Drive()
    drive.tools(ToolSpec("new"))

    assert (ToolSpec("new"),) == drive.state.data.tool_context.tools


# ---------------------------------------------------------------- notices


def test_the_same_calls_three_times_in_a_row_are_told_each_third_time() -> None:
    drive = begun()
    for number in range(7):
        drive.turn(f"t{number}")

    assert [3, 6] == [notice.count for notice in drive.all(Notice) if notice.kind == "repeated_call"]


def test_other_calls_between_begin_the_count_anew() -> None:
    drive = begun()
    for number, input in enumerate(["{}", "{}", '{"x":1}', "{}", "{}"]):
        drive.call(f"t{number}", input=input)
        drive.close(Stop.TOOL_USE)
        drive.tool(f"t{number}")

    assert [] == drive.notices
