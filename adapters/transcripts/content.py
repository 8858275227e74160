"""Foreign content as the engine's blocks."""

from __future__ import annotations

from typing import Any

import orjson

from stepfold.adapters.transcripts.fields import nested, text, whole
from stepfold.engine.events import Usage
from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    ResultBlock,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)


def sound(words: str) -> str:
    """Return *words* without halves of characters, which no file can hold."""
    return words if words.isascii() else words.encode(errors="replace").decode()


def json_text(value: Any) -> str:
    """Return *value* as JSON text."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # halves of characters, numbers of more than 64 bits, too deep
        return orjson.dumps(repr(value).encode(errors="replace").decode()).decode()


def blocks_of(content: Any) -> tuple[Block, ...]:
    """Return content as the API writes it: a text, or a list of blocks."""
    if isinstance(content, str):
        return (Text(sound(content)),) if content else ()
    if not isinstance(content, list):
        return ()
    return tuple(block for each in content if (block := block_of(each)) is not None)


def block_of(given: Any) -> Block | None:
    """Return one block as the API writes it; None: it is none."""
    if isinstance(given, str):
        return Text(sound(given))
    kind = text(given, "type")
    match kind:
        case "text" | "input_text" | "output_text":
            return Text(sound(text(given, "text")))
        case "thinking":
            signature = text(given, "signature") or text(given, "thinkingSignature")
            return Thinking(sound(text(given, "thinking")), sound(signature))
        case "redacted_thinking":
            return RedactedThinking(sound(text(given, "data")))
        case "tool_use" | "toolCall":
            arguments = given.get("input", given.get("arguments", {}))
            return call(text(given, "id"), text(given, "name"), arguments)
        case "tool_result":
            result = result_blocks(given.get("content"))
            return ToolResult(sound(text(given, "tool_use_id")), result, given.get("is_error") is True)
        case "image" | "document":
            return Media(kind, json_text(given))
        case "":
            return None
        case _:
            return Opaque(sound(kind), json_text(given))


def result_blocks(content: Any) -> tuple[ResultBlock, ...]:
    """Return a result's content; blocks that no result may hold stand as texts."""
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(sound(content)),)
    if not isinstance(content, list):
        return (Text(json_text(content)),)
    blocks = (block_of(each) for each in content)
    return tuple(
        block if isinstance(block, Text | Media | Opaque) else Text(json_text(repr(block)))
        for block in blocks
        if block is not None
    )


def call(id: str, name: str, arguments: Any) -> ToolUse:
    """Return a call; *arguments* are an object, or the text of one."""
    if isinstance(arguments, str):
        try:
            read = orjson.loads(arguments or "{}")
        except orjson.JSONDecodeError:
            return ToolUse(sound(id), sound(name), "{}", raw_input=sound(arguments))
        arguments = read
    if not isinstance(arguments, dict):
        return ToolUse(sound(id), sound(name), "{}", raw_input=json_text(arguments))
    return ToolUse(sound(id), sound(name), json_text(arguments))


def asked(blocks: tuple[Block, ...]) -> Message:
    """Return what a person, or the loop in its place, said; or results of tools."""
    results = any(isinstance(block, ToolResult) for block in blocks)
    return Message(Role.USER, blocks, Origin.RESULTS if results else Origin.PROMPT)


def answered(blocks: tuple[Block, ...], model: str = "") -> Message:
    """Return an answer of the model."""
    return Message(Role.ASSISTANT, blocks, Origin.ANSWER, sound(model))


def result(use_id: str, content: Any, *, is_error: bool = False) -> Message:
    """Return the result of one call as a message."""
    return asked((ToolResult(sound(use_id), result_blocks(content), is_error),))


def usage_of(given: Any) -> Usage | None:
    """Return usage as the API, or one of the others, writes it; what is cached counts once."""
    if not isinstance(given, dict):
        return None
    names = (
        ("input_tokens", "inputTokens", "prompt_tokens", "input"),
        ("output_tokens", "outputTokens", "completion_tokens", "output"),
        ("cache_read_input_tokens", "cacheReadInputTokens", "cached", "cacheRead"),
        ("cache_creation_input_tokens", "cacheCreationInputTokens", "cacheWrite"),
    )
    found = [next((n for key in keys if (n := whole(given, key)) is not None), 0) for keys in names]
    taken, made, read, written = (max(0, number) for number in found)
    read = read or max(0, whole(nested(given, "prompt_tokens_details"), "cached_tokens") or 0)
    if "prompt_tokens" in given or "cached" in given:  # all of the prompt, from the cache or not
        taken = max(0, taken - read - written)
    usage = Usage(taken, made, read, written)
    return usage if usage != Usage() else None


def status_of(given: Any) -> int | None:
    """Return the HTTP status that an error tells."""
    return whole(given, "status") or whole(nested(given, "error"), "status")
