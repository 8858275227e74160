"""
Sessions in which calls fail, each up to its end.

Only this file sees the loop's ladders climb on what the vendor really sends,
and how many requests that takes.
"""

from __future__ import annotations

import json

import attrs
import pytest

from stepfold.engine import Continue, Terminal
from stepfold.engine.effects import NoticeKind
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Media, Message, Origin, Role, Text
from stepfold.engine.terminals import Completed, Ending
from tests.adapters.anthropic_api.asking import (
    MODEL,
    STOP,
    begun,
    ended,
    finished,
    piece,
    started,
    text_events,
)
from tests.adapters.anthropic_api.loopback import Ending as Body
from tests.adapters.anthropic_api.loopback import Reply, error_body, failing, stream
from tests.adapters.anthropic_api.sessions.playing import (
    CONFIG,
    DONE,
    FAST,
    OTHER,
    Play,
    call,
    calling,
    failure_of,
    long_history,
    reasons,
    saying,
)

# ---------------------------------------------------------------- too long


TOO_LONG = [
    failing(400, "invalid_request_error", "prompt is too long: 208904 tokens > 200000 maximum"),
    failing(413, "request_too_large", "Request exceeds the maximum size"),
    stream([error_body("invalid_request_error", "prompt is too long: 208904 tokens > 200000 maximum")]),
    stream([started(), finished("model_context_window_exceeded"), STOP]),
]


@pytest.mark.parametrize("refusal", TOO_LONG, ids=["400", "413", "in the stream", "window"])
def test_a_prompt_that_is_too_long_is_compacted(play: Play, refusal: Reply) -> None:
    session = play(refusal, saying("the summary"), DONE, messages=long_history())
    asked, compacting, again = session.bodies
    assert [Continue.REACTIVE_COMPACT_RETRY] == reasons(session)
    assert ({"type": "none"}, asked["tools"]) == (compacting["tool_choice"], compacting["tools"])
    assert compacting["max_tokens"] <= 20_000
    assert "tool_choice" not in again
    assert len(json.dumps(again)) < len(json.dumps(asked)) / 2
    assert "the summary" in again["messages"][0]["content"][0]["text"]
    assert session.result.ok


def test_a_summary_that_is_itself_too_long_is_asked_for_with_less(play: Play) -> None:
    session = play(TOO_LONG[0], TOO_LONG[0], saying("the summary"), DONE, messages=long_history())
    _, first, second, _ = session.bodies
    assert len(second["messages"]) < len(first["messages"])
    assert session.result.ok


def test_a_prompt_that_stays_too_long_ends_the_run(play: Play) -> None:
    session = play(TOO_LONG[0], saying("the summary"), TOO_LONG[1], messages=long_history())
    assert Terminal.PROMPT_TOO_LONG is session.result.terminal


def test_media_that_are_too_large_leave_the_view(play: Play) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    messages = [
        *long_history(),
        Message(Role.USER, (Media("image", json.dumps(image)), Text("see")), Origin.PROMPT),
        Message(Role.ASSISTANT, (Text("I see"),), Origin.ANSWER, MODEL),
    ]
    words = "messages.17.content.0.image.source: image exceeds 5 MB maximum: 9 bytes > 5 bytes"
    session = play(
        failing(400, "invalid_request_error", words), saying("the summary"), DONE, messages=messages
    )
    assert [Continue.REACTIVE_COMPACT_RETRY] == reasons(session)
    assert "AA==" in json.dumps(session.bodies[0])
    assert "AA==" not in json.dumps(session.bodies[1:])


# ---------------------------------------------------------------- failures that pass


def test_the_servers_own_wait_is_kept(play: Play) -> None:
    slow = failing(429, "rate_limit_error", "slow down", headers=[("retry-after", "11")])
    session = play(slow, DONE)
    assert 11_000 in session.clock.slept_ms
    assert [11_000] == [notice.count for notice in session.notices(NoticeKind.RETRYING)]
    assert session.result.ok


def test_a_wait_that_is_too_long_is_not_waited_for(play: Play) -> None:
    slow = failing(429, "rate_limit_error", "slow down", headers=[("retry-after", "86400")])
    session = play(slow)
    assert (Terminal.MODEL_ERROR, FailureKind.RATE_LIMITED) == failure_of(session)


BUSY = failing(529, "overloaded_error", "Overloaded")
BUSY_INSIDE = stream([started(), *text_events("hal")[:2], error_body("overloaded_error", "Overloaded")])


