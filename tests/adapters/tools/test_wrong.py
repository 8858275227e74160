"""What only this file catches: a tool, a rule or a hook of the wrong kind that nobody names."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.adapters.tools import Allow, Ask, Deny, Guard, Reply, Rules, Stop, Tool, Toolbox, Traits, tool
from stepfold.adapters.tools.functions import FunctionTool, function_tools
from stepfold.adapters.tools.permission import Note
from stepfold.adapters.tools.toolset import folder_tools
from stepfold.effects import run_sync
from stepfold.engine.events import CallStatus
from stepfold.engine.messages import ToolResult, texts
from tests.adapters.tools.calling import ended, words

WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: tool(3), "tool: 3 is no function"),  # type: ignore[call-overload]
    (lambda: tool(readonly=True), "tool: there is no hint 'readonly'; did you mean 'read_only'"),  # type: ignore[call-overload]
    (lambda: tool(zzz=True), "tool: there is no hint 'zzz'; the hints are read_only"),  # type: ignore[call-overload]
    (lambda: tool(safe="yes"), r"Traits: safe is 'yes' \(str\); wanted True, False or a function"),  # type: ignore[call-overload]
    (lambda: tool(read_only=1), r"Traits: read_only is 1 \(int\); wanted True or False"),  # type: ignore[call-overload]
    (lambda: Traits(interrupt="later"), "Traits: interrupt is 'later'; wanted wait or cancel"),
    (lambda: Traits(max_result_chars=0), "Traits: max_result_chars is 0"),
    (lambda: FunctionTool(function=3, name="x"), "FunctionTool: function is 3"),  # type: ignore[arg-type]
    (lambda: tool(description=3)(look), "FunctionTool: description is 3"),  # type: ignore[call-overload]
    (lambda: tool(meaning=3)(look), "FunctionTool: meaning is 3"),  # type: ignore[call-overload]
    (lambda: Tool(name="x", call=3), "Tool: call is 3"),  # type: ignore[arg-type]
    (lambda: Tool(name=3, call=look), "3 is no tool name"),  # type: ignore[arg-type]
    (lambda: Toolbox(("look",)), "Toolbox: 'look' is no Tool"),  # type: ignore[arg-type]
    (lambda: function_tools("look"), "function_tools: wanted a list of functions, not 'look'"),  # type: ignore[arg-type]
    (lambda: function_tools(tool(look)), "function_tools: wanted a list of functions, not FunctionTool"),  # type: ignore[arg-type]
    (lambda: folder_tools(3), "folder: 3 is no path"),  # type: ignore[arg-type]
    (lambda: Rules(allow=[3]), "3 is no text"),  # type: ignore[list-item]
    (lambda: Reply(messages=["x"]), "Reply: messages is .*wanted Message objects"),  # type: ignore[list-item]
    (lambda: Reply(stop="halt"), "Reply: stop is 'halt'"),  # type: ignore[arg-type]
    (lambda: Reply(is_error="no"), "Reply: is_error is 'no'"),  # type: ignore[arg-type]
    (lambda: Allow(3), r"Allow: input is 3 \(int\)"),  # type: ignore[arg-type]
    (lambda: Deny(3), r"Deny: words is 3 \(int\); wanted a text"),  # type: ignore[arg-type]
    (lambda: Stop(None), "Stop: words is None"),  # type: ignore[arg-type]
    (lambda: Note(None), "Note: words is None"),  # type: ignore[arg-type]
    (lambda: Guard(tools=[look]), "Guard: tools is .*wanted a Tools port"),  # type: ignore[arg-type]
    (lambda: guard(rules="look"), r"Guard: rules is 'look' \(str\); wanted Rules"),
    (lambda: guard(before=[print]), "Guard: before is .*wanted a table: functions by name"),
    (lambda: guard(after={"h": "x"}), "Guard: after is .*wanted a table: functions by name"),
    (lambda: guard(classify=True), "Guard: classify is True"),
    (lambda: guard(can_use_tool=True), "Guard: can_use_tool is True"),
    (lambda: guard(hook_timeout_ms=0), "Guard: hook_timeout_ms is 0"),
]


def look(path: str = "a") -> str:
    """Look."""
    return f"saw {path}"


def guard(**options: Any) -> Guard:
    return Guard(tools=tool(look), **options)


@pytest.mark.parametrize(("make", "told"), WRONG, ids=[told[:30] for _, told in WRONG])
def test_what_cannot_be_is_named_when_it_is_made(make: Callable[[], Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told) as refused:
        make()
    assert "\n" not in str(refused.value)


def outcome(guarded: Guard) -> tuple[CallStatus, str]:
    """Return how a call through *guarded* ended, and its result's words."""
    result = run_sync("go", model=ScriptedModel([calls("look"), "done"]), tools=[guarded])
    found = [b for m in result.messages for b in m.content if isinstance(b, ToolResult)]
    return result.tool_calls["call_1"], texts(found[0].content)


