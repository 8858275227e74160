"""Inputs for the calls of a user's own tools, made from their schemas: a few of each, the plainest first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stepfold.engine.events import ToolSpec

INPUTS_MAX: Final = 12
_VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "string": ("x", "", "../x", "x" * 5_000),
    "integer": (1, 0, -1, 10**9),
    "number": (1, 0, -1.5, 10**9),
    "boolean": (True, False),
    "null": (None,),
}


def inputs_of(spec: ToolSpec, given: Sequence[Mapping[str, Any]] = ()) -> tuple[str, ...]:
    """
    Return inputs for *spec* as JSON texts.

    Args:
        spec: The tool.
        given: The inputs to use instead of those made from the schema.
    """
    if given:
        return tuple(json.dumps(dict(each)) for each in given)
    try:
        schema = json.loads(spec.input_schema)
    except ValueError:
        schema = {}
    return tuple(json.dumps(each) for each in _objects(schema))


def _objects(schema: Any) -> list[dict[str, Any]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return [{}]
    required = [name for name in schema.get("required", ()) if name in properties]
    plain = {name: _values(properties[name])[0] for name in required}
    found = [plain]
    for name, inner in properties.items():
        found += [{**plain, name: value} for value in _values(inner)]
    unique = {json.dumps(each, sort_keys=True): each for each in found}
    return list(unique.values())[:INPUTS_MAX]


def _values(schema: Any) -> tuple[Any, ...]:
    """Return a few values that *schema* allows, as far as its type says."""
    if not isinstance(schema, Mapping):
        return ("x",)
    if "enum" in schema:
        return tuple(schema["enum"]) or (None,)
    if "const" in schema:
        return (schema["const"],)
    for either in ("anyOf", "oneOf"):
        if schema.get(either):
            return tuple(value for each in schema[either] for value in _values(each)[:2])
    kind = schema.get("type", "string")
    if isinstance(kind, Sequence) and not isinstance(kind, str):
        return tuple(value for each in kind for value in _values({**schema, "type": each})[:2])
    if kind == "array":
        return ([], [_values(schema.get("items", {}))[0]])
    if kind == "object":
        return tuple(_objects(schema)[:2])
    return _VALUES.get(str(kind), ("x",))
