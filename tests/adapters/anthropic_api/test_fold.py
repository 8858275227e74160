"""
The fold of a stream, event by event, without a network.

Only this file sees pieces in every shape: the interleaved, the broken, the
unknown, the signed; and that a piece costs the same in a long input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from stepfold.adapters.anthropic_api.fold import Fold
from stepfold.effects.ports import InputDelta, ModelPart, TextDelta, ThinkingDelta
from stepfold.engine.events import Stop, StreamClosed, StreamFailed, Usage
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Opaque, Text, Thinking, ToolUse
from tests.adapters.anthropic_api.asking import (
    STOP,
    answer,
    begun,
    blocks_in,
    ended,
    finished,
    piece,
    started,
    text_events,
)
from tests.adapters.anthropic_api.loopback import Json


def fold(events: Iterable[Json]) -> list[ModelPart]:
    """Return the parts of a stream, its end included."""
    folding = Fold(7)
    parts: list[ModelPart] = []
    for event in events:
        parts += folding.take(event)
    return [*parts, folding.end()]


def tool(id: str, text: str, index: int = 0, size: int = 3, **fields: Any) -> list[Json]:
    """Return the events of one call whose input is written as *text*."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deltas = [piece({"type": "input_json_delta", "partial_json": part}, index) for part in pieces]
    block = {"type": "tool_use", "id": id, "name": "read", "input": {}, **fields}
    return [begun(block, index), *deltas, ended(index)]


def test_a_whole_answer() -> None:
    thought = [
        begun({"type": "thinking", "thinking": "", "signature": ""}),
        piece({"type": "thinking_delta", "thinking": "hm, "}),
        piece({"type": "thinking_delta", "thinking": "so"}),
        piece({"type": "signature_delta", "signature": "S=="}),
        ended(),
    ]
    parts = fold(answer(thought, text_events("Hello", 1, 3), tool("t1", '{"a": 1}', 2, 5), reason="tool_use"))
    assert [
        Usage(10, 1),
        ThinkingDelta("hm, "),
        ThinkingDelta("so"),
        Thinking("hm, so", "S=="),
        TextDelta("Hel"),
        TextDelta("lo"),
        Text("Hello"),
        InputDelta('{"a":'),
        InputDelta(" 1}"),
        ToolUse("t1", "read", '{"a": 1}'),
        Usage(10, 5),
        StreamClosed(7, Stop.TOOL_USE, "tool_use", Usage(10, 5)),
    ] == parts


def test_a_signature_counts_only_when_its_block_has_ended() -> None:
    begin = begun({"type": "thinking", "thinking": "", "signature": ""})
    parts = fold([started(), begin, piece({"type": "signature_delta", "signature": "S"})])
    assert [] == blocks_in(parts)
    assert isinstance(parts[-1], StreamFailed)


def test_blocks_may_come_interleaved() -> None:
    one, two = tool("t1", '{"a":1}', 0), tool("t2", '{"b":2}', 1)
    mixed = [event for pair in zip(one, two, strict=True) for event in pair]
    first, second = blocks_in(fold(answer(mixed)))
    assert ToolUse("t1", "read", '{"a":1}') == first
    assert ToolUse("t2", "read", '{"b":2}') == second


# ---------------------------------------------------------------- inputs


@pytest.mark.parametrize(
    ("written", "input", "raw"),
    [
        ('{"a": [1, 2]}', '{"a": [1, 2]}', ""),
        ("{}", "{}", ""),
        ('{"a": 1', "{}", '{"a": 1'),
        ("[1]", "{}", "[1]"),
        ('"text"', "{}", '"text"'),
        ("null", "{}", "null"),
        ('{"a": NaN}', "{}", '{"a": NaN}'),
        ("{" * 3, "{}", "{{{"),
        ("[" * 100_000, "{}", "[" * 100_000),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "{}", '{"a":' * 5_000 + "1" + "}" * 5_000),
        ('{"a": "\\ud83d\\ude00"}', '{"a":"😀"}', ""),
        ('{"a": "\\ud83d"}', '{"a":"�"}', ""),
        ('{"a": "\ud83d\ude00 \udc00"}', '{"a": "😀 �"}', ""),
    ],
)
def test_an_input_is_an_object_or_marked(written: str, input: str, raw: str) -> None:
    (block,) = blocks_in(fold(answer(tool("t1", written, size=1_000))))
    assert ToolUse("t1", "read", input, "", raw) == block


def test_an_input_may_come_whole_at_the_beginning() -> None:
    (block,) = blocks_in(fold(answer(tool("t1", "", input={"a": 1}, caller={"type": "direct"}))))
    assert ToolUse("t1", "read", '{"a":1}', '{"caller":{"type":"direct"}}') == block


