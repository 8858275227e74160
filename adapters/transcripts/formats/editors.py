"""Sessions of editors: Copilot (its chat and its events), Windsurf, OpenCode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stepfold.adapters.transcripts.content import answered, asked, blocks_of, call, result
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms
from stepfold.adapters.transcripts.items import Began, Ended, Interrupted, Item, Place, RequestFailed, Said
from stepfold.adapters.transcripts.source import Counts
from stepfold.engine.messages import Block, Text

# ------------------------------------------------------------------------- Copilot


def recognises_copilot(first: Any, lines: bool) -> bool:
    """Whether it is a chat of Copilot, or the first line of a kept one."""
    chat = nested(first, "v") if lines else first
    return isinstance(first, dict) and "requests" in chat and "responderUsername" in chat


def read_copilot(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield its requests and what answered them; its calls keep no input, and no result that can be read."""
    for line, record in records:
        chat = nested(record, "v") or record
        if not isinstance(chat, dict) or "requests" not in chat:
            counts.skip(f"kind {record.get('kind')}" if isinstance(record, dict) else "no object")
            continue
        yield Began(Place(line, text(chat, "sessionId")))
        for number, request in enumerate(rows(chat, "requests"), 1):
            at = request.get("timestamp") if isinstance(request, dict) else None
            where = Place(number, at_ms=time_ms(at))
            yield Said(where, asked(blocks_of(text(nested(request, "message"), "text"))))
            words = "".join(text(part, "value") for part in rows(request, "response"))
            model = text(request, "modelId")
            yield Said(where, answered(blocks_of(words), model), text(request, "responseId"), model)
            if isinstance(request, dict) and request.get("isCanceled") is True:
                yield Interrupted(where)
            if error := text(nested(request, "result", "errorDetails"), "message"):
                yield RequestFailed(where, error, shown=True)


def recognises_copilot_events(first: Any, lines: bool) -> bool:
    """Whether it is the events of a Copilot agent."""
    return lines and text(first, "type") == "session.start"


def read_copilot_events(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield its messages, calls and results."""
    for line, record in records:
        data = nested(record, "data")
        where = Place(line, at_ms=time_ms(record.get("timestamp")) if isinstance(record, dict) else None)
        match kind := text(record, "type"):
            case "session.start":
                yield Began(Place(line, text(data, "sessionId")), "", (), text(data, "copilotVersion"))
            case "user.message":
                yield Said(where, asked(blocks_of(text(data, "content"))))
            case "assistant.message":
                blocks: list[Block] = list(blocks_of(text(data, "content")))
                blocks += [
                    call(text(each, "toolCallId"), text(each, "name"), each.get("arguments") or {})
                    for each in rows(data, "toolRequests")
                    if isinstance(each, dict)
                ]
                yield Said(where, answered(tuple(blocks)), text(data, "messageId"))
            case "tool.execution_complete":
                wrong = data.get("success") is False
                content = data.get("result", text(nested(data, "error"), "message"))
                if isinstance(content, dict):
                    content = content.get("content", content)
                yield Said(where, result(text(data, "toolCallId"), content, is_error=wrong))
            case "session.error":
                yield RequestFailed(where, text(data, "message"), shown=True)
            case "abort":
                yield Interrupted(where)
            case "session.end" | "session.shutdown":
                yield Ended(where, text(data, "reason") or kind)
            case "tool.execution_start" | "assistant.turn_start" | "assistant.turn_end" | "session.info":
                pass
            case _:
                counts.skip(kind)


# ------------------------------------------------------------------------ Windsurf

WINDSURF: Final = frozenset({"user_input", "planner_response"})


def recognises_windsurf(first: Any, lines: bool) -> bool:
    """Whether it is a session of Windsurf."""
    return lines and text(first, "type") in WINDSURF and text(first, "type") in first


def read_windsurf(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield its steps; what is neither words of the user nor of the model is a call and its result."""
    for line, record in records:
        kind = text(record, "type")
        step = nested(record, kind)
        where = Place(line)
        match kind:
            case "user_input":
                yield Said(where, asked((Text(text(step, "user_response")),)))
            case "planner_response":
                yield Said(where, answered((Text(text(step, "response")),)))
            case "":
                counts.skip(kind)
            case _:
                id = f"step-{line}"
                kept = {name: value for name, value in step.items() if name not in ("output", "content")}
                yield Said(where, answered((call(id, kind, kept),)))
                wrong = text(record, "status") not in ("done", "")
                words = text(step, "output") or text(step, "content") or text(record, "status")
                yield Said(where, result(id, words, is_error=wrong))


# ------------------------------------------------------------------------ OpenCode


def recognises_opencode(first: Any, lines: bool) -> bool:
    """Whether it is a message or a part of one in OpenCode's storage."""
    return not lines and isinstance(first, dict) and bool({"sessionID", "messageID"} & {*first})


def read_opencode(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield a part: a text, or a call with its result; a message's own file holds no words."""
    for line, record in records:
        session = text(record, "sessionID")
        where = Place(line, session)
        match text(record, "type"):
            case "text":
                yield Said(where, answered(blocks_of(text(record, "text"))), text(record, "messageID"))
            case "tool":
                state = nested(record, "state")
                id = text(record, "callID")
                asked_for = call(id, text(record, "tool"), state.get("input") or {})
                yield Said(where, answered((asked_for,)), text(record, "messageID"))
                if text(state, "status") in ("completed", "error"):
                    wrong = text(state, "status") == "error"
                    words = text(state, "output") or text(state, "error")
                    yield Said(where, result(id, words, is_error=wrong))
            case "" if text(record, "role"):
                yield Began(where, text(record, "modelID"))
            case kind:
                counts.skip(kind)
