"""
One strict converter, made once.

Rules that are easy to lose: an inner union is registered before the unions
that hold it (else its tags vanish without a word); the tag is no field's name;
strings, numbers and booleans are never coerced; unknown keys are refused; each
enum is registered by itself (else the hook of ``str`` takes it for a text).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast, get_args, get_origin

import attrs
import orjson
from cattrs import BaseConverter, ClassValidationError, IterableValidationError, transform_error
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_unstructure_fn
from cattrs.preconf.orjson import OrjsonConverter, make_converter
from cattrs.strategies import configure_tagged_union

from stepfold.adapters.codec.tags import BLOCKS, ENUMS, EVENTS, TAG
from stepfold.effects.ports import Start
from stepfold.engine.config import Config, ConfigError, HookSpec, ModelSpec
from stepfold.engine.events import Event
from stepfold.engine.messages import Block, ResultBlock

T = TypeVar("T")
SMALLEST: Final = -(1 << 63)
LARGEST: Final = (1 << 64) - 1  # what JSON holds


class CodecError(ValueError):
    """JSON that is not what it should be; the text names each place and what is allowed there."""


def _whole(value: Any, _: Any) -> int:
    if type(value) is int and SMALLEST <= value <= LARGEST:
        return value
    large = type(value) in (int, float) and abs(value) > LARGEST  # read as a float where it is JSON
    limit = f" from {SMALLEST} to {LARGEST}" if large or type(value) is int else ""
    raise ValueError(f"wanted a whole number{limit}, got {_short(value)}")


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"wanted {_json_name(kind)}, got {_short(value)}")
        return value

    return structure


def _member(kind: type[enum.Enum]) -> Callable[[Any, Any], Any]:
    members = {member.value: member for member in kind}

    def structure(value: Any, _: Any) -> Any:
        member = members.get(value) if type(value) is str else None
        if member is None:
            raise ValueError(f"{_short(value)} is not allowed; wanted one of {', '.join(members)}")
        return member

    return structure


def _is_row(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis


def _row(kind: Any, converter: BaseConverter) -> Callable[[Any, Any], Any]:
    """Return the hook for ``tuple[X, ...]``: only a list will do (a text can be iterated over too)."""
    inner = homogenous_tuple_structure_factory(kind, converter)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not list and type(value) is not tuple:
            raise ValueError(f"wanted a list, got {_short(value)}")
        return inner(value, kind)

    return structure


def _register_union(converter: OrjsonConverter, union: Any, tags: Mapping[type, str]) -> None:
    configure_tagged_union(union, converter, tag_generator=tags.__getitem__, tag_name=TAG)
    inner = converter.get_structure_hook(union)
    known = frozenset(tags[kind] for kind in union.__args__)

    def structure(value: Any, kind: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"wanted an object with {TAG}, got {_short(value)}")
        tag = value.get(TAG)
        if type(tag) is not str or tag not in known:
            raise ValueError(f"{TAG} {_short(tag)} is not allowed; wanted one of {', '.join(sorted(known))}")
        return inner(value, kind)

    converter.register_structure_hook(union, structure)


def _converter(*, careful: bool) -> OrjsonConverter:
    converter = make_converter(detailed_validation=careful, forbid_extra_keys=True, omit_if_default=True)
    for kind in (bool, str):
        converter.register_structure_hook(kind, _exactly(kind))
    converter.register_structure_hook(int, _whole)
    for names in ENUMS:
        converter.register_structure_hook(names, _member(names))
    converter.register_structure_hook_factory(_is_row, _row)
    for whole in (ModelSpec, HookSpec, Config):  # in full: a default that changes must not change old runs
        full = make_dict_unstructure_fn(whole, converter, _cattrs_omit_if_default=False)
        converter.register_unstructure_hook(whole, full)
    _register_union(converter, ResultBlock, BLOCKS)
    _register_union(converter, Block, BLOCKS)
    _register_union(converter, Event, EVENTS)
    return converter


_FAST: Final = _converter(careful=False)
_CAREFUL: Final = _converter(careful=True)
_from_event: Final = _FAST.get_unstructure_hook(Event)
_to_event: Final = _FAST.get_structure_hook(Event)
_from_start: Final = _FAST.get_unstructure_hook(Start)


def plain_event(event: Event) -> dict[str, Any]:
    """Return *event* as plain data, defaults left out."""
    return cast(dict[str, Any], _from_event(event))


def dump_event(event: Event) -> bytes:
    """Return *event* as JSON; raises ``CodecError`` where a text or number does not go into JSON."""
    return _dumps(_from_event(event))


def load_event(line: bytes) -> Event:
    """Return the event that *line* holds; raises ``CodecError``."""
    return event_from(_loads(line))


def event_from(value: Any) -> Event:
    """Return the event of plain data; raises ``CodecError``."""
    try:
        return cast(Event, _to_event(value, Event))
    except Exception as problem:
        raise _explained(value, Event, problem) from problem


def plain_start(start: Start) -> dict[str, Any]:
    """Return what a run starts from as plain data."""
    return cast(dict[str, Any], _from_start(start))


def dump_start(start: Start) -> bytes:
    """Return what a run starts from as JSON."""
    return _dumps(_from_start(start))


def start_from(value: Any) -> Start:
    """Return what a run starts from; raises ``CodecError``."""
    return _structured(value, Start)


def config_from(value: Mapping[str, Any]) -> Config:
    """Return the Config of plain data (as from TOML); raises ``CodecError`` that names the key."""
    return _structured(dict(value), Config)


def _structured(value: Any, kind: type[T]) -> T:
    if type(value) is not dict:
        raise CodecError(f"wanted an object, got {_short(value)}")
    try:
        return _FAST.structure(value, kind)
    except Exception as problem:
        raise _explained(value, kind, problem) from problem


def _dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as problem:  # lone surrogates, integers of more than 64 bits
        raise CodecError(f"it does not go into JSON: {problem}") from problem


def _loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise CodecError(f"it is not JSON: {problem}") from problem


# ------------------------------------------------------------- words for people


def _explained(value: Any, kind: Any, problem: Exception) -> CodecError:
    """Read *value* again with the slow converter, which says where it went wrong."""
    if isinstance(problem, ConfigError):
        return CodecError(str(problem))
    try:
        _CAREFUL.structure(value, kind)
    except (ClassValidationError, IterableValidationError) as found:
        lines = transform_error(found, path="", format_exception=_words)
        return CodecError("; ".join(_placed(line) for line in lines))
    except Exception as found:
        return CodecError(_words(found, None))
    return CodecError(_words(problem, None))


def _placed(line: str) -> str:
    """Turn ``words @ .place`` around."""
    words, _, place = line.rpartition(" @ ")
    place = place.lstrip(".")
    return f"{place}: {words}" if place else words


def _words(problem: BaseException, _: Any) -> str:
    match problem:
        case ForbiddenExtraKeysError():
            allowed = ", ".join(field.name for field in attrs.fields(problem.cl) if field.init)
            keys = ", ".join(sorted(map(repr, problem.extra_fields)))
            return f"unknown key {keys}; allowed are {allowed}"
        case KeyError():
            return f"{problem.args[0]!r} is missing"
        case _:
            return str(problem) or type(problem).__name__


def _json_name(kind: type) -> str:
    return {bool: "true or false", str: "a text"}.get(kind, kind.__name__)


def _short(value: Any, limit: int = 80) -> str:
    if type(value) is int and value.bit_length() > 4 * limit:  # Python refuses to write out the longest ones
        return f"one of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."
