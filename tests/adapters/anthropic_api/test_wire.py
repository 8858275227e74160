"""
Blocks to JSON and back, and what is remembered of it.

Only this file sees what no API ever sent: foreign shapes, deep nesting,
surrogates in every place; and blocks that die while their JSON is held.
"""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepfold.adapters.anthropic_api.wire import (
    Rendered,
    block_json,
    block_of,
    clean,
    loads,
    message_of,
    tool_json,
)
from stepfold.engine.events import ToolSpec
from stepfold.engine.messages import (
    Media,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    user_text,
)

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
PAIRS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "text", "text": "a"}, Text("a")),
    ({"type": "text", "text": "a", "citations": None}, Text("a", '{"citations":null}')),
    ({"type": "thinking", "thinking": "a", "signature": "S"}, Thinking("a", "S")),
    ({"type": "redacted_thinking", "data": "D"}, RedactedThinking("D")),
    ({"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}, ToolUse("t", "n", '{"a":1}')),
    ({"type": "tool_result", "tool_use_id": "t"}, ToolResult("t")),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [IMAGE], "is_error": True, "x": 1},
        ToolResult("t", (Media("image", json.dumps(IMAGE, separators=(",", ":"))),), True, '{"x":1}'),
    ),
    (
        {"type": "mcp_tool_use", "id": "m", "server_name": "s", "input": {}},
        Opaque("mcp_tool_use", '{"type":"mcp_tool_use","id":"m","server_name":"s","input":{}}', "m"),
    ),
    ({"type": "text", "text": 1}, Opaque("text", '{"type":"text","text":1}')),
    ({"type": "thinking", "thinking": 1}, Opaque("thinking", '{"type":"thinking","thinking":1}')),
    ({"type": "new", "x": [None]}, Opaque("new", '{"type":"new","x":[null]}')),
]


@pytest.mark.parametrize(("wire", "block"), PAIRS)
def test_there_and_back(wire: dict[str, Any], block: Any) -> None:
    assert block == block_of(wire)
    assert wire == block_json(block)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
KINDS = st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "image", "new", "new_tool_use"])
FIELDS = st.dictionaries(
    st.sampled_from(["text", "thinking", "signature", "data", "id", "name", "citations", "source"]), JSONS
)


@given(KINDS, FIELDS, st.dictionaries(st.text(), JSONS, max_size=3))
def test_any_block_comes_back_as_it_was(kind: str, fields: dict[str, Any], input: dict[str, Any]) -> None:
    wire = {**fields, "type": kind, "input": input}
    made = block_json(block_of(wire))
    if kind == "thinking" and isinstance(wire.get("thinking"), str) and wire.get("signature") is None:
        wire = {**wire, "signature": ""}
    assert json.loads(json.dumps(wire)) == made


def test_what_a_broken_history_holds_is_sent_as_an_empty_input() -> None:
    assert {"type": "tool_use", "id": "t", "name": "n", "input": {}} == block_json(ToolUse("t", "n", "{oh"))


def test_the_raw_text_of_a_bad_input_is_never_sent() -> None:
    block = block_of({"type": "tool_use", "id": "t", "name": "n", "input": "oh"})
    assert ToolUse("t", "n", "{}", "", '"oh"') == block
    assert {"type": "tool_use", "id": "t", "name": "n", "input": {}} == block_json(block)


@pytest.mark.parametrize("text", ["{", "NaN", "[Infinity]", "[" * 200_000, "", "\ufeff{}"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        loads(text)


@given(st.text(alphabet=st.characters(categories=("L", "Cs")) | st.sampled_from("\ud83d\ude00a")))
def test_clean_text_can_be_written(text: str) -> None:
    assert clean(text).encode().decode() == clean(text)
    assert text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == clean(text)


def test_no_surrogate_passes_in_any_field() -> None:
    bad = "\ud800"
    wire = {"type": "tool_use", "id": "t" + bad, "name": bad, "input": {bad: [bad]}, "caller": {bad: bad}}
    json.dumps(block_json(block_of(wire)), ensure_ascii=False).encode()
    json.dumps(block_json(block_of({"type": "new", "x": [{bad: bad}]})), ensure_ascii=False).encode()


# ---------------------------------------------------------------- messages and tools


def test_messages() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    answer = {"type": "tool_use", "id": "t", "name": "n", "input": {}}
    assert user_text("hi", Origin.PROMPT) == message_of({"role": "user", "content": "hi"})
    assert Message(Role.USER, (ToolResult("t", (Text("ok"),)),), Origin.RESULTS) == message_of(
        {"role": "user", "content": [result]}
    )
    assert Message(Role.ASSISTANT, (ToolUse("t", "n"),), Origin.ANSWER, "m") == message_of(
        {"role": "assistant", "content": [answer]}, "m"
    )


@pytest.mark.parametrize(
    "wire",
    [None, "x", {}, {"role": "god", "content": "x"}, {"role": "user"}, {"role": "user", "content": [1]}],
)
def test_what_is_no_message_is_told(wire: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        message_of(wire)


def test_tools() -> None:
    assert {"name": "n", "input_schema": {"type": "object"}} == tool_json(ToolSpec("n"))
    described = ToolSpec("n", "does", '{"type":"object","properties":{}}')
    schema = {"type": "object", "properties": {}}
    assert {"name": "n", "description": "does", "input_schema": schema} == tool_json(described)
    server = ToolSpec("web_search", wire='{"type":"web_search_20260209","name":"web_search"}')
    assert {"type": "web_search_20260209", "name": "web_search"} == tool_json(server)


# ---------------------------------------------------------------- rendered once


def test_a_block_is_rendered_once_while_it_lives() -> None:
    rendered = Rendered()
    block = Text("a")
    assert rendered.block(block) is rendered.block(block)
    assert rendered.block(Text("a")) is not rendered.block(block)


def test_what_is_gone_is_forgotten() -> None:
    rendered = Rendered()
    message = Message(Role.USER, (Text("a"), ToolResult("t")))
    rendered.messages([message])
    assert 2 == len(rendered)
    del message
    gc.collect()
    assert 0 == len(rendered)


def test_what_is_remembered_is_bounded() -> None:
    rendered = Rendered(size=10)
    blocks = [Text(str(number)) for number in range(25)]
    for block in blocks:
        assert {"type": "text", "text": block.text} == rendered.block(block)
        assert len(rendered) <= 10
    del blocks, block
    gc.collect()
    assert 0 == len(rendered)
