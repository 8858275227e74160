"""Only this file checks when things happen: log before effects, durability, laziness, back-pressure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import run, stream
from stepfold.effects.interpreter import REACHES_OUT
from stepfold.effects.ports import TextDelta
from stepfold.engine import Config, Terminal, step
from stepfold.engine import start as start_state
from stepfold.engine.effects import BlockShown, Continued, MessageShown
from stepfold.engine.events import CommandQueued, RunStarted, Stop, StreamClosed, ToolEnded
from stepfold.engine.messages import Text
from tests.effects.fakes import FakeModel, FakeTools, text, use


class WatchingLog(MemoryLog):
    """Notes, at each append, what had been started by then."""

    def __init__(self, started: list[str]) -> None:
        super().__init__()
        self.started = started
        self.before: list[tuple[str, tuple[str, ...]]] = []

    async def append(self, event: Any, *, durable: bool) -> None:
        await asyncio.sleep(0)  # a log takes its time; nothing may overtake it
        await super().append(event, durable=durable)
        self.before.append((type(event).__name__, tuple(self.started)))


async def test_an_event_is_logged_before_what_it_causes() -> None:
    started: list[str] = []
    model = FakeModel([lambda: started.append("call 1"), *use(("t1", "a"))], text("done"))
    tools = FakeTools(safe=False, a=lambda order, _: started.append("tool") or "ok")
    log = WatchingLog(started)
    result = await run("p", model=model, tools=tools, log=log)
    assert result.terminal is Terminal.COMPLETED
    assert [
        ("RunStarted", ()),
        ("BlockCompleted", ("call 1",)),
        ("StreamClosed", ("call 1",)),
        ("ToolEnded", ("call 1", "tool")),
    ] == log.before[:4]


async def test_an_entry_is_durable_exactly_where_an_effect_reaches_the_outside() -> None:
    log = MemoryLog()
    model = FakeModel([TextDelta("x"), Text("x"), *use(("t1", "a"))], text("done"))
    await run("p", model=model, tools=FakeTools(safe=False, a=lambda *_: "ok"), log=log)
    assert log.begun is not None
    state, wanted = start_state((), log.begun.tools), []
    for event in log.events:
        state, effects = step(state, event, log.begun.config)
        wanted.append(any(type(effect) in REACHES_OUT for effect in effects))
    assert wanted == log.durable
    assert True in wanted
    assert False in wanted


async def test_nothing_begins_before_the_first_pull() -> None:
    model, log = FakeModel(text("hi")), MemoryLog()
    items = stream("p", model=model, log=log)
    await asyncio.sleep(0.01)
    assert ([], []) == (model.orders, log.events)
    await anext(items)
    assert [RunStarted] == [type(event) for event in log.events]
    await items.aclose()


async def test_the_loop_waits_while_the_consumer_does_not_pull() -> None:
    deltas = [TextDelta(str(number)) for number in range(100)]
    model = FakeModel([*deltas, Text("all"), StreamClosed(0, Stop.END_TURN)])
    items = stream("p", model=model)
    seen = []
    while len(seen) < 10:
        item = await anext(items)
        if isinstance(item, TextDelta):
            seen.append(item.text)
        await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert model.yielded <= len(seen) + 2  # one handed over, one waiting to be
    assert [str(number) for number in range(10)] == seen
    await items.aclose()


async def test_a_block_is_shown_before_the_deltas_of_the_next() -> None:
    one = [TextDelta("a"), Text("a")]
    two = [TextDelta("b"), TextDelta("c"), Text("bc")]
    model = FakeModel([*one, *two, StreamClosed(0, Stop.END_TURN)])
    shown: list[Any] = []
    await run("p", model=model, on_item=shown.append)
    words = [
        item.text if isinstance(item, TextDelta) else f"[{item.block.text}]"
        for item in shown
        if isinstance(item, TextDelta | BlockShown)
    ]
    assert ["a", "[a]", "b", "c", "[bc]"] == words


async def test_an_async_consumer_callback_is_waited_for() -> None:
    busy, most = 0, 0

    async def on_item(item: object) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1

    model = FakeModel([*use(("t1", "a"))], text("x"))
    await run("p", model=model, tools=FakeTools(a=lambda *_: "ok"), on_item=on_item)
    assert 1 == most


async def test_what_the_consumer_gets_is_in_order_and_names_each_transition() -> None:
    model = FakeModel([*use(("t1", "a"))], text("done"))
    items = [item async for item in stream("p", model=model, tools=FakeTools(a=lambda *_: "ok"))]
    kinds = [type(item).__name__ for item in items]
    assert ["MessageShown", "BlockShown", "CallShown", "Continued", "TextDelta", "BlockShown"] == kinds
    assert isinstance(items[0], MessageShown)
    assert isinstance(items[3], Continued)


async def test_parallel_calls_run_at_the_same_time() -> None:
    inside: list[object] = []
    all_in = asyncio.Event()

    async def slow(order: object, progress: object) -> str:
        inside.append(order)
        if len(inside) == 5:
            all_in.set()
        await all_in.wait()
        return "ok"

    model = FakeModel(use(*((f"t{n}", "a") for n in range(5))), text("done"))
    result = await run("p", model=model, tools=FakeTools(a=slow))
    assert (5, 5) == (len(inside), len(result.tool_calls))


async def test_the_prompt_of_a_run_may_not_be_empty() -> None:
    with pytest.raises(ValueError, match="prompt"):
        await run("  ", model=FakeModel())


async def test_late_events_are_logged_too() -> None:
    """A tool that will not be stopped: its result comes after the end, and stays in the log."""
    log = MemoryLog()

    async def stubborn(order: Any, progress: object) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return ToolEnded(order.id, (Text("I went on"),))

    items = stream("p", model=FakeModel(use(("t1", "a"))), tools=FakeTools(a=stubborn), log=log)
    async for item in items:
        if isinstance(item, BlockShown):
            items.handle.abort()
    assert (
        Terminal.ABORTED_TOOLS is items.result.terminal or Terminal.ABORTED_STREAMING is items.result.terminal
    )
    assert isinstance(log.events[-1], ToolEnded)
    assert items.result.state.end is not None


async def test_words_queued_while_the_run_ends_are_not_lost() -> None:
    log = MemoryLog()
    model = FakeModel(text("done"))

    class Tools(FakeTools):
        async def close(self) -> None:
            items.handle.queue("and another thing")

    items = stream("p", model=model, tools=Tools(), log=log, config=Config())
    async for _ in items:
        pass
    assert isinstance(log.events[-1], CommandQueued)
    assert ("and another thing",) == items.result.queued
    with pytest.raises(RuntimeError, match="over"):
        items.handle.queue("too late")
