"""Only this file checks the deadlines: every effect but a permission prompt has one, in virtual time too."""

from __future__ import annotations

import asyncio
from typing import Any

from stepfold.adapters.clock import ManualClock
from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import run, stream
from stepfold.effects.flow.deadlines import Deadlines
from stepfold.effects.ports import TextDelta
from stepfold.engine import Config
from stepfold.engine.effects import AskPermission, Compact, Prefetch, RunHook, StageCollapse, Summarise
from stepfold.engine.events import (
    CallStatus,
    CompactionFailed,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    StreamFailed,
    SummaryReady,
    ToolEnded,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Message, Origin, Role, Text
from tests.effects.fakes import FakeModel, FakeTools, forever, text, use

HOUR = 3_600_000


class Silent:
    """Every port but the model and the tools, and none ever answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def _never(self, order: Any) -> Any:
        self.asked.append(type(order).__name__)
        await forever()

    async def ask(self, order: RunHook | AskPermission) -> Any:
        await self._never(order)

    async def compact(self, order: Compact) -> Any:
        await self._never(order)

    async def stage(self, order: StageCollapse) -> Any:
        await self._never(order)

    async def summarise(self, order: Summarise) -> Any:
        await self._never(order)

    async def prefetch(self, order: Prefetch) -> Any:
        await self._never(order)


async def timed(event: type[Any], at_ms: int, **options: Any) -> Any:
    """Run in time that stands still; return the event that came at *at_ms* and not one ms before."""
    clock, log = ManualClock(), MemoryLog()
    work = asyncio.create_task(run("p", clock=clock, log=log, **options))
    await clock.advance(at_ms - 1)
    assert not [found for found in log.events if type(found) is event]
    await clock.advance(1)
    found = [found for found in log.events if type(found) is event]
    assert at_ms == found[0].at_ms
    await clock.advance(10 * HOUR)
    if not work.done():
        work.cancel()
        await asyncio.wait((work,))
    return found[0]


async def test_a_model_call_that_hangs_times_out() -> None:
    model = FakeModel([TextDelta("a"), forever], text("x"))
    failed = await timed(StreamFailed, 600_000, model=model)
    assert (FailureKind.TIMEOUT, "a", True) == (failed.failure.kind, failed.open_text, failed.shown)
    assert "600000 ms" in failed.failure.message
    assert 2 == model.closed


async def test_a_tool_that_hangs_has_failed() -> None:
    tools = FakeTools(a=lambda *_: forever())
    config = Config(tool_timeout_ms=1_234)
    ended = await timed(
        ToolEnded, 1_234, model=FakeModel(use(("t1", "a")), text("x")), tools=tools, config=config
    )
    assert ended.status is CallStatus.FAILED
    assert ["t1"] == tools.cancelled


async def test_a_hook_that_hangs_has_timed_out() -> None:
    async def lint(stopping: object) -> None:
        await forever()

    answered = await timed(HookAnswered, 60_000, model=FakeModel(text("x")), stop_hooks=[lint])
    assert answered.verdict is HookVerdict.TIMEOUT


LONG = tuple(
    Message(role, (Text("word " * 10_000),), origin)
    for _ in range(40)
    for role, origin in ((Role.USER, Origin.PROMPT), (Role.ASSISTANT, Origin.ANSWER))
)


async def test_a_compactor_that_hangs_has_failed() -> None:
    failed = await timed(
        CompactionFailed, 600_000, model=FakeModel(text("x")), messages=LONG, compactor=Silent()
    )
    assert failed.failure.kind is FailureKind.TIMEOUT


async def test_side_effects_that_hang_come_to_nothing() -> None:
    silent = Silent()
    slow = FakeTools(a=lambda *_: asyncio.sleep(0, "ok"), b=lambda *_: forever())
    options: dict[str, Any] = {
        "model": FakeModel(use(("t1", "a")), use(("t2", "b")), text("x")),
        "tools": slow,
        "summariser": silent,
        "prefetcher": silent,
        "config": Config(tool_summaries=True, prefetch_memories=True, side_timeout_ms=500),
    }
    clock, log = ManualClock(), MemoryLog()
    work = asyncio.create_task(run("p", clock=clock, log=log, **options))
    await clock.advance(499)
    assert not [event for event in log.events if isinstance(event, SummaryReady | Prefetched)]
    await clock.advance(1)
    assert [None] == [event.summary for event in log.events if isinstance(event, SummaryReady)]
    assert [()] == [event.texts for event in log.events if isinstance(event, Prefetched)]
    await clock.advance(HOUR)
    assert (await work).ok


async def test_a_permission_prompt_waits_for_ever() -> None:
    clock, log = ManualClock(), MemoryLog()
    asked = asyncio.Event()

    async def decide(name: str, input: object) -> bool:
        asked.set()
        await clock.sleep(1_000 * HOUR)
        return True

    tools = FakeTools(a=lambda *_: "ok")
    work = asyncio.create_task(
        run(
            "p",
            model=FakeModel(use(("t1", "a")), text("x")),
            tools=tools,
            clock=clock,
            log=log,
            can_use_tool=decide,
        )
    )
    await asked.wait()
    await clock.advance(999 * HOUR)
    assert not work.done()
    assert not [event for event in log.events if isinstance(event, PermissionAnswered)]
    await clock.advance(1 * HOUR)
    assert (await work).ok


async def test_a_back_off_waits_on_the_clock() -> None:
    clock = ManualClock()
    model = FakeModel([StreamFailed(0, Failure(FailureKind.SERVER, "oops"))], text("x"))
    work = asyncio.create_task(run("p", model=model, clock=clock, config=Config(jitter_percent=0)))
    await clock.advance(499)
    assert 1 == len(model.orders)
    await clock.advance(1)
    assert (await work).ok


async def test_a_consumer_that_pauses_does_not_time_the_model_out() -> None:
    clock, log = ManualClock(), MemoryLog()
    model = FakeModel([TextDelta("a"), TextDelta("b"), TextDelta("c"), *text("x")])
    items = stream("p", model=model, clock=clock, log=log)
    while await anext(items) != TextDelta("a"):
        pass
    await clock.advance(HOUR)
    async for _ in items:
        await clock.advance(1)
    assert items.result.ok
    assert not [event for event in log.events if isinstance(event, StreamFailed)]


async def test_time_never_falls() -> None:
    class Backwards(ManualClock):
        def now_ms(self) -> int:
            self._now_ms -= 5
            return self._now_ms

    log = MemoryLog()
    await run(
        "p",
        model=FakeModel(use(("t1", "a")), text("x")),
        tools=FakeTools(a=lambda *_: "ok"),
        log=log,
        clock=Backwards(1_000),
    )
    times = [event.at_ms for event in log.events]
    assert sorted(times) == times


async def test_one_sleeper_keeps_many_deadlines_in_order() -> None:
    clock, over, spawned = ManualClock(), [], []

    def spawn(work: Any) -> asyncio.Task[None]:
        spawned.append(asyncio.create_task(work))
        return spawned[-1]

    def expire(id: int) -> None:
        over.append((clock.now_ms(), id))
        deadlines.drop(id)

    deadlines = Deadlines(clock, spawn, expire)
    for id in range(1_000):
        deadlines.set(id, 1_000 + id % 7)
        if id % 2:
            deadlines.drop(id)
    assert 1 == len(spawned)
    deadlines.set(9_999, 10)
    assert 2 == len(spawned)
    await clock.advance(10)
    assert [(10, 9_999)] == over
    await clock.advance(2_000)
    wanted = sorted((1_000 + id % 7, id) for id in range(0, 1_000, 2))
    assert wanted == over[1:]
    deadlines.set(1, clock.now_ms() + 5)
    await clock.advance(5)
    assert (clock.now_ms(), 1) == over[-1]
    deadlines.stop()
    assert all(task.done() or task.cancelling() for task in spawned)
