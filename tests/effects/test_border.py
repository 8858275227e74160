"""Only this file checks that what ports do wrong becomes an event: exceptions, nonsense, cancellation."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import Blocks, Prevents, StopHook, Stopping, run
from stepfold.effects.ports import InputDelta, TextDelta, ToolProgress
from stepfold.engine import Config, Terminal
from stepfold.engine.events import (
    BlockCompleted,
    CallStatus,
    Event,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    Stop,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    Usage,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse, texts
from tests.effects.fakes import FakeModel, FakeTools, text, use

ONCE = Config(max_retries=0)


def of_kind(log: MemoryLog, kind: type[Any]) -> Any:
    """Return the one event of *kind*."""
    (event,) = (event for event in log.events if type(event) is kind)
    return event


async def logged(model: FakeModel, kind: type[Event], **options: Any) -> Any:
    """Run, and return the one event of *kind*."""
    log = MemoryLog()
    await run("p", model=model, log=log, **options)
    return of_kind(log, kind)


@pytest.mark.parametrize(
    "raised", [ValueError("no luck"), ExceptionGroup("many", [KeyError("x")]), TimeoutError()]
)
async def test_a_tool_that_raises_has_failed_with_its_words(raised: Exception) -> None:
    def fails(order: object, progress: object) -> str:
        raise raised

    ended = await logged(FakeModel(use(("t1", "a")), text("x")), ToolEnded, tools=FakeTools(a=fails))
    assert ended.status is CallStatus.FAILED
    assert type(raised).__name__ in texts(ended.content)
    assert str(raised) in texts(ended.content)


async def test_a_tool_port_that_answers_nonsense_has_failed() -> None:
    ended = await logged(
        FakeModel(use(("t1", "a")), text("x")), ToolEnded, tools=FakeTools(a=lambda *_: None)
    )
    assert ended.status is CallStatus.FAILED
    assert "ToolEnded" in texts(ended.content)


async def test_a_tool_that_cancels_itself_does_not_hang_the_run() -> None:
    async def gives_up(order: object, progress: object) -> str:
        raise asyncio.CancelledError

    ended = await logged(FakeModel(use(("t1", "a")), text("x")), ToolEnded, tools=FakeTools(a=gives_up))
    assert ended.status is CallStatus.FAILED


async def test_facts_that_raise_make_the_call_invalid() -> None:
    class Tools(FakeTools):
        def facts(self, call: ToolUse) -> Any:
            raise RuntimeError("lookup broke")

    tools = Tools(a=lambda *_: "ok")
    log = MemoryLog()
    result = await run("p", model=FakeModel(use(("t1", "a")), text("x")), tools=tools, log=log)
    blocks = [e for e in log.events if isinstance(e, BlockCompleted) and isinstance(e.block, ToolUse)]
    assert (False, []) == (blocks[0].facts.valid if blocks[0].facts else True, tools.runs)
    assert {"t1": CallStatus.FAILED} == result.tool_calls


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        ([ValueError("broken adapter")], FailureKind.OTHER, "ValueError: broken adapter"),
        ([TextDelta("x"), ConnectionError()], FailureKind.OTHER, "ConnectionError"),
        ([TextDelta("x")], FailureKind.CUT, "without its end"),
        ([object()], FailureKind.OTHER, "no part of an answer"),
        ([asyncio.CancelledError()], FailureKind.OTHER, "cancelled from within"),
        ([StreamFailed(9, Failure(FailureKind.INVALID, "bad"))], FailureKind.INVALID, "bad"),
    ],
)
async def test_a_model_call_that_breaks_is_a_failed_stream(
    parts: list[Any], kind: FailureKind, words: str
) -> None:
    log = MemoryLog()
    result = await run("p", model=FakeModel(parts), log=log, config=ONCE)
    failed = of_kind(log, StreamFailed)
    assert (1, kind) == (failed.effect_id, failed.failure.kind)
    assert words in failed.failure.message
    assert result.terminal is Terminal.MODEL_ERROR


async def test_the_end_of_a_stream_carries_open_text_usage_and_shown() -> None:
    parts = [Usage(5), TextDelta("a"), Text("a"), TextDelta("b"), TextDelta("c"), Usage(5, 2)]
    failed = await logged(FakeModel([*parts, RuntimeError()]), StreamFailed, config=ONCE)
    assert ("bc", Usage(5, 2), True) == (failed.open_text, failed.usage, failed.shown)
    failed = await logged(FakeModel([RuntimeError()]), StreamFailed, config=ONCE)
    assert ("", None, False) == (failed.open_text, failed.usage, failed.shown)
    failed = await logged(FakeModel([InputDelta("{"), RuntimeError()]), StreamFailed, config=ONCE)
    assert ("", True) == (failed.open_text, failed.shown)
    closed = await logged(
        FakeModel([*parts, StreamClosed(0, Stop.END_TURN, usage=Usage(9, 9))]), StreamClosed
    )
    assert (Usage(9, 9), "bc") == (closed.usage, closed.open_text)


async def test_an_iterator_without_aclose_and_parts_after_the_end() -> None:
    class Bare:
        def __init__(self) -> None:
            self.parts = [Text("x"), StreamClosed(0, Stop.END_TURN), Text("never read")]

        def call(self, order: object) -> Any:
            return self

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            return self.parts.pop(0)

    model = Bare()
    result = await run("p", model=model)
    assert ("x", [Text("never read")]) == (result.output, model.parts)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (None, HookVerdict.PASS),
        (True, HookVerdict.PASS),
        ("3 errors", HookVerdict.BLOCK),
        (Blocks("3 errors"), HookVerdict.BLOCK),
        (Prevents("3 errors"), HookVerdict.PREVENT),
        (ValueError("3 errors"), HookVerdict.CRASH),
        (SystemExit(2), HookVerdict.CRASH),
        (7, HookVerdict.CRASH),
    ],
)
@pytest.mark.parametrize("plain", [True, False])
async def test_what_a_stop_hook_returns(answer: Any, verdict: HookVerdict, plain: bool) -> None:
    asked: list[Stopping] = []

    def hook(stopping: Stopping) -> Any:
        asked.append(stopping)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def async_hook(stopping: Stopping) -> Any:
        return hook(stopping)

    log = MemoryLog()
    hooks = [StopHook(hook if plain else async_hook, "lint")]
    await run("p", model=FakeModel(text("done"), text("fixed")), log=log, stop_hooks=hooks)
    answered = next(event for event in log.events if isinstance(event, HookAnswered))
    assert verdict is answered.verdict
    if verdict in (HookVerdict.BLOCK, HookVerdict.PREVENT):
        assert "3 errors" == answered.words
    assert ("lint", False, "done") == (asked[0].hook, asked[0].active, asked[0].answer)


@pytest.mark.parametrize(
    ("answer", "allowed", "words"),
    [
        (True, True, ""),
        (False, False, "denied"),
        ("not today", False, "not today"),
        (KeyError("k"), False, "KeyError"),
    ],
)
@pytest.mark.parametrize("plain", [True, False])
async def test_what_can_use_tool_returns(answer: Any, allowed: bool, words: str, plain: bool) -> None:
    asked: list[Any] = []

    def decide(name: str, input: dict[str, Any]) -> Any:
        asked.append((name, input, threading.current_thread() is threading.main_thread()))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def decide_async(name: str, input: dict[str, Any]) -> Any:
        return decide(name, input)

    log, tools = MemoryLog(), FakeTools(a=lambda *_: "ok")
    result = await run(
        "p",
        model=FakeModel(use(("t1", "a")), text("x")),
        tools=tools,
        log=log,
        can_use_tool=decide if plain else decide_async,
    )
    given = of_kind(log, PermissionAnswered)
    assert allowed is given.allowed
    assert words in given.words
    assert [("a", {}, not plain)] == asked
    assert {"t1": CallStatus.COMPLETED if allowed else CallStatus.DENIED} == result.tool_calls
    assert (["t1"] if allowed else []) == tools.runs


async def test_side_effects_that_fail_are_logged_and_come_to_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        async def summarise(self, order: object) -> Any:
            raise ValueError("no summary today")

        async def prefetch(self, order: object) -> Any:
            raise ValueError("no memories today")

    config = Config(tool_summaries=True, prefetch_memories=True)
    log, model = MemoryLog(), FakeModel(use(("t1", "a")), text("x"))
    with caplog.at_level(logging.WARNING):
        result = await run(
            "p",
            model=model,
            tools=FakeTools(a=lambda *_: asyncio.sleep(0.01, "ok")),
            log=log,
            config=config,
            summariser=Broken(),
            prefetcher=Broken(),
        )
    assert result.ok
    assert (None, ()) == (of_kind(log, SummaryReady).summary, of_kind(log, Prefetched).texts)
    assert "no summary today" in caplog.text
    assert "no memories today" in caplog.text


async def test_background_work_is_not_waited_for_and_its_failure_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def work(order: object) -> None:
        begun.set()
        await go.wait()
        raise ValueError("classified wrongly")

    result = await run("p", model=FakeModel(text("x")), background=work)
    assert result.ok
    await begun.wait()
    go.set()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)
    assert "classified wrongly" in caplog.text


async def test_tool_progress_passes_at_once_and_from_threads_and_is_bounded() -> None:
    seen: list[Any] = []

    async def works(order: Any, progress: Any) -> str:
        progress("begun")
        await asyncio.to_thread(progress, "half")
        for number in range(5_000):
            progress(str(number))
        return "ok"

    await run(
        "p", model=FakeModel(use(("t1", "a")), text("x")), tools=FakeTools(a=works), on_item=seen.append
    )
    progress = [item for item in seen if isinstance(item, ToolProgress)]
    assert [ToolProgress("t1", "begun"), ToolProgress("t1", "half")] == progress[:2]
    assert 1_000 <= len(progress) < 5_000


async def test_texts_that_no_log_can_hold_are_mended_at_the_border() -> None:
    log = MemoryLog()
    model = FakeModel([Text("a\ud800"), *use(("t1", "a"))], [TextDelta("\udfff"), RuntimeError("\ud800")])
    await run("p\ud800", model=model, tools=FakeTools(a=lambda *_: "r\udc80"), log=log, config=ONCE)
    for event in log.events:
        str(event).encode()


async def test_a_plain_hook_that_hangs_does_not_hold_the_process() -> None:
    began = time.monotonic()

    def hangs(stopping: Stopping) -> None:
        time.sleep(30)

    log = MemoryLog()
    await run("p", model=FakeModel(text("x")), stop_hooks=[hangs], config=Config(hook_timeout_ms=50), log=log)
    assert of_kind(log, HookAnswered).verdict is HookVerdict.TIMEOUT
    assert time.monotonic() - began < 20
