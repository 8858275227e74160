"""
Which container belongs to which answer.

Code of the model runs in a container of the API.  While a call of that code
waits for its result, the request that brings the result must name the
container, or it is refused (specification, section 10.10); a later request that
names it finds files and variables again.  The API tells the id beside the
answer, where no block has a place for it: it is remembered here, by the ids of
the answer's calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from stepfold.engine.messages import Message, Opaque, Role, ToolUse

MAX_CALLS: Final = 10_000  # ids that are remembered; the oldest go first


@attrs.frozen
class Container:
    """A container and when it ends, in seconds since 1970; infinity where that was not said."""

    id: str
    ends_s: float


def container_of(wire: Any) -> Container | None:
    """Return the container that *wire* tells of, or None."""
    if not isinstance(wire, Mapping) or not isinstance(wire.get("id"), str) or not wire["id"]:
        return None
    try:
        return Container(wire["id"], datetime.fromisoformat(str(wire.get("expires_at"))).timestamp())
    except ValueError:
        return Container(wire["id"], float("inf"))


class Containers:
    """
    Remembers containers for as long as the model port lives.

    Args:
        now: The time in seconds since 1970.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._by_call: dict[str, Container] = {}

    def note(self, container: Container | None, calls: Iterable[str]) -> None:
        """Remember that the answer with *calls* (their ids) used *container*."""
        if container is None:
            return
        self._by_call.update(dict.fromkeys(calls, container))
        for old in list(self._by_call)[: max(0, len(self._by_call) - MAX_CALLS)]:
            del self._by_call[old]

    def of(self, messages: Sequence[Message]) -> str:
        """Return the id of the newest container that an answer in *messages* had, "" if none is left."""
        if not self._by_call:
            return ""
        for message in reversed(messages):
            for block in reversed(message.content if message.role is Role.ASSISTANT else ()):
                found = self._by_call.get(_call_id(block))
                if found is not None:
                    return found.id if found.ends_s > self._now() else ""
        return ""


def _call_id(block: object) -> str:
    match block:
        case ToolUse(id=id) | Opaque(call_id=id):
            return id
        case _:
            return ""
