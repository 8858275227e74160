"""
Every way in which a call can fail, through the real SDK: its typed failure, and one request each.

Only this file sees the SDK's own retries turned off, and what reaches the
port when a connection breaks at each place of an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from stepfold.adapters.anthropic_api.client import AnthropicModel
from stepfold.adapters.anthropic_api.errors import failure_of
from stepfold.engine.events import Stop, StreamClosed
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Text
from tests.adapters.anthropic_api.asking import (
    STOP,
    answer,
    begun,
    blocks_in,
    closed,
    ended,
    failed,
    finished,
    order,
    parts_of,
    piece,
    port,
    run,
    started,
    text_events,
)
from tests.adapters.anthropic_api.loopback import Ending, Json, Loopback, Reply, error_body, failing, stream

BEGINNING = [started(), begun({"type": "text", "text": ""}), piece({"type": "text_delta", "text": "hi "})]
K = FailureKind

# ---------------------------------------------------------------- errors as the answer

STATUSES = [
    (400, "invalid_request_error", "", K.INVALID),
    (401, "authentication_error", "", K.AUTHENTICATION),
    (402, "billing_error", "", K.SPEND_LIMIT),
    (403, "permission_error", "", K.AUTHENTICATION),
    (404, "not_found_error", "", K.NOT_FOUND),
    (408, "timeout_error", "", K.TIMEOUT),
    (409, "conflict_error", "", K.CONFLICT),
    (412, "memory_precondition_failed_error", "", K.INVALID),
    (413, "request_too_large", "", K.REQUEST_TOO_LARGE),
    (413, "invalid_request_error", "", K.REQUEST_TOO_LARGE),
    (422, "invalid_request_error", "", K.INVALID),
    (429, "rate_limit_error", "", K.RATE_LIMITED),
    (431, "invalid_request_error", "", K.INVALID),
    (499, "api_error", "", K.INVALID),
    (500, "api_error", "", K.SERVER),
    (500, "overloaded_error", "", K.OVERLOADED),
    (501, "api_error", "", K.SERVER),
    (502, "api_error", "", K.SERVER),
    (503, "api_error", "", K.SERVER),
    (504, "timeout_error", "", K.TIMEOUT),
    (529, "overloaded_error", "", K.OVERLOADED),
    (400, "invalid_request_error", "compaction_nothing_to_summarize", K.INVALID),
    (400, "invalid_request_error", "thread_already_continued", K.INVALID),
    (400, "invalid_request_error", "tool_name_conflict", K.INVALID),
    (400, "invalid_request_error", "available_tools_limit_exceeded", K.INVALID),
    (400, "invalid_request_error", "request_body_timeout", K.INVALID),
    (400, "invalid_request_error", "image_dimensions_too_large", K.MEDIA_TOO_LARGE),
    (404, "not_found_error", "thread_not_found", K.NOT_FOUND),
    (404, "not_found_error", "file_expired", K.NOT_FOUND),
    (402, "billing_error", "linked_organization_spend_limit_reached", K.SPEND_LIMIT),
    (402, "billing_error", "linked_organization_billing_unavailable", K.SPEND_LIMIT),
    (413, "request_too_large", "request_body_too_large_after_decoding", K.REQUEST_TOO_LARGE),
    (429, "rate_limit_error", "contract_spend_limit_reached", K.SPEND_LIMIT),
    (429, "rate_limit_error", "enforced_spend_limit_reached", K.SPEND_LIMIT),
    (429, "rate_limit_error", "ramp_limit_exceeded", K.RATE_LIMITED),
    (503, "api_error", "change_outcome_unknown", K.SERVER),
    (529, "overloaded_error", "compaction_unavailable", K.OVERLOADED),
]


@pytest.mark.parametrize(("status", "kind", "code", "expected"), STATUSES)
def test_an_error_answer(status: int, kind: str, code: str, expected: FailureKind) -> None:
    async def work() -> None:
        async with Loopback([failing(status, kind, "words", code or None)]) as api, port(api) as model:
            failure = failed(await parts_of(model, order())).failure
            assert (expected, "words", status, kind) == (
                failure.kind,
                failure.message,
                failure.status,
                failure.error_type,
            )
            assert "req_loop" == failure.request_id
            assert 1 == len(api.requests)

    run(work())


# ---------------------------------------------------------------- errors inside a stream

INSIDE = [
    ("overloaded_error", K.OVERLOADED),
    ("api_error", K.SERVER),
    ("timeout_error", K.TIMEOUT),
    ("rate_limit_error", K.RATE_LIMITED),
    ("invalid_request_error", K.INVALID),
    ("authentication_error", K.AUTHENTICATION),
    ("something_new_error", K.OTHER),
]


@pytest.mark.parametrize(("kind", "expected"), INSIDE)
def test_an_error_inside_the_stream(kind: str, expected: FailureKind) -> None:
    async def work() -> None:
        script = [stream([*BEGINNING, error_body(kind, "words")])]
        async with Loopback(script) as api, port(api) as model:
            parts = await parts_of(model, order())
            failure = failed(parts).failure
            assert (expected, "words", 200) == (failure.kind, failure.message, failure.status)
            assert [] == blocks_in(parts)
            assert 10 == (failed(parts).usage or pytest.fail("no usage")).input_tokens
            assert 1 == len(api.requests)

    run(work())


# ---------------------------------------------------------------- broken connections


@attrs.frozen
class Broken:
    """A reply that breaks, and what comes of it."""

    name: str
    reply: Reply
    kind: FailureKind
    said: str


def events_of(text: bytes) -> Reply:
    """Return a stream of these very bytes."""
    return Reply(200, (("content-type", "text/event-stream"),), (text,))


def json_of(text: bytes) -> Reply:
    """Return an answer in one piece, of these very bytes."""
    return Reply(200, (("content-type", "application/json"),), (text,))


CALL = {"type": "tool_use", "id": "a", "name": "b", "input": {}}
PIECE = piece({"type": "text_delta", "text": "x"})
BUSY = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
CLOUD = Reply(400, (("content-type", "application/json"),), (b'{"message":"Input is too long"}',))
PAGE = Reply(502, (("content-type", "text/html"),), (b"<h1>Bad Gateway</h1>",))
SILENCE = Reply(silent=True, ending=Ending.HANG)
BROKEN = [
    Broken("closed without an answer", Reply(silent=True, ending=Ending.CUT), K.TRANSPORT, ""),
    Broken("closed in the body", stream(BEGINNING, Ending.CUT), K.TRANSPORT, "RemoteProtocolError"),
    Broken("silent before the answer", SILENCE, K.TIMEOUT, "APITimeoutError"),
    Broken("silent in the body", stream(BEGINNING, Ending.HANG), K.TIMEOUT, "ReadTimeout"),
    Broken("ended without its end", stream(BEGINNING), K.CUT, "before the answer did"),
    Broken("no event at all", stream([]), K.CUT, "before the answer began"),
    Broken("a second beginning", stream([*BEGINNING, started()]), K.CUT, "second answer"),
    Broken("a second answer", stream(answer(text_events("x")) * 2), K.CUT, "second answer"),
    Broken("a piece of no block", stream([started(), PIECE]), K.CUT, "not open"),
    Broken("an end of no block", stream([started(), ended()]), K.CUT, "not open"),
    Broken("a block before the answer", stream([BEGINNING[1], started()]), K.CUT, "where none can begin"),
    Broken("an end before the answer", stream([finished(), STOP]), K.CUT, "had not begun"),
    Broken("an open call", stream([started(), begun(CALL), finished("tool_use"), STOP]), K.CUT, "still open"),
    Broken("a beginning without parts", stream([{"type": "message_start"}]), K.CUT, "without its parts"),
    Broken("a block without a type", stream([started(), begun({})]), K.CUT, "without a type"),
    Broken("an index that is none", stream([started(), piece({}, [0])]), K.CUT, "not open"),  # type: ignore[arg-type]
    Broken("no JSON", events_of(b"event: message_start\ndata: {oh\n\n"), K.TRANSPORT, "cannot be read"),
    Broken("no UTF-8", events_of(b"event: message_start\ndata: \xff\n\n"), K.TRANSPORT, "cannot be read"),
    Broken("JSON, but no object", events_of(b"event: x\ndata: [1]\n\n"), K.CUT, "no object"),
    Broken("a page of a proxy", PAGE, K.SERVER, "Bad Gateway"),
    Broken("an error of a cloud", CLOUD, K.PROMPT_TOO_LONG, "Input is too long"),
    Broken("something else in one piece", json_of(b'{"object":"x"}'), K.CUT, "no message"),
    Broken("half of something", json_of(b'{"type":"mess'), K.TRANSPORT, "cannot be read"),
    Broken("an error that says 200", json_of(BUSY), K.OVERLOADED, "busy"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_connection(broken: Broken) -> None:
    async def work() -> None:
        async with Loopback([broken.reply]) as api, port(api, client={"timeout": 0.3}) as model:
            failure = failed(await parts_of(model, order())).failure
            assert broken.kind is failure.kind, failure
            assert broken.said in failure.message
            assert 1 == len(api.requests)

    run(work())


def test_nobody_listens() -> None:
    async def work() -> None:
        api = Loopback([])
        async with api:
            url = api.url
        import anthropic

        async with anthropic.AsyncAnthropic(api_key="key", base_url=url) as client:
            failure = failed(await parts_of(AnthropicModel(client), order())).failure
        assert K.TRANSPORT is failure.kind
        assert failure.message.startswith("ConnectError")

    run(work())


LATE_BREAKS: list[tuple[str, list[Json], Ending]] = [
    ("no message_stop", answer(text_events("done"))[:-1], Ending.END),
    ("closed before message_stop", answer(text_events("done"))[:-1], Ending.CUT),
    ("silent before message_stop", answer(text_events("done"))[:-1], Ending.HANG),
    ("silent after message_stop", answer(text_events("done")), Ending.HANG),
    ("closed after message_stop", answer(text_events("done")), Ending.CUT),
]


@pytest.mark.parametrize(("name", "events", "ending"), LATE_BREAKS)
def test_a_break_after_the_answer_does_not_matter(name: str, events: list[Json], ending: Ending) -> None:
    async def work() -> None:
        async with Loopback([stream(events, ending)]) as api, port(api, client={"timeout": 0.3}) as model:
            parts = await parts_of(model, order())
            assert [Text("done")] == blocks_in(parts)
            assert Stop.END_TURN is closed(parts).stop
            assert 1 == len(api.requests)

    run(work())


def test_nobody_waits_for_the_rest_of_a_body_that_does_not_matter() -> None:
    """The client itself would wait ten minutes here."""

    async def work() -> None:
        whole, broken = stream(answer(text_events("done")), Ending.HANG), [*BEGINNING, started()]
        async with Loopback([whole, stream(broken, Ending.HANG)]) as api, port(api) as model:
            async with asyncio.timeout(20):
                assert Stop.END_TURN is closed(await parts_of(model, order())).stop
                assert K.CUT is failed(await parts_of(model, order())).failure.kind

    run(work())


def test_a_connection_is_used_again() -> None:
    async def work() -> None:
        async with Loopback([stream(answer(text_events("done")))] * 3) as api, port(api) as model:
            for _ in range(3):
                closed(await parts_of(model, order()))
            assert (3, 1) == (len(api.requests), api.connections)

    run(work())


def test_closing_the_iterator_closes_the_connection() -> None:
    async def work() -> None:
        async with Loopback([stream(BEGINNING, Ending.HANG)]) as api, port(api) as model:
            parts = model.call(order())
            await anext(parts)
            await anext(parts)
            await parts.aclose()
            async with asyncio.timeout(5):
                await api.lost.wait()
            assert 1 == len(api.requests)

    run(work())


def test_cancelling_the_reader_closes_the_connection() -> None:
    async def work() -> None:
        async with Loopback([stream(BEGINNING, Ending.HANG)]) as api, port(api) as model:
            task = asyncio.ensure_future(parts_of(model, order()))
            while not api.requests:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            task.cancel()
            async with asyncio.timeout(5):
                await api.lost.wait()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(work())


# ---------------------------------------------------------------- what is no failure


def test_unknown_events_blocks_and_deltas_pass() -> None:
    future = {"type": "future_block", "foo": 1, "notes": "a", "list": [1], "nothing": None}
    events = [
        started(),
        {"type": "future_event", "index": 0},
        begun(future),
        piece({"type": "future_delta", "notes": "b", "list": [2], "more": True}),
        ended(),
        *text_events("known", 1),
        finished(),
        STOP,
    ]
    events.insert(-4, piece({"type": "future_delta", "notes": "b"}, 1))

    async def work() -> None:
        async with Loopback([stream(events)]) as api, port(api) as model:
            parts = await parts_of(model, order())
            assert isinstance(closed(parts), StreamClosed)
            opaque, text = blocks_in(parts)
            assert Text("known") == text
            wire = '{"type":"future_block","foo":1,"notes":"ab","list":[1,2],"nothing":null,"more":true}'
            assert wire == opaque.wire  # type: ignore[union-attr]

    run(work())


# ---------------------------------------------------------------- how long to wait


def test_retry_after_comes_through_the_sdk() -> None:
    async def work() -> None:
        script = [failing(429, "rate_limit_error", "slow down", headers=[("retry-after", "11")])]
        async with Loopback(script) as api, port(api) as model:
            assert 11_000 == failed(await parts_of(model, order())).failure.retry_after_ms
            assert 1 == len(api.requests)

    run(work())


# ---------------------------------------------------------------- no credentials


def test_no_credentials_are_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    failure = failed(run(parts_of(AnthropicModel(), order()))).failure
    assert (K.AUTHENTICATION, True) == (failure.kind, "ANTHROPIC_API_KEY" in failure.message)


def test_a_client_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def work() -> None:
        import anthropic

        async with anthropic.AsyncAnthropic(base_url="http://127.0.0.1:9") as client:
            failure = failed(await parts_of(AnthropicModel(client), order())).failure
            assert (K.AUTHENTICATION, True) == (failure.kind, "ANTHROPIC_API_KEY" in failure.message)

    run(work())


@pytest.mark.parametrize("options", [{"api_key": "a\nb"}, {"base_url": "host:1"}])
def test_a_request_that_cannot_be_written_is_not_retried(options: dict[str, str]) -> None:
    async def work() -> None:
        import anthropic

        async with Loopback([]) as api:
            given = {"api_key": "key", "base_url": api.url, **options}
            async with anthropic.AsyncAnthropic(**given) as client:  # type: ignore[arg-type]
                failure = failed(await parts_of(AnthropicModel(client), order())).failure
                assert (K.INVALID, []) == (failure.kind, api.requests), failure

    run(work())


class SignInFailed(Exception):
    """As a cloud's own library raises it."""


SignInFailed.__module__ = "botocore.exceptions"


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (UnicodeEncodeError("ascii", "x", 0, 1, "no"), K.INVALID),
        (RecursionError("too deep"), K.INVALID),
        (ConnectionResetError("gone"), K.TRANSPORT),
        (TimeoutError("late"), K.TIMEOUT),
        (SignInFailed("who are you"), K.AUTHENTICATION),
        (KeyError("a bug"), None),
        (TypeError("a bug"), None),
    ],
)
def test_what_else_may_be_raised(raised: Exception, kind: FailureKind | None) -> None:
    found = failure_of(raised)
    assert kind == (found.kind if found is not None else None)


def test_a_blocking_client_is_refused() -> None:
    import anthropic

    with anthropic.Anthropic(api_key="key") as client, pytest.raises(TypeError, match="AsyncAnthropic"):
        AnthropicModel(client)
