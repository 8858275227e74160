"""Only this file checks that no request is refused for its form, whatever history, model and tools bring."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stepfold.adapters.memory_log import MemoryLog
from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.adapters.scripted import Answer, Closes, ScriptedModel
from stepfold.effects import run, run_sync
from stepfold.engine import Config
from stepfold.engine.events import CallStatus, Stop, ToolEnded
from stepfold.engine.messages import Message, Role, Text, ToolResult, ToolUse, texts
from tests.effects.fakes import FakeModel, FakeTools, text, use
from tests.engine.views.histories import IMAGE, anything, blocks, server_call, server_result

answers = st.builds(
    lambda content, stop: Answer(tuple(content), Closes(stop, stop.value)),
    st.lists(blocks, max_size=5),
    st.sampled_from(list(Stop)),
)
brought = st.lists(
    st.builds(Message, st.sampled_from(list(Role)), st.lists(blocks, max_size=3).map(tuple)), max_size=2
)


@settings(max_examples=150)
@given(st.lists(answers, min_size=1, max_size=4), brought, anything)
def test_whatever_is_said_the_api_would_take_every_request(
    said: list[Answer], more: list[Message], history: list[Message]
) -> None:
    model = ScriptedModel([*said, "so", *said, "the end", *said, "really"])
    tools = FakeTools(
        read=lambda order, _: ToolEnded(order.id, (Text("r"),), messages=tuple(more)),
        bash=lambda order, _: ToolEnded(order.id, (), CallStatus.FAILED),
    )
    config = Config(max_model_calls=8, max_retries=0)
    run_sync("go", model=model, tools=tools, messages=history, config=config)

    assert model.calls
    for order in model.calls:
        assert [] == complaints(wire_messages(order), resend=order.resend)


@pytest.mark.parametrize(
    ("content", "messages", "words"),
    [
        ((server_call("s"),), (), "without calls"),
        ((ToolUse("t", "a"),), (), "without calls"),
        ((Text("r"),), (Message(Role.ASSISTANT, (Text("x"),)),), "messages of the user or the system"),
        ((Text("r"),), ("x",), "a message that is none: 'x' is no Message"),
        ((Text("r"),), (Message(Role.USER, "x"),), "its content is 'x'; wanted a tuple"),  # type: ignore[arg-type]
        (("r",), (), "'r' is no block"),
        ((Text(3),), (), "a text that is no text"),  # type: ignore[arg-type]
        ((Text("r"),), (Message(Role.USER, (ToolResult("t1"),)),), "of the user with ToolResult"),
        ((Text("r"),), (Message(Role.USER, (server_result("s"),)),), "of the user with Opaque"),
        ((Text("r"),), (Message(Role.SYSTEM, (IMAGE,)),), "of the system with Media"),
    ],
)
async def test_a_tool_that_brings_what_no_user_may_say_has_failed(
    content: Any, messages: Any, words: str
) -> None:
    log, model = MemoryLog(), FakeModel(use(("t1", "a")), text("x"))
    tools = FakeTools(a=lambda order, _: ToolEnded(order.id, content, messages=messages))
    result = await run("p", model=model, tools=tools, log=log)

    assert {"t1": CallStatus.FAILED} == result.tool_calls
    (ended,) = (event for event in log.events if isinstance(event, ToolEnded))
    assert words in texts(ended.content)


async def test_a_tool_may_bring_words_of_user_and_system() -> None:
    model = FakeModel(use(("t1", "a")), text("x"))
    more = (Message(Role.USER, (Text("u"), IMAGE)), Message(Role.SYSTEM, (Text("s"),)))
    tools = FakeTools(a=lambda order, _: ToolEnded(order.id, (Text("r"),), messages=more))
    await run("p", model=model, tools=tools)

    sent = wire_messages(model.orders[1])
    assert ["user", "assistant", "user", "system"] == [message["role"] for message in sent]
    assert ["tool_result", "text", "image"] == [block["type"] for block in sent[2]["content"]]
