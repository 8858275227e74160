"""
What hooks, permissions and the budget say reaches the model in the next request, and only there.

Only this file sees their words on the wire through the public ``run``, and a
request without them where the port or the gate is not there.
"""

from __future__ import annotations

from typing import Any

from stepfold.effects.ready.hooks import StopHook
from stepfold.engine import Config, Terminal
from stepfold.engine.context.request import request_messages
from stepfold.engine.events import Stop, ToolSpec
from stepfold.engine.messages import Text, ToolResult, ToolUse
from tests.wire.session import Tools, gives, play, says, uses, words


def test_the_words_of_a_stop_hook_join_behind_the_answer() -> None:
    answers = [says("done"), says("fixed")]
    lint = StopHook(lambda stopping: "3 errors left", "lint")
    on, off = play(answers, stop_hooks=[lint]), play(answers)
    assert (2, 1) == (len(on.requests), len(off.requests))
    said = words(on.requests[1])
    assert ["go", "done"] == said[:2]
    assert "3 errors left" in said[2]
    assert ("fixed", "done") == (on.result.output, off.result.output)


def test_a_stop_hook_that_passes_changes_no_request() -> None:
    on, off = play([says("done")], stop_hooks=[StopHook(lambda stopping: None, "lint")]), play([says("done")])
    assert [words(order) for order in on.requests] == [words(order) for order in off.requests]


def test_a_denial_is_the_result_of_its_call() -> None:
    def judge(name: str, given: dict[str, Any]) -> bool | str:
        return "not this one" if given["path"] == "secret" else True

    tools = gives(9)
    turns = [uses("t1 read", path="secret"), uses("t2 read", path="open"), says("done")]
    on, off = play(turns, tools=tools, can_use_tool=judge), play(turns, tools=gives(9))
    assert ["t2"] == tools.runs
    denied = request_messages(on.requests[1])[-1].content[0]
    assert ToolResult("t1", (Text("not this one"),), is_error=True) == denied
    assert ToolResult("t1", (Text("x" * 9),)) == request_messages(off.requests[1])[-1].content[0]
    assert "x" * 9 == words(on.requests[2])[-1]


def test_a_tool_that_raises_is_an_error_result() -> None:
    def read(call: ToolUse) -> str:
        raise OSError("no such file")

    session = play([uses("t1 read"), says("done")], tools=Tools({ToolSpec("read"): read}))
    (result,) = request_messages(session.requests[1])[-1].content
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert "no such file" in words(session.requests[1])[-1]


def test_the_token_budget_nudges_the_model_on() -> None:
    answers = [says("a part", tokens=50, out=200), says("all", tokens=90, out=900)]
    on, off = play(answers, Config(token_budget_tokens=1_000)), play(answers)
    sub = play(answers, Config(token_budget_tokens=1_000, source="agent"))
    assert [2, 1, 1] == [len(session.requests) for session in (on, off, sub)]
    nudge = words(on.requests[1])[-1]
    assert ("20%" in nudge, "800 are left" in nudge) == (True, True)
    assert Terminal.COMPLETED is on.result.terminal


def test_a_cut_answer_is_followed_by_a_word_to_go_on() -> None:
    half = says("half", stop=Stop.MAX_TOKENS)
    on = play([half, says("and half")], Config(max_output_tokens=4_000))
    off = play([half], Config(max_output_tokens=4_000, max_output_recoveries=0))
    assert ["go", "half"] == words(on.requests[1])[:2]
    assert "Continue" in words(on.requests[1])[2]
    assert 1 == len(off.requests)
