"""The switch that forbids real requests, for tests: the environment variable ``STEPFOLD_FORBID_REQUESTS``."""

from __future__ import annotations

import ipaddress
import os
from typing import Any, Final

from stepfold.effects.ports import PortFault

FORBID: Final = "STEPFOLD_FORBID_REQUESTS"
_NO_NETWORK: Final = frozenset({"MockTransport", "ASGITransport"})  # whichever httpx the client is built on


class RealRequest(PortFault):
    """A request was about to leave for a real API, and that is forbidden."""


def refuse_real(client: Any) -> None:
    """
    Raise ``RealRequest`` where real requests are forbidden and *client* would make one.

    A client whose address is this machine, or whose transport has no network
    (httpx's ``MockTransport`` and ``ASGITransport``), makes none.
    """
    if not os.environ.get(FORBID):
        return
    address = getattr(client, "base_url", None)
    host = str(getattr(address, "host", "") or "an unknown host")
    written = getattr(address, "scheme", "http") in ("http", "https")  # to any other nothing can be sent
    if written and not (_is_here(host) or _is_mocked(client)):
        raise RealRequest(
            f"a real request to {host} was about to leave, and {FORBID} forbids it: script the model, replay "
            "a recording, or allow it (in pytest: the marker stepfold_real_requests)"
        )


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_mocked(client: Any) -> bool:
    transport = getattr(getattr(client, "_client", None), "_transport", None)
    return not _NO_NETWORK.isdisjoint(kind.__name__ for kind in type(transport).__mro__)
