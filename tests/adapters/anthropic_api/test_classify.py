"""
The words and names of failures to kinds, without a network.

Only this file sees what two errors of one status have to tell them apart, and
every form of a wait that a server may ask for.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from stepfold.adapters.anthropic_api.failures import classify, classify_transport, retry_after_ms
from stepfold.engine.failures import RETRYABLE, FailureKind

K = FailureKind

# ---------------------------------------------------------------- a 400 by its meaning

MEANINGS = [
    ("prompt is too long: 208904 tokens > 200000 maximum", K.PROMPT_TOO_LONG, 8_904),
    ("Prompt is too long", K.PROMPT_TOO_LONG, 0),
    ("Input is too long for requested model.", K.PROMPT_TOO_LONG, 0),
    ("input length and `max_tokens` exceed context limit: 19 + 20 > 30, ...", K.PROMPT_TOO_LONG, 9),
    ("max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens", K.INVALID, 0),
    ("messages.1.content.0.image.source: image exceeds 5 MB maximum: 9 bytes > 5", K.MEDIA_TOO_LARGE, 0),
    ("messages.0.content.1.image.source: exceeds max allowed size: 8000 pixels", K.MEDIA_TOO_LARGE, 0),
    ("A maximum of 100 PDF pages may be provided.", K.MEDIA_TOO_LARGE, 0),
    ("Too much media: 0 document pages + 101 images > 100", K.MEDIA_TOO_LARGE, 0),
    ("messages.0.content.0.document.source: Input should be a valid dictionary", K.INVALID, 0),
    ("messages.0.content.1.image.source.media_type: Input should be 'image/png'", K.INVALID, 0),
    ("Could not process image", K.INVALID, 0),
    ("messages.0.content.0.document.title: String should have at most 500 characters", K.INVALID, 0),
    ("A maximum of 4 blocks with cache_control may be provided. Found 5.", K.INVALID, 0),
    ("Your credit balance is too low to access the API.", K.SPEND_LIMIT, 0),
]


@pytest.mark.parametrize(("words", "expected", "excess"), MEANINGS)
def test_a_400_is_read_by_its_meaning(words: str, expected: FailureKind, excess: int) -> None:
    failure = classify(400, "invalid_request_error", words)
    assert (expected, excess) == (failure.kind, failure.excess_tokens)
    inside = classify(200, "invalid_request_error", words)
    assert (expected, excess) == (inside.kind, inside.excess_tokens)


# ---------------------------------------------------------------- how long to wait

DATE = "Tue, 01 Dec 2026 10:00:00 GMT"
WAITS: list[tuple[dict[str, str], int | None]] = [
    ({}, None),
    ({"retry-after": "11"}, 11_000),
    ({"retry-after": "0.5"}, 500),
    ({"retry-after-ms": "250", "retry-after": "11"}, 250),
    ({"retry-after": "Tue, 01 Dec 2026 10:00:30 GMT", "date": DATE}, 30_000),
    ({"retry-after": "Tue, 01 Dec 2026 09:00:00 GMT", "date": DATE}, None),
    ({"retry-after": "Tue, 01 Dec 2026 10:00:30 GMT"}, None),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "-3"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "99999999999"}, 4_294_967_000),
]


@pytest.mark.parametrize(("headers", "expected"), WAITS)
def test_retry_after(headers: dict[str, str], expected: int | None) -> None:
    assert expected == retry_after_ms(headers)


# ---------------------------------------------------------------- transport, by name alone


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ReadTimeout", K.TIMEOUT),
        ("ConnectTimeout", K.TIMEOUT),
        ("PoolTimeout", K.TIMEOUT),
        ("TimeoutError", K.TIMEOUT),
        ("RemoteProtocolError", K.TRANSPORT),
        ("ConnectError", K.TRANSPORT),
        ("ConnectionResetError", K.TRANSPORT),
        ("UnsupportedProtocol", K.INVALID),
    ],
)
def test_a_transport_error_by_name(name: str, expected: FailureKind) -> None:
    failure = classify_transport(name, "words")
    assert (expected, f"{name}: words") == (failure.kind, failure.message)
    assert (expected in RETRYABLE) is (expected is not K.INVALID)


# ---------------------------------------------------------------- what is imported


def test_no_vendor_is_imported_to_classify_or_to_make_a_port() -> None:
    code = (
        "import sys; import stepfold.adapters.anthropic_api.failures as f; "
        "from stepfold.adapters.anthropic_api.client import AnthropicModel; AnthropicModel(); "
        "f.classify(529, 'overloaded_error', 'x'); "
        "print([name for name in ('anthropic', 'httpx2', 'pydantic') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == told.stdout.strip()
