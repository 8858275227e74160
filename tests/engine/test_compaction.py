"""
What only this file catches: a compaction or a drain at the wrong count, or once too often.

The specification, section 2, as the pipeline runs it; the layers by themselves are tested in ``views``.
"""

from __future__ import annotations

import pytest

from stepfold.engine.config import ModelSpec
from stepfold.engine.effects import CallModel, Cancel, Compact, CompactReason, StageCollapse
from stepfold.engine.events import Stop, ToolSpec
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Origin
from stepfold.engine.state import Collapse
from tests.engine.driven.context import FULL, STAGED, full
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


# ---------------------------------------------------------------- autocompact


@pytest.mark.parametrize(("reported", "fires"), [(166_997, False), (166_998, True)])
def test_autocompact_fires_at_its_threshold(reported: int, fires: bool) -> None:
    drive = full(reported)  # two tokens more with the result

    assert fires is bool(drive.opened(Compact))


@pytest.mark.parametrize(
    "config",
    [{"autocompact": False}, {"source": "compact"}, {"fixed_prompt_tokens": 167_000}],
    ids=str,
)
def test_autocompact_does_not_fire(config: dict[str, object]) -> None:
    drive = Drive(talk(20, 30_000), **config)  # type: ignore[arg-type]
    drive.begin()

    assert tokens(drive) > 167_000
    assert [] == drive.all(Compact)


def test_the_new_view_is_boundary_summary_tail_attachments() -> None:
    drive = full()
    order = drive.open(Compact)
    attachment = talk(1)[0]
    drive.compacted(20_000, attachments=(attachment,))
    boundary, summary, *rest = drive.messages

    assert (Origin.BOUNDARY, Origin.SUMMARY) == (boundary.origin, summary.origin)
    assert [*order.tail, attachment] == rest
    assert (CompactReason.AUTO, 0, False) == (order.reason, order.attempt, order.strip_media)


@pytest.mark.parametrize(
    ("new", "kept", "failures"),
    [(166_999, True, 0), (167_000, True, 1), (FULL + 1, True, 1), (FULL + 2, False, 1), (10**6, False, 1)],
)
def test_what_is_not_under_the_threshold_has_failed_but_is_kept_if_it_is_smaller(
    new: int, kept: bool, failures: int
) -> None:
    drive = full()  # FULL + 2 tokens
    drive.compacted(new)

    assert kept is ("summary" in drive.texts)
    assert kept is drive.state.control.compaction.compacted
    assert failures == drive.state.control.compaction.failures
    assert (new if kept else FULL + 2) == tokens(drive)
    assert drive.opened(CallModel), "autocompact is tried once in an iteration"


def test_an_empty_summary_has_failed() -> None:
    drive = full()
    drive.compacted(10, " \n")

    assert 1 == drive.state.control.compaction.failures
    assert "compacted" not in drive.notices


def test_three_failures_in_a_row_and_autocompact_stops_trying() -> None:
    drive = full()
    for name in ("b", "c", "d", "e"):
        if drive.opened(Compact):
            drive.not_compacted()
        turn_at(drive, name, FULL)

    assert 3 == len(drive.all(Compact)) == drive.state.control.compaction.failures


def test_a_success_forgets_the_failures() -> None:
    drive = full()
    drive.not_compacted()
    turn_at(drive, "b", FULL)
    drive.not_compacted()
    turn_at(drive, "c", FULL)
    drive.compacted(10_000)

    assert 0 == drive.state.control.compaction.failures


def test_a_new_run_closes_the_breaker() -> None:
    drive = full(max_compaction_failures=1)
    drive.not_compacted()
    turn_at(drive, "b", FULL)
    drive.finish()
    before = len(drive.all(Compact))
    drive.begin("again")

    assert (1, 2) == (before, len(drive.all(Compact)))


def test_a_summary_that_is_itself_too_long_is_asked_for_again_at_most_three_times() -> None:
    drive = full()
    while drive.opened(Compact):
        drive.not_compacted(FailureKind.PROMPT_TOO_LONG)

    orders = drive.all(Compact)
    assert [0, 1, 2, 3] == [order.attempt for order in orders]
    heads = [len(order.head) for order in orders]
    assert heads[1:] == sorted(heads[1:], reverse=True)
    assert 1 == drive.state.control.compaction.failures


# ---------------------------------------------------------------- the blocking limit


