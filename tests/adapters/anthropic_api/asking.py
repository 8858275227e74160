"""Short words for the tests of the adapter: events of a stream, an order, one call of the port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import anthropic
import httpx2

from stepfold.adapters.anthropic_api.client import AnthropicModel
from stepfold.effects.ports import Model, ModelPart
from stepfold.engine.effects import CallModel
from stepfold.engine.events import StreamClosed, StreamFailed, ToolSpec
from stepfold.engine.history import History
from stepfold.engine.messages import Block, Message, Origin, user_text
from tests.adapters.anthropic_api.loopback import Json, Loopback

T = TypeVar("T")
MODEL = "claude-sonnet-5"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end."""
    return asyncio.run(work)


def order(*messages: Message, tools: tuple[ToolSpec, ...] = (), **fields: Any) -> CallModel:
    """Return an order with *messages*, or with one prompt."""
    view: History[Message] = History[Message]().extend(messages or (user_text("go", Origin.PROMPT),))
    return CallModel(fields.pop("id", 1), view, fields.pop("model", MODEL), 8_000, tools, **fields)


@contextlib.asynccontextmanager
async def sdk(api: Loopback, **options: Any) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """
    The real client against *api*; its retries are left on, to see that the port turns them off.

    Only the certificates are not loaded: that takes 30 ms a client, and there is no TLS here.
    """
    transport = httpx2.AsyncHTTPTransport(verify=False)
    async with (
        anthropic.DefaultAsyncHttpxClient(transport=transport) as http,
        anthropic.AsyncAnthropic(api_key="key", base_url=api.url, http_client=http, **options) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def port(
    api: Loopback, *, client: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[AnthropicModel]:
    """The model port against *api*."""
    async with sdk(api, **(client or {})) as made:
        yield AnthropicModel(made, **options)


async def parts_of(model: Model, call: CallModel) -> list[ModelPart]:
    """Return all parts of one call."""
    return [part async for part in model.call(call)]


def blocks_in(parts: list[ModelPart]) -> list[Block]:
    """Return the whole blocks among *parts*."""
    return [part for part in parts if isinstance(part, Block)]


def end_in(parts: list[ModelPart]) -> StreamClosed | StreamFailed:
    """Return the end of *parts*, which must be the only one, and last."""
    ends = [part for part in parts if isinstance(part, StreamClosed | StreamFailed)]
    assert [parts[-1]] == ends
    return ends[0]


def failed(parts: list[ModelPart]) -> StreamFailed:
    """Return the failure that *parts* end with."""
    end = end_in(parts)
    assert isinstance(end, StreamFailed), end
    return end


def closed(parts: list[ModelPart]) -> StreamClosed:
    """Return the good end of *parts*."""
    end = end_in(parts)
    assert isinstance(end, StreamClosed), end
    return end


# ---------------------------------------------------------------- events of a stream


def started(**fields: Any) -> Json:
    """Return a ``message_start``."""
    message: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    return {"type": "message_start", "message": {**message, **fields}}


def begun(block: Json, index: int = 0) -> Json:
    """Return a ``content_block_start``."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(delta: Json, index: int = 0) -> Json:
    """Return a ``content_block_delta``."""
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ended(index: int = 0) -> Json:
    """Return a ``content_block_stop``."""
    return {"type": "content_block_stop", "index": index}


def finished(reason: str | None = "end_turn", usage: Json | None = None, **fields: Any) -> Json:
    """Return a ``message_delta``."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 5}, **fields}


STOP: Json = {"type": "message_stop"}


def text_events(text: str, index: int = 0, size: int = 7) -> list[Json]:
    """Return the events of one text block, in pieces of *size* characters."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deltas = [piece({"type": "text_delta", "text": part}, index) for part in pieces]
    return [begun({"type": "text", "text": ""}, index), *deltas, ended(index)]


def answer(*content: list[Json], reason: str = "end_turn") -> list[Json]:
    """Return a whole stream of *content*, each the events of one block."""
    return [started(), *(event for events in content for event in events), finished(reason), STOP]
