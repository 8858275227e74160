"""
Each layer of the context pipeline changes a request; without it the request is another.

Only this file sees them one by one through the whole loop: the pure functions
have tests of their own, scenarios show some of them together.
"""

from __future__ import annotations

import attrs

from stepfold.adapters.clock import ManualClock
from stepfold.adapters.memory_log import MemoryLog
from stepfold.engine import Config
from stepfold.engine.context.microcompact import CLEARED
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallShown
from stepfold.engine.events import CollapseStaged, ToolSpec
from stepfold.engine.messages import Origin, Text, ToolUse
from tests.wire.session import (
    Script,
    Session,
    Tools,
    body,
    gives,
    inside,
    logged,
    play,
    played,
    results,
    says,
    uses,
    words,
)

FOUR = ("t1", "t2", "t3", "t4")
MINUTE_MS = 60_000


def four_turns() -> list[Script]:
    return [*(uses(f"{name} read") for name in FOUR), says("done")]


def test_snip_takes_old_rounds_out() -> None:
    config = Config(snip_above_tokens=1_000)
    on = play(four_turns(), config, tools=gives(1_500))
    off = play(four_turns(), tools=gives(1_500))
    # What leaves is counted low: the third round leaves too, once the fourth has come.
    assert {"t3"} == set(results(on.requests[3]))
    assert {"t4"} == set(results(on.requests[4]))
    assert set(FOUR) == set(results(off.requests[-1]))
    assert "go" == words(on.requests[-1])[0]
    assert on.notices("snipped")
    assert not off.notices("snipped")


def idle(minutes: int, config: Config) -> Session:
    """Run twice on one log, with a pause in between, and return the second run."""

    async def twice() -> Session:
        clock, log, tools = ManualClock(), MemoryLog(), gives(300, clearable=True)
        await played(four_turns(), config, tools=tools, log=log, clock=clock)
        await clock.advance(minutes * MINUTE_MS)
        return await played([says("yes")], config, tools=tools, log=log, clock=clock, prompt="still there?")

    return inside(twice())


def test_results_are_cleared_after_an_hour_of_silence() -> None:
    config = Config(microcompact_idle_minutes=60, microcompact_keep_results=1)
    late, early, off = idle(60, config), idle(59, config), idle(60, Config())
    whole = dict.fromkeys(FOUR, "x" * 300)
    assert {**dict.fromkeys(FOUR, CLEARED.text), "t4": "x" * 300} == results(late.requests[0])
    assert whole == results(early.requests[0]) == results(off.requests[0])
    assert late.notices("microcompacted")


def test_only_results_of_clearable_tools_are_cleared() -> None:
    async def twice() -> Session:
        config = Config(microcompact_idle_minutes=60, microcompact_keep_results=0)
        clock, log = ManualClock(), MemoryLog()
        tools = Tools(
            {ToolSpec("read", clearable=True): lambda _: "r" * 99, ToolSpec("ask"): lambda _: "a" * 99}
        )
        turns = [uses("t1 read", "t2 ask"), says("done")]
        await played(turns, config, tools=tools, log=log, clock=clock)
        await clock.advance(60 * MINUTE_MS)
        return await played([says("yes")], config, tools=tools, log=log, clock=clock)

    assert {"t1": CLEARED.text, "t2": "a" * 99} == results(inside(twice()).requests[0])


def test_old_results_go_to_the_servers_cache_edits() -> None:
    """The view stays as it is; the boundary is written when the response reports what was cleared."""
    config = Config(microcompact_trigger_results=3, microcompact_keep_results=2)
    turns = [*(uses(f"{name} read") for name in FOUR), uses("t5 read", cleared=700), says("done")]
    on = play(turns, config, tools=gives(300, clearable=True))
    off = play(turns, tools=gives(300, clearable=True))
    assert [(), (), (), (), ("t1", "t2"), ("t1", "t2")] == [order.cleared for order in on.requests]
    edit = body(on.requests[4])["context_management"]["edits"][0]
    assert ("clear_tool_uses_20250919", {"type": "tool_uses", "value": 2}) == (edit["type"], edit["keep"])
    assert "context_management" not in body(on.requests[3])
    assert "context_management" not in body(off.requests[4])
    whole = dict.fromkeys((*FOUR, "t5"), "x" * 300)
    assert whole == results(on.requests[5]) == results(off.requests[5])
    assert [0, 0, 0, 0, 0, 1] == [boundaries(order.messages) for order in on.requests]
    assert [700] == [notice.count for notice in on.notices("microcompacted")]


def boundaries(messages: object) -> int:
    return sum(message.origin is Origin.BOUNDARY for message in messages)  # type: ignore[attr-defined]