@pytest.mark.parametrize(("reported", "blocks"), [(176_997, False), (176_998, True)])
def test_no_request_leaves_at_the_blocking_limit(reported: int, blocks: bool) -> None:
    drive = full(reported, autocompact=False, reactive_compact=False)

    assert blocks is (drive.state.end is not None)


def test_it_is_skipped_while_a_recovery_that_needs_a_real_answer_is_unspent() -> None:
    assert full(180_000, autocompact=False).state.end is None


def test_a_spent_recovery_skips_nothing() -> None:
    drive = Drive(talk(12), autocompact=False)
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.compacted(10_000)
    drive.text()
    drive.close(Stop.MAX_TOKENS, output=0, prompt=180_000)

    assert "blocking_limit" == drive.end.reason


def test_it_is_skipped_for_runs_that_must_shrink_the_context() -> None:
    drive = Drive(talk(20, 30_000), source="compact", fixed_prompt_tokens=190_000)
    drive.begin()

    assert drive.opened(CallModel)


def test_it_is_skipped_when_autocompact_succeeded_in_this_iteration() -> None:
    models = (ModelSpec("main", 40_000, 1),)  # blocking above autocompact all the same
    drive = Drive(talk(12), models=models, reactive_compact=False)
    drive.begin()
    turn_at(drive, "a", 39_000)
    drive.compacted(26_998)

    assert drive.opened(CallModel)


def test_it_is_never_skipped_when_the_fixed_part_alone_is_too_big() -> None:
    drive = Drive(talk(4), collapses=STAGED, fixed_prompt_tokens=177_000)
    drive.begin()

    assert "blocking_limit" == drive.end.reason


# ---------------------------------------------------------------- collapses


def test_staging_begins_at_ninety_percent_of_the_effective_window() -> None:
    for reported, stages in ((161_997, False), (161_998, True)):
        drive = full(reported, collapse_staging=True, **NO_TAIL)
        assert stages is bool(drive.opened(StageCollapse))


def test_one_span_is_staged_at_a_time_and_a_failure_is_none_for_the_breaker() -> None:
    drive = full(163_000, collapse_staging=True, **NO_TAIL)
    turn_at(drive, "b", 163_000)
    one = len(drive.all(StageCollapse))
    drive.staged(None)
    turn_at(drive, "c", 163_000)

    assert (1, 2) == (one, len(drive.all(StageCollapse)))
    assert 0 == drive.state.control.compaction.failures


def test_staged_collapses_are_committed_before_autocompact_is_tested() -> None:
    drive = Drive(talk(12, 3_000), collapses=STAGED)
    drive.begin()
    turn_at(drive, "a", 167_000)

    assert [] == drive.all(Compact)
    assert 2 == sum(message.origin is Origin.SUMMARY for message in drive.messages)
    assert tokens(drive) < 167_000


def test_if_that_is_not_enough_autocompact_follows() -> None:
    drive = Drive(talk(12), collapses=STAGED)
    drive.begin()
    turn_at(drive, "a", 175_000)

    assert 1 == len(drive.opened(Compact))
    assert 2 == sum(message.origin is Origin.SUMMARY for message in drive.messages)


def test_an_applied_compaction_discards_what_is_staged_and_being_staged() -> None:
    drive = full(FULL, collapse_staging=True, **NO_TAIL)
    staging = drive.open(StageCollapse)
    drive.compacted(20_000)

    assert Cancel(staging.id) in drive.effects
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    assert "collapse_drain_retry" not in drive.continued


def test_staged_collapses_outlive_a_run() -> None:
    drive = Drive(talk(12), collapses=STAGED)
    drive.begin()
    drive.finish()
    drive.begin("again")
    drive.fail(FailureKind.PROMPT_TOO_LONG)

    assert ["collapse_drain_retry"] == drive.continued


def test_a_staging_that_the_end_of_a_run_cancelled_is_begun_anew_by_the_next() -> None:
    drive = full(163_000, collapse_staging=True, **NO_TAIL)
    drive.finish()
    drive.begin("again")

    assert 2 == len(drive.all(StageCollapse))


def test_a_drain_does_nothing_with_the_gate_off() -> None:
    drive = Drive(talk(12), collapses=(Collapse(2, "s"),), collapse=False)
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)

    assert [] == drive.continued
    assert drive.opened(Compact)
