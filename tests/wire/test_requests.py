"""
What is done to a request on its way out: repair, thinking, system prompt, cache edits of one's own, limits.

Only this file sees each of them through the public ``run``, with it and without it.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from stepfold.engine import Config
from stepfold.engine.context.repair import Repaired
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallModel
from stepfold.engine.events import Stop, StreamClosed
from stepfold.engine.history import History
from stepfold.engine.messages import (
    Message,
    Origin,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from stepfold.engine.moves import iteration
from tests.wire.session import OVERLOADED, Script, body, fails, gives, play, says, uses, words

BROKEN = (
    Message(Role.USER, (Text("look"), Text("")), Origin.PROMPT),
    Message(Role.ASSISTANT, (ToolUse("t1", "read"), ToolUse("t2", "read")), Origin.ANSWER),
    Message(Role.USER, (ToolResult("t2", (Text("two"),)), ToolResult("t9", (Text("stray"),)))),
    Message(Role.ASSISTANT, (Text("so"),), Origin.ANSWER),
)


def test_a_broken_history_is_repaired_before_it_goes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    on = play([says("yes")], messages=BROKEN, tools=gives(1))
    monkeypatch.setattr(iteration, "repair", lambda messages: Repaired(tuple(messages)))
    off = play([says("yes")], messages=BROKEN, tools=gives(1))
    results = request_messages(on.requests[0])[2].content
    assert [("t1", True), ("t2", False)] == [
        (block.use_id, block.is_error) for block in results if isinstance(block, ToolResult)
    ]
    raw = [block.use_id for block in request_messages(off.requests[0])[2].content]  # type: ignore[union-attr]
    assert ["t2", "t9"] == raw
    assert on.notices("repaired")
    assert not off.notices("repaired")


def test_a_sound_history_goes_out_as_it_is() -> None:
    sound = (BROKEN[0], Message(Role.ASSISTANT, (Text("so"),), Origin.ANSWER))
    session = play([says("yes")], messages=sound)
    assert ["look", "so", "go"] == words(session.requests[0])


THOUGHT = Thinking("hm", "sig1")
HIDDEN = RedactedThinking("opaque")


def thoughtful() -> Script:
    end = StreamClosed(0, Stop.TOOL_USE, "tool_use")
    return [THOUGHT, HIDDEN, Text("let me see"), ToolUse("t1", "read"), end]


def thinking_in(order: CallModel) -> list[object]:
    return list(_thinking(order))


def _thinking(order: CallModel) -> Iterator[object]:
    for message in request_messages(order):
        yield from (block for block in message.content if isinstance(block, Thinking | RedactedThinking))


def test_thinking_goes_round_with_its_own_model_and_to_no_other() -> None:
    config = Config(fallback_models=("other",), backoff_initial_ms=0)
    busy = [fails(OVERLOADED)] * 3
    on = play([thoughtful(), *busy, uses("t2 read"), says("done")], config, tools=gives(1))
    off = play([thoughtful(), *busy, says("done")], Config(backoff_initial_ms=0), tools=gives(1))
    assert ["main"] * 4 + ["other"] * 2 == [order.model for order in on.requests]
    assert [[]] + [[THOUGHT, HIDDEN]] * 3 + [[]] * 2 == [thinking_in(order) for order in on.requests]
    assert [[]] + [[THOUGHT, HIDDEN]] * 4 == [thinking_in(order) for order in off.requests]
    assert "let me see" in words(on.requests[4])


def test_thinking_of_a_history_from_outside_is_taken_to_be_the_first_models() -> None:
    config = Config(fallback_models=("other",), backoff_initial_ms=0)
    old = (
        Message(Role.USER, (Text("look"),), Origin.PROMPT),
        Message(Role.ASSISTANT, (THOUGHT, HIDDEN, Text("so")), Origin.ANSWER),
    )
    busy = [fails(OVERLOADED)] * 3
    on, off = play([*busy, says("done")], config, messages=old), play([says("done")], config, messages=old)
    assert [[THOUGHT, HIDDEN]] * 3 + [[]] == [thinking_in(order) for order in on.requests]
    assert [[THOUGHT, HIDDEN]] == [thinking_in(order) for order in off.requests]


def test_thinking_that_is_off_leaves_the_wire_and_stays_in_the_history() -> None:
    turns = [thoughtful(), says("done")]
    model = "claude-sonnet-5"
    on = play(turns, Config(model=model), tools=gives(1))
    off = play(turns, Config(model=model, thinking=False), tools=gives(1))
    assert ([THOUGHT, HIDDEN], []) == (thinking_in(on.requests[1]), thinking_in(off.requests[1]))
    kinds = [body(session.requests[1])["thinking"]["type"] for session in (on, off)]
    assert ["adaptive", "disabled"] == kinds
    assert words(on.requests[1]) == words(off.requests[1])
    assert THOUGHT in [block for message in off.result.messages for block in message.content]


def test_the_system_prompt_goes_out_with_every_request() -> None:
    turns = [uses("t1 read"), says("done")]
    on = play(turns, Config(system_prompt="Be kind."), tools=gives(1))
    over = play(turns, Config(system_prompt="Be kind."), tools=gives(1), system="Be brief.")
    off = play(turns, tools=gives(1))
    assert ["Be kind."] * 2 == [body(order)["system"] for order in on.requests]
    assert ["Be brief."] * 2 == [body(order)["system"] for order in over.requests]
    assert all("system" not in body(order) for order in off.requests)
    assert [body(order)["messages"] for order in on.requests] == [
        body(order)["messages"] for order in off.requests
    ]


def test_the_nested_run_keeps_the_system_prompt() -> None:
    """So that the prefix of its request stays cached."""
    session = play(
        [uses("t1 read", tokens=170_000), says("done")], Config(system_prompt="Be kind."), tools=gives(1)
    )
    assert ["Be kind."] == [body(order)["system"] for order in session.model.nested]


class Editor:
    """A microcompactor that hides what is to be cleared in its own way."""

    def edit(self, order: CallModel) -> CallModel:
        hidden = frozenset(order.cleared)
        view = History[Message]().extend(_without(message, hidden) for message in order.messages)
        return attrs.evolve(order, messages=view, cleared=())


def _without(message: Message, hidden: frozenset[str]) -> Message:
    content = tuple(
        attrs.evolve(block, content=(Text("[gone]"),))
        if isinstance(block, ToolResult) and block.use_id in hidden
        else block
        for block in message.content
    )
    return attrs.evolve(message, content=content)


def test_a_microcompactor_makes_the_cache_edits_its_own() -> None:
    config = Config(microcompact_trigger_results=1, microcompact_keep_results=1)
    turns = [uses("t1 read"), uses("t2 read"), says("done")]
    on = play(turns, config, tools=gives(3, clearable=True), microcompactor=Editor())
    off = play(turns, config, tools=gives(3, clearable=True))
    assert (["go", "[gone]", "xxx"], ()) == (words(on.requests[2]), on.requests[2].cleared)
    assert (["go", "xxx", "xxx"], ("t1",)) == (words(off.requests[2]), off.requests[2].cleared)
    assert "context_management" not in body(on.requests[2])
    assert "context_management" in body(off.requests[2])
    # The view is the loop's own: no edit of a request reaches it.
    assert on.result.messages == off.result.messages


def test_a_raised_output_limit_is_on_the_wire() -> None:
    turns = [says("half", stop=Stop.MAX_TOKENS), says("whole")]
    on, off = play(turns), play([turns[0]] * 4, Config(max_output_tokens=8_000))
    assert [8_000, 64_000] == [body(order)["max_tokens"] for order in on.requests]
    assert body(on.requests[0])["messages"] == body(on.requests[1])["messages"]
    assert [8_000] * 4 == [body(order)["max_tokens"] for order in off.requests]
    assert ["go", "half"] == words(off.requests[1])[:2]
