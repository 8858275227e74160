"""
What happened, as the ports and the consumer saw it.

``Journal`` is what a world writes while it plays; ``Observed`` is what is
compared.  Nothing here asks the engine what it thinks.
"""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.adapters.scenarios.border import wire_messages
from stepfold.engine.effects import CallModel, CallShown, Continued, ErrorShown, Tombstone
from stepfold.engine.events import CallStatus
from stepfold.engine.terminals import Completed, End


@attrs.frozen
class Request:
    """One request as the model port received it."""

    number: int
    order: CallModel

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        """The messages in API form."""
        return wire_messages(self.order)


@attrs.define
class Span:
    """One execution of a tool call, in virtual ms; ``ended_ms`` None while it runs."""

    use_id: str
    tool: str
    started_ms: int
    ended_ms: int | None = None


@attrs.frozen
class RunSeen:
    """One run as its consumer saw it; ``end`` None where the consumer went away."""

    items: tuple[object, ...]
    end: End | None

    @property
    def terminal(self) -> str:
        """The terminal's name, "none" without one."""
        return self.end.reason.value if self.end is not None else "none"

    @property
    def ending(self) -> str:
        """The ending of a completed run, "" for any other."""
        return self.end.ending.value if isinstance(self.end, Completed) else ""

    @property
    def transitions(self) -> tuple[str, ...]:
        """Why the loop went round, in order."""
        return tuple(str(item.reason) for item in self.items if isinstance(item, Continued))


@attrs.define
class Journal:
    """What a world writes down; one for the whole file, however often its process dies."""

    requests: list[Request] = attrs.field(factory=list)
    compactions: int = 0
    spans: list[Span] = attrs.field(factory=list)
    hooks: dict[str, int] = attrs.field(factory=dict)
    waits_ms: list[int] = attrs.field(factory=list)
    originals: dict[str, str] = attrs.field(factory=dict)  # id on the wire -> id that the model gave
    problems: list[str] = attrs.field(factory=list)  # the script and the run do not agree


@attrs.frozen
class Observed:
    """All that is compared."""

    runs: tuple[RunSeen, ...]
    journal: Journal

    @property
    def last(self) -> RunSeen:
        """The last run."""
        return self.runs[-1]

    @property
    def statuses(self) -> dict[str, CallStatus]:
        """How each call ended, by its original id; of two calls with one id, the later."""
        found: dict[str, CallStatus] = {}
        for run in self.runs:
            for item in run.items:
                if isinstance(item, CallShown):
                    found[self.journal.originals.get(item.use_id, item.use_id)] = item.status
        return found

    @property
    def shown_errors(self) -> int:
        """How many errors the consumer saw."""
        return sum(isinstance(item, ErrorShown) for run in self.runs for item in run.items)

    @property
    def tombstones(self) -> int:
        """How often the consumer was told to forget what it had seen of an attempt."""
        return sum(isinstance(item, Tombstone) for run in self.runs for item in run.items)

    def overlap(self, one: str, other: str) -> bool:
        """Whether some execution of *one* and some of *other* ran at the same time."""
        return any(
            max(a.started_ms, b.started_ms) < min(_end(a), _end(b))
            for a in self._spans(one)
            for b in self._spans(other)
            if a is not b
        )

    def runs_of(self, original: str) -> int:
        """How often calls of this id were executed."""
        return len(self._spans(original))

    def _spans(self, original: str) -> list[Span]:
        names = self.journal.originals
        return [span for span in self.journal.spans if names.get(span.use_id, span.use_id) == original]


def _end(span: Span) -> float:
    return float("inf") if span.ended_ms is None else span.ended_ms


def shape_of(messages: tuple[dict[str, Any], ...]) -> tuple[str, ...]:
    """Return one string a message: its role, then one word a block."""
    return tuple(
        " ".join((f"{message['role']}:", *(_word(block) for block in message["content"])))
        for message in messages
    )


def _word(block: dict[str, Any]) -> str:
    match block["type"]:
        case "tool_use":
            return f"tool_use({block['id']})"
        case "tool_result":
            return f"tool_result({block['tool_use_id']}){'!' if block.get('is_error') else ''}"
        case kind:
            return str(kind)


def texts_of(messages: tuple[dict[str, Any], ...]) -> list[str]:
    """Return every text of *messages*, tool results included."""
    found: list[str] = []

    def visit(block: dict[str, Any]) -> None:
        content = block.get("content")
        if block["type"] == "text":
            found.append(block["text"])
        elif block["type"] == "tool_result" and isinstance(content, str):
            found.append(content)
        elif block["type"] == "tool_result":
            for part in content or ():
                visit(part)

    for message in messages:
        for block in message["content"]:
            visit(block)
    return found
