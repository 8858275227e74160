"""Only this catches a protocol checker that lets a bad request pass, or refuses a good one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.scenarios.judging import protocol
from stepfold.adapters.scenarios.judging.protocol import complaints

Wire = dict[str, Any]


def text(words: str = "a") -> Wire:
    return {"type": "text", "text": words}


def call(name: str, **more: Any) -> Wire:
    return {"type": "tool_use", "id": name, "name": "read", "input": {}, **more}


def result(name: str, *content: Wire) -> Wire:
    return {"type": "tool_result", "tool_use_id": name, "content": list(content)}


def user(*blocks: Wire) -> Wire:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def system(*blocks: Wire) -> Wire:
    return {"role": "system", "content": list(blocks)}


THINKING = {"type": "thinking", "thinking": "", "signature": "s"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}

GOOD = {
    "one text": [user(text())],
    "plain content": [{"role": "user", "content": "a"}],
    "begins with an answer": [assistant(text()), user(text())],
    "a turn": [user(text()), assistant(call("t1"), call("t2")), user(result("t1"), result("t2"), text())],
    "thinking with an empty text": [user(text()), assistant(THINKING, call("t1")), user(result("t1"))],
    "white space beside a call": [user(text()), assistant(text("\n"), call("t1")), user(result("t1"))],
    "a server call that is open": [user(text()), assistant(SEARCH, call("t1")), user(result("t1"))],
    "a server call and its result": [user(text()), assistant(SEARCH, FOUND), user(text())],
    "an image": [user({"type": "image", "source": {}})],
    "a system message at the end": [user(text()), system(text())],
    "a system message before an answer": [user(text()), system(text()), assistant(text()), user(text())],
    "a system message behind a server result": [
        user(text()), assistant(SEARCH, FOUND), system(text()), assistant(text()), user(text())
    ],
    "a change of the tools": [user(text()), system({"type": "tool_addition", "tool": {}})],
    "an empty result": [user(text()), assistant(call("t1")), user(result("t1"))],
}
BAD = {
    "no messages": ([], "no messages"),
    "two of the user": ([user(text()), user(text())], "both of the user"),
    "a robot": ([{"role": "robot", "content": [text()]}], "robot"),
    "ends with an answer": ([user(text()), assistant(text())], "ends with an answer"),
    "an empty message": ([user()], "is empty"),
    "an empty text": ([user(text(""), text())], "empty text"),
    "an empty text in a result": (
        [user(text()), assistant(call("t1")), user(result("t1", text("")))], "empty text"
    ),
    "nothing but white space": ([user(text(" "))], "white space"),
    "ends with thinking": ([user(text()), assistant(text(), THINKING), user(text())], "ends with thinking"),
    "no result": ([user(text()), assistant(call("t1")), user(text())], "wanted t1"),
    "no result at the end": ([user(text()), assistant(call("t1"))], "no results follow for t1"),
    "one of two results": (
        [user(text()), assistant(call("t1"), call("t2")), user(result("t1"))], "wanted t1, t2"
    ),
    "results in another order": (
        [user(text()), assistant(call("t1"), call("t2")), user(result("t2"), result("t1"))], "wanted t1, t2"
    ),
    "two results for one call": (
        [user(text()), assistant(call("t1")), user(result("t1"), result("t1"))], "results of t1, t1"
    ),
    "a result for nobody": ([user(result("t1"), text())], "wanted none"),
    "a text before the result": (
        [user(text()), assistant(call("t1")), user(text(), result("t1"))], "does not begin with its results"
    ),
    "an id used again": (
        [user(text()), assistant(call("t1")), user(result("t1")), assistant(call("t1")), user(result("t1"))],
        "uses the call id t1 again",
    ),
    "an id twice in one answer": (
        [user(text()), assistant(call("t1"), call("t1")), user(result("t1"), result("t1"))], "again"
    ),
    "no id": ([user(text()), assistant(call("")), user(result(""))], "without an id"),
    "an input that is no object": (
        [user(text()), assistant(call("t1", input="{}")), user(result("t1"))], "no object"
    ),
    "a call of the user": ([user(call("t1"))], "of the user holds a tool_use"),
    "thinking of the user": ([user(text(), THINKING)], "of the user holds a thinking"),
    "a server call of the user": ([user(SEARCH, FOUND)], "of the user holds a server_tool_use"),
    "a result in an answer": (
        [user(text()), assistant(result("t1")), user(text())], "of the assistant holds a tool_result"
    ),
    "an image in an answer": (
        [user(text()), assistant({"type": "image", "source": {}}), user(text())], "holds a image"
    ),
    "a change of the tools by the user": ([user(text(), {"type": "tool_addition"})], "holds a tool_addition"),
    "a call within a result": (
        [user(text()), assistant(call("t1")), user(result("t1", SEARCH))], "server_tool_use within a result"
    ),
    "an error without a word": (
        [user(text()), assistant(call("t1")), user({**result("t1"), "is_error": True})], "without a word"
    ),
    "a server result without its call": (
        [user(text()), assistant(FOUND, text()), user(text())], "without its call"
    ),
    "a second server result": (
        [user(text()), assistant(SEARCH, FOUND, FOUND), user(text())], "second web_search_tool_result"
    ),
    "a second use of a server call id": (
        [user(text()), assistant(SEARCH, SEARCH, FOUND), user(text())], "server call id s1 again"
    ),
    "a server call without its result": (
        [user(text()), assistant(SEARCH, text()), user(text())], "server call without its result"
    ),
    "a server call that is open beside words": (
        [user(text()), assistant(SEARCH, call("t1")), user(result("t1"), text())], "without its result"
    ),
    "a lone surrogate": ([user(text("a\ud800"))], "UTF-8"),
    "a system message before the user": (
        [user(text()), system(text()), user(text())], "the system's, before user"
    ),
    "a system message first": ([system(text()), assistant(text()), user(text())], "behind nothing"),
    "a system message behind an answer": (
        [user(text()), assistant(text()), system(text()), assistant(text()), user(text())], "behind assistant"
    ),
    "a system message between results and words": (
        [user(text()), assistant(call("t1")), user(result("t1")), system(text()), user(text())], "before user"
    ),
    "two system messages": ([user(text()), system(text()), system(text())], "both of the system"),
    "an image of the system": ([user(text()), system({"type": "image", "source": {}})], "holds a image"),
}  # fmt: skip


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD.keys())
def test_a_good_request_passes(messages: list[Wire]) -> None:
    assert [] == complaints(messages)


@pytest.mark.parametrize(("messages", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_request_is_refused(messages: list[Wire], words: str) -> None:
    assert any(words in complaint for complaint in complaints(messages)), complaints(messages)


def test_a_re_send_may_end_with_the_paused_answer() -> None:
    assert [] == complaints([user(text()), assistant(text(), SEARCH)], resend=True)
    assert [] == complaints([user(text()), assistant(THINKING)], resend=True)


def test_the_checker_is_independent() -> None:
    tree = ast.parse(Path(protocol.__file__).read_text())
    imported = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    ]

    assert {"__future__", "json", "collections.abc", "typing"} == set(imported)
