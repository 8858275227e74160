"""
Recorded traffic of the API, served again to the real SDK and through the adapter.

Only this file sees answers that nobody here made up: what the adapter makes
of a stream must be what the SDK accumulates from it, field for field.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.anthropic_api.failures import classify
from stepfold.adapters.anthropic_api.fold import stop_of
from stepfold.adapters.anthropic_api.wire import block_json, block_of, message_of
from stepfold.engine.events import Stop, StreamClosed, Usage
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Block, Opaque
from tests.adapters.anthropic_api.asking import blocks_in, order, parts_of, port, run, sdk
from tests.adapters.anthropic_api.loopback import Json, Loopback, Reply, document, stream

CASES = Path(__file__).parents[4] / "shared" / "cases"
INTERACTIONS = CASES / "api_interactions.jsonl"
ERRORS = CASES / "observed_error_bodies.jsonl"
here = pytest.mark.skipif(not INTERACTIONS.exists(), reason="the recorded traffic is not on this machine")
K = FailureKind


@functools.cache
def rows(path: Path) -> tuple[Json, ...]:
    """Return the rows of a file of recordings; none where there is no file."""
    if not path.exists():
        return ()
    with path.open(encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


def answers_of(row: Json) -> list[list[Json]]:
    """Return the streams of *row*; a recording of several answers behind one another is cut apart."""
    streams: list[list[Json]] = []
    for event in row["events"]:
        if event["type"] == "message_start" or not streams:
            streams.append([])
        streams[-1].append(event)
    return streams


STREAMS = [
    (number, part, events)
    for number, row in enumerate(rows(INTERACTIONS))
    if "events" in row
    for part, events in enumerate(answers_of(row))
]
JSONS = [(number, row) for number, row in enumerate(rows(INTERACTIONS)) if "events" not in row]
MESSAGES = [
    (number, row["json"])
    for number, row in JSONS
    if isinstance(row.get("json"), dict) and row["json"].get("type") == "message"
]


def plain(value: Any) -> Any:
    """Return *value* without what says nothing: fields that are null, and the SDK's own ``parsed_output``."""
    match value:
        case dict():
            return {k: plain(v) for k, v in value.items() if v is not None and k != "parsed_output"}
        case list():
            return [plain(item) for item in value]
        case _:
            return value


