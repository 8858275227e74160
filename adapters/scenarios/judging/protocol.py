"""
Would the API take this request?  An independent check of its form.

It reads the JSON that goes out and shares no code with what built it: neither
the repair of histories nor the projection of messages.  Each complaint is one
line; an empty list is a pass (specification, section 7).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Wire: TypeAlias = Mapping[str, Any]
ROLES = ("user", "assistant", "system")
HIDDEN = ("thinking", "redacted_thinking")


def complaints(messages: Sequence[Wire], *, resend: bool = False) -> list[str]:
    """
    Return why the API would refuse *messages*.

    Args:
        messages: The messages of a request in API form.
        resend: The request sends a paused answer back: it may end with it.
    """
    found: list[str] = []
    if not messages:
        return ["the request has no messages"]
    found += _roles(messages, resend)
    found += _contents(messages, resend)
    found += _calls(messages, resend)
    found += _server_pairs(messages)
    found += _encoding(messages)
    return found


def _blocks(message: Wire) -> list[Wire]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list | tuple) else []


def _roles(messages: Sequence[Wire], resend: bool) -> Iterator[str]:
    before = ""
    for number, message in enumerate(messages, 1):
        role = message.get("role", "")
        if role not in ROLES:
            yield f"message {number} has the role {role!r}"
        elif role == before:
            yield f"messages {number - 1} and {number} are both of the {role}"
        after = messages[number]["role"] if number < len(messages) else ""
        if role == "system" and (before not in ("user", "assistant") or after == "user"):
            yield f"message {number} is the system's, between {before or 'nothing'} and {after or 'the end'}"
        before = role
    if before == "assistant" and not resend:
        yield "the request ends with an answer"


def _contents(messages: Sequence[Wire], resend: bool) -> Iterator[str]:
    for number, message in enumerate(messages, 1):
        blocks = _blocks(message)
        if not blocks:
            yield f"message {number} is empty"
            continue
        for block in blocks:
            yield from _text_problems(number, block)
        texts = [block for block in blocks if block.get("type") == "text"]
        if len(texts) == len(blocks) and not any(block.get("text", "").strip() for block in texts):
            yield f"message {number} holds nothing but white space"
        paused = resend and number == len(messages)
        if message.get("role") == "assistant" and blocks[-1].get("type") in HIDDEN and not paused:
            yield f"message {number} ends with {blocks[-1]['type']}"


def _text_problems(number: int, block: Wire) -> Iterator[str]:
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        yield f"message {number} has a block without a type"
    elif kind == "text" and not block.get("text"):
        yield f"message {number} has an empty text"
    elif kind == "tool_result":
        for part in _blocks(block):
            if part.get("type") in ("tool_use", "tool_result", *HIDDEN):
                yield f"message {number} has a {part['type']} within a result"
            yield from _text_problems(number, part)


def _encoding(messages: Sequence[Wire]) -> Iterator[str]:
    """The body is sent as UTF-8, which has no lone surrogates."""
    for number, message in enumerate(messages, 1):
        try:
            json.dumps(message, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            yield f"message {number} has a text that UTF-8 cannot say"


def _calls(messages: Sequence[Wire], resend: bool) -> Iterator[str]:
    """Every call has exactly one result, first in the next user message and in the order of the calls."""
    used: set[str] = set()
    open_calls: list[str] = []
    for number, message in enumerate(messages, 1):
        blocks = _blocks(message)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if message.get("role") != "user":
            if results:
                yield f"message {number} of the {message.get('role')} holds a result"
            if open_calls:
                yield f"message {number} comes before the results of {', '.join(open_calls)}"
            yield from _new_calls(number, blocks, used)
            open_calls = [block.get("id", "") for block in blocks if block.get("type") == "tool_use"]
            continue
        if any(block.get("type") == "tool_use" for block in blocks):
            yield f"message {number} of the user holds a call"
        got = [block.get("tool_use_id", "") for block in results]
        if got != open_calls:
            wanted = ", ".join(open_calls) or "none"
            yield f"message {number} has results of {', '.join(got) or 'none'}; wanted {wanted}"
        if [block.get("type") for block in blocks[: len(results)]] != ["tool_result"] * len(results):
            yield f"message {number} does not begin with its results"
        open_calls = []
    if open_calls and not resend:
        yield f"no results follow for {', '.join(open_calls)}"


def _new_calls(number: int, blocks: list[Wire], used: set[str]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") != "tool_use":
            continue
        name = block.get("id", "")
        if not name:
            yield f"message {number} has a call without an id"
        if name in used:
            yield f"message {number} uses the call id {name} again"
        used.add(name)
        if not isinstance(block.get("input"), Mapping):
            yield f"message {number} has a call whose input is no object: {name}"
        if not block.get("name"):
            yield f"message {number} has a call without a tool: {name}"


def _server_pairs(messages: Sequence[Wire]) -> Iterator[str]:
    """A result of the server's own tools stands behind its call, and once."""
    asked: set[str] = set()
    answered: set[str] = set()
    for number, message in enumerate(messages, 1):
        for block in _blocks(message):
            kind = str(block.get("type", ""))
            if kind in ("server_tool_use", "mcp_tool_use"):
                asked.add(block.get("id", ""))
            elif kind.endswith("_tool_result"):
                name = block.get("tool_use_id", "")
                if name not in asked:
                    yield f"message {number} has a {kind} without its call: {name}"
                elif name in answered:
                    yield f"message {number} has a second {kind} for {name}"
                answered.add(name)
