"""The vendor's client for the command line: credentials and models are checked before anything begins."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import attrs

from stepfold.adapters.cli.exits import Problem
from stepfold.engine.config import ModelSpec
from stepfold.engine.failures import Failure, FailureKind

LOOKUP_TIMEOUT_S: Final = 10


@attrs.frozen
class Vendor:
    """A client that has credentials."""

    client: Any

    async def close(self) -> None:
        """Give back its connections."""
        await self.client.close()


def vendor() -> Vendor:
    """Return the client that the environment describes; no credentials are a ``Problem``."""
    import anthropic

    from stepfold.adapters.anthropic_api.errors import NO_KEY

    try:  # the HTTP client first: one that the SDK makes, and cannot, complains once more when it is dropped
        client = anthropic.AsyncAnthropic(max_retries=0, http_client=anthropic.DefaultAsyncHttpxClient())
    except Exception as error:  # an address, a proxy, certificates or a profile that the environment names
        words = f"{type(error).__name__}: {error}"
        raise Problem(f"the client that the environment describes cannot be made: {words}") from error
    if client.api_key is None and client.auth_token is None and client.credentials is None:
        raise Problem(NO_KEY.split(", or pass")[0])
    for name, value in (("ANTHROPIC_API_KEY", client.api_key), ("ANTHROPIC_AUTH_TOKEN", client.auth_token)):
        if value is not None and not (value.isascii() and value.isprintable() and value.strip() == value):
            raise Problem(
                f"{name}: it holds a character that no key has; allowed are letters, digits and signs"
            )
    return Vendor(client)


async def limits_of(vendor: Vendor, names: Sequence[str]) -> list[ModelSpec]:
    """Return limits and prices of models; one that does not exist is a ``Problem``."""
    return list(await asyncio.gather(*(_limits(vendor, name) for name in names)))


async def _limits(vendor: Vendor, name: str) -> ModelSpec:
    from stepfold.adapters.anthropic_api.models import lookup, spec

    known = spec(name)
    try:
        async with asyncio.timeout(LOOKUP_TIMEOUT_S):
            found = await lookup(vendor.client, name)
    except TimeoutError:
        found = known or Failure(FailureKind.TIMEOUT, f"no answer within {LOOKUP_TIMEOUT_S} s")
    if isinstance(found, ModelSpec):
        return found
    match found.kind:
        case FailureKind.AUTHENTICATION:
            raise Problem(f"the API refuses the credentials: {found.message}")
        case FailureKind.NOT_FOUND if known is not None:
            return known  # an endpoint without a list of models
        case FailureKind.NOT_FOUND:
            raise Problem(f"unknown model {name!r}: {found.message}")
    hint = "[[models]] in a --config file can tell its limits"
    raise Problem(f"the model {name!r} cannot be looked up: {found.message}; {hint}")
