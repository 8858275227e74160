"""
What only this file catches: a layer that fires at the wrong count, in the wrong order, or once too often.

The specification, section 2, as the pipeline runs it; the layers by themselves are tested in ``views``.
"""

from __future__ import annotations

import pytest

from stepfold.engine.config import ModelSpec
from stepfold.engine.context.microcompact import CLEARED
from stepfold.engine.effects import CallModel, Compact, Notice, Prefetch
from stepfold.engine.events import PrefetchKind, Stop, ToolSpec, Usage
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Origin, Text, ToolResult
from tests.engine.driven.context import STAGED, full
from tests.engine.driven.drive import Drive, talk

READ = ToolSpec("read", clearable=True)
NO_TAIL = {"tail_min_tokens": 0, "tail_min_messages": 0}


def turn_at(drive: Drive, name: str, tokens: int, tool: str = "tool") -> None:
    """One turn after which the view holds so many tokens, and two for the result."""
    drive.call(name, tool)
    drive.close(Stop.TOOL_USE, output=0, prompt=tokens)
    drive.tool(name)


def tokens(drive: Drive) -> int:
    """Return the token count of the view."""
    return drive.state.control.fill.tokens


# ---------------------------------------------------------------- the count


def test_the_count_is_what_was_reported_and_an_estimate_for_what_came_after() -> None:
    drive = Drive(fixed_prompt_tokens=1_000)
    drive.begin("x" * 299)  # 100 tokens, rounded up
    before = tokens(drive)
    drive.call("a")
    drive.close(usage=Usage(5_000, 70, 600, 30))
    drive.tool("a", "y" * 301)  # 101

    assert 1_100 == before
    assert 5_000 + 600 + 30 + 70 + 101 == tokens(drive)


