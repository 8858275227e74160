"""Runs the coroutine tests of this folder, each in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}

    async def within_limit() -> None:
        async with asyncio.timeout(30):
            await pyfuncitem.obj(**given)

    asyncio.run(within_limit())
    return True
