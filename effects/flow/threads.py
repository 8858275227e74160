"""Plain functions beside the loop, in threads that never keep the process alive."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any


async def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """
    Call *function*: a coroutine function here, a plain one in a thread of its own.

    A function marked ``function.in_thread = False`` is called here though it
    is plain.  What it returns is awaited if it can be.  A thread cannot be
    stopped: cancelled, it is left behind, and does not hold up the exit.
    """
    if _runs_here(function):
        outcome = function(*arguments)
    else:
        outcome = await _threaded(function, arguments)
    return await outcome if inspect.isawaitable(outcome) else outcome


def _runs_here(function: Callable[..., Any]) -> bool:
    if getattr(function, "in_thread", True) is False:
        return True
    body = inspect.unwrap(function)
    return inspect.iscoroutinefunction(body) or inspect.iscoroutinefunction(getattr(body, "__call__", None))  # noqa: B004


async def _threaded(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def hand_back(value: Any, problem: BaseException | None) -> None:
        if future.done():
            return
        if problem is None:
            future.set_result(value)
        elif isinstance(problem, StopIteration):  # a future cannot hold it
            future.set_exception(RuntimeError(f"the function raised {problem!r}"))
        else:
            future.set_exception(problem)

    def work() -> None:
        value, problem = None, None
        try:
            value = context.run(function, *arguments)
        except BaseException as error:
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(hand_back, value, problem)

    name = getattr(function, "__name__", "function")
    threading.Thread(target=work, name=f"stepfold {name}", daemon=True).start()
    return await future