@pytest.mark.parametrize("busy", [BUSY, BUSY_INSIDE], ids=["529", "in the stream"])
def test_a_storm_of_overloads_goes_to_the_next_model(play: Play, busy: Reply) -> None:
    thought = [
        begun({"type": "thinking", "thinking": "", "signature": ""}),
        piece({"type": "thinking_delta", "thinking": "hm"}),
        piece({"type": "signature_delta", "signature": "S"}),
        ended(),
    ]
    config = attrs.evolve(CONFIG, fallback_models=(OTHER,))
    first = calling(thought, call("t1", "add", {"a": 1, "b": 2}, 1))
    session = play(first, busy, busy, busy, DONE, config=config)
    assert [MODEL, MODEL, MODEL, MODEL, OTHER] == [body["model"] for body in session.bodies]
    kinds = [[b["type"] for b in body["messages"][1]["content"]] for body in session.bodies[1:]]
    assert [["thinking", "tool_use"]] * 3 + [["tool_use"]] == kinds
    assert session.result.ok


def test_overload_without_a_fallback_ends_after_ten_retries(play: Play) -> None:
    session = play(*[BUSY] * 11)
    assert (Terminal.MODEL_ERROR, FailureKind.OVERLOADED) == failure_of(session)
    assert 11 == session.result.end.attempts  # type: ignore[union-attr]


BREAKS = [
    ("an error in the stream", stream([started(), *text_events("half")[:2], error_body("api_error", "oh")])),
    ("a cut connection", stream([started(), *text_events("half")[:2]], Body.CUT)),
    ("a clean end that is none", stream([started(), *text_events("half")])),
    ("a connection closed at once", Reply(silent=True, ending=Body.CUT)),
    ("a 500", failing(500, "api_error", "oh")),
    ("a 409", failing(409, "conflict_error", "oh")),
    ("silence in the stream", stream([started(), *text_events("half")[:2]], Body.HANG)),
    ("silence before it", Reply(silent=True, ending=Body.HANG)),
]


@pytest.mark.parametrize(("name", "broken"), BREAKS, ids=[row[0] for row in BREAKS])
def test_a_broken_attempt_is_made_again(play: Play, name: str, broken: Reply) -> None:
    session = play(broken, DONE, client={"timeout": 0.3})
    assert ("done", True) == (session.result.output, session.result.ok)
    assert session.bodies[0] == session.bodies[1]
    assert int(bool(broken.pieces) and broken.status == 200) == session.withdrawn
    assert 1 == len(session.notices(NoticeKind.RETRYING))


def test_a_hang_ends_at_the_loops_own_deadline(play: Play) -> None:
    config = attrs.evolve(CONFIG, model_timeout_ms=200 * FAST)
    session = play(BREAKS[-2][1], DONE, config=config)
    assert session.result.ok
    assert 1 == session.withdrawn


def test_a_call_of_a_broken_attempt_is_not_in_the_next_request(play: Play) -> None:
    """A safe call starts while the stream is open; the stream breaks; its result is nobody's."""
    broken = stream([started(), *call("t1", "read", {"path": "x"}), *text_events("and", 1)[:2]], Body.CUT)
    session = play(broken, DONE)
    assert session.bodies[0]["messages"] == session.bodies[1]["messages"]
    assert session.result.ok


# ---------------------------------------------------------------- failures that stay


STAYING = [
    (failing(404, "not_found_error", "model: x"), FailureKind.NOT_FOUND),
    (failing(401, "authentication_error", "invalid x-api-key"), FailureKind.AUTHENTICATION),
    (failing(400, "invalid_request_error", "oh"), FailureKind.INVALID),
    (failing(402, "billing_error", "pay"), FailureKind.SPEND_LIMIT),
    (failing(429, "rate_limit_error", "pay", "enforced_spend_limit_reached"), FailureKind.SPEND_LIMIT),
]


@pytest.mark.parametrize(("refusal", "kind"), STAYING, ids=[kind.value for _, kind in STAYING])
def test_what_no_retry_can_cure_is_asked_once(play: Play, refusal: Reply, kind: FailureKind) -> None:
    assert (Terminal.MODEL_ERROR, kind) == failure_of(play(refusal))


def test_a_refusal_ends_the_run(play: Play) -> None:
    refused = finished("refusal")
    refused["delta"]["stop_details"] = {"type": "refusal", "category": "bio", "explanation": "not this"}
    session = play(stream([started(), *text_events("I"), refused, STOP]))
    end = session.result.end
    assert isinstance(end, Completed)
    assert (Ending.REFUSAL, "bio: not this", False) == (end.ending, end.details, end.ok)


