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
ANSWERS_ONLY = (*HIDDEN, "tool_use", "server_tool_use", "mcp_tool_use")
USERS_ONLY = ("tool_result", "image", "document")
SYSTEMS_ONLY = ("tool_addition", "tool_removal")


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
    found += _system(messages)
    found += _contents(messages, resend)
    found += _speakers(messages)
    found += _calls(messages, resend)
    found += _server_pairs(messages, resend)
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
        before = role
    if before == "assistant" and not resend:
        yield "the request ends with an answer"


def _system(messages: Sequence[Wire]) -> Iterator[str]:
    """The system speaks behind a user or a server's result, and before an answer or at the end."""
    for number, message in enumerate(messages, 1):
        if message.get("role") != "system":
            continue
        before = messages[number - 2] if number > 1 else {}
        after = messages[number].get("role", "") if number < len(messages) else ""
        last = _blocks(before)[-1:] or [{}]
        answered = _is_server_result(str(last[0].get("type", "")))
        if not (before.get("role") == "user" or (before.get("role") == "assistant" and answered)):
            yield f"message {number} is the system's, behind {before.get('role') or 'nothing'}"
        if after not in ("assistant", ""):
            yield f"message {number} is the system's, before {after}"


def _speakers(messages: Sequence[Wire]) -> Iterator[str]:
    """Calls and thinking are the answer's, results and media the user's; the system says text."""
    for number, message in enumerate(messages, 1):
        role = message.get("role")
        for block in _blocks(message):
            kind = str(block.get("type", ""))
            if role != _speaker(kind, str(role)):
                yield f"message {number} of the {role} holds a {kind}"


def _speaker(kind: str, role: str) -> str:
    """Return the one role whose messages may hold a block of *kind*; *role* where any may."""
    if kind in ANSWERS_ONLY or _is_server_result(kind):
        return "assistant"
    if kind in USERS_ONLY:
        return "user"
    return "system" if kind in SYSTEMS_ONLY else role


def _is_server_result(kind: str) -> bool:
    return kind.endswith("_tool_result")


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
        if block.get("is_error") and not block.get("content"):
            yield f"message {number} has an error without a word"
        for part in _blocks(block):
            inner = str(part.get("type", ""))
            if inner in (*ANSWERS_ONLY, "tool_result") or _is_server_result(inner):
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
            if open_calls:
                yield f"message {number} comes before the results of {', '.join(open_calls)}"
            yield from _new_calls(number, blocks, used)
            open_calls = [block.get("id", "") for block in blocks if block.get("type") == "tool_use"]
            continue
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


def _server_pairs(messages: Sequence[Wire], resend: bool) -> Iterator[str]:
    """
    A result of the server's own tools stands behind its call, and once; so does a call.

    Without a result yet is only what the server goes on with: a call of a
    paused answer, or of one whose client calls are being answered.
    """
    asked: dict[str, int] = {}
    answered: set[str] = set()
    for number, message in enumerate(messages, 1):
        for block in _blocks(message):
            kind = str(block.get("type", ""))
            if kind in ("server_tool_use", "mcp_tool_use"):
                name = block.get("id", "")
                if name in asked:
                    yield f"message {number} uses the server call id {name} again"
                asked.setdefault(name, number)
            elif _is_server_result(kind):
                name = block.get("tool_use_id", "")
                if name not in asked:
                    yield f"message {number} has a {kind} without its call: {name}"
                elif name in answered:
                    yield f"message {number} has a second {kind} for {name}"
                answered.add(name)
    results_last = all(block.get("type") == "tool_result" for block in _blocks(messages[-1]))
    going_on = len(messages) if resend else len(messages) - 1 if results_last else 0
    for name, number in asked.items():
        if name not in answered and number != going_on:
            yield f"message {number} has a server call without its result: {name}"