def usage_of(usage: Json) -> Usage:
    """Return the SDK's usage as the engine counts."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(*(usage.get(name) or 0 for name in names))


def open_at_end(events: list[Json]) -> set[int]:
    """Return the indexes of blocks that began and never ended."""
    begun = {event["index"] for event in events if event["type"] == "content_block_start"}
    return begun - {event["index"] for event in events if event["type"] == "content_block_stop"}


async def accumulated(events: list[Json]) -> Json:
    """Return the message that the SDK itself makes of a stream."""
    async with Loopback([stream(events)]) as api, sdk(api) as client:
        asked: Any = [{"role": "user", "content": "go"}]
        async with client.beta.messages.stream(max_tokens=9, model="m", messages=asked) as got:
            message = await got.get_final_message()
        return message.to_dict(mode="json")


async def folded(reply: Reply, **fields: Any) -> tuple[list[Block], Any]:
    """Return the blocks and the end that the adapter makes of an answer."""
    async with Loopback([reply]) as api, port(api) as model:
        parts = await parts_of(model, order(**fields))
        assert 1 == len(api.requests)
        return blocks_in(parts), parts[-1]


def test_the_recordings_are_all_there() -> None:
    if not INTERACTIONS.exists():
        pytest.skip("the recorded traffic is not on this machine")
    assert (236, 79) == (len(rows(INTERACTIONS)), len({number for number, _, _ in STREAMS}))
    assert 130 == len(MESSAGES)


# ---------------------------------------------------------------- streams


@here
@pytest.mark.parametrize(("number", "part", "events"), STREAMS, ids=[f"{n}.{p}" for n, p, _ in STREAMS])
def test_a_stream_folds_to_what_the_sdk_accumulates(number: int, part: int, events: list[Json]) -> None:
    async def work() -> None:
        blocks, end = await folded(stream(events))
        if events[-1]["type"] != "message_stop":  # the first half of a spliced recording
            assert K.CUT is end.failure.kind
            return
        message = await accumulated(events)
        content = [block for at, block in enumerate(message["content"]) if at not in open_at_end(events)]
        assert plain(content) == plain([block_json(block) for block in blocks])
        assert isinstance(end, StreamClosed), end
        assert (message["stop_reason"], stop_of(message["stop_reason"])) == (end.reason, end.stop)
        assert usage_of(message["usage"]) == end.usage

    run(work())


SPLICED = sorted({number for number, part, _ in STREAMS if part})


@here
@pytest.mark.parametrize("number", SPLICED)
def test_a_second_answer_in_one_stream_is_no_answer(number: int) -> None:
    async def work() -> None:
        _, end = await folded(stream(rows(INTERACTIONS)[number]["events"]))
        assert K.CUT is end.failure.kind

    run(work())


# ---------------------------------------------------------------- answers in one piece


def as_stream(message: Json) -> list[Json]:
    """Return a stream that says what *message* says, its text and inputs in pieces."""
    start = {**message, "content": [], "stop_reason": None, "stop_details": None}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(message["content"]):
        begin, deltas = in_pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": begin})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {field: message.get(field) for field in ("stop_reason", "stop_sequence", "stop_details")}
    last = {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    if "context_management" in message:
        last["context_management"] = message["context_management"]
    return [*events, last, {"type": "message_stop"}]


def in_pieces(block: Json) -> tuple[Json, list[Json]]:
    """Return how *block* begins and the deltas that make it whole."""

    def cut(text: str, kind: str, field: str) -> list[Json]:
        return [{"type": kind, field: text[at : at + 5]} for at in range(0, len(text), 5)]

    match block["type"]:
        case "text":
            quotes = block.get("citations") or []
            begin = {**block, "text": "", **({"citations": []} if quotes else {})}
            cited = [{"type": "citations_delta", "citation": quote} for quote in quotes]
            return begin, [*cited, *cut(block["text"], "text_delta", "text")]
        case "thinking":
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [
                *cut(block["thinking"], "thinking_delta", "thinking"),
                signed,
            ]
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            text = json.dumps(block["input"]) if block["input"] else ""
            return {**block, "input": {}}, cut(text, "input_json_delta", "partial_json")
        case "compaction":
            delta = {"type": "compaction_delta", **{k: v for k, v in block.items() if k != "type"}}
            return {"type": "compaction", "content": None}, [delta]
    return block, []


@here
@pytest.mark.parametrize(("number", "message"), MESSAGES, ids=[str(number) for number, _ in MESSAGES])
def test_an_answer_in_one_piece(number: int, message: Json) -> None:
    """As it is, and as the stream that it could have been."""

    async def work() -> None:
        async with Loopback([document(message)]) as api, sdk(api) as client:
            asked: Any = [{"role": "user", "content": "go"}]
            made = await client.beta.messages.create(max_tokens=9, model="m", messages=asked)
            expected = made.to_dict(mode="json")
        for reply in (document(message), stream(as_stream(message))):
            blocks, end = await folded(reply)
            assert message["content"] == [block_json(block) for block in blocks]
            assert plain(expected["content"]) == plain([block_json(block) for block in blocks])
            assert (message["stop_reason"], usage_of(message["usage"])) == (end.reason, end.usage)

    run(work())


OTHERS = [(n, row) for n, row in JSONS if row["status"] == 200 and n not in dict(MESSAGES)]


@here
@pytest.mark.parametrize(("number", "row"), OTHERS, ids=[str(number) for number, _ in OTHERS])
def test_what_is_no_answer_of_this_api_is_told_so(number: int, row: Json) -> None:
    """Recordings of other services, token counts, pictures: a typed failure, no crash, no empty answer."""

    async def work() -> None:
        body = document(row["json"]) if "json" in row else Reply(200, (), (row["text"].encode(),))
        blocks, end = await folded(body)
        assert ([], K.CUT) == (blocks, end.failure.kind)

    run(work())


@here
def test_nothing_was_left_out() -> None:
    told = {*(n for n, _, _ in STREAMS), *dict(MESSAGES), *dict(OTHERS), *dict(FAILED)}
    assert set(range(236)) == told


# ---------------------------------------------------------------- blocks there and back


def wire_blocks() -> list[Json]:
    """Return every content block of every recorded request and answer."""
    found = []
    for row in rows(INTERACTIONS):
        request, answer = row.get("request"), row.get("json")
        messages = request.get("messages") if isinstance(request, dict) else None
        for message in [*(messages or ()), *([answer] if isinstance(answer, dict) else ())]:
            content = message.get("content") if isinstance(message, dict) else None
            blocks = content if isinstance(content, list) else ()
            found += [block for block in blocks if isinstance(block, dict) and "type" in block]
    return found


@here
def test_every_recorded_block_comes_back_as_it_was() -> None:
    blocks = wire_blocks()
    assert 800 < len(blocks)
    for wire in blocks:
        made = block_json(block_of(wire))
        if wire["type"] == "tool_result":  # what says nothing is not sent
            content = wire.get("content")
            whole = [{"type": "text", "text": content}] if content and isinstance(content, str) else content
            wire = {**wire, "content": whole or None, "is_error": wire.get("is_error") or None}
            wire = {field: value for field, value in wire.items() if value is not None}
        assert wire == made


@here
def test_server_calls_and_their_results_know_each_other() -> None:
    blocks = [block_of(wire) for wire in wire_blocks()]
    calls = {b.call_id for b in blocks if isinstance(b, Opaque) and b.type.endswith("tool_use")}
    answers = {b.answers for b in blocks if isinstance(b, Opaque) and b.type.endswith("tool_result")}
    assert 50 < len(answers & calls)
    assert "" not in calls | answers


@here
def test_recorded_histories_become_messages_and_requests_again() -> None:
    seen = 0
    for row in rows(INTERACTIONS):
        request = row["request"] if "anthropic" in str(row.get("url")) else None
        for wire in request.get("messages", ()) if isinstance(request, dict) else ():
            if row["status"] == 400 and not isinstance(wire, dict):
                continue  # one recording is of a request that is none
            message = message_of(wire)
            assert wire["role"] == message.role
            kinds = ["text"] if isinstance(wire["content"], str) else [b["type"] for b in wire["content"]]
            assert kinds == [block_json(block)["type"] for block in message.content]
            seen += 1
    assert 300 < seen


# ---------------------------------------------------------------- recorded errors

FAILED = [(number, row) for number, row in JSONS if row["status"] != 200]
EXPECTED = {
    1: (K.INVALID, 0),
    2: (K.AUTHENTICATION, 0),
    51: (K.AUTHENTICATION, 0),
    76: (K.PROMPT_TOO_LONG, 3_133_404),
    98: (K.NOT_FOUND, 0),
    168: (K.INVALID, 0),
}


@here
@pytest.mark.parametrize(("number", "row"), FAILED, ids=[str(number) for number, _ in FAILED])
def test_a_recorded_error(number: int, row: Json) -> None:
    async def work() -> None:
        _, end = await folded(document(row["json"], row["status"]))
        assert EXPECTED[number] == (end.failure.kind, end.failure.excess_tokens)
        assert row["json"]["error"]["message"] == end.failure.message

    run(work())


# By the place in the file: what each observed body is to the loop.
OBSERVED = [
    (K.OVERLOADED, 0),
    (K.OVERLOADED, 0),
    (K.SERVER, 0),
    (K.REQUEST_TOO_LARGE, 0),
    (K.AUTHENTICATION, 0),
    (K.AUTHENTICATION, 0),
    (K.PROMPT_TOO_LONG, 8_904),
    (K.PROMPT_TOO_LONG, 3_133_404),
    (K.PROMPT_TOO_LONG, 14_529),
    *[(K.INVALID, 0)] * 12,
    (K.MEDIA_TOO_LARGE, 0),
    (K.MEDIA_TOO_LARGE, 0),
    *[(K.INVALID, 0)] * 7,
    (K.RATE_LIMITED, 0),
    (K.RATE_LIMITED, 0),
    None,
]


@pytest.mark.skipif(not ERRORS.exists(), reason="the observed error bodies are not on this machine")
@pytest.mark.parametrize("place", range(len(OBSERVED)))
def test_an_observed_error(place: int) -> None:
    observed = rows(ERRORS)
    assert len(OBSERVED) == len(observed)
    row, expected = observed[place], OBSERVED[place]

    async def work() -> None:
        if expected is None:  # no error: a stop reason with nothing before it
            start = {"type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 0}}
            delta = {"stop_reason": "model_context_window_exceeded"}
            events: list[Json] = [
                {"type": "message_start", "message": start},
                {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 0}},
                {"type": "message_stop"},
            ]
            blocks, end = await folded(stream(events))
            assert ([], Stop.WINDOW_EXCEEDED) == (blocks, end.stop)
        elif row["body"] is None:
            assert expected[0] is classify(row["status"], "rate_limit_error", row["text"]).kind
        else:
            inside = row["where"] == "sse_error_event"
            reply = stream([row["body"]]) if inside else document(row["body"], row["status"])
            _, end = await folded(reply)
            assert expected == (end.failure.kind, end.failure.excess_tokens)
            assert row["status"] == end.failure.status

    run(work())
