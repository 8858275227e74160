"""
Compaction through the public ``run``, its nested run included: what it asks, what goes out after it.

Only this file sees the loop's own request and that of the nested run side by
side, with the compaction and without it.
"""

from __future__ import annotations

import attrs
import pytest

from stepfold.effects.compactor import SUMMARY_PROMPT
from stepfold.engine import Config, Terminal
from stepfold.engine.context.request import request_messages
from stepfold.engine.context.tokens import estimate_blocks
from stepfold.engine.effects import CallModel, Compact, ErrorShown, StageCollapse
from stepfold.engine.events import CollapseStaged, Compacted
from stepfold.engine.failures import Failure
from stepfold.engine.messages import Media, Message, Origin, Role, Text, ToolResult
from tests.wire.session import MEDIA, TOO_LONG, Session, body, fails, gives, play, results, says, uses, words

IMAGE = Media("image", '{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}')
SUMMARY = "What was before, in short."
SMALL_TAIL = Config(tail_min_tokens=100, tail_max_tokens=1_000, tail_min_messages=0)
TURNS = (uses("t1 read", path="a.py"), uses("t2 read", tokens=170_000, path="b.py"), says("done"))


def media_in(order: CallModel) -> int:
    """Return how many images and documents a request holds."""
    found = 0
    for message in request_messages(order):
        for block in message.content:
            parts = block.content if isinstance(block, ToolResult) else (block,)
            found += sum(isinstance(part, Media) for part in parts)
    return found


def compacted(config: Config = SMALL_TAIL, **options: object) -> Session:
    """Read two files; after the second the window is full enough for autocompact."""
    return play(TURNS, config, tools=gives(900), **options)


def test_autocompact_sends_the_head_to_a_nested_run_and_its_summary_to_the_model() -> None:
    on, off = compacted(), compacted(attrs.evolve(SMALL_TAIL, autocompact=False))
    (nested,) = on.model.nested
    assert {"t1"} == set(results(nested))
    assert SUMMARY_PROMPT == words(nested)[-1]
    assert (20_000, {"type": "none"}) == (nested.max_output_tokens, body(nested)["tool_choice"])
    assert body(on.requests[0])["tools"] == body(nested)["tools"]
    assert "tool_choice" not in body(on.requests[0])
    after = on.requests[2]
    assert SUMMARY == words(after)[0]
    assert {"t2": "x" * 900} == results(after)
    assert [] == off.model.nested
    assert {"t1", "t2"} == set(results(off.requests[2]))
    assert ("go", SUMMARY) == (words(off.requests[2])[0], words(after)[0])
    assert Terminal.COMPLETED is on.result.terminal is off.result.terminal


def test_the_tail_is_as_long_as_config_says() -> None:
    long = compacted(attrs.evolve(SMALL_TAIL, tail_min_tokens=10_000, tail_max_tokens=40_000))
    # It covers the whole view, and the summary stands before it all the same.
    assert [SUMMARY, "go"] == words(long.requests[2])[:2]
    assert {"t1", "t2"} == set(results(long.requests[2])) == set(results(long.model.nested[0]))


def test_files_of_the_head_are_read_again() -> None:
    asked: list[tuple[str, ...]] = []

    def restore(paths: tuple[str, ...]) -> list[tuple[str, str]]:
        asked.append(paths)
        return [(path, f"{path} as it is now") for path in paths]

    on, off = compacted(restore=restore), compacted()
    none = compacted(attrs.evolve(SMALL_TAIL, restore_max_tokens=0), restore=restore)
    assert [("a.py",)] == asked  # b.py stands in the tail
    assert "a.py as it is now" in words(on.requests[2])[-1]
    assert not any("as it is now" in text for text in (*words(off.requests[2]), *words(none.requests[2])))
    assert words(off.requests[2]) == words(none.requests[2]) == words(on.requests[2])[:-1]


def test_autocompact_keeps_the_media_of_the_tail() -> None:
    """Only a reactive compaction strips them."""
    session = play(
        [uses("t1 read", tokens=170_000), says("done")], tools=gives(9), prompt=[Text("go"), IMAGE]
    )
    assert SUMMARY == words(session.requests[1])[0]
    assert 1 == media_in(session.requests[1]) == media_in(session.model.nested[0])