def test_the_fields_of_a_call_are_kept() -> None:
    (block,) = blocks_in(fold(answer(tool("t1", "{}", toolset_name="computer", caller={"type": "direct"}))))
    assert isinstance(block, ToolUse)
    assert {"toolset_name": "computer", "caller": {"type": "direct"}} == json.loads(block.extra)


def test_a_call_of_the_server_has_its_input_and_id() -> None:
    begin = {"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv1", "content": [{"type": "x", "y": [1]}]}
    events = [begun(begin), piece({"type": "input_json_delta", "partial_json": '{"q": 1}'}), ended()]
    call, answered = blocks_in(fold(answer([*events, begun(result, 1), ended(1)])))
    assert isinstance(call, Opaque)
    assert isinstance(answered, Opaque)
    assert ("srv1", "", {**begin, "input": {"q": 1}}) == (call.call_id, call.answers, json.loads(call.wire))
    assert ("", "srv1", result) == (answered.call_id, answered.answers, json.loads(answered.wire))


# ---------------------------------------------------------------- other pieces


def test_citations_and_compactions() -> None:
    quotes = [{"type": "char_location", "cited_text": text} for text in "ab"]
    text = [
        begun({"type": "text", "text": "", "citations": []}),
        *(piece({"type": "citations_delta", "citation": quote}) for quote in quotes),
        piece({"type": "text_delta", "text": "so"}),
        ended(),
    ]
    summary = {"content": "what was", "encrypted_content": "E=="}
    compaction = [
        begun({"type": "compaction", "content": None}, 1),
        piece({"type": "compaction_delta", **summary}, 1),
        ended(1),
    ]
    cited, compacted = blocks_in(fold(answer(text, compaction, reason="compaction")))
    assert isinstance(cited, Text)
    assert isinstance(compacted, Opaque)
    assert ("so", {"citations": quotes}) == (cited.text, json.loads(cited.extra))
    assert {"type": "compaction", **summary} == json.loads(compacted.wire)


def test_unknown_pieces_of_an_unknown_block_are_all_kept() -> None:
    events = [
        begun({"type": "future", "text": "a", "input": {}, "kept": None}),
        piece({"type": "text_delta", "text": "b"}),
        piece({"type": "thinking_delta", "thinking": "c"}),
        piece({"type": "signature_delta", "signature": "S"}),
        piece({"type": "input_json_delta", "partial_json": '{"x": 1}'}),
        piece({"type": "citations_delta", "citation": {"q": 1}}),
        piece({"type": "future_delta", "text": "d", "level": 3}),
        ended(),
    ]
    (block,) = blocks_in(fold(answer(events)))
    assert isinstance(block, Opaque)
    assert {
        "type": "future",
        "text": "abd",
        "input": {"x": 1},
        "kept": None,
        "thinking": "c",
        "signature": "S",
        "citations": [{"q": 1}],
        "level": 3,
    } == json.loads(block.wire)


@pytest.mark.parametrize("kind", ["future_delta", "signature_delta", "thinking_delta", "compaction_delta"])
def test_a_piece_that_does_not_fit_leaves_a_known_block_as_it_is(kind: str) -> None:
    stray = piece({"type": kind, "signature": "S", "thinking": "t", "content": "c", "more": 1})
    begin, *rest = text_events("text")
    assert [Text("text")] == blocks_in(fold(answer([begin, stray, *rest])))


def test_surrogates_are_joined_across_pieces_and_never_pass_alone() -> None:
    events = [
        begun({"type": "text", "text": ""}),
        piece({"type": "text_delta", "text": "a\ud83d"}),
        piece({"type": "text_delta", "text": "\ude00\udc00"}),
        ended(),
    ]
    parts = fold(answer(events))
    assert [Text("a😀�")] == blocks_in(parts)
    "".join(part.text for part in parts if isinstance(part, TextDelta)).encode()


# ---------------------------------------------------------------- usage and end


def test_usage_is_cumulative_and_what_is_not_named_stays() -> None:
    cache = {"cache_read_input_tokens": 70, "cache_creation_input_tokens": 8}
    usage = {"input_tokens": 5, "output_tokens": 1, **cache}
    events = [
        started(usage=usage),
        finished(None, {"output_tokens": 20}),
        finished("end_turn", {"output_tokens": 30, "input_tokens": None, "cache_read_input_tokens": 71}),
        STOP,
    ]
    seen = [part for part in fold(events) if isinstance(part, Usage)]
    assert [Usage(5, 1, 70, 8), Usage(5, 20, 70, 8), Usage(5, 30, 71, 8)] == seen