@pytest.mark.parametrize("returned", [7, True, False, "no"])
@pytest.mark.parametrize("place", ["before", "classify"])
def test_a_hook_that_returns_no_decision_has_allowed_nothing(place: str, returned: Any) -> None:
    async def check(call: object) -> Any:
        return returned

    given: Any = {"before": {"h": lambda call: returned}, "classify": check}[place]
    status, told = outcome(guard(**{place: given}))

    assert CallStatus.DENIED is status
    assert f"returned {returned!r}; wanted None, Allow, Deny, Ask or Stop" in told


@pytest.mark.parametrize("returned", [None, 1, 0, [], Ask()])
def test_a_user_who_says_something_else_has_allowed_nothing(returned: Any) -> None:
    status, told = outcome(guard(can_use_tool=lambda name, input: returned))

    assert CallStatus.DENIED is status
    assert f"can_use_tool returned {returned!r}; wanted True, False, a text" in told


def leaves(*arguments: object) -> Any:
    sys.exit(3)


async def leaves_later(*arguments: object) -> Any:
    sys.exit(3)


@pytest.mark.parametrize("leave", [leaves, leaves_later])
@pytest.mark.parametrize("place", ["before", "can_use_tool", "classify"])
def test_who_calls_exit_has_allowed_nothing(place: str, leave: Any) -> None:
    given = {"h": leave} if place == "before" else leave

    assert CallStatus.DENIED is outcome(guard(**{place: given}))[0]


@pytest.mark.parametrize("leave", [leaves, leaves_later])
def test_a_hook_after_the_call_that_calls_exit_leaves_the_result(leave: Any) -> None:
    status, told = outcome(guard(after={"h": leave}))

    assert CallStatus.COMPLETED is status
    assert ["saw a", "The hook 'h' after this call failed: SystemExit: 3"] == told.split("\n")


@pytest.mark.parametrize("returned", [7, "nice", True])
def test_a_hook_after_the_call_that_returns_nonsense_is_told(returned: Any) -> None:
    status, told = outcome(guard(after={"h": lambda call, end: returned}))

    assert CallStatus.COMPLETED is status
    assert f"saw a\nThe hook 'h' after this call returned {returned!r}; wanted None, Note or Stop." == told


def test_what_a_generator_yields_is_one_list() -> None:
    def plain() -> Iterator[int]:
        """Count."""
        yield from (1, 2)

    async def later() -> AsyncIterator[str]:
        """Spell."""
        yield "a"
        yield "b"

    def breaks() -> Iterator[int]:
        """Break."""
        yield 1
        raise KeyError("two")

    box = function_tools([plain, later, breaks])
    assert ["[1, 2]", '["a", "b"]'] == [words(ended(box, name)) for name in ("plain", "later")]
    end = ended(box, "breaks")
    assert (CallStatus.FAILED, "KeyError: 'two'") == (end.status, words(end))


class Mute:
    """Cannot be told in words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("value", [b"\xff", Mute(), [Mute()]])
def test_what_cannot_be_written_says_so(value: object) -> None:
    def gives() -> object:
        """Give."""
        return value

    end = ended(function_tools([gives]), "gives")
    assert CallStatus.FAILED is end.status
    assert f"a value of the class {type(value).__name__} cannot be written as JSON" in words(end)
