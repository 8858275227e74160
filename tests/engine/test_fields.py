"""
What only this file catches: a continue that keeps a field it should reset, or resets one it should keep.

One test for each cell of the table "What each does to each field" (specification, section 3).  In the
state before, every field has a value of its own that is not its default, as far as the rules allow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from stepfold.engine import Continue, State
from stepfold.engine.effects import Compact, Continued, Show, StageCollapse, Summarise
from stepfold.engine.events import Stop
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Message, Origin, Role, Text, ToolResult, ToolUse
from stepfold.engine.state import Transition
from tests.engine.driven.brinks import NEW, OLD, OPEN, TAKE, brink, taken
from tests.engine.driven.drive import Drive

# Where each field stands; the only place here that knows it.
FIELDS: Final[dict[str, Callable[[State], Any]]] = {
    "compaction": lambda s: (
        s.control.compaction.compacted,
        s.control.compaction.turns_since,
        s.control.compaction.failures,
    ),
    "output_recoveries": lambda s: s.control.recovery.output_recoveries,
    "reactive_compacted": lambda s: s.control.recovery.reactive_compacted,
    "output_limit_override": lambda s: s.control.recovery.output_limit_override,
    "pending_tool_summary": lambda s: s.data.pending_tool_summary,
    "stop_hook_active": lambda s: s.control.recovery.stop_hook_active,
    "turn": lambda s: s.control.turn,
    "tool_context": lambda s: s.data.tool_context,
    "ledgers": lambda s: {
        "hook blocks": s.data.book.hook_blocks,
        "blocks left": s.control.hooks.blocks_left,
        "continuations": s.control.spending.continuations,
        "last delta": s.control.spending.last_delta,
        "last total": s.control.spending.last_total,
        "task spent": s.data.book.task_spent,
        "task remaining": s.data.book.task_remaining,
    },
}


# ---------------------------------------------------------------- the cells

KEEP, ADD_ONE = object(), object()
C = Continue
CELLS: Final[dict[str, dict[Continue, Any]]] = {
    "compaction": {
        **dict.fromkeys(Continue, KEEP),
        C.REACTIVE_COMPACT_RETRY: (False, 0, 1),  # cleared, but the failure count stays
        C.NEXT_TURN: (True, 3, 1),  # this iteration's, a turn older
    },
    "output_recoveries": {
        C.COLLAPSE_DRAIN_RETRY: KEEP,
        C.REACTIVE_COMPACT_RETRY: KEEP,
        C.MAX_OUTPUT_TOKENS_ESCALATE: KEEP,
        C.MAX_OUTPUT_TOKENS_RECOVERY: ADD_ONE,
        C.STOP_HOOK_BLOCKING: 0,
        C.TOKEN_BUDGET_CONTINUATION: 0,
        C.NEXT_TURN: 0,
    },
    "reactive_compacted": {
        C.COLLAPSE_DRAIN_RETRY: KEEP,
        C.REACTIVE_COMPACT_RETRY: True,
        C.MAX_OUTPUT_TOKENS_ESCALATE: KEEP,
        C.MAX_OUTPUT_TOKENS_RECOVERY: KEEP,
        C.STOP_HOOK_BLOCKING: KEEP,
        C.TOKEN_BUDGET_CONTINUATION: False,
        C.NEXT_TURN: False,
    },
    "output_limit_override": {
        C.COLLAPSE_DRAIN_RETRY: KEEP,
        C.REACTIVE_COMPACT_RETRY: KEEP,
        C.MAX_OUTPUT_TOKENS_ESCALATE: 64_000,
        C.MAX_OUTPUT_TOKENS_RECOVERY: KEEP,
        C.STOP_HOOK_BLOCKING: None,
        C.TOKEN_BUDGET_CONTINUATION: None,
        C.NEXT_TURN: None,
    },
    "pending_tool_summary": dict.fromkeys(Continue, None),  # but for the new one of a turn
    "stop_hook_active": {**dict.fromkeys(Continue, KEEP), C.STOP_HOOK_BLOCKING: True},
    "turn": {**dict.fromkeys(Continue, KEEP), C.NEXT_TURN: ADD_ONE},
    "tool_context": dict.fromkeys(Continue, KEEP),  # but for the tools of a turn
    "ledgers": dict.fromkeys(Continue, KEEP),  # but for the two that book something
}
WANTED_BEFORE: Final[dict[str, Any]] = {
    "compaction": (True, 2, 1),
    "output_recoveries": 1,
    "reactive_compacted": True,
    "output_limit_override": 64_000,
    "stop_hook_active": True,
    "turn": 4,
}


def expected(field: str, reason: Continue, before: Any, drive: Drive) -> Any:
    """Return what *field* is after *reason*."""
    cell = CELLS[field][reason]
    match field, reason:
        case "pending_tool_summary", Continue.NEXT_TURN:
            return drive.open(Summarise).id
        case "tool_context", Continue.NEXT_TURN:
            return ((NEW,), before.model, before.chain, before.depth)
        case "tool_context", _:
            return (before.tools, before.model, before.chain, before.depth)
        case "ledgers", Continue.STOP_HOOK_BLOCKING:
            return {**before, "hook blocks": (2,), "blocks left": 3}
        case "ledgers", Continue.TOKEN_BUDGET_CONTINUATION:
            total = drive.output_tokens
            return {
                **before,
                "continuations": 2,
                "last delta": total - before["last total"],
                "last total": total,
            }
        case "ledgers", Continue.REACTIVE_COMPACT_RETRY:  # corrected at each compaction (section 5)
            spent = 170_102 + 163_000  # the two views left behind: answer and result of t1 counted with it
            return {**before, "task spent": spent, "task remaining": 500_000 - spent}
        case _:
            return before if cell is KEEP else before + 1 if cell is ADD_ONE else cell


@pytest.mark.parametrize("reason", Continue, ids=str)
@pytest.mark.parametrize("field", [field for field in CELLS if field != "ledgers"])
def test_cell(field: str, reason: Continue) -> None:
    drive, before, after = taken(reason, field)
    read = FIELDS[field]

    if not (field == "reactive_compacted" and reason is Continue.REACTIVE_COMPACT_RETRY) and not (
        field == "output_limit_override" and reason is Continue.MAX_OUTPUT_TOKENS_ESCALATE
    ):
        assert read(before) == WANTED_BEFORE.get(field, read(before)), "the state before is not as wanted"
    got = read(after)
    if field == "tool_context":
        assert OLD in read(before).tools
        got = (got.tools, got.model, got.chain, got.depth)
    if field == "pending_tool_summary":
        assert read(before) is not None
    assert expected(field, reason, read(before), drive) == got


@pytest.mark.parametrize("reason", Continue, ids=str)
def test_cell_of_the_ledgers(reason: Continue) -> None:
    drive, before, after = taken(reason, "ledgers")
    ledgers = FIELDS["ledgers"](before)

    assert {"hook blocks": (1,), "blocks left": 4, "continuations": 1}.items() <= ledgers.items()
    assert 0 not in ledgers.values()
    assert expected("ledgers", reason, ledgers, drive) == FIELDS["ledgers"](after)


@pytest.mark.parametrize("reason", Continue, ids=str)
def test_stop_hook_active_is_kept_where_it_is_false_too(reason: Continue) -> None:
    _, before, after = taken(reason, "stop_hook_active", active=False)

    assert FIELDS["stop_hook_active"](before) is False
    assert (reason is Continue.STOP_HOOK_BLOCKING) is FIELDS["stop_hook_active"](after)


@pytest.mark.parametrize("reason", [r for r in Continue if r is not C.REACTIVE_COMPACT_RETRY], ids=str)
def test_an_unspent_guard_of_reactive_compaction_is_never_spent_by_another_continue(reason: Continue) -> None:
    _, before, after = taken(reason, "compaction")

    assert FIELDS["reactive_compacted"](before) is False
    assert FIELDS["reactive_compacted"](after) is False


# ---------------------------------------------------------------- messages


def new_tail(before: State, after: State) -> tuple[Message, ...]:
    """Return what joined the view; fails where the view before does not stand in front of it."""
    old, new = tuple(before.data.messages), tuple(after.data.messages)
    assert old == new[: len(old)]
    return new[len(old) :]


def test_messages_of_a_drain_are_the_drained_view() -> None:
    drive, before, after = taken(Continue.COLLAPSE_DRAIN_RETRY, "messages")
    through = drive.last(StageCollapse).through

    first, *rest = after.data.messages

    assert Origin.SUMMARY is first.origin
    assert "span summary" in str(first.content)
    assert list(before.data.messages)[through:] == rest


def test_messages_of_a_reaction_are_the_compacted_view() -> None:
    drive, before, after = taken(Continue.REACTIVE_COMPACT_RETRY, "messages")
    order = drive.last(Compact)

    boundary, summary, *tail = after.data.messages

    assert (Origin.BOUNDARY, ()) == (boundary.origin, boundary.content)
    assert (Origin.SUMMARY, (Text("the new summary"),)) == (summary.origin, summary.content)
    assert list(order.tail) == tail
    assert (*order.head, *order.tail) == tuple(before.data.messages)


def test_messages_of_an_escalation_are_the_view() -> None:
    _, before, after = taken(Continue.MAX_OUTPUT_TOKENS_ESCALATE, "messages")

    assert () == new_tail(before, after)


def test_messages_of_a_recovery_are_view_partial_resume() -> None:
    _, before, after = taken(Continue.MAX_OUTPUT_TOKENS_RECOVERY, "messages")

    partial, resume = new_tail(before, after)

    assert (Role.ASSISTANT, (Text("partial"), Text(OPEN))) == (partial.role, partial.content)
    assert (Role.USER, Origin.RESUME) == (resume.role, resume.origin)
    words = str(resume.content)
    assert all(word in words for word in ("limit", "mid-thought", "no apology", "no recap", "smaller pieces"))


def test_messages_of_a_stop_hook_are_view_answer_errors() -> None:
    _, before, after = taken(Continue.STOP_HOOK_BLOCKING, "messages")

    answer, error = new_tail(before, after)

    assert (Role.ASSISTANT, (Text("the answer"),)) == (answer.role, answer.content)
    assert (Role.USER, Origin.HOOK) == (error.role, error.origin)
    assert "lint is red" in str(error.content)


def test_messages_of_a_budget_continuation_are_view_answer_nudge() -> None:
    drive, before, after = taken(Continue.TOKEN_BUDGET_CONTINUATION, "messages")
    used = drive.output_tokens

    answer, nudge = new_tail(before, after)

    assert (Role.ASSISTANT, (Text("the answer"),)) == (answer.role, answer.content)
    assert (Role.USER, Origin.NUDGE) == (nudge.role, nudge.origin)
    words = str(nudge.content)
    assert all(word in words for word in (f"{used // 1_000}%", str(used), str(100_000 - used)))
    assert "Keep working" in words
    assert "do not summarise" in words


def test_messages_of_a_turn_are_view_answer_results() -> None:
    _, before, after = taken(Continue.NEXT_TURN, "messages")

    answer, results = new_tail(before, after)

    assert (Role.ASSISTANT, (ToolUse("t9", "read"),)) == (answer.role, answer.content)
    assert (Role.USER, (ToolResult("t9", (Text("contents"),)),)) == (results.role, results.content)


def test_a_window_filled_by_the_answer_keeps_its_part_behind_the_drained_view() -> None:
    drive = brink(Continue.COLLAPSE_DRAIN_RETRY, "messages")
    drive.text("partial")
    drive.close(Stop.WINDOW_EXCEEDED, output=5)

    *_, partial, resume = drive.messages

    assert C.COLLAPSE_DRAIN_RETRY == drive.continued[-1]
    assert (Text("partial"),) == partial.content
    assert Origin.RESUME is resume.origin


def test_a_window_filled_by_the_answer_keeps_its_part_behind_the_compacted_view() -> None:
    drive = brink(Continue.REACTIVE_COMPACT_RETRY, "messages")
    drive.text("partial")
    drive.close(Stop.WINDOW_EXCEEDED, output=5)
    drive.compacted(40_000, "the new summary")

    *_, partial, resume = drive.messages

    assert C.REACTIVE_COMPACT_RETRY == drive.continued[-1]
    assert "the new summary" == drive.texts[0]
    assert (Text("partial"),) == partial.content
    assert Origin.RESUME is resume.origin


# ---------------------------------------------------------------- why it continued


@pytest.mark.parametrize(
    ("reason", "count"),
    [
        (C.COLLAPSE_DRAIN_RETRY, 1),
        (C.REACTIVE_COMPACT_RETRY, 0),
        (C.MAX_OUTPUT_TOKENS_ESCALATE, 0),
        (C.MAX_OUTPUT_TOKENS_RECOVERY, 2),
        (C.STOP_HOOK_BLOCKING, 1),
        (C.TOKEN_BUDGET_CONTINUATION, 2),
        (C.NEXT_TURN, 0),
    ],
    ids=str,
)
def test_transition_names_the_continue_with_its_payload(reason: Continue, count: int) -> None:
    drive, before, after = taken(reason, "messages")

    assert before.control.transition != after.control.transition == Transition(reason, count)
    shown = [e for e in drive.outputs[-1] if isinstance(e, Show) and isinstance(e.item, Continued)]
    assert [Show(Continued(reason, count, after.control.turn))] == shown


# ---------------------------------------------------------------- what stands beside the ten fields


@pytest.mark.parametrize("reason", Continue, ids=str)
def test_queue_fallback_staging_and_abort_are_kept(reason: Continue) -> None:
    drive = brink(reason, "messages")
    drive.queue("c1")
    before = drive.state.control
    TAKE[reason](drive)
    after = drive.state.control

    joined = reason is Continue.NEXT_TURN  # the words have joined
    discarded = reason in (C.COLLAPSE_DRAIN_RETRY, C.REACTIVE_COMPACT_RETRY)
    assert (1, 0 if joined else 1) == (before.queued, after.queued)
    assert 1 == before.attempts.fallbacks == after.attempts.fallbacks
    assert (0 if discarded else before.recovery.staged) == after.recovery.staged
    assert before.abort is after.abort
    assert 1 == before.hooks.due == after.hooks.due


@pytest.mark.parametrize("reason", Continue, ids=str)
def test_tries_are_counted_anew(reason: Continue) -> None:
    drive = brink(reason, "messages")
    drive.fail(FailureKind.SERVER)
    drive.waited()
    before = drive.state.control.attempts
    TAKE[reason](drive)
    after = drive.state.control.attempts

    assert 1 == before.retries
    assert (0, 0, 0, False) == (after.retries, after.overloads, after.resends, after.crashed)


@pytest.mark.parametrize("reason", Continue, ids=str)
def test_the_batch_of_the_answer_before_is_forgotten(reason: Continue) -> None:
    _, _, after = taken(reason, "messages")
    batch = after.control.batch

    assert (0, 0, 0) == (batch.total, batch.open, batch.active)
    assert [False] * 3 == [batch.stopped, batch.broken, batch.complete]
    assert 0 == after.control.blocks
