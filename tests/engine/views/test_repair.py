"""
What only this file catches: a broken history from outside that is repaired wrongly, twice, or in silence.

The specification, section 7.  The check of the result shares no code with the repair.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.engine.context.repair import Repaired, repair
from stepfold.engine.effects import CallModel, Notice, NoticeKind
from stepfold.engine.history import History
from stepfold.engine.messages import (
    Block,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from tests.engine.driven.drive import Drive
from tests.engine.views.histories import IMAGE, anything, broken, change, server_call, server_result, sound


def said(*blocks: Block) -> Message:
    return Message(Role.ASSISTANT, blocks, Origin.ANSWER, "main")


def heard(*blocks: Block) -> Message:
    return Message(Role.USER, blocks)


def ruled(*blocks: Block) -> Message:
    return Message(Role.SYSTEM, blocks)


def result(name: str, text: str = "r") -> ToolResult:
    return ToolResult(name, (Text(text),))


def shape(repaired: Repaired) -> list[list[str]]:
    """Return each message as its blocks in a word."""
    return [[word(block) for block in message.content] for message in repaired.messages]


def word(block: Block) -> str:
    match block:
        case ToolUse(id):
            return f"call {id}"
        case ToolResult(use_id, content):
            return f"result {use_id}" + ("!" if block.is_error else "") + ("" if content else " empty")
        case Text(text):
            return text
        case Opaque(_, _, call_id, answers):
            return f"server {call_id or answers}"
        case _:
            return type(block).__name__


# ---------------------------------------------------------------- every broken kind


ASK, CALL = heard(Text("q")), said(ToolUse("a", "read"))
KINDS: dict[str, tuple[list[Message], list[list[str]], str]] = {
    "empty text": ([heard(Text("q"), Text(" "))], [["q"]], "empty text"),
    "an empty message": ([heard(Text("q")), said(Text("")), heard(Text("r"))], [["q"], ["r"]], "empty"),
    "two results for one call": (
        [ASK, CALL, heard(result("a", "first"), result("a", "second"))],
        [["q"], ["call a"], ["result a"]],
        "second result",
    ),
    "a result without its call": (
        [ASK, said(Text("x")), heard(result("z"), Text("go"))],
        [["q"], ["x"], ["go"]],
        "without their call",
    ),
    "a result before its call": (
        [heard(result("a"), Text("q")), CALL, heard(Text("go"))],
        [["q"], ["call a"], ["result a!"], ["go"]],
        "without their call",
    ),
    "a missing result": (
        [ASK, CALL, heard(Text("go"))],
        [["q"], ["call a"], ["result a!"], ["go"]],
        "missing",
    ),
    "a missing result at the end": ([ASK, CALL], [["q"], ["call a"], ["result a!"]], "missing"),
    "results in another order": (
        [ASK, said(ToolUse("a", "r"), ToolUse("b", "r")), heard(result("b"), result("a"))],
        [["q"], ["call a", "call b"], ["result a", "result b"]],
        "",
    ),
    "a result behind a text": (
        [ASK, CALL, heard(Text("go"), result("a"))],
        [["q"], ["call a"], ["result a"], ["go"]],
        "",
    ),
    "a result in a later message": (
        [ASK, CALL, heard(Text("go")), heard(result("a"))],
        [["q"], ["call a"], ["result a"], ["go"]],
        "",
    ),
    "a result in an answer": (
        [ASK, said(ToolUse("a", "r"), result("a")), heard(result("a"))],
        [["q"], ["call a"], ["result a"]],
        "in an answer",
    ),
    "a second use of an id": (
        [ASK, CALL, heard(result("a")), CALL, heard(result("a"))],
        [["q"], ["call a"], ["result a"], ["call call_2"], ["result call_2"]],
        "'a'",
    ),
    "one id for two calls of one answer": (
        [ASK, said(ToolUse("a", "r", '{"n":1}'), ToolUse("a", "r")), heard(result("a"), result("a"))],
        [["q"], ["call a", "call call_2"], ["result a", "result call_2"]],
        "'a' renamed",
    ),
    "one id for two calls and a result for one": (
        [ASK, said(ToolUse("a", "r", '{"n":1}'), ToolUse("a", "s")), heard(result("a"))],
        [["q"], ["call a", "call call_2"], ["result a", "result call_2!"]],
        "missing",
    ),
    "calls without an id": (
        [ASK, said(ToolUse("", "r"), ToolUse("", "r")), heard(result(""), result(""))],
        [["q"], ["call call_1", "call call_2"], ["result call_1", "result call_2"]],
        "renamed",
    ),
    "the same call twice in one answer": (
        [ASK, said(CALL.content[0], Text("x")), CALL, heard(result("a"), result("a"))],
        [["q"], ["call a", "x"], ["result a"]],
        "repetitions",
    ),
    "two calls of one id that are no objects": (
        [ASK, said(ToolUse("a", "r", "{}", raw_input="1"), ToolUse("a", "r", "{}", raw_input="2"))],
        [["q"], ["call a", "call call_2"], ["result a!", "result call_2!"]],
        "'a' renamed",
    ),
    "a server result without its call": (
        [ASK, said(server_result("s"), Text("x"))],
        [["q"], ["x"]],
        "server results",
    ),
    "a second server result": (
        [ASK, said(server_call("s"), server_result("s"), server_result("s"))],
        [["q"], ["server s", "server s"]],
        "second results for one server call",
    ),
    "a server result before its call": (
        [ASK, said(server_result("s"), server_call("s"), Text("x"))],
        [["q"], ["x"]],
        "server calls",
    ),
    "a second use of a server call id": (
        [ASK, said(server_call("s"), server_call("s"), server_result("s"))],
        [["q"], ["server s", "server s"]],
        "server call id",
    ),
    "a server call that nothing answers": (
        [ASK, said(Text("x"), server_call("s"))],
        [["q"], ["x"]],
        "server calls",
    ),
    "a message left empty by these": (
        [ASK, said(server_result("s")), heard(Text("go"))],
        [["q"], ["go"]],
        "left empty",
    ),
    "a call of the user": (
        [heard(Text("q"), ToolUse("a", "r")), said(Text("x")), heard(result("a"), Text("go"))],
        [["q"], ["x"], ["go"]],
        "ToolUse in a message of the user",
    ),
    "thinking of the user": ([heard(Thinking("hm", "s"), Text("q"))], [["q"]], "Thinking in a message of"),
    "a server call of the user": (
        [heard(Text("q"), server_call("s"), server_result("s"))], [["q"]], "server_tool_use in a message of"
    ),
    "an image in an answer": ([ASK, said(IMAGE, Text("x"))], [["q"], ["x"]], "image in a message of the a"),
    "an image of the system": ([ASK, ruled(IMAGE, Text("s"))], [["q"], ["s"]], "image in a message of the s"),
    "a change of the tools by the user": ([heard(change, Text("q"))], [["q"]], "tool_removal in a message"),
    "a server call within a result": (
        [ASK, CALL, heard(ToolResult("a", (server_call("s"), Text("r"))))],
        [["q"], ["call a"], ["result a"]],
        "put right",
    ),
    "an error without a word": (
        [ASK, CALL, heard(ToolResult("a", (Text(""),), is_error=True))],
        [["q"], ["call a"], ["result a!"]],
        "put right",
    ),
    "the system speaks first": ([ruled(Text("s")), ASK, said(Text("x"))], [["q"], ["s"], ["x"]], "system"),
    "the system speaks between results and words": (
        [ASK, CALL, heard(result("a")), ruled(Text("s")), heard(Text("go"))],
        [["q"], ["call a"], ["result a"], ["go"], ["s"]],
        "system",
    ),
    "the system speaks between a call and its result": (
        [ASK, CALL, ruled(Text("s")), heard(result("a"))],
        [["q"], ["call a"], ["result a"], ["s"]],
        "",
    ),
    "the system speaks between answers": (
        [ASK, said(Text("x")), ruled(Text("s")), said(Text("y")), heard(Text("go"))],
        [["q"], ["x"], ["y"], ["go"], ["s"]],
        "system",
    ),
    "the system speaks first and an answer holds a server result": (
        [ruled(Text("s")), said(ToolUse("a", "r"), server_call("t"), server_result("t")), said(Text("x"))],
        [["call a", "server t", "server t"], ["x"], ["result a!"], ["s"]],
        "system",
    ),
    "the system speaks behind a call without a result": (
        [ASK, CALL, ruled(Text("s")), said(Text("y"))],
        [["q"], ["call a"], ["result a!"], ["s"], ["y"]],
        "missing",
    ),
    "a lone surrogate": ([heard(Text("a\ud800b"))], [["a\ufffdb"]], "surrogates"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_broken_is_repaired_and_told(kind: str) -> None:
    messages, wanted, told = KINDS[kind]
    repaired = repair(messages)

    assert wanted == shape(repaired)
    assert told in " ".join(repaired.report)
    assert bool(told) <= bool(repaired.report)


def test_new_ids_step_around_those_that_are_used() -> None:
    messages = [ASK]
    for name in ("a", "call_3", "call_4", "a", ""):
        messages += [said(ToolUse(name, "read")), heard(result(name))]
    repaired = repair(messages)

    names = [b.id for m in repaired.messages for b in m.content if isinstance(b, ToolUse)]
    assert ["a", "call_3", "call_4", "call_5", "call_6"] == names


def test_of_two_results_the_first_wins() -> None:
    repaired = repair([ASK, CALL, heard(result("a", "first"), result("a", "second"))])

    assert (result("a", "first"),) == repaired.messages[2].content


def test_a_result_may_be_empty_but_none_of_its_texts() -> None:
    repaired = repair([ASK, CALL, heard(ToolResult("a", (Text(" "),)))])

    assert (ToolResult("a"),) == repaired.messages[2].content


def test_thinking_is_byte_for_byte_what_it_was() -> None:
    blocks = (Thinking("", "sig"), Thinking("hm \ud800", "s"), RedactedThinking("d"), Text("x"))

    assert blocks == repair([ASK, said(*blocks)]).messages[1].content


def test_server_pairs_are_untouched() -> None:
    answer = said(Text("x"), server_call("s"), server_result("s"), Text("y"))

    assert (ASK, answer) == repair([ASK, answer]).messages


@pytest.mark.parametrize(
    "messages",
    [
        [ASK, ruled(Text("s")), said(Text("x"))],
        [ASK, ruled(Text("s"), change)],
        [ASK, ruled(Text("s")), ruled(Text("t"))],
        [ASK, said(server_call("a"), server_result("a")), ruled(Text("s")), said(Text("x")), ASK],
        [ASK, Message(Role.USER, (), Origin.BOUNDARY), ruled(Text("s")), said(Text("x"))],
        [ASK, said(Text("x")), ruled(Text("s"))],  # the prompt comes behind it
    ],
)
def test_where_the_system_may_speak_it_stays(messages: list[Message]) -> None:
    assert Repaired(tuple(messages)) == repair(messages)


def test_a_boundary_stays() -> None:
    boundary = Message(Role.USER, (), Origin.BOUNDARY)

    assert Repaired((boundary, ASK)) == repair([boundary, ASK])


def test_a_boundary_holds_nothing_that_could_be_answered() -> None:
    boundary = Message(Role.ASSISTANT, (ToolUse("a", "read", "{}"),), Origin.BOUNDARY)
    repaired = repair([ASK, boundary, heard(result("a"), Text("go on"))])

    assert [["q"], [], ["go on"]] == shape(repaired)
    assert ("1 blocks in a boundary dropped", "1 results without their call dropped") == repaired.report


# ---------------------------------------------------------------- every history


@settings(max_examples=400)
@given(st.one_of(broken, anything))
def test_whatever_comes_in_what_goes_out_is_sound(messages: list[Message]) -> None:
    repaired = repair(messages)
    view = History[Message]().extend((*repaired.messages, heard(Text("and now?"))))

    assert [] == complaints(wire_messages(CallModel(1, view, "main", 1)))
    assert [] == complaints(wire_messages(CallModel(1, view, "other", 1, thinking=False)))


@settings(max_examples=400)
@given(st.one_of(broken, anything))
def test_twice_is_as_good_as_once(messages: list[Message]) -> None:
    once = repair(messages)

    assert Repaired(once.messages) == repair(once.messages)


@settings(max_examples=400)
@given(st.one_of(broken, anything))
def test_a_change_is_always_told(messages: list[Message]) -> None:
    repaired = repair(messages)
    blocks = {b for m in messages for b in m.content}
    new = {b for m in repaired.messages for b in m.content}

    assert repaired.report or new == blocks


@given(sound())
def test_what_is_sound_stays_as_it_is(messages: list[Message]) -> None:
    calls = bool(messages) and any(isinstance(b, ToolUse) for b in messages[-1].content)

    assert calls or Repaired(tuple(messages)) == repair(messages)


# ---------------------------------------------------------------- once, at the start


def test_a_run_repairs_once_and_says_so() -> None:
    drive = Drive([ASK, CALL, heard(Text("go"))])
    drive.begin()
    drive.finish()
    drive.begin("again")
    drive.finish()

    assert 1 == drive.notices.count(NoticeKind.REPAIRED)
    assert "missing" in drive.last(Notice).text or any("missing" in n.text for n in drive.all(Notice))


def test_a_sound_history_is_not_reported() -> None:
    drive = Drive([ASK, said(Text("x"))])
    drive.begin()

    assert [] == drive.notices
