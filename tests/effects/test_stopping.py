"""Only this file checks how a run is stopped from outside: both aborts, close, break, cancellation, bugs."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import CommandMark, Handle, run, stream
from stepfold.effects.ports import TextDelta
from stepfold.engine import Terminal, UnexpectedEvent
from stepfold.engine.effects import BlockShown, MessageShown
from stepfold.engine.events import (
    AbortKind,
    CallStatus,
    Interrupt,
    RunStarted,
    Stop,
    StreamCancelled,
    StreamClosed,
    Usage,
)
from stepfold.engine.messages import Text, texts
from tests.effects.fakes import FakeModel, FakeTools, forever, text, use


async def test_hard_abort_of_a_stream_keeps_what_was_received() -> None:
    log = MemoryLog()
    model = FakeModel([Usage(7, 1), TextDelta("hal"), TextDelta("f"), forever])
    items = stream("p", model=model, log=log)
    async for item in items:
        if item == TextDelta("f"):
            items.handle.abort()
    end = next(event for event in log.events if isinstance(event, StreamCancelled))
    assert ("half", True, Usage(7, 1)) == (end.open_text, end.shown, end.usage)
    assert items.result.terminal is Terminal.ABORTED_STREAMING
    assert "half" == items.result.output
    assert 1 == model.closed


async def test_hard_abort_cancels_running_tools() -> None:
    tools = FakeTools(safe=False, a=lambda *_: forever())
    items = stream("p", model=FakeModel(use(("t1", "a"))), tools=tools)

    async def abort_soon() -> None:
        while not tools.runs:
            await asyncio.sleep(0)
        items.handle.abort(AbortKind.HARD)

    aborting = asyncio.create_task(abort_soon())
    async for _ in items:
        pass
    await aborting
    assert items.result.terminal is Terminal.ABORTED_TOOLS
    assert ["t1"] == tools.cancelled
    assert {"t1": CallStatus.CANCELLED} == items.result.tool_calls


async def test_submit_abort_waits_for_tools_that_say_so_and_cancels_the_others() -> None:
    done = asyncio.Event()

    async def waits(order: object, progress: object) -> str:
        await done.wait()
        return "finished"

    for interrupt, status in (
        (Interrupt.WAIT, CallStatus.COMPLETED),
        (Interrupt.CANCEL, CallStatus.CANCELLED),
    ):
        done.clear()
        handle = Handle()
        tools = FakeTools(safe=False, interrupt=interrupt, a=waits)
        work = asyncio.create_task(run("p", model=FakeModel(use(("t1", "a"))), tools=tools, handle=handle))
        while not tools.runs:
            await asyncio.sleep(0)
        handle.abort(AbortKind.SUBMIT)
        for _ in range(10):
            await asyncio.sleep(0)
        done.set()
        result = await work
        assert result.terminal is Terminal.ABORTED_TOOLS
        assert {"t1": status} == result.tool_calls


async def test_an_abort_before_the_run_began_is_heard() -> None:
    handle = Handle()
    handle.abort()
    result = await run("p", model=FakeModel([forever]), handle=handle)
    assert result.terminal is Terminal.ABORTED_STREAMING
    handle.abort()  # the run is over: nothing happens


async def test_abort_from_another_thread() -> None:
    handle = Handle()
    model = FakeModel([lambda: asyncio.get_running_loop().run_in_executor(None, handle.abort), forever])
    result = await run("p", model=model, handle=handle)
    assert result.terminal is Terminal.ABORTED_STREAMING


@pytest.mark.parametrize("how", ["aclose", "break", "async with", "cancel"])
async def test_closing_cancels_everything_and_confirms_nothing(how: str) -> None:
    told: list[tuple[str, str]] = []
    log, tools = MemoryLog(), FakeTools(safe=False, a=lambda *_: "ok", b=lambda *_: forever())
    model = FakeModel(use(("t1", "a")), use(("t2", "b")))
    items = stream(
        "p", model=model, tools=tools, log=log, on_command=lambda id, mark: told.append((id, mark))
    )
    command = items.handle.queue("more")

    async def until_running() -> None:
        while "t2" not in tools.runs:
            await anext(items)
            await asyncio.sleep(0)

    if how == "cancel":

        async def consume() -> None:
            async for _ in items:
                pass

        consumer = asyncio.create_task(consume())
        while "t2" not in tools.runs:
            await asyncio.sleep(0)
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
    elif how == "break":
        async for item in items:
            await asyncio.sleep(0)
            if isinstance(item, BlockShown) and item.block == use(("t2", "b"))[0]:
                break
        gc.collect()
    elif how == "async with":
        async with items:
            await anext(items)
    else:
        pull = asyncio.create_task(until_running())
        while "t2" not in tools.runs:
            await asyncio.sleep(0)
        pull.cancel()
        await items.aclose()
        await items.aclose()
    for _ in range(20):
        await asyncio.sleep(0)
    before = len(log.events)
    await asyncio.sleep(0.01)
    assert before == len(log.events)
    assert [] == [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert 1 == tools.closes
    assert (command, CommandMark.COMPLETED) not in told
    with pytest.raises(RuntimeError, match="no result"):
        _ = items.result
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_a_closed_stream_never_begins() -> None:
    model = FakeModel(text("x"))
    items = stream("p", model=model)
    await items.aclose()
    assert [] == [item async for item in items]
    assert [] == model.orders


async def test_cancelling_run_cancels_what_it_had_started() -> None:
    tools = FakeTools(a=lambda *_: forever())
    work = asyncio.create_task(run("p", model=FakeModel(use(("t1", "a"))), tools=tools))
    while not tools.runs:
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (["t1"], 1) == (tools.cancelled, tools.closes)


async def test_a_bug_escapes_as_itself_and_leaves_nothing_running() -> None:
    class BrokenLog(MemoryLog):
        async def append(self, event: Any, *, durable: bool) -> None:
            if len(self.events) == 2:
                raise OSError("disk full")
            await super().append(event, durable=durable)

    async def consume(**options: Any) -> None:
        async for _ in stream("p", **options):
            pass

    async def only_run(**options: Any) -> None:
        await run("p", **options)

    for way in (consume, only_run):
        tools = FakeTools(a=lambda *_: forever())
        with pytest.raises(OSError, match="disk full"):
            await way(model=FakeModel(use(("t1", "a"))), tools=tools, log=BrokenLog())
        assert [] == [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_a_callback_that_raises_on_a_delta_is_no_failure_of_the_model() -> None:
    log = MemoryLog()

    def on_item(item: object) -> None:
        if isinstance(item, TextDelta):
            raise OSError("the pipe is closed")

    with pytest.raises(OSError, match="the pipe is closed"):
        await run("p", model=FakeModel([TextDelta("x"), Text("x")]), on_item=on_item, log=log)
    assert [RunStarted] == [type(event) for event in log.events]


async def test_a_callback_of_the_consumer_that_raises_ends_the_run() -> None:
    def on_item(item: object) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await run("p", model=FakeModel(text("x")), on_item=on_item)


async def test_an_event_of_another_run_is_a_bug_and_leaves_the_log_alone() -> None:
    log = MemoryLog([StreamClosed(99, Stop.END_TURN)])
    with pytest.raises(UnexpectedEvent):
        await run("p", model=FakeModel(text("x")), log=log)
    assert 1 == len(log.events)


async def test_queued_words_join_and_are_completed_at_the_terminal_only() -> None:
    told: list[tuple[str, str]] = []
    model = FakeModel(use(("t1", "a")), text("done"))
    items = stream(
        "p",
        model=model,
        tools=FakeTools(a=lambda *_: "ok"),
        on_command=lambda id, mark: told.append((id, mark)),
    )
    command = ""
    async for item in items:
        if isinstance(item, MessageShown) and not command:
            command = items.handle.queue("also this")
        if isinstance(item, TextDelta):
            assert [(command, "started")] == told
    assert [(command, "started"), (command, "completed")] == told
    assert any("also this" in texts(message.content) for message in model.orders[1].messages)
    assert () == items.result.queued


async def test_words_that_never_joined_stay_queued() -> None:
    items = stream("p", model=FakeModel([Text("x"), *text("done")]))
    async for item in items:
        if isinstance(item, MessageShown):
            items.handle.queue("later")
    assert ("later",) == items.result.queued
