"""The output of a run as JSON lines, for programs; deltas are left out, since their blocks follow."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, TextIO

from stepfold.adapters.cli.exits import exit_code
from stepfold.effects.ports import ToolProgress
from stepfold.effects.result import Result
from stepfold.engine.effects import (
    BlockShown,
    CallShown,
    Continued,
    ErrorShown,
    MessageShown,
    Notice,
    SummaryShown,
    Tombstone,
)
from stepfold.engine.messages import (
    Block,
    Media,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    texts,
)


class JsonView:
    """Prints one object an item; the last one has the type ``result``."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __enter__(self) -> JsonView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def wait_for(self, what: str) -> None:
        """Nothing is told of waiting."""

    def pause(self) -> None:
        """Nothing is told of waiting."""

    def say(self, text: str) -> None:
        """Print something about the program itself."""
        self._print({"type": "note", "text": text})

    def show(self, item: object) -> None:
        """Print one item of the run."""
        data = _item(item)
        if data is not None:
            self._print(data)

    def finish(self, result: Result) -> None:
        """Print the end."""
        self._print({"type": "result", **result_data(result)})

    def _print(self, data: dict[str, Any]) -> None:
        print(json.dumps(data, ensure_ascii=False), file=self._out, flush=True)


def result_data(result: Result) -> dict[str, Any]:
    """Return a result as JSON values."""
    usage = result.usage
    return {
        "terminal": result.terminal.value,
        "ok": result.ok,
        "retryable": result.end.retryable,
        "ending": str(getattr(result.end, "ending", "")),
        "why": result.end.why,
        "output": result.output,
        "transitions": [transition.reason.value for transition in result.transitions],
        "tools": {id: status.value for id, status in result.tool_calls.items()},
        "queued": list(result.queued),
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_creation_tokens": usage.cache_creation_tokens,
        },
        "exit_code": exit_code(result.end),
    }


def _item(item: object) -> dict[str, Any] | None:
    match item:
        case BlockShown(call_id, block):
            return {"type": "block", "call": call_id, "block": _block(block)}
        case CallShown(use_id, status, content, synthetic):
            blocks = [_block(block) for block in content]
            ended = {"type": "tool_ended", "id": use_id, "status": status.value}
            return {**ended, "synthetic": synthetic, "content": blocks}
        case Continued(reason, count, turn):
            return {"type": "transition", "reason": str(reason), "count": count, "turn": turn}
        case MessageShown(message):
            told = {"origin": message.origin.value, "text": texts(message.content)}
            return {"type": "message", "role": message.role.value, **told}
        case SummaryShown(_, text):
            return {"type": "summary", "text": text}
        case Notice(kind, text, count):
            return {"type": "notice", "kind": kind.value, "text": text, "count": count}
        case ErrorShown(failure):
            error = {"type": "error", "kind": failure.kind.value, "message": failure.message}
            return {**error, "status": failure.status}
        case Tombstone(call_id):
            return {"type": "withdrawn", "call": call_id}
        case ToolProgress(use_id, text):
            return {"type": "progress", "id": use_id, "text": text}
    return None


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(thinking):
            return {"type": "thinking", "thinking": thinking}
        case RedactedThinking():
            return {"type": "redacted_thinking"}
        case ToolUse(id, name, input):
            return {"type": "tool_use", "id": id, "name": name, "input": _read(input)}
        case ToolResult(use_id):
            return {"type": "tool_result", "tool_use_id": use_id}
        case Media(kind, wire) | Opaque(kind, wire):
            whole = _read(wire)
            return whole if isinstance(whole, dict) else {"type": kind, "wire": whole}


def _read(text: str) -> Any:
    """Return what JSON text holds; the text where it cannot be read: too deep, or a number too long."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
