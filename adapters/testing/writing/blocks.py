"""Blocks, answers and failures in the words of a scenario file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from stepfold.adapters.anthropic_api.wire import block_json
from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scripted import Breaks, Closes, Fails, OpenBlock
from stepfold.engine.events import Usage
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Block, Message, RedactedThinking, ResultBlock, Text, Thinking, ToolUse

_TRANSPORT: Final = {FailureKind.TRANSPORT: "ReadError: ", FailureKind.TIMEOUT: "ReadTimeout: "}
_SAID: Final[Mapping[FailureKind, tuple[int, str, str]]] = {
    # status, type and words by which the border knows a failure of a kind
    FailureKind.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    FailureKind.RATE_LIMITED: (429, "rate_limit_error", "rate limited"),
    FailureKind.SERVER: (500, "api_error", "Internal server error"),
    FailureKind.CONFLICT: (409, "conflict_error", "conflict"),
    FailureKind.CRASHED: (500, "api_error", "crashed"),
    FailureKind.PROMPT_TOO_LONG: (400, "invalid_request_error", "prompt is too long"),
    FailureKind.REQUEST_TOO_LARGE: (413, "request_too_large", "request too large"),
    FailureKind.WINDOW_EXCEEDED: (400, "invalid_request_error", "prompt is too long"),
    FailureKind.MEDIA_TOO_LARGE: (400, "invalid_request_error", "image exceeds 5 MB maximum"),
    FailureKind.SPEND_LIMIT: (402, "billing_error", "no credit"),
    FailureKind.AUTHENTICATION: (401, "authentication_error", "invalid key"),
    FailureKind.NOT_FOUND: (404, "not_found_error", "no such model"),
    FailureKind.INVALID: (400, "invalid_request_error", "invalid"),
}


def block(given: Block) -> dict[str, Any]:
    """Return one block in the shorthand, or raw where the shorthand cannot say all of it."""
    match given:
        case Text(text, ""):
            return {"text": text}
        case Thinking(thinking, signature, ""):
            return {"thinking": thinking, **({"signature": signature} if signature else {})}
        case RedactedThinking(data, ""):
            return {"redacted_thinking": data}
        case ToolUse(id, name, _, ""):
            return {"tool_use": {"id": id, "name": name, **_input(given)}}
    return {"raw": block_json(given)}


def _input(call: ToolUse) -> dict[str, Any]:
    """Return the input as a table where that says it to the letter, else as the text that the model wrote."""
    if call.raw_input:
        return {"input": call.raw_input}
    if call.input == "{}":
        return {}
    whole = json.loads(call.input)
    same = json.dumps(whole, ensure_ascii=False, separators=(",", ":")) == call.input
    return {"input": whole if same and not _holds_nothing(whole) else call.input}


def _holds_nothing(value: Any) -> bool:
    """Whether a null is in *value*: TOML has none."""
    if isinstance(value, dict):
        return any(map(_holds_nothing, value.values()))
    if isinstance(value, list):
        return any(map(_holds_nothing, value))
    return value is None


def open_block(given: OpenBlock) -> dict[str, Any]:
    """Return a block that began and never closed."""
    match given:
        case Text(text):
            return {"text": text}
        case Thinking(thinking):
            return {"thinking": thinking}
        case ToolUse(id, name, written):
            return {"tool_use": {"id": id, "name": name, "partial_json": written}}


def result(content: tuple[ResultBlock, ...]) -> str | dict[str, Any]:
    """Return the content of a tool's result."""
    match content:
        case (Text(text, ""),):
            return {"chars": len(text)} if len(text) > 100 and set(text) == {"x"} else text
    return {"blocks": [block(each) for each in content]}


def message(given: Message) -> dict[str, Any]:
    """Return a message of the history in API form."""
    return {"role": given.role.value, "content": [block_json(each) for each in given.content]}


def usage(given: Usage | None) -> dict[str, Any] | None:
    """Return what an answer reports."""
    if given is None:
        return None
    cached = {
        "cache_read_input_tokens": given.cache_read_tokens,
        "cache_creation_input_tokens": given.cache_creation_tokens,
    }
    own = {"input_tokens": given.input_tokens, "output_tokens": given.output_tokens}
    return {**own, **{name: count for name, count in cached.items() if count}}


def failure(given: Failure, *, in_stream: bool) -> dict[str, Any]:
    """Return a failure as the API words it, such that it is known for the same kind."""
    after = None if given.retry_after_ms is None else _seconds(given.retry_after_ms)
    if given.status or given.error_type:
        return {
            "status": given.status or (200 if in_stream else None),
            "type": given.error_type or None,
            "message": given.message,
            "retry_after": after,
        }
    if given.kind in _TRANSPORT:
        words = given.message.removeprefix(_TRANSPORT[given.kind])
        timeout = given.kind is FailureKind.TIMEOUT and "timeout" not in words.lower()
        return {"transport": f"timeout: {words}" if timeout else words}
    status, kind, words = _SAID.get(given.kind, (0, "unknown_error", given.message))
    if given.excess_tokens and given.kind is FailureKind.PROMPT_TOO_LONG:
        words = f"prompt is too long: {200_000 + given.excess_tokens} tokens > 200000 maximum"
    return {"status": status or None, "type": kind, "message": words, "retry_after": after}


def _seconds(ms: int) -> int | float:
    return ms // 1000 if ms % 1000 == 0 else ms / 1000


def entry(given: f.Entry) -> dict[str, Any]:
    """Return a ``[[model]]`` table."""
    answer = given.answer
    calls = any(isinstance(each, ToolUse) for each in answer.blocks)
    found: dict[str, Any] = {"blocks": [block(each) for each in answer.blocks] or None}
    match answer.outcome:
        case Closes(stop, reason):
            raw, usual = reason or stop.value, "tool_use" if calls else "end_turn"
            found["stop"] = None if raw == usual and answer.open is None else raw
        case Fails(problem) if problem.kind is FailureKind.CUT:
            found["cut"] = True
        case Fails(problem):
            found["error"] = failure(problem, in_stream=bool(answer.blocks) or answer.open is not None)
        case Breaks():
            found["cut"] = True
    found["open"] = None if answer.open is None else open_block(answer.open)
    found["usage"] = usage(answer.usage)
    found["takes"] = answer.takes_ms or None
    found["times"] = "forever" if given.times is None else (given.times if given.times != 1 else None)
    found["model"] = answer.model or None
    return found