@pytest.mark.parametrize(("sent", "kept"), [(-5, 0), (2.9, 2), (True, 1), ("7", 0), (float("nan"), 0)])
def test_usage_is_clamped(sent: Any, kept: int) -> None:
    usage = [part for part in fold([started(usage={"input_tokens": sent})]) if isinstance(part, Usage)]
    assert [Usage(kept)] == usage


def test_cleared_tokens_and_the_words_of_a_refusal() -> None:
    edits = [{"type": "a", "cleared_input_tokens": 30}, {"type": "b", "cleared_input_tokens": 4}]
    refused = finished("refusal", context_management={"applied_edits": edits})
    refused["delta"]["stop_details"] = {"type": "refusal", "category": "bio", "explanation": "no"}
    end = fold([started(), refused, STOP])[-1]
    assert StreamClosed(7, Stop.REFUSAL, "refusal", Usage(10, 5), cleared_tokens=34, details="bio: no") == end


def test_a_later_delta_without_a_reason_takes_none_away() -> None:
    end = fold([started(), *text_events("x"), finished("end_turn"), finished(None), STOP])[-1]
    assert isinstance(end, StreamClosed)
    assert Stop.END_TURN is end.stop


def test_a_stop_reason_of_the_future() -> None:
    end = fold(answer(text_events("x"), reason="nap_time"))[-1]
    assert (Stop.OTHER, "nap_time") == (end.stop, end.reason)  # type: ignore[union-attr]


def test_an_answer_may_be_whole_in_its_beginning() -> None:
    """As the continuation of a call made by the server's code is."""
    call = {"type": "tool_use", "id": "t1", "name": "roll", "input": {"n": 6}, "caller": {"type": "code"}}
    parts = fold([started(content=[call], stop_reason="tool_use"), STOP])
    (block,) = blocks_in(parts)
    assert ToolUse("t1", "roll", '{"n":6}', '{"caller":{"type":"code"}}') == block
    assert StreamClosed(7, Stop.TOOL_USE, "tool_use", Usage(10, 1)) == parts[-1]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_call_that_was_cut_is_no_block(reason: str) -> None:
    events = [started(), *tool("t1", '{"a": ')[:-1], finished(reason), STOP]
    parts = fold(events)
    assert [] == blocks_in(parts)
    assert Stop(reason) is parts[-1].stop  # type: ignore[union-attr]


def test_text_that_never_closed_does_not_spoil_an_answer() -> None:
    parts = fold([started(), *text_events("done")[:-1], finished(), STOP])
    assert isinstance(parts[-1], StreamClosed)


def test_any_prefix_of_a_stream_is_a_failed_attempt_until_the_stop_reason() -> None:
    events = answer(text_events("Hello"), tool("t1", '{"a": 1}', 1), reason="tool_use")
    for length in range(len(events) + 1):
        end = fold(events[:length])[-1]
        whole = length >= len(events) - 1
        assert isinstance(end, StreamClosed if whole else StreamFailed), length
        if isinstance(end, StreamFailed):
            assert FailureKind.CUT is end.failure.kind


@pytest.mark.parametrize("event", [None, [], "x", 1, {}, {"type": None}, {"type": "future"}, {"type": ["x"]}])
def test_no_event_can_make_it_raise(event: Any) -> None:
    folding = Fold(7)
    folding.take(started())
    folding.take(event)
    folding.take(begun({"type": "text", "text": 1}, 5))
    folding.take({"type": "content_block_delta", "index": 5, "delta": event})
    folding.take(piece({"type": "text_delta", "text": event}, 5))
    folding.take(piece({"type": "citations_delta", "citation": event}, 5))
    folding.take(ended(5))
    folding.take({"type": "content_block_start", "index": 0, "content_block": event})
    folding.take({"type": "content_block_stop", "index": event})
    folding.take({"type": "message_delta", "delta": event, "usage": event, "context_management": event})
    folding.end()


# ---------------------------------------------------------------- cost


def calls_for(deltas: int) -> int:
    """Return how many functions run while one structured input of so many pieces is folded."""
    text = json.dumps({"items": [{"id": n, "name": "x"} for n in range(deltas)]})
    size = -(-len(text) // deltas)
    events = [started(), *tool("t1", text, size=size), finished("tool_use"), STOP]
    count = 0

    def seen(frame: Any, kind: str, arg: Any) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    folding = Fold(1)
    sys.setprofile(seen)
    try:
        for event in events:
            folding.take(event)
    finally:
        sys.setprofile(None)
    return count


def test_a_piece_costs_the_same_however_long_the_input_is() -> None:
    small, large = calls_for(200), calls_for(4_000)
    assert large / 4_000 <= small / 200
