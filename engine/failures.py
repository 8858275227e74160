"""Typed failures of a model call or a compaction; vendors are mapped to these at the border, once."""

from __future__ import annotations

import enum
from typing import Final

from stepfold.engine.frozen import frozen


class FailureKind(enum.StrEnum):
    """What went wrong, as far as the ladder cares (specification, section 5)."""

    TRANSPORT = "transport"  # connection refused, reset, protocol error
    TIMEOUT = "timeout"  # no answer in time, 408, 504
    CUT = "cut"  # the stream ended without its end
    OVERLOADED = "overloaded"  # 529 or overloaded_error, in-stream too
    RATE_LIMITED = "rate_limited"  # 429 that a wait can cure
    SERVER = "server"  # other 5xx, api_error
    CONFLICT = "conflict"  # 409
    CRASHED = "crashed"  # the process died while the call was open
    PROMPT_TOO_LONG = "prompt_too_long"  # 400 by its meaning
    REQUEST_TOO_LARGE = "request_too_large"  # 413
    WINDOW_EXCEEDED = "window_exceeded"  # stop reason model_context_window_exceeded
    MEDIA_TOO_LARGE = "media_too_large"  # 400 about an image or document over a maximum
    TRUNCATED = "truncated"  # the output limit, recoveries spent
    SPEND_LIMIT = "spend_limit"  # 402, and 429 that no wait can cure
    AUTHENTICATION = "authentication"  # 401, 403, no credentials
    NOT_FOUND = "not_found"  # 404: unknown model
    INVALID = "invalid"  # any other 4xx
    UNUSABLE = "unusable"  # a summary that is empty, cut, refused or a tool call
    OTHER = "other"


RETRYABLE: Final = frozenset(
    {
        FailureKind.TRANSPORT,
        FailureKind.TIMEOUT,
        FailureKind.CUT,
        FailureKind.OVERLOADED,
        FailureKind.RATE_LIMITED,
        FailureKind.SERVER,
        FailureKind.CONFLICT,
        FailureKind.CRASHED,
    }
)
TOO_LONG: Final = frozenset(
    {FailureKind.PROMPT_TOO_LONG, FailureKind.REQUEST_TOO_LARGE, FailureKind.WINDOW_EXCEEDED}
)


@frozen
class Failure:
    """
    One failed call.

    Args:
        kind: What the ladder reads.
        message: The words of the API or the transport.
        status: HTTP status, 0 where there was none.
        error_type: The API's error type, "" where there was none.
        retry_after_ms: The server's own wait in ms, or None.
        excess_tokens: Reported tokens over the limit, 0 if not said.  Used only
            to drop rounds inside a compaction, never for the token count.
        request_id: The API's request id, "" where there was none.
    """

    kind: FailureKind
    message: str = ""
    status: int = 0
    error_type: str = ""
    retry_after_ms: int | None = None
    excess_tokens: int = 0
    request_id: str = ""
