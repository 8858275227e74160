"""
What only this file catches: a layer of the context pipeline that cuts in the wrong place or counts wrongly.

The specification, section 2: result budget, snip, microcompact, collapse, the protected tail, tokens.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.engine import Config
from stepfold.engine.context.collapse import commit, span_to_stage
from stepfold.engine.context.microcompact import CLEARED, clear_results, clearable_ids
from stepfold.engine.context.results import hold_to_budget
from stepfold.engine.context.rounds import round_starts
from stepfold.engine.context.snip import snip
from stepfold.engine.context.tail import (
    DROPPED,
    can_drop,
    compacted_view,
    drop_rounds,
    split,
    without_media,
)
from stepfold.engine.context.tokens import (
    MEDIA_TOKENS,
    chars_of,
    estimate_message,
    estimate_messages,
    freed_tokens,
)
from stepfold.engine.effects import CallModel
from stepfold.engine.events import ToolSpec
from stepfold.engine.history import History
from stepfold.engine.messages import (
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    user_text,
)
from stepfold.engine.state import Collapse
from tests.engine.views.histories import IMAGE, server_call, server_result, sound

TOOLS = (ToolSpec("read", clearable=True), ToolSpec("bash"))


def of(messages: object) -> History[Message]:
    return History[Message]().extend(messages)  # type: ignore[arg-type]


def fine(messages: object) -> bool:
    """Whether a view makes a valid request with one more prompt."""
    view = of(messages).append(user_text("go", Origin.PROMPT))
    return [] == complaints(wire_messages(CallModel(1, view, "main", 1)))


def results(*sizes: int) -> Message:
    """Return the results of as many calls, each of so many characters."""
    found = tuple(ToolResult(f"t{place}", (Text("r" * size),)) for place, size in enumerate(sizes))
    return Message(Role.USER, found, Origin.RESULTS)


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    ("block", "chars"),
    [
        (Text("abcd", "{}"), 6),
        (Thinking("abc", "sig", "x"), 7),
        (RedactedThinking("abc", "x"), 4),
        (ToolUse("id", "read", "{...}", "x"), 10),
        (ToolResult("id", (Text("abc", "x"), Opaque("o", "12")), extra="y"), 7),
        (ToolResult("id", (IMAGE,)), 0),
        (Opaque("o", "12345"), 5),
        (IMAGE, 0),
    ],
)
def test_characters_of_a_block(block: object, chars: int) -> None:
    assert chars == chars_of(block)  # type: ignore[arg-type]


@pytest.mark.parametrize(("chars", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 2), (300, 100)])
def test_an_estimate_is_characters_by_three_rounded_up(chars: int, tokens: int) -> None:
    assert tokens == estimate_message(user_text("x" * chars, Origin.PROMPT))


def test_media_count_2667_wherever_they_are() -> None:
    alone = Message(Role.USER, (IMAGE, IMAGE))
    within = Message(Role.USER, (ToolResult("a", (IMAGE, IMAGE)),))

    assert 2 * 2_667 == 2 * MEDIA_TOKENS == estimate_message(alone) == estimate_message(within)
    assert 2 * MEDIA_TOKENS == freed_tokens(within.content)


@given(sound())
def test_what_leaves_is_estimated_lower_than_what_joins(messages: list[Message]) -> None:
    low = sum(freed_tokens(message.content) for message in messages)

    assert low <= estimate_messages(messages)


# ---------------------------------------------------------------- result budget


def held(message: Message, limit: int | None = 50_000, **config: int) -> tuple[Message, int]:
    names = {f"t{place}": "read" for place in range(len(message.content))}
    tools = {"read": ToolSpec("read", max_result_chars=limit)}
    return hold_to_budget(message, names, tools, Config(**config))  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "whole"), [(50_000, True), (50_001, False)])
def test_a_result_over_its_limit_becomes_a_preview(size: int, whole: bool) -> None:
    message = results(size, 10)
    made, freed = held(message)

    assert whole is (made == message)
    assert whole is (freed == 0)
    assert made.content[1] == message.content[1]


def test_a_preview_holds_2000_bytes_and_a_reference() -> None:
    message = Message(Role.USER, (ToolResult("t0", (Text("é" * 60_000),), is_error=True),))
    (block,) = held(message)[0].content

    assert isinstance(block, ToolResult)
    (part,) = block.content
    assert isinstance(part, Text)
    assert part.text.startswith("é" * 1_000 + "\n")
    assert "t0" in part.text
    assert "60000 characters" in part.text
    assert block.is_error


def test_a_preview_never_ends_within_a_character() -> None:
    message = Message(Role.USER, (ToolResult("t0", (Text("é" * 60_000),)),))
    (block,) = held(message, result_preview_bytes=3)[0].content

    assert isinstance(block, ToolResult)
    assert str(block.content).startswith("(Text(text='é\\n")


def test_tools_with_an_infinite_limit_are_exempt() -> None:
    message = results(900_000)

    assert (message, 0) == held(message, None)


def test_of_a_batch_over_its_limit_the_largest_become_previews_first() -> None:
    made, _ = held(results(40_000, 49_000, 45_000, 48_000, 30_000))

    sizes = [chars_of(block) for block in made.content]
    assert [40_000, 45_000, 48_000, 30_000] == [size for size in sizes if size > 3_000]
    assert sum(sizes) <= 200_000


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=6), st.integers(3_000, 200_000))
def test_a_batch_is_held_to_its_limit(sizes: list[int], limit: int) -> None:
    made, freed = held(results(*sizes), max_batch_result_chars=limit, result_preview_bytes=20)
    again, more = held(made, max_batch_result_chars=limit, result_preview_bytes=20)

    assert sum(map(chars_of, made.content)) <= limit
    assert freed >= 0
    assert (made, 0) == (again, more)


# ---------------------------------------------------------------- rounds and snip


@given(sound())
def test_a_round_starts_where_a_cut_parts_nothing(messages: list[Message]) -> None:
    for start in round_starts(messages):
        head, tail = messages[:start], messages[start:]
        asked = {b.id for m in head for b in m.content if isinstance(b, ToolUse)}
        answered = {b.use_id for m in tail for b in m.content if isinstance(b, ToolResult)}
        assert not asked & answered
        assert not tail or not any(isinstance(b, ToolResult) for b in tail[0].content)


@pytest.mark.parametrize("between", [0, 1, 2])
def test_a_server_call_is_not_parted_from_the_later_answer_that_brings_its_result(between: int) -> None:
    parts = [Message(Role.ASSISTANT, (Text(f"part {number}"),)) for number in range(between)]
    messages = [
        user_text("q", Origin.PROMPT),
        Message(Role.ASSISTANT, (server_call("s"), ToolUse("a", "read"))),
        Message(Role.USER, (ToolResult("a"),)),
        *parts,
        Message(Role.ASSISTANT, (server_result("s"), ToolUse("b", "read"))),
        Message(Role.USER, (ToolResult("b"),)),
        Message(Role.ASSISTANT, (server_call("t"), server_result("t"))),
    ]

    assert [0, len(messages) - 1] == round_starts(messages)


@given(sound(), st.integers(0, 5_000))
def test_snip_drops_whole_old_rounds_and_neither_the_first_prompt_nor_the_last(
    messages: list[Message], over: int
) -> None:
    view, freed, rounds = snip(of(messages), over)
    left = list(view)

    assert left[0] == messages[0]
    assert left[-1] == messages[-1]
    assert fine(left) >= fine(messages)
    assert rounds or left == messages
    if rounds:
        boundary = next(place for place, m in enumerate(left) if m.origin is Origin.BOUNDARY)
        kept = left[boundary + 1 :]
        assert kept == messages[len(messages) - len(kept) :]
        gone = messages[boundary : len(messages) - len(kept)]
        assert freed == sum(freed_tokens(m.content) for m in gone)


@given(sound(rounds=8))
def test_snip_stops_when_enough_is_freed(messages: list[Message]) -> None:
    _, freed_all, all_rounds = snip(of(messages), 10**9)
    for over in {1, freed_all // 2, freed_all} - {0}:
        _, freed, rounds = snip(of(messages), over)
        assert freed >= over or rounds == all_rounds


# ---------------------------------------------------------------- microcompact


@given(sound(), st.integers(0, 6))
def test_clearing_changes_results_of_clearable_tools_alone_and_only_once(
    messages: list[Message], count: int
) -> None:
    ids = clearable_ids(messages, TOOLS)
    view, freed = clear_results(of(messages), frozenset(ids[:count]))
    again, more = clear_results(view, frozenset(ids[:count]))

    assert (view, 0) == (again, more)
    assert freed >= 0
    names = {b.id: b.name for m in messages for b in m.content if isinstance(b, ToolUse)}
    for before, after in zip(messages, view, strict=True):
        for old, new in zip(before.content, after.content, strict=True):
            if old != new:
                assert isinstance(old, ToolResult)
                assert isinstance(new, ToolResult)
                assert "read" == names[old.use_id]
                assert (CLEARED,) == new.content
                assert old.use_id in ids[:count]


def test_clearable_ids_are_those_of_answered_calls_oldest_first() -> None:
    messages = [
        Message(Role.ASSISTANT, (ToolUse("a", "read"), ToolUse("b", "bash"), ToolUse("c", "read"))),
        Message(Role.USER, (ToolResult("c"), ToolResult("a"), ToolResult("b"))),
        Message(Role.ASSISTANT, (ToolUse("open", "read"),)),
    ]

    assert ("c", "a") == clearable_ids(messages, TOOLS)


# ---------------------------------------------------------------- collapse


@given(sound(rounds=10), st.lists(st.integers(0, 20), max_size=3, unique=True).map(sorted))
def test_a_drain_shows_each_span_as_its_summary(messages: list[Message], cuts: list[int]) -> None:
    collapses = tuple(Collapse(cut, f"span {number}") for number, cut in enumerate(cuts))
    view, freed = commit(of(messages), collapses)
    left = list(view)
    summaries = [m for m in left if m.origin is Origin.SUMMARY]

    assert freed >= 0
    assert fine(left) >= fine(messages)
    assert summaries == left[: len(summaries)]
    kept = left[len(summaries) :]
    assert kept == messages[len(messages) - len(kept) :]


@given(sound(rounds=10))
def test_what_is_staged_lies_outside_the_tail_and_begins_where_the_last_ended(
    messages: list[Message],
) -> None:
    config = Config(tail_min_tokens=0, tail_min_messages=1, tail_max_tokens=1_000)
    _, tail = split(messages, config)
    collapses: tuple[Collapse, ...] = ()
    while (span := span_to_stage(messages, collapses, config)) is not None:
        begin, end = span
        assert begin == (collapses[-1].through if collapses else 0) < end
        assert end <= len(messages) - len(tail)
        assert end in round_starts(messages)
        collapses = (*collapses, Collapse(end, "s"))
        assert len(collapses) <= len(messages)


# ---------------------------------------------------------------- the tail and what a compaction drops


@settings(max_examples=200)
@given(sound(rounds=10), st.integers(0, 3_000), st.integers(0, 6), st.integers(0, 6_000))
def test_the_tail_begins_between_rounds_and_holds_no_more_than_allowed(
    messages: list[Message], least: int, spoken: int, most: int
) -> None:
    config = Config(tail_min_tokens=least, tail_min_messages=spoken, tail_max_tokens=most)
    head, tail = split(messages, config)

    assert head
    assert (*head, *tail) == tuple(messages) or head == tail == tuple(messages)
    assert not tail or len(messages) - len(tail) in round_starts(messages)
    assert estimate_messages(tail) <= most
    assert fine(compacted_view("summary", tail, ()))


def test_the_tail_is_as_short_as_its_two_minima_allow() -> None:
    messages = [user_text(f"{number}" * 300, Origin.PROMPT) for number in range(1)]
    for number in range(1, 20):
        role = Role.ASSISTANT if number % 2 else Role.USER
        messages.append(Message(role, (Text(f"{number % 10}" * 300),)))

    def length(**config: int) -> int:
        return len(split(messages, Config(tail_max_tokens=10**6, **config))[1])  # type: ignore[arg-type]

    assert 4 == length(tail_min_tokens=0, tail_min_messages=3)
    assert 4 == length(tail_min_tokens=400, tail_min_messages=1)
    assert 6 == length(tail_min_tokens=401, tail_min_messages=1)
    assert 20 == length(tail_min_tokens=10**6, tail_min_messages=1)


def test_the_default_tail() -> None:
    messages = [
        Message(Role.ASSISTANT if number % 2 else Role.USER, (Text("x" * 9_000),)) for number in range(40)
    ]

    assert 6 == len(split(messages, Config())[1])  # five texts, of 3,000 tokens each, and a whole round


@given(sound(rounds=10), st.integers(0, 5_000))
def test_dropping_rounds_takes_at_least_one_and_never_the_last(messages: list[Message], excess: int) -> None:
    if not can_drop(messages):
        return
    marker, *left = drop_rounds(messages, excess)
    starts = round_starts(messages)

    assert (DROPPED, Origin.BOUNDARY_NOTE) == (marker.content[0].text, marker.origin)  # type: ignore[union-attr]
    assert Role.USER is marker.role
    assert len(messages) - len(left) in starts[1:]
    assert left == messages[len(messages) - len(left) :]
    gone = messages[: len(messages) - len(left)]
    if excess and len(messages) - len(left) < starts[-1]:
        assert estimate_messages(gone) >= excess


@pytest.mark.parametrize(("rounds", "dropped"), [(2, 1), (5, 1), (9, 1), (10, 2), (15, 3)])
def test_without_a_reported_excess_a_fifth_of_the_rounds_goes(rounds: int, dropped: int) -> None:
    messages = []
    for number in range(rounds):
        messages += [user_text(f"q{number}", Origin.PROMPT), Message(Role.ASSISTANT, (Text("a"),))]

    assert rounds - dropped == len(round_starts(drop_rounds(messages, 0)[1:]))


@given(sound(rounds=10))
def test_an_old_marker_is_removed_before_counting(messages: list[Message]) -> None:
    left: tuple[Message, ...] = tuple(messages)
    for _ in range(20):
        if not can_drop(left):
            break
        shorter = drop_rounds(left, 0)
        assert 1 == sum(m.origin is Origin.BOUNDARY_NOTE for m in shorter)
        assert len(shorter) <= len(left)
        left = shorter
    assert not can_drop(left)
    assert any(m.origin is not Origin.BOUNDARY_NOTE for m in left)


def test_media_become_a_line_of_text_wherever_they_are() -> None:
    message = Message(Role.USER, (IMAGE, ToolResult("a", (Text("x"), IMAGE)), Text("q")))
    plain = without_media([message, user_text("q", Origin.PROMPT)])

    assert "'image'" not in str(plain)
    assert 2 == str(plain).count("[image removed]")
    assert (Role.USER, 3) == (plain[0].role, len(plain[0].content))
