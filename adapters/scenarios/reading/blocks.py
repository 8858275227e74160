"""The shorthand for blocks, and messages in API form."""

from __future__ import annotations

import json
from typing import Any

from stepfold.adapters.anthropic_api.wire import block_of, message_of, object_text
from stepfold.adapters.scripted import OpenBlock
from stepfold.adapters.toml.positions import Path
from stepfold.adapters.toml.reader import Source, Table
from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Opaque,
    RedactedThinking,
    ResultBlock,
    Text,
    Thinking,
    ToolUse,
)

FIELDS = {  # what a block of a type that is known must have
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "data",
    "tool_use": "id, name",
    "tool_result": "tool_use_id",
}
KINDS = ("text", "thinking", "redacted_thinking", "tool_use", "raw")


def model_blocks(table: Table, key: str) -> tuple[Block, ...]:
    """Return the blocks of an answer."""
    return tuple(_block(table.source, item, path) for path, item in table.items(key, "blocks"))


def result_blocks(table: Table, key: str) -> tuple[ResultBlock, ...]:
    """Return the blocks of a tool's result; only those that may stand in one."""
    found: list[ResultBlock] = []
    for path, item in table.items(key, "blocks"):
        block = _block(table.source, item, path)
        if not isinstance(block, Text | Media | Opaque):
            table.source.refuse(path, "cannot stand in a tool's result", "text, raw")
        found.append(block)
    return tuple(found)


def _block(source: Source, value: Any, path: Path) -> Block:
    table = source.table(value, path, *KINDS, "signature")
    kinds = [kind for kind in KINDS if kind in table]
    if len(kinds) != 1:
        table.refuse("", f"has {' and '.join(kinds) or 'no kind'}", "exactly one of " + ", ".join(KINDS))
    if "signature" in table and kinds != ["thinking"]:
        table.refuse("signature", "only thinking has one", kinds[0])
    match kinds[0]:
        case "text":
            return Text(table.text("text"))
        case "thinking":
            return Thinking(table.text("thinking"), table.text_or("signature", ""))
        case "redacted_thinking":
            return RedactedThinking(table.text("redacted_thinking"))
        case "tool_use":
            return _call(table.table("tool_use", "id", "name", "input"))
    return _raw(table)


def _call(table: Table) -> ToolUse:
    """Return a call; an input that is a text stands for what the model wrote, JSON or not."""
    written = table.values.get("input", {})
    text = written if isinstance(written, str) else table.json("input") if written else "{}"
    whole, raw = object_text(text or "{}")
    return ToolUse(table.text("id"), table.text("name", empty=False), whole, raw_input=raw)


def _raw(table: Table) -> Block:
    value = table.values["raw"]
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        table.refuse("raw", "is no block of the API", "a table with a `type`")
    wire = json.loads(table.json("raw"))
    try:
        block = block_of(wire)
    except (KeyError, TypeError, ValueError) as error:
        table.refuse("raw", f"is no block of the API: {error}", "a block in API form")
    _sound(table.source, (*table.path, "raw"), block)
    return block


def _sound(source: Source, path: Path, block: Block) -> None:
    """Refuse a block of a known type that lacks what it must have: the border would pass it on untouched."""
    if isinstance(block, ToolUse) and not block.name:
        source.refuse(path, "is a call without a name", "a name that is not empty")
    if isinstance(block, Opaque) and not block.type:
        source.refuse(path, "is a block without a type", "a type that is not empty")
    if isinstance(block, Opaque) and block.type in FIELDS:
        source.refuse(path, f"is no whole {block.type} block", f"a text for each of {FIELDS[block.type]}")


def open_block(table: Table) -> OpenBlock:
    """Return a block that began and never closed."""
    kinds = [kind for kind in ("text", "thinking", "tool_use") if kind in table]
    if len(kinds) != 1:
        problem = f"has {' and '.join(kinds) or 'no kind'}"
        table.refuse("", problem, "exactly one of text, thinking, tool_use")
    match kinds[0]:
        case "text":
            return Text(table.text("text"))
        case "thinking":
            return Thinking(table.text("thinking"))
    call = table.table("tool_use", "id", "name", "partial_json")
    return ToolUse(call.text("id"), call.text("name", empty=False), call.text_or("partial_json", ""))


def history_message(table: Table, model: str) -> Message:
    """Return a message in API form; an answer counts as written by *model*."""
    table.require("role", "user, assistant, system")
    role = table.choice("role", "", "user", "assistant", "system")
    table.require("content", "a text, or a list of blocks in API form")
    content = table.values["content"]
    if not isinstance(content, str):
        for path, item in table.items("content", "blocks in API form"):
            if not isinstance(item, dict) or not isinstance(item.get("type"), str):
                table.source.refuse(path, "is no block of the API", "a table with a `type`")
    wire = {"role": role, "content": json.loads(table.json("content"))}
    try:
        message = message_of(wire, model if role == "assistant" else "")
    except (KeyError, TypeError, ValueError) as error:
        table.refuse("content", f"is no content of the API: {error}", "blocks in API form")
    for index, block in enumerate(message.content):
        _sound(table.source, (*table.path, "content", index), block)
    return message
