"""OpenHands: its events, and the older trajectories of actions and observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepfold.adapters.transcripts import endings
from stepfold.adapters.transcripts.content import answered, asked, blocks_of, call, result
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms
from stepfold.adapters.transcripts.formats.openhands_actions import Actions, events_in, is_event, read_row
from stepfold.adapters.transcripts.items import (
    Began,
    Compacted,
    Ended,
    Interrupted,
    Item,
    Place,
    RequestFailed,
    Said,
)
from stepfold.adapters.transcripts.source import Counts
from stepfold.engine.messages import Block, Thinking


def recognises(first: Any, lines: bool) -> bool:
    """Whether it is a list of OpenHands' events, or of older actions and observations, or rows with such."""
    if lines and (text(first, "kind").endswith("Event") or is_event(first)):
        return True
    return bool(events_in(first))


def read(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield its actions as answers with a call, its observations as results."""
    actions = Actions("", counts)
    for line, record in records:
        if events_in(record):
            yield from read_row(record, line, counts)
        elif is_event(record):
            yield from actions.take(record, line)
        else:
            yield from _event(record, line, counts)


def _event(record: Any, line: int, counts: Counts) -> Iterator[Item]:
    where = Place(line, at_ms=time_ms(record.get("timestamp")) if isinstance(record, dict) else None)
    match kind := text(record, "kind"):
        case "ActionEvent":
            yield Said(where, answered(_action(record)), text(record, "llm_response_id"))
        case "ObservationEvent":
            observed = nested(record, "observation")
            content = observed.get("content", text(observed, "output"))
            wrong = observed.get("is_error") is True
            yield Said(where, result(text(record, "tool_call_id"), content, is_error=wrong))
        case "UserRejectObservation" | "AgentErrorEvent":
            words = text(record, "rejection_reason") or text(record, "error")
            yield Said(where, result(text(record, "tool_call_id"), words, is_error=True))
        case "MessageEvent":
            message = nested(record, "llm_message")
            blocks = blocks_of(message.get("content"))
            agent = text(message, "role") == "assistant"
            yield Said(where, answered(blocks) if agent else asked(blocks))
        case "Condensation" | "CondensationEvent":
            yield Compacted(where, kind)
        case "PauseEvent" | "InterruptEvent":
            yield Interrupted(where)
        case "ConversationErrorEvent":
            yield RequestFailed(where, text(record, "detail"), kind=text(record, "code"), shown=True)
        case "ConversationStateUpdateEvent":
            status = text(nested(record, "value"), "execution_status")
            if text(record, "key") == "execution_status":
                status = text(record, "value")
            if status in ("finished", "error", "stuck", "paused"):
                yield Ended(where, status, status == "finished")
            elif status and not endings.known("openhands", status):
                counts.skip(f"execution_status {status}")
        case "SystemPromptEvent":
            names = (text(tool, "name") or text(tool, "title") for tool in rows(record, "tools"))
            yield Began(where, "", tuple(filter(None, names)))
        case _:
            counts.skip(kind)


def _action(record: dict[str, Any]) -> tuple[Block, ...]:
    given = nested(record, "tool_call")
    function = nested(given, "function") or given
    thought = blocks_of(record.get("thought"))
    thinking: tuple[Block, ...] = ()
    if reasoning := text(record, "reasoning_content"):
        thinking = (Thinking(reasoning),)
    arguments = function.get("arguments", record.get("action") or {})
    name = text(function, "name") or text(record, "tool_name")
    id = text(record, "tool_call_id") or text(given, "id")
    return (*thinking, *thought, call(id, name, arguments))
