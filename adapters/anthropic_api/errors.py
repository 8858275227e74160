"""
What the SDK, its transport and a cloud's sign-in raise, to typed failures.

The only place that knows those classes.
"""

from __future__ import annotations

import json
from typing import Any, Final

from stepfold.adapters.anthropic_api.failures import classify, classify_transport, retry_after_ms
from stepfold.engine.failures import Failure, FailureKind

MAX_WORDS: Final = 2_000
NO_KEY: Final = "no credentials: set ANTHROPIC_API_KEY, or pass a client that has some"
_SIGN_IN: Final = ("google.auth", "botocore", "azure")


def failure_of(error: Exception) -> Failure | None:
    """Return the typed failure that *error* is, or None where it is a bug of the program."""
    import anthropic
    import httpx2

    match error:
        case anthropic.APIStatusError():
            wait = retry_after_ms(error.response.headers)
            return failure_of_body(error.status_code, error.body, error.request_id or "", wait)
        case anthropic.APITimeoutError():
            return classify_transport("APITimeoutError", _words(error.__cause__ or error))
        case anthropic.APIConnectionError():
            return _of_connection(error.__cause__ or error)
        case anthropic.APIResponseValidationError():
            return classify_transport("APIResponseValidationError", _words(error))
        case anthropic.CredentialsError():
            return Failure(FailureKind.AUTHENTICATION, _words(error))
        case httpx2.HTTPError() | httpx2.StreamError() | httpx2.InvalidURL():
            return _of_connection(error)
        case json.JSONDecodeError() | UnicodeDecodeError():
            return classify_transport(type(error).__name__, "the answer cannot be read: " + _words(error))
        case UnicodeEncodeError() | RecursionError():
            return Failure(FailureKind.INVALID, f"the request cannot be written: {_words(error)}")
        case TypeError() if "authentication method" in str(error):
            return Failure(FailureKind.AUTHENTICATION, NO_KEY)
        case OSError():
            return _of_connection(error)
    if type(error).__module__.startswith(_SIGN_IN):
        return Failure(FailureKind.AUTHENTICATION, f"{type(error).__name__}: {_words(error)}")
    return None


def failure_of_body(
    status: int, body: Any, request_id: str = "", retry_after_ms: int | None = None
) -> Failure:
    """Return the failure that an error body of the API is; *status* is 200 where it came as an answer."""
    whole: dict[str, Any] = body if isinstance(body, dict) else {}
    error = whole.get("error")
    fields: dict[str, Any] = error if isinstance(error, dict) else whole  # a cloud's has no envelope
    details = fields.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    named = request_id or whole.get("request_id") or ""
    words = fields.get("message") or (body if isinstance(body, str) else json.dumps(body, default=str))
    return classify(
        status,
        str(fields.get("type") or ""),
        str(words)[:MAX_WORDS],
        str(code or ""),
        retry_after_ms,
        str(named),
    )


def _of_connection(error: BaseException) -> Failure:
    if isinstance(error, UnicodeEncodeError):
        return classify_transport("UnicodeEncodeError", _words(error))
    return classify_transport(type(error).__name__, _words(error))


def _words(error: BaseException) -> str:
    return str(error)[:MAX_WORDS]
