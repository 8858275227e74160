"""
What only this file catches: a request that the API would refuse for its form.

The specification, section 7; checked against a protocol checker that shares no code with it.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.engine.context.repair import repair
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallModel
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
    user_text,
)
from tests.engine.views.histories import IMAGE, anything, broken, server_call, server_result, sound

HM = Thinking("hm", "sig")


def said(*blocks: Block, model: str = "main") -> Message:
    return Message(Role.ASSISTANT, blocks, Origin.ANSWER, model)


def heard(*blocks: Block, origin: Origin = Origin.PROMPT) -> Message:
    return Message(Role.USER, blocks, origin)


def order(*messages: Message, resend: bool = False, thinking: bool = True, model: str = "main") -> CallModel:
    view = History[Message]().extend(messages)
    return CallModel(1, view, model, 100, resend=resend, thinking=thinking)


def sent(*messages: Message, **more: object) -> list[tuple[str, tuple[Block, ...]]]:
    """Return role and blocks of what goes out."""
    out = request_messages(order(*messages, **more))  # type: ignore[arg-type]
    return [(message.role.value, message.content) for message in out]


def ruled(*blocks: Block) -> Message:
    return Message(Role.SYSTEM, blocks)


ASK = heard(Text("q"))


def test_neighbours_of_one_role_become_one_message() -> None:
    assert [("user", (Text("q"), Text("also"))), ("assistant", (Text("x"), Text("y")))] == sent(
        ASK, heard(Text("also")), said(Text("x")), said(Text("y")), resend=True
    )


def test_a_boundary_is_never_on_the_wire_and_its_neighbours_join() -> None:
    boundary = Message(Role.USER, (), Origin.BOUNDARY)

    assert [("user", (Text("q"), Text("r")))] == sent(ASK, boundary, heard(Text("r")))
    assert [("assistant", (Text("x"), Text("y")))] == sent(
        said(Text("x")), boundary, said(Text("y")), resend=True
    )


def test_empty_text_leaves_and_a_message_left_empty_too() -> None:
    assert [("user", (Text("q"), Text("r")))] == sent(ASK, said(Text(" "), Text("")), heard(Text("r")))


def test_results_stand_first_in_their_message() -> None:
    result = ToolResult("a", (Text("r"),))
    call = said(ToolUse("a", "read"))

    assert [result, Text("go")] == list(sent(ASK, call, heard(Text("go")), heard(result))[2][1])


@pytest.mark.parametrize(
    ("model", "thinking", "kept"),
    [("main", True, True), ("main", False, False), ("other", True, False), ("other", False, False)],
)
def test_thinking_goes_only_to_the_model_that_wrote_it_and_only_where_it_is_on(
    model: str, thinking: bool, kept: bool
) -> None:
    answer = said(HM, RedactedThinking("d"), Text("x"))
    out = sent(ASK, answer, heard(Text("go")), model=model, thinking=thinking)

    assert (answer.content if kept else (Text("x"),)) == out[1][1]


def test_a_signed_thinking_block_with_empty_text_is_not_empty() -> None:
    answer = said(Thinking("", "sig"), Thinking("", ""), Text("x"))

    assert (Thinking("", "sig"), Text("x")) == sent(ASK, answer, ASK)[1][1]


def test_thinking_is_never_last_but_in_a_paused_answer_that_is_sent_back() -> None:
    assert (Text("x"),) == sent(ASK, said(Text("x"), HM), ASK)[1][1]
    assert (Text("x"), HM) == sent(ASK, said(Text("x"), HM), resend=True)[1][1]
    assert [("user", (Text("q"), Text("q")))] == sent(ASK, said(HM), ASK)


def test_thinking_before_a_call_stays_through_the_trajectory() -> None:
    call = said(HM, ToolUse("a", "read"))
    result = heard(ToolResult("a"))

    assert call.content == sent(ASK, call, result, said(HM, Text("x")), ASK)[1][1]


def test_server_pairs_are_untouched() -> None:
    answer = said(server_call("s"), server_result("s"), Text("x"))

    assert answer.content == sent(ASK, answer, ASK)[1][1]


def test_a_server_call_that_nothing_answered_leaves_once_a_user_has_spoken() -> None:
    answer = said(Text("x"), server_call("s"))

    assert (Text("x"),) == sent(ASK, answer, heard(Text("go")))[1][1]
    assert answer.content == sent(ASK, answer, resend=True)[1][1]


def test_a_server_call_stays_pending_while_client_calls_of_its_answer_are_answered() -> None:
    answer = said(server_call("s"), ToolUse("a", "read"))

    assert answer.content == sent(ASK, answer, heard(ToolResult("a")))[1][1]


@pytest.mark.parametrize(
    "odd",
    [
        server_result("s"),  # no call
        ToolResult("a", (Text("r"),)),  # results are the user's
        IMAGE,
    ],
)
def test_what_no_answer_may_hold_does_not_go_back(odd: Block) -> None:
    answer = said(odd, server_call("t"), server_result("t"), Text("x"))

    assert answer.content[1:] == sent(ASK, answer, ASK)[1][1]


def test_server_calls_and_results_go_out_once() -> None:
    pair = (server_call("s"), server_result("s"))

    assert pair == sent(ASK, said(*pair, server_result("s")), said(*pair), ASK)[1][1]
    assert (*pair, Text("x")) == sent(ASK, said(server_result("s"), *pair, Text("x")), ASK)[1][1]


def test_what_is_the_answers_does_not_go_out_as_the_users() -> None:
    assert [Text("q")] == list(sent(heard(ToolUse("a", "read"), HM, server_call("s"), Text("q")))[0][1])


def test_an_error_without_a_word_gets_one() -> None:
    ((result,),) = [sent(ASK, said(ToolUse("a", "r")), heard(ToolResult("a", (), True)))[2][1]]

    assert isinstance(result, ToolResult)
    assert result.content


S = ruled(Text("s"))
X = said(Text("x"))
PAIR = (server_call("s"), server_result("s"))
CALL, RESULT = said(ToolUse("a", "read")), heard(ToolResult("a"))


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        ([ASK, S, X, ASK], "user system assistant user"),
        ([ASK, S], "user system"),
        ([ASK, S, S], "user system"),
        ([S, ASK], "user system"),
        ([ASK, X, S, ASK], "user assistant user system"),
        ([ASK, CALL, RESULT, S, ASK], "user assistant user system"),
        ([ASK, CALL, S, RESULT], "user assistant user system"),
        ([ASK, X, S, X, ASK, X, ASK], "user assistant user system assistant user"),
        ([ASK, said(HM), S, ASK], "user system"),
        ([ASK, said(*PAIR), S, X, ASK], "user assistant system assistant user"),
    ],
)
def test_the_system_speaks_only_where_it_may(messages: list[Message], roles: str) -> None:
    assert roles == " ".join(role for role, _ in sent(*messages))


def test_behind_a_paused_answer_the_system_has_nothing_to_say() -> None:
    assert "user system assistant" == " ".join(role for role, _ in sent(ASK, X, S, X, resend=True))
    assert "assistant" == " ".join(role for role, _ in sent(S, X, resend=True))


def test_an_unknown_block_is_echoed_untouched() -> None:
    block = Opaque("thing_of_tomorrow", '{"type":"thing_of_tomorrow","x":[1.50]}')

    assert (block, Text("x")) == sent(ASK, said(block, Text("x")), ASK)[1][1]


def test_lone_surrogates_are_replaced_where_it_is_allowed() -> None:
    out = sent(heard(Text("a\ud800")))

    assert [("user", (Text("a\ufffd"),))] == out


@settings(max_examples=400)
@given(st.one_of(broken, anything))
def test_every_repaired_view_makes_a_valid_request(messages: list[Message]) -> None:
    view = (*repair(messages).messages, user_text("go", Origin.PROMPT))
    for model in ("main", "other"):
        for thinking in (True, False):
            made = order(*view, model=model, thinking=thinking)
            assert [] == complaints(wire_messages(made))


@given(sound())
def test_nothing_of_a_sound_view_is_lost(messages: list[Message]) -> None:
    blocks = [block for message in messages for block in message.content]
    out = [block for message in request_messages(order(*messages)) for block in message.content]

    assert blocks == out


@given(broken)
def test_a_request_depends_on_the_order_alone(messages: list[Message]) -> None:
    made = order(*messages)

    assert request_messages(made) == request_messages(made)
    assert tuple(messages) == tuple(made.messages)
