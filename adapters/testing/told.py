"""What a test has played, for the report where it failed: who plays tells, the pytest plugin listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LISTENER: Final[ContextVar[Callable[[object], None] | None]] = ContextVar("stepfold_told", default=None)


def tell(what: object) -> None:
    """Tell of something that was played; nobody may listen."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what)


@contextmanager
def listening(listener: Callable[[object], None]) -> Iterator[None]:
    """Let *listener* hear what is told meanwhile."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
