"""Only this file checks logs that are gone on with: several runs, resume at every prefix, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest

from stepfold.adapters.codec import digest
from stepfold.adapters.ids import FixedIds
from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import Handle, LogMismatch, fold, run, run_sync, stream, trace
from stepfold.effects.ports import ModelPart, TextDelta
from stepfold.engine import Config, Terminal, start
from stepfold.engine.effects import CallModel
from stepfold.engine.events import (
    CallStatus,
    CommandQueued,
    Event,
    Resumed,
    RunStarted,
    Stop,
    StreamClosed,
    ToolsChanged,
    ToolSpec,
    Usage,
)
from stepfold.engine.messages import Message, Origin, Role, Text, ToolResult, ToolUse, texts, user_text
from tests.effects.fakes import FakeModel, FakeTools, text, use

CONFIG = Config(model="main")


class Sensible:
    """A model that answers by what it is shown: two tool turns for a prompt, then the end."""

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        messages = tuple(order.messages)
        begin = max(n for n, message in enumerate(messages) if message.origin is Origin.PROMPT)
        turns = sum(message.role is Role.ASSISTANT for message in messages[begin:])
        yield TextDelta("hm")
        yield Text("hm")
        if turns < 2:
            prompt = texts(messages[begin].content)
            yield ToolUse(f"{prompt}-{turns}", "a", "{}")
            yield ToolUse(f"{prompt}-{turns}b", "a", "{}")
            yield StreamClosed(order.id, Stop.TOOL_USE, usage=Usage(100, 10))
        else:
            yield StreamClosed(order.id, Stop.END_TURN, usage=Usage(100, 10))


def tools() -> FakeTools:
    return FakeTools(safe=False, a=lambda *_: "ok")


async def whole() -> MemoryLog:
    """Return the log of one undisturbed run."""
    log = MemoryLog()
    await run("p", model=Sensible(), tools=tools(), log=log, config=CONFIG, ids=FixedIds())
    return log


def copy_of(log: MemoryLog, events: int) -> MemoryLog:
    """Return the log as a process that died after *events* left it."""
    copy = MemoryLog(log.events[:events])
    copy.begun = log.begun
    return copy


def replayed(log: MemoryLog, events: list[Event] | None = None) -> Any:
    assert log.begun is not None
    return fold(log.events if events is None else events, start((), log.begun.tools), log.begun.config)


async def test_folding_a_prefix_then_the_rest_gives_the_same_state() -> None:
    log = await whole()
    assert log.begun is not None
    config, begin = log.begun.config, start((), log.begun.tools)
    digests = [digest(state) for _, state, _ in trace(log.events, begin, config)]
    for cut in range(len(log.events) + 1):
        prefix = fold(log.events[:cut], begin, config)
        rest = [digest(state) for _, state, _ in trace(log.events[cut:], prefix, config)]
        assert digests[cut:] == rest


async def test_a_run_leaves_the_state_that_its_log_folds_to() -> None:
    log = MemoryLog()
    result = await run("p", model=Sensible(), tools=tools(), log=log)
    assert digest(replayed(log)) == digest(result.state)


async def test_a_resume_at_every_prefix_comes_to_one_terminal() -> None:
    log = await whole()
    for cut in range(1, len(log.events)):
        resumed, ran = copy_of(log, cut), tools()
        result = await run(None, model=Sensible(), tools=ran, log=resumed)
        assert result.terminal is Terminal.COMPLETED, cut
        assert 1 == sum(isinstance(event, Resumed) for event in resumed.events)
        assert log.events[:cut] == resumed.events[:cut]
        assert len(set(ran.runs)) == len(ran.runs)
        assert digest(replayed(resumed)) == digest(result.state)
        assert_answered(result.messages)


async def test_the_prompt_of_the_unfinished_run_resumes_it_and_another_is_refused() -> None:
    log = await whole()
    resumed = copy_of(log, 4)
    result = await run("p", model=Sensible(), tools=tools(), log=resumed)
    assert result.ok
    assert 1 == sum(isinstance(event, RunStarted) for event in resumed.events)
    with pytest.raises(LogMismatch, match="unfinished"):
        await run("q", model=Sensible(), tools=tools(), log=copy_of(log, 4))


async def test_a_finished_log_takes_a_second_run() -> None:
    log = await whole()
    second = await run("q", model=Sensible(), tools=tools(), log=log)
    assert second.ok
    assert {"q-0", "q-0b", "q-1", "q-1b"} == set(second.tool_calls)
    assert 2 == len(second.transitions)
    assert ["p", "q"] == [texts(m.content) for m in second.messages if m.origin is Origin.PROMPT]
    assert digest(replayed(log)) == digest(second.state)
    assert_answered(second.messages)


async def test_no_prompt_on_a_finished_log_gives_its_result_again() -> None:
    told: list[tuple[str, str]] = []
    log = MemoryLog()
    handle = Handle()
    command = handle.queue("more")
    first = await run("p", model=Sensible(), tools=tools(), log=log, handle=handle)
    model, count = FakeModel(), len(log.events)
    again = await run(None, model=model, tools=tools(), log=log, on_command=lambda *both: told.append(both))
    assert first == again
    assert (count, []) == (len(log.events), model.orders)
    assert [(command, "completed")] == told


async def test_there_must_be_something_to_go_on_with() -> None:
    for log in (None, MemoryLog()):
        with pytest.raises(LogMismatch, match="nothing to go on with"):
            await run(None, model=FakeModel(), log=log)


async def test_the_recorded_config_stands() -> None:
    log = MemoryLog()
    config = Config(max_turns=1)
    result = await run("p", model=Sensible(), tools=tools(), log=log, config=config)
    assert result.terminal is Terminal.MAX_TURNS
    assert (await run("q", model=Sensible(), tools=tools(), log=log)).terminal is Terminal.MAX_TURNS
    with pytest.raises(LogMismatch, match=r"max_turns \(recorded 1, given 2\)"):
        await run("r", model=Sensible(), tools=tools(), log=log, config=Config(max_turns=2))
    with pytest.raises(LogMismatch, match="messages"):
        await run("r", model=Sensible(), tools=tools(), log=log, messages=[user_text("x", Origin.PROMPT)])


async def test_other_tools_in_the_next_process_are_told() -> None:
    log = await whole()
    resumed = copy_of(log, 4)
    more = FakeTools(safe=False, a=lambda *_: "ok", b=lambda *_: "ok")
    await run(None, model=Sensible(), tools=more, log=resumed)
    (changed,) = (event for event in resumed.events if isinstance(event, ToolsChanged))
    assert ("a", "b") == tuple(spec.name for spec in changed.tools)
    model = FakeModel(text("x"))
    await run("q", model=model, tools=tools(), log=resumed)
    assert ("a",) == tuple(spec.name for spec in model.orders[0].tools)


async def test_tools_change_while_the_run_goes_on() -> None:
    model = FakeModel(use(("t1", "a")), text("x"))
    items = stream("p", model=model, tools=tools())
    async for _ in items:
        if len(model.orders) == 1:
            items.handle.change_tools([ToolSpec("c")])
    assert ("c",) == tuple(spec.name for spec in model.orders[1].tools)


async def test_history_from_before_is_sent() -> None:
    model = FakeModel(text("x"))
    before = [user_text("old", Origin.PROMPT), Message(Role.ASSISTANT, (Text("answer"),), Origin.ANSWER)]
    result = await run("new", model=model, messages=before)
    assert ["old", "answer", "new"] == [texts(message.content) for message in model.orders[0].messages]
    assert "x" == result.output


async def test_output_is_that_of_this_run_only() -> None:
    before = [user_text("old", Origin.PROMPT), Message(Role.ASSISTANT, (Text("answer"),), Origin.ANSWER)]
    result = await run("new", model=FakeModel(), messages=before, config=Config(max_model_calls=0))
    assert (Terminal.BLOCKING_LIMIT, "") == (result.terminal, result.output)


async def test_ids_of_queued_words_stay_unique_over_a_resume() -> None:
    log = await whole()
    resumed = copy_of(log, 4)
    for prompt in (None, "q", "r"):
        items = stream(prompt, model=Sensible(), tools=tools(), log=resumed)
        async for _ in items:
            if not items.handle.over and len(items.handle.queue("x")) > 100:
                break
    ids = [event.command.id for event in resumed.events if isinstance(event, CommandQueued)]
    assert len(ids) > 3
    assert len(set(ids)) == len(ids)


def test_run_sync_runs_and_refuses_to_run_inside_a_loop() -> None:
    assert "x" == run_sync("p", model=FakeModel(text("x"))).unwrap()

    async def inside() -> None:
        run_sync("p", model=FakeModel(text("x")))

    with pytest.raises(RuntimeError, match="await run"):
        asyncio.run(inside())


def test_run_sync_waits_for_background_work() -> None:
    done = []

    async def work(order: object) -> None:
        await asyncio.sleep(0.01)
        done.append(order)

    run_sync("p", model=FakeModel(text("x")), background=work)
    assert 1 == len(done)


def assert_answered(messages: tuple[Message, ...]) -> None:
    """Every call has one result, in the next message."""
    for place, message in enumerate(messages):
        calls = [block.id for block in message.content if isinstance(block, ToolUse)]
        if calls:
            results = [b.use_id for b in messages[place + 1].content if isinstance(b, ToolResult)]
            assert calls == results


async def test_a_tool_that_had_started_is_not_run_again() -> None:
    log = await whole()
    cut = next(n for n, event in enumerate(log.events) if isinstance(event, StreamClosed)) + 1
    result = await run(None, model=Sensible(), tools=tools(), log=copy_of(log, cut))
    assert result.tool_calls["p-0"] is CallStatus.UNKNOWN
    assert result.tool_calls["p-0b"] is CallStatus.COMPLETED


async def test_options_are_named_when_they_cannot_be() -> None:
    model = FakeModel(text("x"))
    for options, words in (
        ({"tools": [lambda: 1]}, "tools"),
        ({"can_use_tool": 7}, "can_use_tool"),
        ({"nonsense": 7}, "nonsense"),
        ({"stop_hooks": [lambda s: None, lambda s: None]}, "two stop hooks"),
        ({"config": attrs.evolve(CONFIG, stop_hooks=())}, None),
    ):
        if words is None:
            assert (await run("p", model=model, **options)).ok
            continue
        with pytest.raises((TypeError, ValueError), match=words):
            await run("p", model=model, **options)
