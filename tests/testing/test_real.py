"""What only this file catches: a client that makes a real request and is let through, or one that is not."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest

from stepfold.adapters.anthropic_api.client import AnthropicModel
from stepfold.adapters.anthropic_api.real import RealRequest, refuse_real
from stepfold.effects import run_sync
from stepfold.effects.ports import PortFault


def client(url: str = "https://api.anthropic.com", transport: Any = None) -> anthropic.AsyncAnthropic:
    http = None if transport is None else anthropic.DefaultAsyncHttpxClient(transport=transport)
    return anthropic.AsyncAnthropic(api_key="x", base_url=url, http_client=http)


def refused(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(401, json={"type": "error", "error": {"type": "authentication_error"}})


@pytest.mark.parametrize(
    "url",
    ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "http://model.localhost", "http://127.9.9.9"],
)
def test_this_machine_is_allowed(url: str) -> None:
    refuse_real(client(url))


@pytest.mark.parametrize("url", ["https://api.anthropic.com", "http://10.0.0.1", "http://localhost.example"])
def test_any_other_is_refused(url: str) -> None:
    with pytest.raises(RealRequest, match="was about to leave"):
        refuse_real(client(url))


def test_an_address_that_nothing_can_be_sent_to_is_left_to_fail() -> None:
    refuse_real(client("host:1"))


def test_a_client_that_is_not_known_is_refused() -> None:
    with pytest.raises(RealRequest, match="to an unknown host"):
        refuse_real(object())


def test_a_transport_without_a_network_is_allowed() -> None:
    mocked = client(transport=httpx2.MockTransport(refused))
    refuse_real(mocked)
    assert "model_error" == run_sync("go", model=AnthropicModel(mocked)).terminal


def test_nothing_is_refused_where_nothing_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPFOLD_FORBID_REQUESTS", "")
    refuse_real(client())


def test_run_raises_it_and_does_not_take_it_for_a_failed_model() -> None:
    with pytest.raises(RealRequest):
        run_sync("go", model=AnthropicModel(client()))
    assert issubclass(RealRequest, PortFault)