@pytest.mark.parametrize(
    ("failure", "terminal"), [(MEDIA, Terminal.IMAGE_ERROR), (TOO_LONG, Terminal.PROMPT_TOO_LONG)]
)
def test_reactive_compaction_strips_media_and_sends_the_rest_again(
    failure: Failure, terminal: Terminal
) -> None:
    answers = [fails(failure), says("I see.")]
    on = play(answers, prompt=[Text("what is this?"), IMAGE])
    off = play(answers, Config(reactive_compact=False), prompt=[Text("what is this?"), IMAGE])
    first, second = on.requests
    assert (1, 0) == (media_in(first), media_in(second))
    assert 0 == media_in(on.model.nested[0])
    assert [SUMMARY, "what is this?", "[image removed]"] == words(second)
    assert "reactive_compact_retry" == on.result.transitions[0].reason
    assert [] == on.shown(ErrorShown)
    assert (1, [], terminal) == (len(off.requests), off.model.nested, off.result.terminal)
    assert [failure] == [item.failure for item in off.shown(ErrorShown)]


def test_a_compaction_strips_media_from_results_too() -> None:
    tools = gives(0)
    (spec,) = tools.offered
    tools.offered[spec] = lambda call: (Text("a picture"), IMAGE)
    session = play([uses("t1 read"), fails(MEDIA), says("I see.")], tools=tools)
    assert [0, 1, 0] == [media_in(order) for order in session.requests]
    assert {"t1": "a picture[image removed]"} == results(session.requests[2])


def test_a_failed_compaction_changes_no_request() -> None:
    failed = compacted(summaries=[fails(MEDIA)])
    off = compacted(attrs.evolve(SMALL_TAIL, autocompact=False))
    assert 1 == len(failed.model.nested)
    assert body(off.requests[2]) == body(failed.requests[2])
    assert failed.notices("compaction_failed")


def remaining(session: Session) -> list[dict[str, object] | None]:
    """Return the task budget of each request on the wire."""
    return [body(order).get("output_config", {}).get("task_budget") for order in session.requests]


def test_the_task_budget_tells_what_is_left_after_a_compaction() -> None:
    turns = [*TURNS[:2], uses("t3 read"), uses("t4 read", tokens=168_000), says("done")]
    config = attrs.evolve(SMALL_TAIL, task_budget_tokens=500_000)
    on, off = play(turns, config, tools=gives(900)), play(turns, SMALL_TAIL, tools=gives(900))
    assert 2 == len(on.model.nested) == len(off.model.nested)
    result = estimate_blocks((ToolResult("t2", (Text("x" * 900),)),))
    first = 500_000 - (170_000 + 10 + result)
    second = first - (168_000 + 10 + result)
    total = {"type": "tokens", "total": 500_000}
    with_first, with_second = {**total, "remaining": first}, {**total, "remaining": second}
    assert [total, total, with_first, with_first, with_second] == remaining(on)
    assert [None] * 5 == remaining(off)
    assert all(order.task_budget is None for order in on.model.nested)


def test_a_task_budget_that_is_spent_stays_at_nothing() -> None:
    session = play(TURNS, attrs.evolve(SMALL_TAIL, task_budget_tokens=20_000), tools=gives(900))
    assert {"type": "tokens", "total": 20_000, "remaining": 0} == remaining(session)[2]


def test_a_compactor_of_ones_own_takes_the_place_of_the_nested_run() -> None:
    class Own:
        async def compact(self, order: Compact) -> Compacted:
            return Compacted(order.id, "My own summary.", 500)

        async def stage(self, order: StageCollapse) -> CollapseStaged:
            raise AssertionError("nothing is staged here")

    own, nested = compacted(compactor=Own()), compacted()
    assert ([], 1) == (own.model.nested, len(nested.model.nested))
    assert ("My own summary.", SUMMARY) == (words(own.requests[2])[0], words(nested.requests[2])[0])


def test_a_history_from_outside_is_compacted_before_the_first_request() -> None:
    history = (
        Message(Role.USER, (Text("old question " * 40_000),), Origin.PROMPT),
        Message(Role.ASSISTANT, (Text("old answer"),), Origin.ANSWER),
    )
    on = play([says("done")], messages=history)
    off = play([says("done")], Config(autocompact=False), messages=history)
    assert [SUMMARY, "go"] == words(on.requests[0])
    assert ["old answer", "go"] == words(off.requests[0])[1:]
    assert ["old answer", SUMMARY_PROMPT] == words(on.model.nested[0])[1:]
