"""Lists of messages: of the Messages API, of chat completions, and the formats that wrap such messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.transcripts.content import answered, asked, block_of, blocks_of, call, result, usage_of
from stepfold.adapters.transcripts.fields import nested, rows, text, time_ms
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
from stepfold.engine.messages import Block, ToolUse

FENCED: Final = re.compile(r"```mswea_bash_command\s*\n(.*?)\n```", re.DOTALL)
ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function", "toolResult"})


def is_message(value: Any) -> bool:
    """Whether *value* is a message of a chat."""
    return text(value, "role") in ROLES


def recognises(first: Any, lines: bool) -> bool:
    """Whether it is a list of messages, a request with one, or one message."""
    if isinstance(first, list):
        return bool(first) and is_message(first[0])
    if is_message(first):
        return True
    listed = rows(first, "messages")
    return bool(listed) and is_message(listed[0]) and not lines


def read(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield the messages; of a logged call also its answer."""
    for line, record in records:
        if isinstance(record, list):
            yield from said(record, counts)
        elif is_message(record):
            yield from said([record], counts, line)
        elif isinstance(record, dict) and rows(record, "messages"):
            yield Began(Place(line), text(record, "model"), tuple(_tools(record)))
            yield from said(rows(record, "messages"), counts)
            for choice in rows(nested(record, "response"), "choices"):
                yield from said([nested(choice, "message")], counts, len(rows(record, "messages")) + 1)
                if reason := text(choice, "finish_reason"):
                    yield Ended(Place(len(rows(record, "messages")) + 1), reason)
        else:
            counts.skip(f"no message ({type(record).__name__})")


def _tools(record: dict[str, Any]) -> Iterator[str]:
    for tool in rows(record, "tools"):
        if name := text(tool, "name") or text(nested(tool, "function"), "name"):
            yield name


def said(
    messages: Iterable[Any], counts: Counts, first: int = 1, where: Place | None = None
) -> Iterator[Said]:
    """Yield messages of a chat, in either way of writing them."""
    unanswered: list[str] = []  # calls, for results that name none
    command = ""  # a call that stood in a text: what comes next is its result
    for number, message in enumerate(messages, first):
        at = where or Place(number, at_ms=time_ms(message.get("timestamp")) if is_message(message) else None)
        if not is_message(message):
            counts.skip(f"no message ({type(message).__name__})")
            continue
        match message["role"]:
            case "system" | "developer":
                continue
            case "user" if command:
                yield Said(at, result(command, message.get("content")))
                command = ""
            case "assistant":
                blocks = _answer(message, number)
                command = blocks[-1].id if blocks and _in_text(message) else ""  # type: ignore[union-attr]
                unanswered += [block.id for block in blocks if isinstance(block, ToolUse)]
                model = text(message, "model") or text(nested(message, "usage"), "model")
                stop = text(message, "stopReason") or text(message, "stop_reason")
                usage = usage_of(message.get("usage"))
                yield Said(at, answered(blocks, model), text(message, "id"), model, stop, usage)
            case "tool" | "function" | "toolResult":
                ids = [each for each in rows(message, "tool_call_ids") if isinstance(each, str)]
                id = text(message, "tool_call_id") or text(message, "toolCallId") or next(iter(ids), "")
                id = id or (unanswered.pop(0) if unanswered else "")
                wrong = message.get("isError") is True or bool(message.get("error"))
                yield Said(at, result(id, message.get("content"), is_error=wrong))
            case _:
                yield Said(at, asked(blocks_of(message.get("content"))))


def _answer(message: dict[str, Any], number: int) -> tuple[Block, ...]:
    blocks = list(blocks_of(message.get("content")))
    for at, given in enumerate(rows(message, "tool_calls") or rows(message, "toolCalls")):
        function = nested(given, "function")
        name = text(function, "name") or text(given, "function") or text(given, "name")
        arguments = function.get("arguments", given.get("arguments")) if isinstance(given, dict) else {}
        blocks.append(call(text(given, "id") or f"call-{number}-{at}", name, arguments or {}))
    if (found := _in_text(message)) is not None:
        blocks.append(call(f"action-{number}", "bash", {"command": found}))
    return tuple(blocks)


def _in_text(message: dict[str, Any]) -> str | None:
    """Return the command that mini-SWE-agent's model wrote into its text; None where there is none."""
    found = FENCED.search(text(message, "content"))
    return found[1] if found else None


# ------------------------------------------------- lines that hold one message each


def recognises_sessions(first: Any, lines: bool) -> bool:
    """Whether it is a session of pi or of Droid."""
    return lines and text(first, "type") in ("session", "session_start")


def read_sessions(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield the messages of such a session."""
    for line, record in records:
        kind = text(record, "type")
        where = Place(line, at_ms=time_ms(record.get("timestamp")) if isinstance(record, dict) else None)
        match kind:
            case "session" | "session_start":
                yield Began(attrs.evolve(where, session=text(record, "id")))
            case "message":
                message = nested(record, "message")
                yield from said([message], counts, line, where)
                if text(message, "stopReason") == "error":
                    yield RequestFailed(where, text(message, "errorMessage"), shown=True)
                elif text(message, "stopReason") == "aborted":
                    yield Interrupted(where)
            case "compactionSummary" | "compaction":
                yield Compacted(where, kind)
            case "model_change" | "custom" | "branchSummary" | "todo_state" | "thinking_level_change":
                pass
            case _:
                counts.skip(kind)


# -------------------------------------------------------------------------- Amp


def recognises_thread(first: Any, lines: bool) -> bool:
    """Whether it is a thread of Amp."""
    listed = rows(first, "messages")
    return not lines and bool(listed) and isinstance(listed[0], dict) and "messageId" in listed[0]


def read_thread(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield the messages of such a thread."""
    for _, thread in records:
        yield Began(Place(1, text(thread, "id")))
        for number, message in enumerate(rows(thread, "messages"), 1):
            state = nested(message, "state")
            blocks = [_amp(each) for each in rows(message, "content")]
            kept = tuple(block for block in blocks if block is not None)
            where = Place(number, text(thread, "id"))
            if text(message, "role") != "assistant":
                yield Said(where, asked(kept))
                continue
            usage = nested(message, "usage")
            model = text(usage, "model")
            yield Said(where, answered(kept, model), "", model, text(state, "stopReason"), usage_of(usage))


def _amp(given: Any) -> Block | None:
    if text(given, "type") != "tool_result" or "toolUseID" not in given:
        return block_of(given)
    run = nested(given, "run")
    wrong = text(run, "status") not in ("done", "")
    content = run.get("result", text(nested(run, "error"), "message"))
    return result(text(given, "toolUseID"), content, is_error=wrong).content[0]


# ------------------------------------------------------------------------ Continue


def recognises_continue(first: Any, lines: bool) -> bool:
    """Whether it is a session of Continue."""
    listed = rows(first, "history")
    return not lines and bool(listed) and is_message(nested(listed[0], "message"))


def read_continue(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """Yield the messages of such a session, and the results that its calls keep beside them."""
    for _, session in records:
        yield Began(Place(1, text(session, "sessionId")))
        for number, one in enumerate(rows(session, "history"), 1):
            yield from said([nested(one, "message")], counts, number)
            for state in rows(one, "toolCallStates"):
                if isinstance(state, dict) and (
                    "output" in state or text(state, "status") in ("done", "errored")
                ):
                    wrong = text(state, "status") == "errored"
                    output = [{"type": "text", "text": text(o, "content")} for o in rows(state, "output")]
                    yield Said(Place(number), result(text(state, "toolCallId"), output, is_error=wrong))
