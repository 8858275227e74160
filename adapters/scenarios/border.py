"""Where the words of the API become types and types become requests: as the real adapter does it."""

from __future__ import annotations

from typing import Any

from stepfold.adapters.anthropic_api.failures import classify, classify_transport
from stepfold.adapters.anthropic_api.wire import block_json
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallModel
from stepfold.engine.failures import Failure


def wire_messages(order: CallModel) -> tuple[dict[str, Any], ...]:
    """Return the messages of a request in API form."""
    return tuple(
        {"role": message.role.value, "content": [block_json(block) for block in message.content]}
        for message in request_messages(order)
    )


def failure_of(
    *,
    status: int = 0,
    error_type: str = "",
    message: str = "",
    retry_after_seconds: float | None = None,
) -> Failure:
    """Return the typed failure of an error as the API words it; status 200 is an error in a stream."""
    after_ms = None if retry_after_seconds is None else round(retry_after_seconds * 1000)
    return classify(status, error_type, message, retry_after_ms=after_ms)


def transport_failure(words: str) -> Failure:
    """Return the typed failure of a connection that broke; words about a time-out make it one."""
    low = words.lower()
    name = "ReadTimeout" if "timeout" in low or "timed out" in low else "ReadError"
    return classify_transport(name, words)
