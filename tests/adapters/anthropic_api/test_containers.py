"""
The container that code of the model ran in, over the wire.

Only this file sees that a request names the container of the answer whose calls it brings results for.
"""

from __future__ import annotations

from typing import Any

import pytest

from stepfold.adapters.anthropic_api.client import AnthropicModel
from stepfold.adapters.anthropic_api.containers import MAX_CALLS, Container, Containers, container_of
from stepfold.adapters.tools import tool
from stepfold.effects import run as stepfold_run
from stepfold.engine.messages import Message, Opaque, Role, Text, ToolUse
from tests.adapters.anthropic_api.asking import (
    STOP,
    answer,
    begun,
    ended,
    finished,
    port,
    run,
    started,
    text_events,
)
from tests.adapters.anthropic_api.loopback import Json, Loopback, stream

RUNS: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
CALLS: Json = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}, "caller": {"type": "direct"}}
DONE: Json = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}
LATER = "2999-01-01T00:00:00.5Z"
PAST = "2001-01-01T00:00:00Z"


@tool
def look() -> str:
    """Look."""
    return "seen"


def with_container(ends: str | None, *blocks: Json, reason: str = "tool_use", first: bool = False) -> Any:
    """Return an answer of *blocks* that names its container, in its first event or in its last but one."""
    container = {"id": "container_1", "expires_at": ends}
    content = [event for n, block in enumerate(blocks) for event in (begun(block, n), ended(n))]
    last = finished(reason)
    if not first:
        last["delta"]["container"] = container
    return stream([started(**({"container": container} if first else {})), *content, last, STOP])


def named(*script: Any, **options: Any) -> list[Any]:
    """Return the container that each request of a run over *script* names."""

    async def work() -> list[Any]:
        async with Loopback(script) as api, port(api, **options) as model:
            result = await stepfold_run("go", model=model, tools=[look])
            assert result.ok
            assert [] == api.refused
            return [request.body.get("container") for request in api.requests]

    return run(work())


OK = stream(answer(text_events("ok")))


@pytest.mark.parametrize("first", [False, True])
def test_the_request_with_the_result_names_the_container(first: bool) -> None:
    assert [None, "container_1"] == named(with_container(LATER, RUNS, CALLS, first=first), OK)


def test_a_paused_answer_goes_back_with_its_container() -> None:
    assert [None, "container_1"] == named(with_container(LATER, RUNS, reason="pause_turn"), OK)


def test_later_answers_find_the_container_again() -> None:
    again = {**CALLS, "id": "toolu_2"}
    plain = stream([started(), begun(again), ended(), finished("tool_use"), STOP])
    assert [None, "container_1", "container_1"] == named(with_container(LATER, RUNS, DONE, CALLS), plain, OK)


def test_a_container_that_has_ended_is_not_named() -> None:
    assert [None, None] == named(with_container(PAST, CALLS), OK)


def test_without_a_container_none_is_named() -> None:
    plain = stream([started(container=None), begun(CALLS), ended(), finished("tool_use"), STOP])
    assert [None, None] == named(plain, OK)


def test_what_the_user_asks_for_wins() -> None:
    extra = {"container": "mine"}
    assert ["mine", "mine"] == named(with_container(LATER, CALLS), OK, extra=extra)


def test_two_runs_on_one_port_keep_theirs_apart() -> None:
    async def work() -> list[Any]:
        async with Loopback([with_container(LATER, CALLS), OK, OK]) as api, port(api) as model:
            for _ in range(2):
                await stepfold_run("go", model=model, tools=[look])
            return [request.body.get("container") for request in api.requests]

    assert [None, "container_1", None] == run(work())


@pytest.mark.parametrize("wire", [None, "c", {}, {"id": ""}, {"id": 3}, []])
def test_what_is_no_container_is_none(wire: Any) -> None:
    assert container_of(wire) is None


@pytest.mark.parametrize("ends", [None, "soon", 3])
def test_a_container_whose_end_is_unknown_lasts(ends: Any) -> None:
    assert Container("c", float("inf")) == container_of({"id": "c", "expires_at": ends})


def test_only_so_many_are_remembered() -> None:
    containers = Containers(now=lambda: 0.0)
    containers.note(None, ["a"])
    containers.note(Container("old", 1), ["a", "s"])
    assert "old" == containers.of([said("a")])
    on_server = Opaque("server_tool_use", "{}", "s")
    assert "old" == containers.of([Message(Role.ASSISTANT, (on_server, Text("x")))])
    containers.note(Container("new", 1), [f"b{n}" for n in range(MAX_CALLS)])
    assert ["", "new"] == [containers.of([said(name)]) for name in ("a", "b0")]
    assert "new" == containers.of([said("b0"), said("zzz")])


def said(name: str) -> Message:
    return Message(Role.ASSISTANT, (ToolUse(name, "look"),))


@pytest.mark.parametrize("client", ["key", 3, object()])
def test_what_is_no_client_is_named(client: object) -> None:
    with pytest.raises(TypeError, match=r"^client: .* is no client of the SDK; pass AsyncAnthropic"):
        AnthropicModel(client)