def test_without_a_report_of_the_server_no_boundary_is_written() -> None:
    config = Config(microcompact_trigger_results=3, microcompact_keep_results=2)
    turns = [*(uses(f"{name} read") for name in (*FOUR, "t5")), says("done")]
    session = play(turns, config, tools=gives(300, clearable=True))
    assert ("t1", "t2") == session.requests[-1].cleared
    assert 0 == boundaries(session.result.messages)
    assert not session.notices("microcompacted")


def test_a_result_over_its_tools_limit_becomes_a_preview() -> None:
    turns = [uses("t1 read"), says("done")]
    on = play(turns, tools=gives(3_000, max_result_chars=2_999))
    off = play(turns, tools=gives(3_000, max_result_chars=3_000))
    free = play(turns, tools=gives(300_000, max_result_chars=None))
    preview = results(on.requests[1])["t1"]
    assert ("x" * 2_000, True) == (preview[:2_000], "t1: 3000 characters" in preview)
    assert len(preview) < 2_100
    assert {"t1": "x" * 3_000} == results(off.requests[1])
    assert {"t1": "x" * 300_000} == results(free.requests[1])
    # The consumer, like the log, has the full text.
    assert [(Text("x" * 3_000),)] == [item.content for item in on.shown(CallShown)]


def test_a_batch_over_its_limit_gives_up_its_largest_results() -> None:
    def sized(call: ToolUse) -> str:
        return "x" * {"t1": 900, "t2": 2_000, "t3": 800}[call.id]

    turns = [uses("t1 read", "t2 read", "t3 read"), says("done")]
    tools = Tools({ToolSpec("read"): sized})
    config = Config(max_batch_result_chars=2_000, result_preview_bytes=10)
    on = play(turns, config, tools=tools)
    off = play(turns, Config(result_preview_bytes=10), tools=tools)
    sizes = {name: len(text) for name, text in results(on.requests[1]).items()}
    assert (900, 800) == (sizes["t1"], sizes["t3"])
    assert "2000 characters" in results(on.requests[1])["t2"]
    assert {"t1": 900, "t2": 2_000, "t3": 800} == {n: len(t) for n, t in results(off.requests[1]).items()}
    free = play(turns, config, tools=Tools({ToolSpec("read", max_result_chars=None): sized}))
    assert results(off.requests[1]) == results(free.requests[1])


def staging(config: Config) -> Session:
    """
    Fill the window to nine tenths, then to autocompact's threshold.

    The third read waits for the staged summary, if one was asked for.
    """

    async def session() -> Session:
        log = MemoryLog()

        async def read(call: ToolUse) -> str:
            if call.id == "t3" and config.collapse_staging:
                await logged(log, CollapseStaged)
            return call.id * 4_500

        turns = [
            uses("t1 read", tokens=100_000),
            uses("t2 read", tokens=163_000),
            uses("t3 read", tokens=164_500),
            says("done"),
        ]
        tools = Tools({ToolSpec("read"): read})
        return await played(turns, config, tools=tools, log=log, summaries=[says("They read t1.")])

    return inside(session())


TAIL = Config(tail_min_tokens=100, tail_max_tokens=4_000, tail_min_messages=1, autocompact=False)


def test_the_loop_stages_a_collapse_itself_and_commits_it_at_the_threshold() -> None:
    on, off = staging(attrs.evolve(TAIL, collapse_staging=True)), staging(TAIL)
    (span,) = on.model.nested
    assert "t1" * 4_500 in words(span)
    assert "t3" * 4_500 not in words(span)
    assert "t1" * 4_500 in words(on.requests[2])  # staged, not yet committed
    assert any("They read t1." in text for text in words(on.requests[3]))
    assert "t1" not in results(on.requests[3])
    assert on.notices("collapsed")
    assert not on.notices("compacted")
    assert {"t1", "t2", "t3"} == set(results(off.requests[3]))
    assert [] == off.model.nested


def test_a_drain_takes_the_place_of_autocompact() -> None:
    config = attrs.evolve(TAIL, collapse_staging=True, autocompact=True)
    drained = staging(config)
    assert 1 == len(drained.model.nested)
    compacted = staging(attrs.evolve(config, collapse_staging=False))
    assert compacted.notices("compacted")
    assert words(drained.requests[3]) != words(compacted.requests[3])


def test_what_is_sent_is_merged_and_begins_with_the_user() -> None:
    session = play(four_turns(), Config(snip_above_tokens=1_000), tools=gives(1_500))
    for order in session.requests:
        roles = [message.role for message in request_messages(order)]
        assert roles == ["user" if place % 2 == 0 else "assistant" for place in range(len(roles))]
