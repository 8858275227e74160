"""From what a tool returns or raises to the blocks of a result."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import Final

from stepfold.engine.messages import Media, Opaque, ResultBlock, Text

MEDIA: Final = ("image", "document")
BLOCK_TYPES: Final = (*MEDIA, "text", "search_result", "tool_reference", "browser_state")


def clean(text: str) -> str:
    """Return *text* with lone surrogates replaced: no log and no request could hold them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def words_of(error: BaseException) -> str:
    """Return class, text and notes of an exception, for the model."""
    return clean("".join(traceback.format_exception_only(error)).strip())


def json_text(value: object) -> str:
    """
    Return *value* as JSON text; what JSON does not know goes through pydantic, then ``str``.

    Raises ``TypeError`` where there is no way to write it.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        from pydantic_core import PydanticSerializationError, to_json

        try:
            return to_json(value, fallback=str, inf_nan_mode="strings").decode()
        except PydanticSerializationError as error:
            kind, why = type(value).__name__, str(error).removeprefix("Error serializing to JSON: ")
            raise TypeError(f"a value of the class {kind} cannot be written as JSON: {why}") from error


def blocks_of(value: object) -> tuple[ResultBlock, ...]:
    """
    Return the blocks of a result.

    None is no block, a text is one, blocks stay as they are (the API's
    dictionaries too), anything else is sent as JSON text.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(clean(value)),)
    if (block := _block(value)) is not None:
        return (block,)
    if isinstance(value, list | tuple):
        blocks = tuple(_block(item) for item in value)
        if blocks and all(block is not None for block in blocks):
            return tuple(block for block in blocks if block is not None)
    return (Text(clean(json_text(value))),)


def _block(value: object) -> ResultBlock | None:
    """Return the block that *value* is, or None."""
    if isinstance(value, Text):
        return Text(clean(value.text), value.extra)
    if isinstance(value, Media | Opaque):
        return value
    if not isinstance(value, Mapping) or (kind := value.get("type")) not in BLOCK_TYPES:
        return None
    if kind == "text":
        rest = {key: item for key, item in value.items() if key not in ("type", "text")}
        text = value.get("text")
        return Text(clean(text), json_text(rest) if rest else "") if isinstance(text, str) else None
    wire = clean(json_text(dict(value)))
    return Media(str(kind), wire) if kind in MEDIA else Opaque(str(kind), wire)
