"""
Schema and reading of inputs, from a function's signature and docstring.

pydantic checks and writes the schema, docstring_parser reads the docstring;
both are imported when the first tool is built, not before.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from stepfold.adapters.tools.definition import Arguments, CallContext, InvalidInput

if TYPE_CHECKING:
    from docstring_parser import Docstring
    from pydantic import BaseModel, ValidationError

MAX_PROBLEMS = 10


@attrs.frozen(kw_only=True)
class Signature:
    """
    What a function wants.

    Args:
        description: The docstring without its list of arguments.
        input_schema: JSON text.
        read: From an input to the arguments, as Python values.
        fill: From the arguments to JSON values, defaults included.
        context: The name of the parameter that gets the ``CallContext``, or None.
        positional: The parameters that can only be given by place.
    """

    description: str
    input_schema: str
    read: Callable[[Arguments], Arguments]
    fill: Callable[[Arguments], Arguments]
    context: str | None
    positional: tuple[str, ...] = ()


def signature_of(function: Callable[..., object], name: str) -> Signature:
    """
    Read a function; *name* is the tool's name.

    Raises ``TypeError`` where the signature cannot be a tool's: ``*args``, an
    annotation that does not resolve, or one without a JSON schema.
    """
    import docstring_parser
    from pydantic.errors import PydanticUserError

    hints = _hints(function, name)
    parameters = inspect.signature(function).parameters
    context = next((each for each in parameters if hints.get(each) is CallContext), None)
    wanted = {each: parameter for each, parameter in parameters.items() if each != context}
    doc = docstring_parser.parse(inspect.getdoc(function) or "")
    try:
        model = _model(name, wanted, hints, doc)
        schema = model.model_json_schema(by_alias=True)
    except PydanticUserError as error:
        raise TypeError(f"tool {name!r}: {error.message}") from error
    schema = {key: value for key, value in schema.items() if key not in ("title", "description")}
    _drop_titles(schema)
    return Signature(
        description=_description(doc),
        input_schema=json.dumps(schema, ensure_ascii=False),
        read=lambda given: read_model(model, given, name),
        fill=lambda arguments: _fill(model, arguments),
        context=context,
        positional=tuple(e for e, parameter in wanted.items() if parameter.kind is parameter.POSITIONAL_ONLY),
    )


def read_model(model: type[BaseModel], given: Arguments, tool: str) -> Arguments:
    """Return the arguments that *model* reads from an input; raises ``InvalidInput``."""
    from pydantic import ValidationError

    try:
        made = model.model_validate(dict(given))
    except ValidationError as error:
        raise InvalidInput(_problems(error, model, tool)) from error
    values = {field.alias or name: getattr(made, name) for name, field in model.model_fields.items()}
    return {**values, **(made.model_extra or {})}


def _hints(function: Callable[..., object], name: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(inspect.unwrap(target), include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {name!r}: an annotation does not resolve: {error}") from error


def _model(
    name: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any], doc: Docstring
) -> type[BaseModel]:
    """Return a model with one field a parameter, named by number: a parameter may be called `schema`."""
    from pydantic import ConfigDict, create_model

    told = {each.arg_name.lstrip("*"): each.description for each in doc.params}
    fields: dict[str, Any] = {}
    extra = False
    for number, (each, parameter) in enumerate(parameters.items()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise TypeError(f"tool {name!r}: *{each} has no place in a JSON object")
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = True
            continue
        fields[f"field_{number}"] = _field(each, parameter, hints.get(each, Any), told.get(each))
    config = ConfigDict(extra="allow" if extra else "forbid", arbitrary_types_allowed=False)
    return create_model(name, __config__=config, **fields)


def _field(name: str, parameter: inspect.Parameter, hint: Any, told: str | None) -> tuple[Any, Any]:
    """Return type and field of one parameter; words in its annotation win over the docstring's."""
    from pydantic import Field
    from pydantic.fields import FieldInfo
    from pydantic_core import PydanticUndefined

    default: Any = ... if parameter.default is parameter.empty else parameter.default
    if isinstance(default, FieldInfo):  # written as `x: int = Field(3, ge=1)`
        hint, default = typing.Annotated[hint, default], default.default
        default = ... if default is PydanticUndefined else default
    noted = getattr(hint, "__metadata__", ())
    has_words = any(isinstance(note, FieldInfo) and note.description for note in noted)
    described: dict[str, Any] = {"description": told} if told and not has_words else {}
    return hint, Field(default, alias=name, **described)


def _fill(model: type[BaseModel], arguments: Arguments) -> Arguments:
    from pydantic_core import to_jsonable_python

    filled = to_jsonable_python(dict(arguments), fallback=str, by_alias=True)
    return typing.cast("Arguments", filled)


def _description(doc: Docstring) -> str:
    return "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)


def _drop_titles(schema: dict[str, Any]) -> None:
    """Take pydantic's generated titles out: they repeat the names and cost tokens."""
    for entry in (schema, *schema.get("$defs", {}).values()):
        for each in entry.get("properties", {}).values():
            each.pop("title", None)


def _problems(error: ValidationError, model: type[BaseModel], tool: str) -> str:
    """Return what is wrong with an input, place by place, and what the tool takes."""
    found = error.errors(include_url=False, include_context=False)
    lines = []
    for each in found[:MAX_PROBLEMS]:
        place = ".".join(str(step) for step in each["loc"]) or "the input"
        match each["type"]:
            case "missing":
                lines.append(f"- {place} is required and missing")
            case "extra_forbidden":
                lines.append(f"- {place} is not an argument of this tool")
            case _:
                lines.append(f"- {place}: {each['msg']}; got {_clip(each['input'])}")
    if len(found) > MAX_PROBLEMS:
        lines.append(f"- and {len(found) - MAX_PROBLEMS} more")
    takes = ", ".join(
        f"{field.alias or name}{' (required)' if field.is_required() else ''}"
        for name, field in model.model_fields.items()
    )
    head = f"The input does not fit the tool {tool!r}:"
    return "\n".join((head, *lines, f"It takes: {takes or 'no arguments'}."))


def _clip(value: object, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
