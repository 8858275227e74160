"""Only this catches a scripted model that hides a call too many or an answer too few."""

from __future__ import annotations

import asyncio
import doctest
from collections.abc import AsyncIterator

import pytest

from stepfold.adapters import scripted
from stepfold.adapters.scripted import Answer, Breaks, ScriptedModel, ScriptError, calls, fails, says
from stepfold.effects import run, run_sync
from stepfold.effects.ports import ModelPart, TextDelta
from stepfold.engine import Config, Terminal
from stepfold.engine.effects import CallModel
from stepfold.engine.events import StreamClosed, StreamFailed, Usage
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Role, Text, ToolUse


def order(model: str = "main") -> CallModel:
    return CallModel(7, History(), model, 100)


def parts(model: ScriptedModel, asked: CallModel) -> list[ModelPart]:
    async def collect() -> list[ModelPart]:
        return [part async for part in model.call(asked)]

    return asyncio.run(collect())


def test_answers_come_in_order_and_calls_are_recorded() -> None:
    model = ScriptedModel(["hi", calls("read", {"path": "a"}, text="I look.")])

    text, block, end = parts(model, order())
    assert (TextDelta("hi"), Text("hi")) == (text, block)
    assert isinstance(end, StreamClosed)
    assert ("end_turn", 7) == (end.reason, end.effect_id)
    blocks = [part for part in parts(model, order()) if isinstance(part, ToolUse)]
    assert [ToolUse("call_1", "read", '{"path": "a"}')] == blocks
    assert [7, 7] == [asked.id for asked in model.calls]
    model.check()


def test_a_failure_and_a_stream_that_breaks() -> None:
    failure = Failure(FailureKind.OVERLOADED, "busy")
    model = ScriptedModel([fails(failure), Answer((Text("half"),), Breaks(), Usage(1, 2))])

    assert [StreamFailed(7, failure)] == parts(model, order())
    end = parts(model, order())[-1]
    assert isinstance(end, StreamFailed)
    assert (FailureKind.CUT, Usage(1, 2)) == (end.failure.kind, end.usage)


def test_a_call_past_the_end_is_told_at_once_and_later() -> None:
    model = ScriptedModel(["hi"])
    parts(model, order())

    with pytest.raises(ScriptError, match="call 2 was not expected"):
        parts(model, order())
    with pytest.raises(ScriptError, match="call 2 was not expected"):
        model.check()


def test_an_answer_left_over_is_told() -> None:
    with pytest.raises(ScriptError, match="1 of 2 answers"), ScriptedModel(["one", "two"]) as model:
        parts(model, order())


def test_an_error_of_the_test_itself_is_not_covered_up() -> None:
    with pytest.raises(ZeroDivisionError), ScriptedModel(["one"]):
        raise ZeroDivisionError


def test_the_wrong_model_is_told() -> None:
    model = ScriptedModel([Answer((Text("hi"),), model="second")])

    with pytest.raises(ScriptError, match="went to 'main', not to 'second'"):
        parts(model, order())


def test_a_call_too_many_reaches_who_called_the_run() -> None:
    model = ScriptedModel([calls("fly")])

    with pytest.raises(ScriptError, match="call 2 was not expected"):
        asyncio.run(run("go", model=model))
    with pytest.raises(ScriptError, match="call 2 was not expected"):
        model.check()


def test_the_wrong_model_reaches_who_called_the_run() -> None:
    with pytest.raises(ScriptError, match="call 1 went to 'main', not to 'b'"):
        run_sync("go", model=ScriptedModel([Answer((Text("hi"),), model="b")]))


def test_a_call_too_many_of_a_summary_reaches_who_called_the_run() -> None:
    history = [Message(Role.USER, (Text("x" * 600_000),)), Message(Role.ASSISTANT, (Text("yes"),))]

    with pytest.raises(ScriptError, match="call 1 was not expected"):
        run_sync("go", model=ScriptedModel([]), messages=history)


def test_what_a_model_port_raises_otherwise_is_a_failed_call() -> None:
    class Broken:
        async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
            raise AssertionError("a fault of the port")
            yield

    result = run_sync("go", model=Broken(), config=Config(max_retries=0))

    assert Terminal.MODEL_ERROR is result.terminal


def test_the_example_of_the_module_is_one() -> None:
    done = doctest.testmod(scripted)

    assert 0 == done.failed
    assert done.attempted > 5


def test_a_run_to_its_end() -> None:
    with ScriptedModel([says("Four.", usage=Usage(10, 2))]) as model:
        result = asyncio.run(run("two and two?", model=model))

    assert "Four." == result.output
