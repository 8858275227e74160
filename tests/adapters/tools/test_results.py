"""What only this file catches: what a function returns or raises that becomes another result."""

from __future__ import annotations

import json

import pytest

from stepfold.adapters.tools import (
    Reply,
    ToolFailed,
    function_tools,
)
from stepfold.engine.events import CallStatus, HookStop, ToolEnded
from stepfold.engine.messages import Media, Origin, Text, user_text
from tests.adapters.tools.calling import ended, words


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, ()),
        ("", ()),
        ("words", (Text("words"),)),
        ({"a": [1]}, (Text('{"a": [1]}'),)),
        ([], (Text("[]"),)),
        (["a", "b"], (Text('["a", "b"]'),)),
        ({1, 2} - {2}, (Text("[1]"),)),
        (float("inf"), (Text('"Infinity"'),)),
        ("half \ud83d", (Text("half \ufffd"),)),
        ("\ud83d\ude00", (Text("\U0001f600"),)),
        ([{"type": "text", "text": "a"}, Text("b")], (Text("a"), Text("b"))),
        (
            {"type": "image", "source": {"type": "url", "url": "u"}},
            (Media("image", '{"type": "image", "source": {"type": "url", "url": "u"}}'),),
        ),
    ],
)
def test_what_a_tool_returns_becomes_blocks(value: object, content: tuple[object, ...]) -> None:
    def give() -> object:
        return value

    assert ended(function_tools([give]), "give") == ToolEnded(7, content)  # type: ignore[arg-type]


def test_what_a_tool_raises_is_a_failed_call() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def broken(kind: str) -> str:
        match kind:
            case "plain":
                raise LookupError("not here")
            case "chosen":
                raise ToolFailed([{"type": "text", "text": "as I say"}])
            case "silent":
                raise ToolFailed("")
            case "exit":
                raise SystemExit(3)
        raise Hostile

    box = function_tools([broken])
    kinds = ("plain", "chosen", "silent", "exit", "odd")
    told = {kind: ended(box, "broken", json.dumps({"kind": kind})) for kind in kinds}

    assert {CallStatus.FAILED} == {end.status for end in told.values()}
    assert words(told["plain"]) == "LookupError: not here"
    assert words(told["chosen"]) == "as I say"
    assert words(told["silent"]) == "The tool failed without a word."
    assert words(told["exit"]) == "SystemExit: 3"
    assert "Hostile" in words(told["odd"])


def test_a_reply_carries_more_than_words() -> None:
    message, stop = user_text("more", Origin.ATTACHMENT), HookStop("budget", "enough")

    def rich(bad: bool) -> Reply:
        return Reply(content="x", is_error=bad, messages=(message,), stop=stop)

    box = function_tools([rich])

    assert ToolEnded(7, (Text("x"),), stop=stop, messages=(message,)) == ended(box, "rich", '{"bad": false}')
    assert CallStatus.FAILED == ended(box, "rich", '{"bad": true}').status
