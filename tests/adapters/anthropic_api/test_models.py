"""
The table of models, and asking the API.

Only this file sees the names that clouds give to models, and a table that has
fallen behind the SDK.
"""

from __future__ import annotations

from typing import Any, get_args

import pytest

from stepfold.adapters.anthropic_api.models import TABLE, Known, Thinks, known, lookup, spec
from stepfold.engine.config import ModelSpec
from stepfold.engine.failures import Failure, FailureKind
from tests.adapters.anthropic_api.asking import run, sdk
from tests.adapters.anthropic_api.loopback import Loopback, Reply, document, failing

SONNET = TABLE["claude-sonnet-4-5"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-sonnet-4-5", SONNET),
        ("claude-sonnet-4-5-20250929", SONNET),
        ("claude-sonnet-4-5@20250929", SONNET),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", SONNET),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", SONNET),
        ("anthropic/claude-sonnet-4-5", SONNET),
        ("claude-sonnet-4-5[1m]", SONNET),
        ("claude-opus-5", TABLE["claude-opus-5"]),
        ("claude-opus-5-5", TABLE["claude-opus-5-5"]),
        ("claude-opus-5-9", None),
        ("claude-sonnet", None),
        ("gpt-7", None),
        ("", None),
    ],
)
def test_a_model_is_found_under_all_its_names(name: str, expected: Known | None) -> None:
    assert expected == known(name)


def test_the_table_knows_what_the_sdk_names() -> None:
    from anthropic.types import ModelParam

    names = {name for part in get_args(ModelParam) for name in get_args(part)}
    assert {"claude-mythos-preview"} == {name for name in names if known(name) is None}


def test_the_table_makes_sense() -> None:
    for name, row in TABLE.items():
        assert 10 * row.max_output >= row.window // 2 > row.max_output, name
        assert row.output > row.input > row.cache_read > 0, name
        assert row.thinks in Thinks


def test_prices_are_millionths_per_million_tokens() -> None:
    expected = ModelSpec("claude-sonnet-4-5", 200_000, 64_000, 3_000_000, 15_000_000, 300_000, 3_750_000)
    assert expected == spec("claude-sonnet-4-5")
    assert 6_000_000 == (spec("claude-sonnet-4-5", "1h") or pytest.fail("gone")).cache_creation_price
    assert spec("gpt-7") is None


INFO: dict[str, Any] = {
    "id": "claude-sonnet-4-5",
    "type": "model",
    "display_name": "A model",
    "created_at": "2026-01-01T00:00:00Z",
    "lifecycle": "active",
    "max_input_tokens": 300_000,
    "max_tokens": 70_000,
}


def asked(reply: Reply, name: str) -> ModelSpec | Failure:
    """Return what is found of a model where the API answers with *reply*."""

    async def work() -> ModelSpec | Failure:
        async with Loopback([reply] * 3) as api, sdk(api, max_retries=0) as client:
            found = await lookup(client, name)
            assert [f"/v1/models/{name}"] == [request.path for request in api.requests]
            return found

    return run(work())


def test_the_api_knows_the_limits_and_the_table_the_prices() -> None:
    table = spec("claude-sonnet-4-5")
    expected = ModelSpec("claude-sonnet-4-5", 300_000, 70_000, 3_000_000, 15_000_000, 300_000, 3_750_000)
    assert expected == asked(document(INFO), "claude-sonnet-4-5")
    assert ModelSpec("claude-new", 300_000, 70_000) == asked(document(INFO), "claude-new")
    silent = {**INFO, "max_input_tokens": None, "max_tokens": None}
    assert table == asked(document(silent), "claude-sonnet-4-5")


def test_an_unknown_model_is_told_so() -> None:
    found = asked(failing(404, "not_found_error", "model: claude-sonet"), "claude-sonet")
    assert isinstance(found, Failure)
    assert (FailureKind.NOT_FOUND, "model: claude-sonet") == (found.kind, found.message)
    gone = asked(failing(404, "not_found_error", "retired"), "claude-sonnet-4-5")
    assert isinstance(gone, Failure), "the table does not know better"


def test_where_the_api_cannot_say_the_table_does() -> None:
    busy = failing(500, "api_error", "oh")
    assert spec("claude-sonnet-5") == asked(busy, "claude-sonnet-5")
    found = asked(busy, "claude-new")
    assert isinstance(found, Failure)
    assert FailureKind.SERVER is found.kind


def test_a_client_without_models() -> None:
    assert spec("claude-sonnet-5") == run(lookup(object(), "claude-sonnet-5"))
    found = run(lookup(object(), "claude-new"))
    assert isinstance(found, Failure)
    assert FailureKind.NOT_FOUND is found.kind
