"""Only this file checks that what a port says wrongly is named, and does not reach the engine."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import Blocks, LogMismatch, Prevents, Result, fold, run, stream
from stepfold.effects.ports import InputDelta, TextDelta, ThinkingDelta
from stepfold.engine import Config, Terminal, start
from stepfold.engine.events import (
    CallStatus,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Stop,
    StreamClosed,
    StreamFailed,
    ToolEnded,
    Usage,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse, texts
from tests.effects.fakes import FakeModel, FakeTools, forever, text, use

END = StreamClosed(1, Stop.END_TURN)


def with_end(**changes: Any) -> StreamClosed:
    return StreamClosed(**{"effect_id": 1, "stop": Stop.END_TURN, **changes})


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Text(3)], "the model port yielded Text.*has a text that is no text"),  # type: ignore[arg-type]
        ([ToolUse("a", "b", {"x": 1})], "has a input that is no text"),  # type: ignore[arg-type]
        ([ToolUse(7, "b")], "has a id that is no text"),  # type: ignore[arg-type]
        ([TextDelta(None)], "yielded TextDelta.*no part of an answer"),  # type: ignore[arg-type]
        ([ThinkingDelta(3)], "yielded ThinkingDelta"),  # type: ignore[arg-type]
        ([InputDelta({})], "yielded InputDelta"),  # type: ignore[arg-type]
        ([Usage(1, None), END], "reported output_tokens=None; wanted a whole number"),  # type: ignore[arg-type]
        ([Usage(float("nan")), END], "reported input_tokens=nan"),  # type: ignore[arg-type]
        ([with_end(stop="end_turn")], r"StreamClosed\(stop='end_turn'\); wanted Stop"),
        ([with_end(usage={"input_tokens": 1})], "wanted a Usage"),
        ([with_end(reason=None)], r"StreamClosed\(reason=None\); wanted str"),
        ([with_end(cleared_tokens=None)], "cleared_tokens=None"),
        ([StreamFailed(1, "oops")], r"StreamFailed\(failure='oops'\); wanted Failure"),  # type: ignore[arg-type]
        ([StreamFailed(1, Failure("sad"))], r"Failure\(kind='sad'\)"),  # type: ignore[arg-type]
        ([StreamFailed(1, Failure(FailureKind.OTHER, None))], "message=None"),  # type: ignore[arg-type]
    ],
)
async def test_a_model_port_that_yields_the_wrong_thing_has_failed(parts: list[Any], words: str) -> None:
    result = await run("p", model=FakeModel(parts), log=MemoryLog())

    assert Terminal.MODEL_ERROR is result.terminal
    with pytest.raises(Exception, match=words):
        result.unwrap()


async def test_what_is_said_of_a_wrong_answer_is_short() -> None:
    model = FakeModel([Text("x" * 10_000, 3)])  # type: ignore[arg-type]
    result = await run("p", model=model)
    assert 100 < len(result.end.why) < 400


async def test_usage_is_made_whole() -> None:
    model = FakeModel([Usage(-5, 2.9, True), Text("x"), END])  # type: ignore[arg-type]
    result = await run("p", model=model)
    assert repr(Usage(0, 2, 1)) == repr(result.usage)


class Awaited:
    async def call(self, order: object) -> Any:
        return Text("x")


class Listed:
    def call(self, order: object) -> Any:
        return [Text("x")]


@pytest.mark.parametrize("model", [Awaited(), Listed()])
async def test_a_model_port_that_streams_nothing_is_named(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = await run("p", model=model)
        gc.collect()
    with pytest.raises(Exception, match=r"Model.call returned .*; wanted an async iterator"):
        result.unwrap()


async def ended(returned: Any, **options: Any) -> ToolEnded:
    log = MemoryLog()
    tools = FakeTools(a=lambda *_: returned)
    await run("p", model=FakeModel(use(("t1", "a")), text("x")), tools=tools, log=log, **options)
    (end,) = (event for event in log.events if isinstance(event, ToolEnded))
    return end


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (ToolEnded(1, [Text("x")]), "content="),  # type: ignore[arg-type]
        (ToolEnded(1, (), "fine"), r"ToolEnded\(status='fine'\); wanted CallStatus"),  # type: ignore[arg-type]
        (ToolEnded(1, stop="please"), "wanted HookStop or nothing"),  # type: ignore[arg-type]
        (ToolEnded(1, messages=None), "messages=None"),  # type: ignore[arg-type]
    ],
)
async def test_a_tools_port_that_ends_a_call_wrongly_has_failed(returned: Any, words: str) -> None:
    end = await ended(returned)
    assert CallStatus.FAILED is end.status
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(texts(end.content))


async def test_facts_that_are_none_make_the_call_invalid() -> None:
    tools = FakeTools(a=lambda *_: "ran")
    tools.given = None  # type: ignore[assignment]
    result = await run("p", model=FakeModel(use(("t1", "a")), text("x")), tools=tools)
    assert ({"t1": CallStatus.FAILED}, []) == (result.tool_calls, tools.runs)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda order: True, "Permission.ask returned True, which cannot be awaited: make it an async"),
        (PermissionAnswered(1, "no"), r"PermissionAnswered\(allowed='no'\); wanted bool"),  # type: ignore[arg-type]
        (PermissionAnswered(1, 1), "allowed=1"),  # type: ignore[arg-type]
        (PermissionAnswered(1, True, None), "words=None"),  # type: ignore[arg-type]
        (PermissionAnswered(1, True, input={}), "wanted str or nothing"),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_answer_has_allowed_nothing(answer: Any, words: str) -> None:
    async def ask(order: object) -> Any:
        return answer

    port = SimpleNamespace(ask=answer if callable(answer) else ask)
    tools, log = FakeTools(a=lambda *_: "ran"), MemoryLog()
    await run("p", model=FakeModel(use(("t1", "a")), text("x")), tools=tools, log=log, can_use_tool=port)
    (given,) = (event for event in log.events if isinstance(event, PermissionAnswered))

    assert (False, []) == (given.allowed, tools.runs)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(given.words)


@pytest.mark.parametrize("returned", [Blocks(3), Prevents(None), False, 0, []])  # type: ignore[arg-type]
async def test_a_stop_hook_that_returns_something_else_has_crashed(returned: Any) -> None:
    log = MemoryLog()
    await run("p", model=FakeModel(text("x")), stop_hooks=[lambda stopping: returned], log=log)
    (answered,) = (event for event in log.events if isinstance(event, HookAnswered))
    assert HookVerdict.CRASH is answered.verdict
    assert "wanted None, True, a text, Blocks or Prevents" in answered.words


@pytest.mark.parametrize("nothing", ["", " \n"])
async def test_a_stop_hook_with_nothing_to_say_lets_the_run_end(nothing: str) -> None:
    model = FakeModel(text("x"))
    assert (await run("p", model=model, stop_hooks=[lambda stopping: nothing])).ok
    assert 1 == len(model.orders)


@pytest.mark.parametrize(
    ("name", "port"),
    [
        ("summariser", SimpleNamespace(summarise=lambda order: "s")),
        ("prefetcher", SimpleNamespace(prefetch=lambda order: [])),
    ],
)
async def test_a_side_port_that_is_not_async_is_named_in_the_log(
    name: str, port: Any, caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {name: port}
    config = Config(tool_summaries=True, prefetch_memories=True)
    tools = FakeTools(a=lambda *_: asyncio.sleep(0.01, "ok"))
    model = FakeModel(use(("t1", "a")), [lambda: asyncio.sleep(0.01), *text("x")])
    assert (await run("p", model=model, tools=tools, config=config, **options)).ok
    assert "make it an async function" in caplog.text


async def test_background_work_may_be_plain_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[object] = []
    works: list[Any] = [seen.append, lambda order: 1 / 0]
    for work in works:
        assert (await run("p", model=FakeModel(text("x")), background=work)).ok
        while not seen:
            await asyncio.sleep(0.001)
    for _ in range(1_000):
        if "background work failed" in caplog.text:
            break
        await asyncio.sleep(0.001)
    assert "division by zero" in caplog.text


class OddLog:
    def __init__(self, read: list[Any]) -> None:
        self.found = read

    async def read(self) -> list[Any]:
        return self.found

    def append(self, event: object, *, durable: bool) -> None: ...

    async def close(self) -> None: ...


def test_a_fold_over_what_is_no_event_says_so() -> None:
    with pytest.raises(TypeError, match="entry 1 is 3, which is no event"):
        fold([3], start(), Config())  # type: ignore[list-item]


async def test_a_log_that_cannot_be_one_is_named() -> None:
    model = FakeModel(text("x"))
    with pytest.raises(LogMismatch, match="log: its entry 1 is 'x', which is no event"):
        await run("p", model=model, log=OddLog(["x"]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Log.append returned None"):
        await run("p", model=model, log=OddLog([]))  # type: ignore[arg-type]
    assert [] == model.orders


@pytest.mark.parametrize(("run_id", "seed"), [(3, 4), ("a", "b"), ("a", -1), ("a", True)])
async def test_ids_are_a_text_and_a_number(run_id: Any, seed: Any) -> None:
    ids = SimpleNamespace(run_id=lambda: run_id, seed=lambda: seed)
    with pytest.raises(TypeError, match=r"^ids: it gave .* wanted a text and a whole number >= 0"):
        await run("p", model=FakeModel(), ids=ids)


@pytest.mark.parametrize("now", [1.5, None, "noon"])
async def test_the_clock_counts_whole_ms(now: Any) -> None:
    clock = SimpleNamespace(now_ms=lambda: now, sleep=asyncio.sleep)
    with pytest.raises(TypeError, match=r"^run: clock: now_ms gave .*; wanted a whole number of ms"):
        await run("p", model=FakeModel(), clock=clock)


async def test_one_log_holds_one_run_at_a_time(tmp_path: Path) -> None:
    for log in (MemoryLog(), JsonlLog(tmp_path / "log.jsonl")):
        tools = FakeTools(a=lambda *_: asyncio.sleep(0.01, "ok"))
        runs = [
            run("p", model=FakeModel(use(("t1", "a")), text("x")), tools=tools, log=log) for _ in range(2)
        ]
        done, refused = await asyncio.gather(*runs, return_exceptions=True)

        assert isinstance(done, Result)
        assert isinstance(refused, RuntimeError)
        assert "log: another run is writing" in str(refused)
        assert ["t1"] == tools.runs
        assert (await run("q", model=FakeModel(text("y")), log=log, tools=tools)).ok
        await log.close()


async def test_a_log_is_free_again_whatever_ended_the_run() -> None:
    log = MemoryLog()
    work = asyncio.create_task(run("p", model=FakeModel([forever]), log=log))
    await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await run(None, model=FakeModel(text("x")), log=log)).ok
    async with stream("q", model=FakeModel(text("y")), log=log) as items:
        async for _ in items:
            break
    assert (await run(None, model=FakeModel(text("z")), log=log)).ok


async def test_a_model_port_may_be_any_async_iterator() -> None:
    async def parts() -> AsyncIterator[Any]:
        yield Text("x")
        yield END

    assert "x" == (await run("p", model=SimpleNamespace(call=lambda order: parts()))).output
