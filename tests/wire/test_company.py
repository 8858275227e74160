"""
What runs beside the loop and joins its requests: memories, skills, queued words, other tools; no summaries.

Only this file sees on the wire what each of these ports changes, and that
without the port or its gate the request is another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs
import pytest

from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import Handle
from stepfold.engine import Config
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import BlockShown, MessageShown, Prefetch, Summarise, SummaryShown
from stepfold.engine.events import Prefetched, SummaryReady, ToolSpec
from stepfold.engine.messages import Origin, Text, ToolUse, texts
from tests.wire.session import Script, Session, Tools, body, gives, inside, logged, played, says, uses, words

MEMORIES = Config(prefetch_memories=True)
SKILLS = Config(prefetch_skills=True)
SUMMARIES = Config(tool_summaries=True)
ONE_TURN = (uses("t1 read"), says("done"))
TWO_TURNS = (uses("t1 read"), uses("t2 read"), says("done"))


@attrs.define
class Finder:
    """A prefetcher that finds one numbered text each time, once it is let."""

    let: Callable[[], object] = attrs.field(default=lambda: None)
    asked: list[Prefetch] = attrs.field(factory=list)

    async def prefetch(self, order: Prefetch) -> Prefetched:
        self.asked.append(order)
        number = len(self.asked)
        gate = self.let()
        if asyncio.iscoroutine(gate):
            await gate
        return Prefetched(order.id, (f"{order.kind} {number}",))


async def never() -> None:
    await asyncio.get_running_loop().create_future()


def found(config: Config, finder: Finder | None, *, wait: bool = True) -> Session:
    """Read twice; the first read waits until something was found, where *wait* says so."""

    async def session() -> Session:
        log = MemoryLog()

        async def read(call: ToolUse) -> str:
            if wait and call.id == "t1":
                await logged(log, Prefetched)
            return "x"

        tools = Tools({ToolSpec("read"): read})
        return await played(TWO_TURNS, config, tools=tools, log=log, prefetcher=finder)

    return inside(session())


def test_memories_join_behind_the_results() -> None:
    finder = Finder()
    on, gate_off = found(MEMORIES, finder), found(Config(), Finder(), wait=False)
    port_off = found(MEMORIES, None, wait=False)
    assert ["go"] == words(on.requests[0])
    assert ["go", "x", "memories 1"] == words(on.requests[1])
    assert ["go", "x"] == words(gate_off.requests[1]) == words(port_off.requests[1])
    results = request_messages(on.requests[1])[-1].content
    assert ["ToolResult", "Text"] == [type(block).__name__ for block in results]
    assert 1 == len(finder.asked)  # once a run
    assert [Origin.PROMPT] == [message.origin for message in finder.asked[0].messages]


def test_skills_are_looked_for_in_every_iteration() -> None:
    finder = Finder()
    on, gate_off = found(SKILLS, finder), found(Config(), Finder(), wait=False)
    port_off = found(SKILLS, None, wait=False)
    assert ["go", "x", "skills 1"] == words(on.requests[1])
    assert "skills 2" in words(on.requests[2])
    assert 3 == len(finder.asked)
    assert [2, 3] == [len(words(order)) for order in gate_off.requests[1:]]
    assert body(gate_off.requests[2]) == body(port_off.requests[2]) != body(on.requests[2])


def test_what_is_found_late_joins_a_turn_later() -> None:
    async def session() -> Session:
        log, second = MemoryLog(), asyncio.Event()

        async def read(call: ToolUse) -> str:
            if call.id == "t2":
                second.set()
                await logged(log, Prefetched)
            return "x"

        return await played(
            TWO_TURNS,
            MEMORIES,
            tools=Tools({ToolSpec("read"): read}),
            log=log,
            prefetcher=Finder(second.wait),
        )

    late = inside(session())
    assert ["go", "x"] == words(late.requests[1])
    assert ["go", "x", "x", "memories 1"] == words(late.requests[2])


def test_nobody_waits_for_what_is_never_found() -> None:
    session = found(attrs.evolve(MEMORIES, prefetch_skills=True), Finder(never), wait=False)
    assert session.result.ok
    assert ["go", "x", "x"] == words(session.requests[2])


def talking(*texts: str, turn: str = "t1") -> Session:
    """Queue words while the call *turn* runs."""

    async def session() -> Session:
        handle = Handle()

        def read(call: ToolUse) -> str:
            if call.id == turn:
                for text in texts:
                    handle.queue(text)
            return "x"

        return await played(TWO_TURNS, tools=Tools({ToolSpec("read"): read}), handle=handle)

    return inside(session())


def test_queued_words_join_behind_the_results_in_their_order() -> None:
    on, off = talking("in green", "and small"), talking()
    assert ["go", "x", "in green", "and small"] == words(on.requests[1])
    assert ["go", "x"] == words(off.requests[1])
    assert ["in green", "and small"] == [
        texts(item.message.content)
        for item in on.shown(MessageShown)
        if item.message.origin is Origin.COMMAND
    ]
    first, second = (id for id, mark in on.marks if mark == "started")
    assert [(first, "started"), (second, "started"), (first, "completed"), (second, "completed")] == on.marks


def test_words_without_a_tool_turn_wait_for_the_next_run() -> None:
    async def session() -> tuple[Session, Session]:
        handle, log = Handle(), MemoryLog()

        async def talk() -> None:
            handle.queue("one more thing")

        one = await played([[talk, *says("done")]], handle=handle, log=log, tools=gives(1))
        two = await played(ONE_TURN, log=log, tools=gives(1), prompt="read")
        return one, two

    one, two = inside(session())
    assert ("one more thing",) == one.result.queued
    assert [] == one.marks
    assert ["go", "done", "read"] == words(two.requests[0])
    assert ["go", "done", "read", "x", "one more thing"] == words(two.requests[1])
    assert ["started", "completed"] == [mark for _, mark in two.marks]


def changing(*tools: ToolSpec) -> Session:
    async def session() -> Session:
        handle = Handle()

        def read(call: ToolUse) -> str:
            if tools and call.id == "t1":
                handle.change_tools(tools)
            return "x"

        return await played(TWO_TURNS, tools=Tools({ToolSpec("read"): read}), handle=handle)

    return inside(session())


def offered(session: Session) -> list[list[str]]:
    return [[tool["name"] for tool in body(order)["tools"]] for order in session.requests]


def test_changed_tools_are_offered_from_the_next_request_on() -> None:
    on, off = changing(ToolSpec("read"), ToolSpec("write")), changing()
    assert [["read"], ["read", "write"], ["read", "write"]] == offered(on)
    assert [["read"]] * 3 == offered(off)
    assert body(on.requests[0]) == body(off.requests[0])
    assert body(on.requests[1]) != body(off.requests[1])


@attrs.define
class Summariser:
    """A summariser that answers at once, or never."""

    hangs: bool = False
    asked: list[Summarise] = attrs.field(factory=list)

    async def summarise(self, order: Summarise) -> SummaryReady:
        self.asked.append(order)
        if self.hangs:
            await never()
        return SummaryReady(order.id, f"It read {order.calls[0].id}.")


def summarised(config: Config, summariser: Summariser | None) -> Session:
    async def session() -> Session:
        log = MemoryLog()
        awaited = config.tool_summaries and summariser is not None and not summariser.hangs

        def after(count: int, answer: Script) -> Script:
            async def arrived() -> None:
                if awaited and config.source == "user":
                    await logged(log, SummaryReady, count)

            return [arrived, *answer]

        turns = [uses("t1 read"), after(1, uses("t2 read")), after(2, says("done"))]
        return await played(turns, config, tools=gives(9), log=log, summariser=summariser)

    return inside(session())


def test_summaries_are_shown_in_order_and_go_into_no_request() -> None:
    """The one port here that changes nothing on the wire."""
    summariser = Summariser()
    on = summarised(SUMMARIES, summariser)
    offs = summarised(Config(), Summariser()), summarised(SUMMARIES, None)
    shown = on.shown(SummaryShown)
    assert ["It read t1.", "It read t2."] == [item.text for item in shown]
    assert ["t1", "t2"] == [order.calls[0].id for order in summariser.asked]
    blocks = [item for item in on.shown(BlockShown) if isinstance(item.block, ToolUse | Text)]
    places = [on.items.index(item) for item in (blocks[1], shown[0], blocks[2], shown[1])]
    assert sorted(places) == places  # each while or right after the next answer streams
    for off in offs:
        assert [] == off.shown(SummaryShown)
        assert [body(order) for order in on.requests] == [body(order) for order in off.requests]


@pytest.mark.parametrize(
    ("config", "hangs", "asked"),
    [(SUMMARIES, True, 2), (attrs.evolve(SUMMARIES, source="agent:finder"), False, 0)],
)
def test_no_summary_where_none_is_due_or_comes(config: Config, hangs: bool, asked: int) -> None:
    summariser = Summariser(hangs)
    session = summarised(config, summariser)
    assert session.result.ok
    assert [] == session.shown(SummaryShown)
    assert asked == len(summariser.asked)
