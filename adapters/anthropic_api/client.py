"""The model port on the vendor's SDK: one order, one request, one stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from stepfold.adapters.anthropic_api.containers import Containers
from stepfold.adapters.anthropic_api.errors import NO_KEY, failure_of, failure_of_body
from stepfold.adapters.anthropic_api.fold import Fold
from stepfold.adapters.anthropic_api.real import refuse_real
from stepfold.adapters.anthropic_api.request import Request, Settings, request_of
from stepfold.adapters.anthropic_api.wire import JSON, Rendered
from stepfold.effects.ports import ModelPart
from stepfold.engine.effects import CallModel
from stepfold.engine.events import StreamFailed
from stepfold.engine.failures import Failure, FailureKind

# After ``message_stop`` the body is read to its end, for the connection to be used again; at most so long.
LINGER_S: Final = 1.0


class AnthropicModel:
    """
    Calls the Messages API through any async client of the SDK.

    The SDK's retries are off: the loop decides every retry.  The SDK is
    imported when the first call is made.  Closing is the caller's: see ``close``.

    Args:
        client: ``AsyncAnthropic``, ``AsyncAnthropicBedrock``, ``AsyncAnthropicVertex``, ...;
            None makes an ``AsyncAnthropic`` from the environment.
        system, thinking, effort, betas, cache, extra: see ``Settings``.

    Raises:
        TypeError: *client* is one of the SDK's blocking clients, or no client of it.
        ValueError: ``effort`` or ``cache`` is not allowed.
    """

    def __init__(
        self,
        client: Any = None,
        *,
        system: str = "",
        thinking: Mapping[str, JSON] | None = None,
        effort: str | None = None,
        betas: Sequence[str] = (),
        cache: str | None = "5m",
        extra: Mapping[str, JSON] | None = None,
    ) -> None:
        kind = type(client)
        if kind.__module__.split(".")[0] == "anthropic" and not kind.__name__.startswith("Async"):
            raise TypeError(f"client: {kind.__name__} blocks; pass Async{kind.__name__}")
        if client is not None and not (hasattr(client, "messages") and hasattr(client, "with_options")):
            raise TypeError(f"client: {client!r} is no client of the SDK; pass AsyncAnthropic(...)")
        self._given = client
        self._made: tuple[asyncio.AbstractEventLoop, Any] | None = None
        self._settings = Settings(
            system=system,
            thinking=thinking,
            effort=effort,
            betas=tuple(betas),
            cache=cache,
            extra=extra or {},
        )
        self._rendered = Rendered()
        self._containers = Containers()

    async def call(self, order: CallModel) -> AsyncGenerator[ModelPart, None]:
        """Send *order* and yield the parts of its answer, the end last; never raises for what goes wrong."""
        try:
            request = request_of(order, self._settings, self._rendered, self._containers)
        except ValueError as error:
            words = f"the request cannot be written: {error}"
            yield StreamFailed(order.id, Failure(FailureKind.INVALID, words))
            return
        fold = Fold(order.id)
        failure: Failure | None = None
        try:
            client = self._client()
            if client is None:
                yield StreamFailed(order.id, Failure(FailureKind.AUTHENTICATION, NO_KEY))
                return
            refuse_real(client)
            async with _send(client, request) as response:
                if _is_json(response):
                    body = await response.json()
                    if isinstance(body, dict) and body.get("type") == "error":
                        failure = failure_of_body(200, body, response.request_id or "")
                    else:
                        for part in fold.whole(body):
                            yield part
                else:
                    stream = await response.parse(to=_raw_stream())
                    while (event := await _next(stream, fold)) is not None:
                        for part in fold.take(event):
                            yield part
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
        self._containers.note(fold.container, fold.calls)
        yield fold.end(failure)

    async def close(self) -> None:
        """
        Close the client that was made here; one that was passed in is its owner's.

        No run does it: many runs may use one port, and it may be used again afterwards.  Call
        it in the event loop of the runs, when no more come; a process that ends needs not.
        """
        made, self._made = self._made, None
        if made is not None and made[0] is asyncio.get_running_loop():
            await made[1].close()

    def _client(self) -> Any:
        """Return the client without retries, or None where there are no credentials."""
        loop = asyncio.get_running_loop()
        if self._made is None or (self._given is None and self._made[0] is not loop):
            if self._given is None:
                import anthropic

                client = anthropic.AsyncAnthropic(max_retries=0)
                if client.api_key is None and client.auth_token is None and client.credentials is None:
                    return None
            else:
                client = self._given.with_options(max_retries=0)
            self._made = (loop, client)
        return self._made[1]


def _send(client: Any, request: Request) -> Any:
    """Return the response's context manager; nothing is sent before it is entered."""
    body = dict(request.body)
    first = {field: body.pop(field) for field in ("model", "max_tokens", "messages")}
    if request.betas:
        create = client.beta.messages.with_streaming_response.create
        return create(**first, stream=True, betas=list(request.betas), extra_body=body)
    return client.messages.with_streaming_response.create(**first, stream=True, extra_body=body)


def _is_json(response: Any) -> bool:
    kind: str = response.headers.get("content-type", "").split(";")[0].strip().lower()
    return kind.endswith("json")


def _raw_stream() -> Any:
    """Return the SDK's stream of parsed JSON, no model classes made of it."""
    from anthropic import AsyncStream

    return AsyncStream[object]


async def _next(stream: Any, fold: Fold) -> JSON:
    """Return the next raw event, or None where the stream has ended or the rest of it does not matter."""
    if fold.broken:
        return None
    try:
        if not fold.stopped:
            return await anext(stream)
        async with asyncio.timeout(LINGER_S):
            return await anext(stream)
    except StopAsyncIteration:
        return None
    except TimeoutError:
        if fold.stopped:
            return None
        raise
