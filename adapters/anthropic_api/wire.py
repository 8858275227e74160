"""
Frozen blocks to the API's JSON, and the API's JSON to frozen blocks.

What this version does not know is kept whole (``Opaque.wire``, ``extra``) and
goes back as it came.  No lone surrogate passes: no JSON body may hold one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias, cast
from weakref import ref

from stepfold.engine.events import ToolSpec
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

JSON: TypeAlias = Any
Wire: TypeAlias = dict[str, JSON]

_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


# ---------------------------------------------------------------- text


def clean(text: str) -> str:
    """Return *text* with pairs of surrogates joined and lone ones replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def dumps(value: JSON) -> str:
    """Return *value* as compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> JSON:
    """
    Return the value of strict JSON *text*, its strings clean.

    Raises:
        ValueError: *text* is no JSON (``NaN`` is none), or nested too deeply.
    """
    try:
        value = json.loads(clean(text), parse_constant=_refuse)
        return _cleaned(value) if _ESCAPED_SURROGATE.search(text) else value
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _cleaned(value: JSON) -> JSON:
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {clean(name): _cleaned(item) for name, item in value.items()}
        case _:
            return value


def object_text(text: str) -> tuple[str, str]:
    """Return (*text*, "") where it is a JSON object, else ("{}", *text*): input and raw text of a bad one."""
    text = clean(text)
    try:
        value = loads(text)
        if isinstance(value, dict):
            return (dumps(value) if _ESCAPED_SURROGATE.search(text) else text), ""
    except (ValueError, RecursionError):
        return "{}", text
    return "{}", text


# ---------------------------------------------------------------- JSON to blocks


def block_of(wire: JSON) -> Block:
    """
    Return the block that *wire* is; a type or a shape unknown here becomes ``Opaque``.

    Raises:
        ValueError: *wire* is no object with a type.
    """
    match wire:
        case {"type": "text", "text": str(text), **rest}:
            return Text(clean(text), _extra(rest))
        case {"type": "thinking", "thinking": str(thinking), **rest}:
            signature = rest.pop("signature", None)
            if isinstance(signature, str | None):
                return Thinking(clean(thinking), signature or "", _extra(rest))
        case {"type": "redacted_thinking", "data": str(data), **rest}:
            return RedactedThinking(data, _extra(rest))
        case {"type": "tool_use", "id": str(id), "name": str(name), **rest}:
            input, raw = object_text(dumps(rest.pop("input", {})))
            return ToolUse(clean(id), clean(name), input, _extra(rest), raw)
        case {"type": "tool_result", "tool_use_id": str(use_id), **rest}:
            content = result_content(rest.pop("content", None))
            return ToolResult(use_id, content, bool(rest.pop("is_error", False)), _extra(rest))
        case {"type": "image" | "document" as kind}:
            return Media(kind, dumps(_cleaned(wire)))
    return _opaque(wire)


def _opaque(wire: JSON) -> Opaque:
    kind = wire.get("type") if isinstance(wire, Mapping) else None
    if not isinstance(kind, str):
        raise ValueError(f"a content block without a type: {dumps(wire)[:200]}")
    call_id = wire.get("id") if kind.endswith("_tool_use") else None
    answers = wire.get("tool_use_id") if kind.endswith("_tool_result") else None
    return Opaque(kind, dumps(_cleaned(wire)), _text(call_id), _text(answers))


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _extra(rest: Mapping[Any, JSON]) -> str:
    return dumps(_cleaned(dict(rest))) if rest else ""


def result_content(content: JSON) -> tuple[ResultBlock, ...]:
    """Return the blocks of a tool result's content: nothing, text, or a list of blocks."""
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(clean(content)),)
    blocks = (block_of(part) for part in content)
    return tuple(b if isinstance(b, Text | Media | Opaque) else _opaque(block_json(b)) for b in blocks)


def message_of(wire: JSON, model: str = "") -> Message:
    """
    Return the message that *wire* is; *model* wrote it, if it is an answer.

    Raises:
        ValueError: *wire* is no message: no object, an unknown role, or neither text nor blocks.
    """
    if not isinstance(wire, Mapping):
        raise ValueError(f"a message must be an object, not {type(wire).__name__}")
    role = Role(str(wire.get("role")))
    match wire.get("content"):
        case str(text):
            content: tuple[Block, ...] = (Text(clean(text)),)
        case list() | tuple() as blocks:
            content = tuple(block_of(block) for block in blocks)
        case other:
            raise ValueError(f"content must be text or a list of blocks, not {type(other).__name__}")
    if role is Role.ASSISTANT:
        return Message(role, content, Origin.ANSWER, model)
    results = any(isinstance(block, ToolResult) for block in content)
    return Message(role, content, Origin.RESULTS if results else Origin.PROMPT)


# ---------------------------------------------------------------- blocks to JSON


def block_json(block: Block) -> Wire:
    """Return the JSON of *block*, with every field that it came with."""
    match block:
        case Text(text, extra):
            return {"type": "text", "text": text, **_object(extra)}
        case Thinking(thinking, signature, extra):
            return {"type": "thinking", "thinking": thinking, "signature": signature, **_object(extra)}
        case RedactedThinking(data, extra):
            return {"type": "redacted_thinking", "data": data, **_object(extra)}
        case ToolUse(id, name, input, extra):
            return {"type": "tool_use", "id": id, "name": name, "input": _object(input), **_object(extra)}
        case ToolResult():
            return _result_json(block)
        case Media(_, wire) | Opaque(_, wire):
            return cast(Wire, loads(wire))


def _result_json(block: ToolResult) -> Wire:
    wire: Wire = {"type": "tool_result", "tool_use_id": block.use_id}
    if block.content:
        wire["content"] = [block_json(part) for part in block.content]
    if block.is_error:
        wire["is_error"] = True
    return {**wire, **_object(block.extra)}


def _object(text: str) -> Wire:
    """Return the JSON object *text*; "" and what is no object (a broken history) are empty."""
    try:
        value = loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def tool_json(spec: ToolSpec) -> Wire:
    """
    Return the definition of a tool.

    Raises:
        ValueError: The schema or the whole definition of *spec* is no JSON.
    """
    if spec.wire:
        return cast(Wire, loads(spec.wire))
    described = {"description": spec.description} if spec.description else {}
    return {"name": spec.name, **described, "input_schema": loads(spec.input_schema)}


class Rendered:
    """
    Remembers the JSON of blocks, by identity: what is asked for again is not rendered again.

    An entry goes when its block does.  ``size`` bounds what is held.  The
    dicts are shared: nobody may change them.
    """

    def __init__(self, size: int = 100_000) -> None:
        self._size = size
        self._held: dict[int, tuple[ref[Block], Wire]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def block(self, block: Block) -> Wire:
        """Return the JSON of *block*."""
        key = id(block)
        held = self._held.get(key)
        if held is not None:
            return held[1]
        wire = block_json(block)
        if len(self._held) >= self._size:
            self._held.clear()
        self._held[key] = (ref(block, lambda _: self._held.pop(key, None)), wire)
        return wire

    def messages(self, messages: Sequence[Message]) -> list[Wire]:
        """Return the JSON of *messages*."""
        return [
            {"role": message.role.value, "content": [self.block(block) for block in message.content]}
            for message in messages
        ]
