"""
The format of a recording's lines as JSON Schema, made from the classes that are written.

``python -m stepfold.adapters.recording.schema`` prints it; docs/recording.schema.json is a copy.
"""

from __future__ import annotations

import enum
import json
import types
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import attrs

from stepfold.adapters.codec import SCHEMA
from stepfold.adapters.codec.tags import BLOCKS, EVENTS, TAG
from stepfold.adapters.recording.format import FORMAT, KEEPS
from stepfold.effects.ports import Start
from stepfold.engine import Continue, Terminal

WHOLE: Final = frozenset({"Config", "ModelSpec", "HookSpec"})  # written with every field


def recording_schema() -> dict[str, Any]:
    """Return the schema of one line: a header, an entry, or a piece of a stream."""
    parts: dict[str, Any] = {}
    events = [_of(kind, parts) for kind in EVENTS]
    begun = _object(Start, parts)
    counted = {"type": "integer", "minimum": 1}
    header = begun["properties"] | {
        "stepfold": {"const": FORMAT},
        "schema": {"const": SCHEMA},
        "version": {"type": "string"},
        "config_hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "keeps": {"type": "array", "items": {"enum": list(KEEPS)}},
        "forked_from": {"type": "object"},
    }
    order = {"type": "object", "properties": {TAG: {"type": "string"}}, "required": [TAG]}
    entry = {
        "n": counted,
        "event": {"anyOf": events},
        "answers": {"type": "string"},
        "continued": {"type": "array", "items": {"enum": [reason.value for reason in Continue]}},
        "ended": {"enum": [reason.value for reason in Terminal]},
        "effects": {"type": "array", "items": order},
        "state": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    }
    delta = {
        "d": counted,
        "effect_id": {"type": "integer"},
        "at_ms": {"type": "integer"},
        "delta": order,
    }
    lines = [
        _closed(header, ["stepfold", "schema", "version", "config_hash", "config"]),
        _closed(entry, ["n", "event"]),
        _closed(delta, list(delta)),
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of a Stepfold recording, schema {SCHEMA}",
        "anyOf": lines,
        "$defs": dict(sorted(parts.items())),
    }


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _of(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; classes go to *parts* and are referred to."""
    if get_origin(kind) in (Union, types.UnionType):
        return {"anyOf": [_of(each, parts) for each in get_args(kind)]}
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": _of(inner[0], parts)}
        return {"type": "array", "prefixItems": [_of(each, parts) for each in inner]}
    if kind is type(None):
        return {"type": "null"}
    if kind in (str, int, bool):
        return {"type": {str: "string", int: "integer", bool: "boolean"}[kind]}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    name = EVENTS.get(kind) or BLOCKS.get(kind) or kind.__name__
    if name not in parts:
        parts[name] = {}
        parts[name] = _object(kind, parts)
    return {"$ref": f"#/$defs/{name}"}


def _object(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    fields = [field for field in attrs.fields(kind) if field.init]
    properties = {field.name: _of(hints[field.name], parts) for field in fields}
    every = kind.__name__ in WHOLE
    required = [field.name for field in fields if every or field.default is attrs.NOTHING]
    if tag := EVENTS.get(kind) or BLOCKS.get(kind):
        properties = {TAG: {"const": tag}} | properties
        required = [TAG, *required]
    return _closed(properties, required)


def text() -> str:
    """Return the schema as it stands in the docs."""
    return json.dumps(recording_schema(), indent=1) + "\n"


if __name__ == "__main__":
    print(text(), end="")
