"""
Every failure of a call, mapped once to a typed ``Failure``.

Pure, and free of the SDK: the adapter hands in what an exception carried, a
simulated world hands in what it made up, and both get the same kinds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from stepfold.engine.failures import Failure, FailureKind

MAX_RETRY_AFTER_MS: Final = 4_294_967_000  # a wait longer than 49 days is a mistake of the server

_TOO_LONG: Final = re.compile(
    r"prompt is too long|input is too long|exceeds? (?:the )?context (?:limit|window)", re.IGNORECASE
)
_OVER: Final = re.compile(r"too long:\s*(\d+)\s*tokens?\s*>\s*(\d+)", re.IGNORECASE)
_SUM_OVER: Final = re.compile(r"exceed context limit:\s*(\d+)\s*\+\s*(\d+)\s*>\s*(\d+)", re.IGNORECASE)
_MEDIA: Final = re.compile(r"\b(?:image|document|pdf)s?\b", re.IGNORECASE)
_LIMIT: Final = re.compile(
    r"exceed|maximum|max allowed|too (?:large|big|many|much)|larger than|>", re.IGNORECASE
)
_MEASURE: Final = re.compile(
    r"\b(?:bytes?|[kmg]i?b|pixels?|dimensions?|pages?|size|media|images|documents|pdfs)\b", re.IGNORECASE
)
_CREDIT: Final = re.compile(r"credit balance is too low|spend(?:ing)? limit", re.IGNORECASE)

SPEND_CODES: Final = frozenset({"contract_spend_limit_reached", "enforced_spend_limit_reached"})

# A kind by the API's error type, where the status says nothing (an error inside a stream has status 200)
# or less than the type.  The lower ones are what a cloud in between says instead.
_BY_TYPE: Final[Mapping[str, FailureKind]] = {
    "overloaded_error": FailureKind.OVERLOADED,
    "rate_limit_error": FailureKind.RATE_LIMITED,
    "timeout_error": FailureKind.TIMEOUT,
    "api_error": FailureKind.SERVER,
    "authentication_error": FailureKind.AUTHENTICATION,
    "permission_error": FailureKind.AUTHENTICATION,
    "not_found_error": FailureKind.NOT_FOUND,
    "billing_error": FailureKind.SPEND_LIMIT,
    "conflict_error": FailureKind.CONFLICT,
    "request_too_large": FailureKind.REQUEST_TOO_LARGE,
    "invalid_request_error": FailureKind.INVALID,
    "throttlingexception": FailureKind.RATE_LIMITED,
    "modeltimeoutexception": FailureKind.TIMEOUT,
    "modelstreamerrorexception": FailureKind.SERVER,
    "internalserverexception": FailureKind.SERVER,
    "serviceunavailableexception": FailureKind.SERVER,
    "validationexception": FailureKind.INVALID,
    "accessdeniedexception": FailureKind.AUTHENTICATION,
    "resourcenotfoundexception": FailureKind.NOT_FOUND,
}
_BY_STATUS: Final[Mapping[int, FailureKind]] = {
    401: FailureKind.AUTHENTICATION,
    402: FailureKind.SPEND_LIMIT,
    403: FailureKind.AUTHENTICATION,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.CONFLICT,
    413: FailureKind.REQUEST_TOO_LARGE,
    429: FailureKind.RATE_LIMITED,
    504: FailureKind.TIMEOUT,
    529: FailureKind.OVERLOADED,
}


def classify(
    status: int,
    error_type: str,
    message: str,
    code: str = "",
    retry_after_ms: int | None = None,
    request_id: str = "",
) -> Failure:
    """
    Return the typed failure of an answer that was an error.

    Args:
        status: The HTTP status; 200 for an error inside a stream.
        error_type: ``error.type`` of the body, "" if there was none.
        message: ``error.message`` of the body, or its text.
        code: ``error.details.error_code`` of the body.
        retry_after_ms: What the server wants to be waited for, in ms.
        request_id: The API's id of the request.
    """
    kind = _kind(status, error_type, message, code)
    excess = _excess(message) if kind is FailureKind.PROMPT_TOO_LONG else 0
    return Failure(kind, message, status, error_type, retry_after_ms, excess, request_id)


def _kind(status: int, error_type: str, message: str, code: str) -> FailureKind:
    by_type = _BY_TYPE.get(error_type.lower())
    if by_type is FailureKind.OVERLOADED or status == 529:
        return FailureKind.OVERLOADED
    if code in SPEND_CODES or _about_money(status, by_type, message):
        return FailureKind.SPEND_LIMIT
    by_status = _BY_STATUS.get(status) if status >= 400 else by_type
    if FailureKind.REQUEST_TOO_LARGE in (by_status, by_type):
        return FailureKind.REQUEST_TOO_LARGE
    if (status < 400 or status in (400, 422)) and by_type in (None, FailureKind.INVALID):
        if code == "image_dimensions_too_large" or media_too_large(message):
            return FailureKind.MEDIA_TOO_LARGE
        if _TOO_LONG.search(message):
            return FailureKind.PROMPT_TOO_LONG
    if by_status is not None:
        return by_status
    if status >= 500:
        return by_type if by_type in (FailureKind.TIMEOUT, FailureKind.RATE_LIMITED) else FailureKind.SERVER
    if status >= 400:
        return FailureKind.INVALID
    return FailureKind.OTHER


def _about_money(status: int, by_type: FailureKind | None, message: str) -> bool:
    if status == 402 or (by_type is FailureKind.SPEND_LIMIT and status != 429):
        return True
    return (status < 400 or status in (400, 403, 429)) and bool(_CREDIT.search(message))


def media_too_large(message: str) -> bool:
    """Whether the words of a 400 say that media exceed a maximum of bytes, pixels, pages or count."""
    return all(part.search(message) for part in (_MEDIA, _LIMIT, _MEASURE))


def _excess(message: str) -> int:
    """Return the reported tokens over the limit, 0 where the words hold no numbers."""
    if found := _OVER.search(message):
        tokens, limit = map(int, found.groups())
        return max(0, tokens - limit)
    if found := _SUM_OVER.search(message):
        tokens, output, limit = map(int, found.groups())
        return max(0, tokens + output - limit)
    return 0


def classify_transport(name: str, text: str = "") -> Failure:
    """
    Return the typed failure of a connection that broke.

    Args:
        name: The class name of the exception, such as ``ReadTimeout`` or ``RemoteProtocolError``.
        text: Its words.
    """
    message = f"{name}: {text}" if text else name
    if "Timeout" in name:
        return Failure(FailureKind.TIMEOUT, message)
    if name in ("UnsupportedProtocol", "InvalidURL", "LocalProtocolError", "UnicodeEncodeError"):
        return Failure(FailureKind.INVALID, message)  # the request cannot be written: no retry cures that
    return Failure(FailureKind.TRANSPORT, message)


def cut(message: str) -> Failure:
    """Return the failure of a stream that ended without its end, or that is none."""
    return Failure(FailureKind.CUT, message)


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """
    Return what the server wants to be waited for, in ms, or None.

    ``retry-after-ms`` wins over ``retry-after``; a date counts from the answer's own ``date``.
    """
    wait = _number(headers.get("retry-after-ms"))
    if wait is None:
        after = headers.get("retry-after")
        seconds = _number(after)
        if seconds is None:
            seconds = _seconds_between(headers.get("date"), after)
        wait = None if seconds is None else seconds * 1000
    if wait is None or wait < 0:
        return None
    return min(round(wait), MAX_RETRY_AFTER_MS)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None  # nan and inf fail this too


def _seconds_between(start: str | None, end: str | None) -> float | None:
    try:
        return (parsedate_to_datetime(end or "") - parsedate_to_datetime(start or "")).total_seconds()
    except (ValueError, TypeError):
        return None
