"""
Settings from a TOML file: the keys of Config, models, stop hooks, permission rules.

    model = "claude-sonnet-5-5"
    max_turns = 50
    token_budget_tokens = "off"          # what may be off is turned off by this word

    [[models]]                           # limits and prices of a model that the table lacks
    name = "my-model"
    context_window_tokens = 200_000
    max_output_tokens = 64_000

    [[stop_hooks]]                       # a command that is asked when the model thinks it is done
    name = "lint"
    command = "ruff check ."
    max_blocks = 2

    [permissions]                        # deny before ask before allow, by patterns of tool names
    allow = ["write", "edit"]
    deny = ["bash"]

Whatever is wrong is a ``ConfigFileError`` that names file, line, key and what is allowed.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from stepfold.engine.config import Config, ConfigError, HookSpec, ModelSpec

Place: TypeAlias = tuple[str | int, ...]

OFF: Final = "off"
KEYS: Final = tuple(field.name for field in attrs.fields(Config) if field.init)
OPTIONAL: Final = frozenset(
    field.name for field in attrs.fields(Config) if field.init and "None" in str(field.type)
)
HOOK_KEYS: Final = ("name", "command", "max_blocks")
RULE_KEYS: Final = ("allow", "ask", "deny")


class ConfigFileError(ValueError):
    """A config file cannot be used; the text is one line for people."""


@attrs.frozen
class HookCommand:
    """A stop hook that is a shell command; how its exit code is read is its runner's business."""

    name: str
    command: str
    max_blocks: int = 1


@attrs.frozen
class Settings:
    """
    What a config file says.

    Args:
        values: Keywords of Config, ready to use.
        hooks: The stop hooks with their commands, in order.
        allow, ask, deny: Patterns of tool names.
    """

    values: Mapping[str, Any] = attrs.field(factory=dict)
    hooks: tuple[HookCommand, ...] = ()
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def config(self, **changes: Any) -> Config:
        """Return the Config, *changes* over what the file says."""
        return Config(**{**self.values, **changes})


def read_settings(path: str | Path) -> Settings:
    """Read a config file; raises ``ConfigFileError``."""
    try:
        text = Path(path).read_bytes().decode()
    except OSError as error:
        raise ConfigFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigFileError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    return parse_settings(text, str(path))