def test_without_a_report_the_answer_is_estimated() -> None:
    drive = Drive()
    drive.begin("xxx")
    drive.text("a" * 30)
    drive.close(Stop.MAX_TOKENS, open_text="b" * 30)  # withdrawn: the same request again
    escalated = tokens(drive)
    drive.text("a" * 30)
    drive.close(Stop.MAX_TOKENS, open_text="b" * 30)

    resume = len(drive.texts[-1])
    assert 1 == escalated
    assert 1 + 20 - (-resume // 3) == tokens(drive)


def test_after_a_compaction_it_is_the_estimate_that_the_compactor_brings() -> None:
    drive = full()
    drive.compacted(12_345)

    assert 12_345 == tokens(drive)


def test_a_report_without_input_is_no_report() -> None:
    drive = Drive()
    drive.begin("x" * 300)
    drive.call("a")
    drive.close(usage=Usage(0, 50))
    drive.tool("a", "xxx")

    assert 100 + 2 + 1 == tokens(drive)  # "tool" and "{}" are six characters


# ---------------------------------------------------------------- snip and microcompact


def test_a_snip_drops_old_rounds_and_reports_what_it_freed() -> None:
    drive = Drive(talk(10, 3_000), snip_above_tokens=15_000)
    drive.begin()
    (notice,) = drive.all(Notice)

    assert "snipped" == notice.kind
    assert notice.count > 0
    assert tokens(drive) <= 20_001 - notice.count + 1
    assert 1 == sum(message.origin is Origin.BOUNDARY for message in drive.messages)
    assert drive.texts[0].startswith("q0")
    assert "go" == drive.texts[-1]


def test_no_snip_under_its_threshold_or_by_default() -> None:
    for config in ({}, {"snip_above_tokens": 50_000}):
        drive = Drive(talk(10, 3_000), **config)
        drive.begin()
        assert 21 == len(drive.messages)


@pytest.mark.parametrize(("minutes", "cleared"), [(59, 0), (60, 2)])
def test_by_time_old_results_are_cleared_in_the_view(minutes: int, cleared: int) -> None:
    drive = Drive((), (READ,), microcompact_idle_minutes=60, microcompact_keep_results=1)
    drive.begin()
    for name in ("a", "b", "c"):
        drive.call(name, "read")
        drive.close(Stop.TOOL_USE)
        drive.tool(name, "r" * 400)
    drive.finish()
    drive.now_ms += minutes * 60_000
    drive.begin("later")

    results = [b for m in drive.messages for b in m.content if isinstance(b, ToolResult)]
    assert [(CLEARED,)] * cleared == [r.content for r in results if r.content == (CLEARED,)]
    assert (Text("r" * 400),) == results[-1].content


def test_cached_the_view_stays_and_the_request_names_what_the_server_shall_clear() -> None:
    drive = Drive((), (READ,), microcompact_trigger_results=3, microcompact_keep_results=2)
    drive.begin()
    for name in ("a", "b", "c", "d", "e", "f"):
        turn_at(drive, name, 1_000, "read")

    assert [(), (), (), (), ("a", "b"), ("a", "b"), ("a", "b", "c", "d")] == [
        order.cleared for order in drive.all(CallModel)
    ]
    assert CLEARED not in [part for m in drive.messages for part in m.content]


def test_the_boundary_is_written_when_the_response_reports_what_was_deleted() -> None:
    drive = Drive((), (READ,), microcompact_trigger_results=1, microcompact_keep_results=0)
    drive.begin()
    turn_at(drive, "a", 1_000, "read")
    turn_at(drive, "b", 1_000, "read")
    before = [message.origin for message in drive.messages]
    drive.call("c", "bash")
    drive.close(Stop.TOOL_USE, cleared_tokens=700)
    notice = drive.last(Notice)
    drive.tool("c")

    assert Origin.BOUNDARY not in before
    assert ("microcompacted", 700) == (notice.kind, notice.count)
    assert 1 == sum(message.origin is Origin.BOUNDARY for message in drive.messages)


# ---------------------------------------------------------------- notices


def test_one_notice_at_the_warning_threshold() -> None:
    drive = full(146_997)
    assert [] == drive.notices
    turn_at(drive, "b", 146_998)
    turn_at(drive, "c", 150_000)

    assert 1 == drive.notices.count("context_warning")


def test_one_notice_at_turn_twenty() -> None:
    drive = Drive()
    drive.begin()
    for number in range(25):
        drive.call(f"t{number}", input=f'{{"n":{number}}}')
        drive.close(Stop.TOOL_USE)
        drive.tool(f"t{number}")

    assert [20] == [notice.count for notice in drive.all(Notice) if notice.kind == "many_turns"]


# ---------------------------------------------------------------- runs of the machine's own


@pytest.mark.parametrize("source", ["compact", "session_memory", "collapse"])
def test_runs_of_the_machines_own_have_everything_off(source: str) -> None:
    drive = Drive(
        talk(20, 30_000),
        collapses=STAGED,
        source=source,
        snip_above_tokens=10,
        collapse_staging=True,
        prefetch_memories=True,
        prefetch_skills=True,
        tool_summaries=True,
        fallback_models=("second",),
    )
    drive.begin()
    order = drive.open(CallModel)
    drive.fail(FailureKind.OVERLOADED)

    assert 20_000 == order.max_output_tokens
    assert 41 == len(order.messages)
    assert [CallModel] == [type(effect) for effect in drive.effects if hasattr(effect, "id")]
    assert "model_error" == drive.end.reason


def test_memories_are_looked_for_once_and_skills_in_each_iteration() -> None:
    drive = Drive(prefetch_memories=True, prefetch_skills=True)
    drive.begin()
    for name in ("a", "b"):
        drive.fetched()
        turn_at(drive, name, 10)

    kinds = [order.kind for order in drive.all(Prefetch)]
    assert (1, 3) == (kinds.count(PrefetchKind.MEMORIES), kinds.count(PrefetchKind.SKILLS))


def test_what_was_found_joins_after_the_results_of_the_turn() -> None:
    drive = Drive(prefetch_memories=True)
    drive.begin()
    drive.fetched("the user likes tests")
    turn_at(drive, "a", 10)

    assert (Origin.ATTACHMENT, (Text("the user likes tests"),)) == (
        drive.messages[-1].origin,
        drive.messages[-1].content,
    )


def test_a_fallback_does_not_rerun_the_pipeline_but_the_next_iteration_has_its_thresholds() -> None:
    models = (ModelSpec("main", 200_000, 64_000), ModelSpec("small", 100_000, 64_000))
    drive = Drive(talk(12), models=models, fallback_models=("small",))
    drive.begin()
    turn_at(drive, "a", 90_000)
    for _ in range(2):
        drive.fail(FailureKind.OVERLOADED)
        drive.waited()
    drive.fail(FailureKind.OVERLOADED)
    at_once = drive.all(Compact)
    turn_at(drive, "b", 90_000)

    assert [] == at_once
    assert 1 == len(drive.opened(Compact))
    assert "small" == drive.open(Compact).model
