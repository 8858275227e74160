"""What only this file catches: a function that runs at the wrong place or cannot be stopped."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading

import pytest

from stepfold.adapters.tools import (
    CallContext,
    Tool,
    function_tools,
    tool,
)
from stepfold.engine.effects import RunTool
from stepfold.engine.events import CallStatus, ToolEnded
from tests.adapters.tools.calling import ended, ran, use, words


def test_plain_functions_run_beside_each_other_and_leave_the_loop_alone() -> None:
    meet = threading.Barrier(12, timeout=20)

    def wait() -> str:
        meet.wait()
        return str(threading.get_ident())

    async def all_at_once() -> list[ToolEnded]:
        box = function_tools([wait])
        orders = [RunTool(number, use("wait"), "{}") for number in range(12)]
        return await asyncio.gather(*(box.run(order, print) for order in orders))

    ends = ran(all_at_once())

    assert len({words(end) for end in ends}) == 12
    assert list(range(12)) == [end.effect_id for end in ends]


def test_async_functions_run_on_the_loop_and_keep_context_variables() -> None:
    name = contextvars.ContextVar("name", default="none")

    async def on_loop() -> str:
        return f"{threading.current_thread() is threading.main_thread()} {name.get()}"

    def in_thread() -> str:
        return f"{threading.current_thread() is threading.main_thread()} {name.get()}"

    async def both() -> list[str]:
        name.set("set")
        box = function_tools([on_loop, in_thread])
        return [words(await box.run(RunTool(1, use(each), "{}"), print)) for each in ("on_loop", "in_thread")]

    assert ["True set", "False set"] == ran(both())


def test_partials_and_objects_can_be_tools() -> None:
    class Adder:
        def __init__(self, base: int) -> None:
            self.base = base

        async def __call__(self, x: int) -> int:
            return self.base + x

        def method(self, x: int) -> int:
            return self.base * x

    async def add(x: int, y: int) -> int:
        return x + y

    made = (
        tool(name="object")(Adder(10)),
        tool(name="method")(Adder(10).method),
        tool(name="partial")(functools.partial(add, y=5)),
    )
    box = function_tools(made)

    assert ["11", "10", "6"] == [words(ended(box, each.name, '{"x": 1}')) for each in made]


def test_cancelling_from_outside_passes_and_from_inside_ends_the_call() -> None:
    async def stuck(inside: bool) -> None:
        if inside:
            raise asyncio.CancelledError
        await asyncio.Event().wait()

    async def both() -> tuple[ToolEnded, bool]:
        box = function_tools([stuck])
        own = await box.run(RunTool(1, use("stuck", '{"inside": true}'), '{"inside": true}'), print)
        task = asyncio.create_task(
            box.run(RunTool(2, use("stuck", '{"inside": false}'), '{"inside": false}'), print)
        )
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return own, task.cancelled()

    own, passed = ran(both())

    assert (CallStatus.CANCELLED, True) == (own.status, passed)


def test_closing_closes_every_tool_and_tells_what_went_wrong() -> None:
    closed: list[str] = []

    def closing(name: str, problem: Exception | None = None) -> Tool:
        async def close() -> None:
            closed.append(name)
            if problem is not None:
                raise problem

        async def call(arguments: object, context: CallContext) -> None: ...

        return Tool(name=name, call=call, close=close)

    box = function_tools([closing("a"), closing("b", OSError("stuck")), closing("c")])

    with pytest.raises(ExceptionGroup, match="could not be closed"):
        ran(box.close())
    assert closed == ["c", "b", "a"]