def parse_settings(text: str, name: str) -> Settings:
    """Read the text of a config file; *name* stands in errors.  Raises ``ConfigFileError``."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        words = str(error).split(" (at ")[0]
        raise ConfigFileError(f"{name}:{_first_bad_line(text)}: is not TOML: {words}") from error
    try:
        settings = _settings(data)
        _check(settings)
    except _Problem as problem:
        raise ConfigFileError(f"{name}:{_line_of(text, problem.place)}: {problem}") from None
    except ConfigError as error:
        raise ConfigFileError(f"{name}:{_line_of(text, (error.key,))}: {error}") from error
    return settings


def _check(settings: Settings) -> None:
    """Raise ``ConfigError`` if no Config can be made; prices that the file lacks may come from elsewhere."""
    without = settings.config(max_cost=None)
    chain = (without.model, *without.fallback_models)
    settings.config(models=tuple(ModelSpec(name, 1, 1, 0, 0) for name in chain))


class _Problem(Exception):
    """Something at *place* is wrong; found again in the text by its line."""

    def __init__(self, place: Place, words: str) -> None:
        super().__init__(f"{_dotted(place)}: {words}")
        self.place = place


def _settings(data: Mapping[str, Any]) -> Settings:
    known = (*KEYS, "permissions")
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in known:
            raise _unknown((key,), known)
        if key not in ("permissions", "stop_hooks", "models"):
            values[key] = _value(key, value)
    hooks = tuple(_hook(place, table) for place, table in _tables(data, "stop_hooks"))
    values["stop_hooks"] = tuple(HookSpec(hook.name, hook.max_blocks) for hook in hooks)
    values["models"] = tuple(_model(place, table) for place, table in _tables(data, "models"))
    return Settings(values, hooks, **_rules(data.get("permissions", {})))


def _value(key: str, value: object) -> object:
    if value == OFF and key in OPTIONAL:
        return None
    if isinstance(value, list):
        return tuple(value)
    if key in OPTIONAL and not isinstance(value, int):
        raise _Problem((key,), f'{value!r} is not allowed; wanted a whole number, or "{OFF}"')
    return value


def _tables(data: Mapping[str, Any], key: str) -> list[tuple[Place, dict[str, Any]]]:
    given = data.get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise _Problem((key,), f"wanted tables: write [[{key}]]")
    return [((key, number), table) for number, table in enumerate(given)]


def _hook(place: Place, table: Mapping[str, Any]) -> HookCommand:
    _check_keys(place, table, HOOK_KEYS)
    name = _need(place, table, "name", str)
    command = _need(place, table, "command", str)
    return HookCommand(name, command, _need(place, {"max_blocks": 1, **table}, "max_blocks", int))


def _model(place: Place, table: Mapping[str, Any]) -> ModelSpec:
    fields = {field.name: field for field in attrs.fields(ModelSpec)}
    _check_keys(place, table, fields)
    for key, field in fields.items():
        if key in table or field.default is attrs.NOTHING:
            _need(place, table, key, str if key == "name" else int)
    return ModelSpec(**table)


def _rules(given: object) -> dict[str, tuple[str, ...]]:
    place: Place = ("permissions",)
    if not isinstance(given, dict):
        raise _Problem(place, "wanted a table: write [permissions]")
    _check_keys(place, given, RULE_KEYS)
    for key, value in given.items():
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise _Problem((*place, key), f"{value!r} is not allowed; wanted a list of tool names")
    return {key: tuple(value) for key, value in given.items()}


def _need(place: Place, table: Mapping[str, Any], key: str, kind: type) -> Any:
    wanted = "a text" if kind is str else "a whole number"
    if key not in table:
        raise _Problem(place, f"{key} is missing; wanted {wanted}")
    value = table[key]
    if type(value) is not kind or value == "":
        raise _Problem((*place, key), f"{value!r} is not allowed; wanted {wanted}")
    return value


def _check_keys(place: Place, table: Mapping[str, Any], known: Iterable[str]) -> None:
    for key in table:
        if key not in known:
            raise _unknown((*place, key), known)


def _unknown(place: Place, known: Iterable[str]) -> _Problem:
    names = list(known)
    close = difflib.get_close_matches(str(place[-1]), names, n=1, cutoff=0)
    allowed = f"allowed are {', '.join(names)}" if len(names) <= 8 else f"the closest is {close[0]}"
    return _Problem(place, f"there is no such key; {allowed}")


def _dotted(place: Place) -> str:
    text = ""
    for step in place:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _line_of(text: str, place: Place) -> int:
    """
    Return the line, from 1, on which *place* is written.

    tomllib tells no lines, so ever more of the file is read: the first part
    that holds the place ends with it, and the part before ended just above it.
    """
    lines = text.split("\n")
    read = 0
    for count in range(1, len(lines) + 1):
        try:
            data: Any = tomllib.loads("\n".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a value
        if _holds(data, place):
            return read + 1
        read = count
    return 1


def _first_bad_line(text: str) -> int:
    """Return the line, from 1, on which the value that is not TOML begins."""
    lines = text.split("\n")
    for count in range(len(lines), 0, -1):
        try:
            tomllib.loads("\n".join(lines[:count]))
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        return count + 1
    return 1


def _holds(data: Any, place: Place) -> bool:
    for step in place:
        if isinstance(step, int):
            if not isinstance(data, list) or step >= len(data):
                return False
        elif not isinstance(data, dict) or step not in data:
            return False
        data = data[step]
    return True
