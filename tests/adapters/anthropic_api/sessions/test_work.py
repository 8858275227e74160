"""
Sessions that go well, as far as the vendor is concerned.

Only this file sees the loop's work on the vendor's wire: calls and results,
thinking, pauses, room for an answer, the server's edits, an abort.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs
import pytest

from stepfold.adapters.codec import digest
from stepfold.adapters.recording import read_recording
from stepfold.effects import Handle, trace
from stepfold.engine import Continue, Terminal
from stepfold.engine.effects import NoticeKind
from stepfold.engine.events import AbortKind, CallStatus, StreamClosed
from tests.adapters.anthropic_api.asking import (
    STOP,
    answer,
    begun,
    ended,
    finished,
    piece,
    started,
    text_events,
)
from tests.adapters.anthropic_api.loopback import Ending as Body
from tests.adapters.anthropic_api.loopback import Loopback, error_body, stream
from tests.adapters.anthropic_api.sessions.playing import (
    CONFIG,
    DONE,
    Play,
    call,
    calling,
    reasons,
    result_of,
    saying,
)

# ---------------------------------------------------------------- tools


def test_a_tool(play: Play) -> None:
    session = play(calling(call("t1", "add", {"a": 1, "b": 2})), saying("three"))
    assert ("three", [Continue.NEXT_TURN]) == (session.result.output, reasons(session))
    assert [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1, "b": 2}}],
        },
        {"role": "user", "content": [result_of("t1", "3")]},
    ] == session.bodies[1]["messages"]
    assert session.bodies[0]["tools"] == session.bodies[1]["tools"]
    assert [{"type": "text", "text": "be good"}] == session.bodies[1]["system"]


def test_parallel_tools_answer_in_the_order_of_the_calls(play: Play) -> None:
    first = calling(
        text_events("look"),
        call("t1", "read", {"path": "slow"}, 1),
        call("t2", "read", {"path": "fast"}, 2),
        call("t3", "add", {"a": 1, "b": 1}, 3),
    )
    session = play(first, DONE)
    ids = [block["tool_use_id"] for block in session.bodies[1]["messages"][2]["content"]]
    assert ["t1", "t2", "t3"] == ids
    assert {"t1": CallStatus.COMPLETED, "t2": CallStatus.COMPLETED, "t3": CallStatus.COMPLETED} == dict(
        session.result.tool_calls
    )


@pytest.mark.parametrize("input", ['{"a": 1, "b"', "[1]", '{"a": "x", "b": 2}'])
def test_a_bad_input_is_an_error_for_the_model(play: Play, input: str) -> None:
    session = play(calling(call("t1", "add", input)), calling(call("t2", "add", {"a": 1, "b": 2})), DONE)
    (bad,) = session.bodies[1]["messages"][2]["content"]
    assert bad["is_error"]
    assert {"t1": CallStatus.FAILED, "t2": CallStatus.COMPLETED} == dict(session.result.tool_calls)


def test_an_unknown_tool_is_an_error_for_the_model(play: Play) -> None:
    session = play(calling(call("t1", "fly", {})), DONE)
    (bad,) = session.bodies[1]["messages"][2]["content"]
    assert (True, True) == (bad["is_error"], "fly" in bad["content"][0]["text"])


def test_thinking_goes_back_with_its_call(play: Play) -> None:
    thought = [
        begun({"type": "thinking", "thinking": "", "signature": ""}),
        piece({"type": "thinking_delta", "thinking": "let me "}),
        piece({"type": "thinking_delta", "thinking": "add"}),
        piece({"type": "signature_delta", "signature": "SIG=="}),
        ended(),
    ]
    hidden = [begun({"type": "redacted_thinking", "data": "D=="}, 1), ended(1)]
    session = play(calling(thought, hidden, call("t1", "add", {"a": 1, "b": 2}, 2)), DONE)
    assert [
        {"type": "thinking", "thinking": "let me add", "signature": "SIG=="},
        {"type": "redacted_thinking", "data": "D=="},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1, "b": 2}},
    ] == session.bodies[1]["messages"][1]["content"]
    assert {"type": "adaptive"} == session.bodies[1]["thinking"]


def test_a_pause_is_sent_back_unchanged(play: Play) -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [], "new": {"x": 1}}
    searched = [begun(search), piece({"type": "input_json_delta", "partial_json": '{"q": 1}'}), ended()]
    paused = stream(answer(searched, [begun(result, 1), ended(1)], reason="pause_turn"))
    session = play(paused, DONE)
    assert [{**search, "input": {"q": 1}}, result] == session.bodies[1]["messages"][-1]["content"]
    assert "assistant" == session.bodies[1]["messages"][-1]["role"]
    assert session.result.ok


# ---------------------------------------------------------------- truncation


def test_a_truncated_answer_is_asked_for_again_with_more_room_then_resumed(play: Play) -> None:
    cut = saying("half of", "max_tokens")
    session = play(cut, cut, DONE)
    assert [8_000, 64_000, 64_000] == [body["max_tokens"] for body in session.bodies]
    assert [Continue.MAX_OUTPUT_TOKENS_ESCALATE, Continue.MAX_OUTPUT_TOKENS_RECOVERY] == reasons(session)
    assert session.bodies[0]["messages"] == session.bodies[1]["messages"]
    partial, resume = session.bodies[2]["messages"][-2:]
    assert ("assistant", "half of") == (partial["role"], partial["content"][0]["text"])
    assert "user" == resume["role"]
    assert 1 == session.withdrawn
    assert session.result.ok


def test_a_call_that_was_cut_is_not_run(play: Play) -> None:
    config = attrs.evolve(CONFIG, max_output_tokens=8_000)
    cut = stream([started(), *call("t1", "add", '{"a": 1, "b')[:-1], finished("max_tokens"), STOP])
    whole = stream(answer(text_events("so"), call("t2", "add", {"a": 1, "b": 2}, 1), reason="max_tokens"))
    session = play(cut, whole, DONE, config=config)
    assert CallStatus.COMPLETED not in session.result.tool_calls.values()
    (result,) = [
        block
        for message in session.bodies[2]["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert ("t2", True) == (result["tool_use_id"], result["is_error"])


# ---------------------------------------------------------------- context on the server


def test_old_results_are_cleared_by_the_servers_edits(play: Play) -> None:
    config = attrs.evolve(CONFIG, microcompact_trigger_results=3, microcompact_keep_results=1)
    reads = [calling(call(f"t{n}", "read", {"path": str(n)})) for n in range(4)]
    events = answer(text_events("done"))
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": 900}
    events[-2]["context_management"] = {"applied_edits": [edit]}
    session = play(*reads, stream(events), config=config)
    assert [None] * 4 == [body.get("context_management") for body in session.bodies[:4]]
    assert {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "tool_uses", "value": 1},
                "keep": {"type": "tool_uses", "value": 1},
            }
        ]
    } == session.bodies[4]["context_management"]
    assert "context-management-2025-06-27" == session.api.requests[4].headers["anthropic-beta"]
    assert session.bodies[3]["messages"] == session.bodies[4]["messages"][:-2]
    assert [900] == [notice.count for notice in session.notices(NoticeKind.MICROCOMPACTED)]


def test_a_task_budget_goes_out_and_stays_as_it_is(play: Play) -> None:
    config = attrs.evolve(CONFIG, task_budget_tokens=50_000)
    session = play(calling(call("t1", "add", {"a": 1, "b": 2})), DONE, config=config)
    budget = {"task_budget": {"type": "tokens", "total": 50_000}}
    assert [budget, budget] == [body["output_config"] for body in session.bodies]
    assert "task-budgets-2026-03-13" == session.api.requests[0].headers["anthropic-beta"]


def test_usage_adds_up(play: Play) -> None:
    session = play(calling(call("t1", "add", {"a": 1, "b": 2})), DONE)
    assert (20, 10) == (session.result.usage.input_tokens, session.result.usage.output_tokens)


# ---------------------------------------------------------------- abort


def test_an_abort_closes_the_connection_and_keeps_what_came(play: Play) -> None:
    async def abort(api: Loopback, handle: Handle) -> None:
        while not api.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        handle.abort(AbortKind.HARD)
        async with asyncio.timeout(5):
            await api.lost.wait()

    half = stream([started(), *text_events("half of it")[:-1]], Body.HANG)
    session = play(half, during=abort)
    assert Terminal.ABORTED_STREAMING is session.result.terminal
    assert "half of it" == session.result.output


# ---------------------------------------------------------------- recorded and replayed


def test_a_recording_replays_to_the_same_states_and_orders(tmp_path: Path) -> None:
    """Two folds of one file: every state and every order equal, byte for byte."""
    Play(tmp_path)(
        calling(call("t1", "add", {"a": 1, "b": 2})),
        stream([started(), *text_events("half")[:2], error_body("api_error", "oh")]),
        saying("half", "max_tokens"),
        DONE,
    )
    recording = read_recording(tmp_path / "session-1.jsonl")
    folds = [
        [
            (digest(state), digest(effects))
            for _, state, effects in trace(recording.events, recording.state(), recording.begun.config)
        ]
        for _ in range(2)
    ]
    assert folds[0] == folds[1]
    assert 3 == sum(isinstance(event, StreamClosed) for event in recording.events)


