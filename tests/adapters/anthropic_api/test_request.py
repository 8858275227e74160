"""
What an order becomes on the wire, seen by the server.

Only this file sees the requests themselves: fields, betas, cache marks, edits,
and that nothing is rendered twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anthropic
import attrs
import pytest

from stepfold.adapters.anthropic_api import wire
from stepfold.adapters.anthropic_api.client import AnthropicModel
from stepfold.adapters.anthropic_api.edits import Edit, clearing
from stepfold.effects import run as stepfold_run
from stepfold.engine.config import Config
from stepfold.engine.effects import CallModel, TaskBudget
from stepfold.engine.events import ToolSpec
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import (
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
from tests.adapters.anthropic_api.asking import (
    MODEL,
    answer,
    closed,
    failed,
    order,
    parts_of,
    port,
    run,
    text_events,
)
from tests.adapters.anthropic_api.loopback import Json, Loopback, Received, failing, stream

READ = ToolSpec("read", "reads", '{"type":"object"}', clearable=True)
OK = stream(answer(text_events("ok")))


def sent(call: CallModel, **options: Any) -> Received:
    """Return the one request that *call* becomes."""

    async def work() -> Received:
        async with Loopback([OK]) as api, port(api, **options) as model:
            closed(await parts_of(model, call))
            assert ([], 1) == (api.refused, len(api.requests))
            return api.requests[0]

    return run(work())


def turn(number: int, name: str = "read") -> list[Message]:
    """Return one call and its result."""
    use = ToolUse(f"t{number}", name, "{}")
    return [
        Message(Role.ASSISTANT, (use,), Origin.ANSWER, MODEL),
        Message(Role.USER, (ToolResult(use.id, (Text("ok"),)),), Origin.RESULTS),
    ]


def view(*names: str) -> list[Message]:
    """Return a prompt and a turn for each of *names*."""
    return [user_text("go", Origin.PROMPT), *(m for n, name in enumerate(names, 1) for m in turn(n, name))]


# ---------------------------------------------------------------- fields


def test_the_plainest_request() -> None:
    request = sent(order(), cache=None)
    assert "/v1/messages" == request.path
    assert "anthropic-beta" not in request.headers
    assert {
        "model": MODEL,
        "max_tokens": 8_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
        "thinking": {"type": "adaptive"},
        "stream": True,
    } == request.body


def test_tools_and_no_choice_of_them() -> None:
    tools = [{"name": "read", "description": "reads", "input_schema": {"type": "object"}}]
    body = sent(order(*view("read"), tools=(READ,))).body
    assert (tools, None) == (body["tools"], body.get("tool_choice"))
    body = sent(order(*view("read"), tools=(READ,), tool_choice_none=True)).body
    assert (tools, {"type": "none"}) == (body["tools"], body["tool_choice"])
    assert "tool_choice" not in sent(order(tool_choice_none=True)).body


def test_effort_extra_fields_and_betas() -> None:
    extra = {"temperature": 0.5, "output_config": {"format": {"type": "json_schema", "schema": {}}}}
    request = sent(order(), effort="low", extra=extra, betas=("one-2026-01-01", "two-2026-01-01"))
    assert 0.5 == request.body["temperature"]
    assert {"effort": "low", **extra["output_config"]} == request.body["output_config"]  # type: ignore[dict-item]
    assert "one-2026-01-01,two-2026-01-01" == request.headers["anthropic-beta"]


@pytest.mark.parametrize(
    ("remaining", "wire"), [(None, {}), (20_000, {"remaining": 20_000}), (0, {"remaining": 0})]
)
def test_a_task_budget(remaining: int | None, wire: Json) -> None:
    request = sent(order(task_budget=TaskBudget(50_000, remaining)), effort="high")
    assert {"effort": "high", "task_budget": {"type": "tokens", "total": 50_000, **wire}} == request.body[
        "output_config"
    ]
    assert "task-budgets-2026-03-13" == request.headers["anthropic-beta"]


@pytest.mark.parametrize(
    ("model", "on", "limit", "expected"),
    [
        ("claude-sonnet-5", True, 8_000, {"type": "adaptive"}),
        ("claude-sonnet-5", False, 8_000, {"type": "disabled"}),
        ("claude-opus-5-5", True, 8_000, {"type": "adaptive"}),
        ("claude-opus-5-5", False, 8_000, None),
        ("claude-haiku-4-5-20251001", True, 8_000, {"type": "enabled", "budget_tokens": 4_000}),
        ("claude-haiku-4-5-20251001", True, 64_000, {"type": "enabled", "budget_tokens": 16_000}),
        ("claude-haiku-4-5-20251001", True, 2_000, None),
        ("claude-haiku-4-5-20251001", False, 8_000, None),
        ("some-other-model", True, 8_000, None),
        ("some-other-model", False, 8_000, None),
    ],
)
def test_thinking(model: str, on: bool, limit: int, expected: Json | None) -> None:
    call = CallModel(1, order().messages, model, limit, thinking=on)
    assert expected == sent(call).body.get("thinking")


def test_thinking_as_the_caller_wants_it() -> None:
    wanted = {"type": "adaptive", "display": "summarized"}
    assert wanted == sent(order(), thinking=wanted).body["thinking"]
    assert {"type": "disabled"} == sent(order(thinking=False), thinking=wanted).body["thinking"]


def test_thinking_goes_back_byte_for_byte_and_only_to_its_model() -> None:
    thought = Thinking("hm …\n", "S+/==", '{"extra":[1]}')
    use = ToolUse("t1", "read", '{"a": 1}', '{"caller":{"type":"direct"}}')
    answered = Message(Role.ASSISTANT, (thought, RedactedThinking("D"), use), Origin.ANSWER, MODEL)
    messages = [user_text("go", Origin.PROMPT), answered, turn(1)[1]]
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {"a": 1}, "caller": {"type": "direct"}}
    assert [
        {"type": "thinking", "thinking": "hm …\n", "signature": "S+/==", "extra": [1]},
        {"type": "redacted_thinking", "data": "D"},
        call,
    ] == sent(order(*messages, tools=(READ,))).body["messages"][1]["content"]
    other = sent(order(*messages, tools=(READ,), model="claude-opus-5")).body
    assert [call] == other["messages"][1]["content"]


def test_the_order_brings_the_system_prompt_and_the_port_may_replace_it() -> None:
    asked = attrs.evolve(order(), system="be good")
    assert "be good" == sent(asked, cache=None).body["system"]
    assert "be brief" == sent(asked, cache=None, system="be brief").body["system"]
    assert "system" not in sent(order(), cache=None).body


def test_a_run_sends_the_system_prompt_of_its_config() -> None:
    async def work() -> list[Json]:
        async with Loopback([OK]) as api, port(api, cache=None) as model:
            await stepfold_run("p", model=model, config=Config(model=MODEL, system_prompt="be good"))
            return api.bodies

    assert "be good" == run(work())[0]["system"]


def test_settings_that_cannot_be_are_named() -> None:
    with pytest.raises(ValueError, match="effort: 'huge' is not allowed; wanted low, medium"):
        AnthropicModel(effort="huge")
    with pytest.raises(ValueError, match="cache: '2h' is not allowed; wanted 5m, 1h"):
        AnthropicModel(cache="2h")


@pytest.mark.parametrize("broken", [ToolSpec("read", input_schema="{"), ToolSpec("read", wire="oh")])
def test_a_tool_that_is_no_json_is_a_failed_call(broken: ToolSpec) -> None:
    async def work() -> None:
        async with Loopback([]) as api, port(api) as model:
            failure = failed(await parts_of(model, order(tools=(broken,)))).failure
            assert (FailureKind.INVALID, []) == (failure.kind, api.requests)

    run(work())


# ---------------------------------------------------------------- clients of other clouds


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda url: anthropic.AsyncAnthropicFoundry(api_key="k", base_url=url), "/v1/messages"),
        (
            lambda url: anthropic.AsyncAnthropicVertex(
                access_token="t", project_id="p", region="r", base_url=url
            ),
            f"/projects/p/locations/r/publishers/anthropic/models/{MODEL}:streamRawPredict",
        ),
    ],
    ids=["Foundry", "Vertex"],
)
def test_any_async_client_of_the_sdk_will_do(make: Callable[[str], Any], path: str) -> None:
    async def work() -> None:
        busy = failing(529, "overloaded_error", "busy")
        async with Loopback([OK, busy]) as api:
            async with make(api.url) as client:
                model = AnthropicModel(client)
                closed(await parts_of(model, order(task_budget=TaskBudget(50_000))))
                failure = failed(await parts_of(model, order())).failure
            assert FailureKind.OVERLOADED is failure.kind
            assert [path, path] == [request.path for request in api.requests]
            assert "task-budgets-2026-03-13" == api.requests[0].headers["anthropic-beta"]

    run(work())


# ---------------------------------------------------------------- prompt cache


def marks(body: Json) -> list[tuple[int, int]]:
    """Return where the cache marks are: message and block."""
    return [
        (at, place)
        for at, message in enumerate(body["messages"])
        for place, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def test_the_cache_is_marked_behind_the_last_two_user_messages() -> None:
    body = sent(order(*view("read", "read"), tools=(READ,)), system="be good").body
    assert [(2, 0), (4, 0)] == marks(body)
    mark = {"cache_control": {"type": "ephemeral"}}
    assert [{"type": "text", "text": "be good", **mark}] == body["system"]
    body = sent(order(), system="be good", cache="1h").body
    assert {"type": "ephemeral", "ttl": "1h"} == body["system"][0]["cache_control"]
    assert [] == marks(sent(order(), cache=None).body)


def test_what_was_sent_before_is_sent_again_the_same() -> None:
    """Each request begins with the one before it: the marks aside, nothing moves."""

    async def work() -> None:
        async with Loopback([OK] * 3) as api, port(api) as model:
            history = view("read", "read", "read")
            for length in (3, 5, 7):
                closed(await parts_of(model, order(*history[:length], tools=(READ,))))
            for body in api.bodies:
                for message in body["messages"]:
                    for block in message["content"]:
                        block.pop("cache_control", None)
            one, two, three = (body["messages"] for body in api.bodies)
            assert one == two[:3]
            assert two == three[:5]

    run(work())


def test_each_block_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    real = wire.block_json

    def counting(block: Any) -> wire.Wire:
        made.append(block)
        return real(block)

    async def work() -> None:
        history = view("read", "read", "read")
        async with Loopback([OK] * 3) as api, port(api) as model:
            for length in (3, 5, 7):
                closed(await parts_of(model, order(*history[:length], tools=(READ,))))
        tops = [block for block in made if not isinstance(block, Text) or block.text == "go"]
        assert [block for message in history for block in message.content] == tops

    monkeypatch.setattr(wire, "block_json", counting)
    run(work())


# ---------------------------------------------------------------- edits by id


def edit(keep: int, *excluded: str) -> Json:
    """Return the edit that keeps so many uses."""
    wire: Json = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": max(1, keep)},
        "keep": {"type": "tool_uses", "value": keep},
    }
    return {**wire, "exclude_tools": list(excluded)} if excluded else wire


CLEARINGS: list[tuple[str, list[str], Sequence[str], Edit]] = [
    ("the oldest", ["read"] * 5, ["t1", "t2"], Edit(edit(3))),
    ("all but one", ["read"] * 5, ["t1", "t2", "t3", "t4"], Edit(edit(1))),
    ("every one", ["read"] * 2, ["t1", "t2"], Edit(edit(0))),
    ("another tool before", ["ask", "read", "read", "read"], ["t2", "t3"], Edit(edit(1, "ask"))),
    ("other tools between", ["read", "ask", "look", "read"], ["t1", "t4"], Edit(edit(0, "ask", "look"))),
    ("the same tool before", ["read", "read", "read"], ["t2"], Edit(None, ("t2",))),
    ("a gap", ["read", "read", "read", "read"], ["t1", "t3"], Edit(edit(3), ("t3",))),
    ("a gap, the larger part", ["look", "read", "read", "look", "look"], ["t2", "t3", "t4"],
     Edit(edit(2, "look"), ("t4",))),
    ("two cuts as good", ["look", "look", "read"], ["t1", "t3"], Edit(edit(2), ("t3",))),
    ("gone from the view", ["read"], ["t9"], Edit(None, ("t9",))),
    ("some gone", ["read", "read"], ["t0", "t1"], Edit(edit(1), ("t0",))),
]


@pytest.mark.parametrize(("name", "tools", "ids", "expected"), CLEARINGS, ids=[row[0] for row in CLEARINGS])
def test_ids_to_clear_become_an_edit(name: str, tools: list[str], ids: Sequence[str], expected: Edit) -> None:
    assert expected == clearing(ids, view(*tools))
    reached = set(ids) - set(expected.unmet)
    assert cleared_by(expected.wire, tools) == reached, "and it clears these and no other"


def cleared_by(wire: Json | None, tools: list[str]) -> set[str]:
    """Return what the API clears, as it is documented: the oldest uses, but not those of excluded tools."""
    if wire is None or (len(tools) <= wire["trigger"]["value"] and wire["keep"]["value"]):
        return set()
    oldest = tools[: len(tools) - wire["keep"]["value"]]
    return {f"t{n}" for n, name in enumerate(oldest, 1) if name not in wire.get("exclude_tools", ())}


def test_calls_of_the_server_count_and_stay() -> None:
    search = '{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'
    found = '{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'
    served = (Opaque("server_tool_use", search, "s1"), Opaque("web_search_tool_result", found, "", "s1"))
    messages = view("read", "read")
    messages[1:1] = [
        Message(Role.ASSISTANT, (*served, Text("so")), Origin.ANSWER),
        user_text("on", Origin.PROMPT),
    ]
    assert Edit(edit(1, "web_search")) == clearing(["t1"], messages)


def test_an_edit_goes_out_with_its_beta_and_behind_the_callers_own() -> None:
    mine = {"type": "clear_thinking_20251015", "keep": "all"}
    call = order(*view("read", "read", "read"), tools=(READ,), cleared=("t1",))
    request = sent(call, extra={"context_management": {"edits": [mine]}})
    assert {"edits": [mine, edit(2)]} == request.body["context_management"]
    assert "context-management-2025-06-27" == request.headers["anthropic-beta"]
    plain = sent(order(*view("read"), tools=(READ,), cleared=("t9",)))
    assert (None, None) == (plain.headers.get("anthropic-beta"), plain.body.get("context_management"))


def test_the_tokens_that_were_cleared_come_back() -> None:
    async def work() -> None:
        applied = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": 321}]
        events = answer(text_events("ok"))
        events[-2]["context_management"] = {"applied_edits": applied}
        async with Loopback([stream(events)]) as api, port(api) as model:
            call = order(*view("read", "read"), tools=(READ,), cleared=("t1",))
            assert 321 == closed(await parts_of(model, call)).cleared_tokens

    run(work())
