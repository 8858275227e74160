"""Typed reading of a TOML file in which every complaint names file, line, key and what is allowed."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Final, NoReturn

import attrs

from stepfold.adapters.toml.nesting import (
    WHOLE_MAX,
    WHOLE_MIN,
    shortened,
    too_big,
    too_deep_at,
    unfinished_at,
)
from stepfold.adapters.toml.positions import LEVELS_MAX, Path, TooDeep, key_lines, line_of
from stepfold.engine.config import MOST

NAMED_MAX: Final = 20  # keys in one complaint


class Malformed(ValueError):
    """
    A file that cannot be used.

    ``line`` counts from 1 and is 0 where there is none; ``key`` is a dotted path whose indexes count from 1,
    "" where no key is to blame; ``allowed`` says what would be right.
    """

    def __init__(self, file: str, line: int, key: str, problem: str, allowed: str = "") -> None:
        place = (f"{file}:{line}: " if line else f"{file}: ") + (f"{key}: " if key else "")
        super().__init__(place + problem + (f"; allowed: {allowed}" if allowed else ""))
        self.file = file
        self.line = line
        self.key = key
        self.problem = problem
        self.allowed = allowed


@attrs.frozen
class Source:
    """The file that is read: its name and the lines of its keys."""

    file: str
    lines: dict[Path, int]

    def refuse(self, path: Path, problem: str, allowed: str = "") -> NoReturn:
        """Raise ``Malformed`` at *path*."""
        raise Malformed(self.file, line_of(self.lines, path), _dotted(path), problem, allowed)

    def table(self, value: Any, path: Path, *allowed: str) -> Table:
        """Return *value* as a table; refuse another type, and keys that are not *allowed*."""
        if not isinstance(value, dict):
            self.refuse(path, f"{shown(value)} is not a table", "a table of " + ", ".join(allowed))
        for key in value:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1, cutoff=0.5)
                hint = f" (did you mean {near[0]}?)" if near else ""
                self.refuse((*path, key), f"there is no such key{hint}", _listed(key, allowed))
        return Table(self, value, path)


def _listed(key: str, allowed: tuple[str, ...]) -> str:
    """Return the keys that are *allowed*; of very many those that are most like *key*."""
    if len(allowed) <= NAMED_MAX:
        return ", ".join(allowed)
    near = difflib.get_close_matches(key, allowed, n=NAMED_MAX // 4, cutoff=0)
    return f"{', '.join(near)} and {len(allowed) - len(near)} more"


def _dotted(path: Path) -> str:
    dotted = ""
    for part in path:
        dotted += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if dotted else part
    return dotted


def shown(value: Any) -> str:
    """Return *value* much as it stands in the file, no longer than 60 characters and on one line."""
    match value:
        case bool():
            text = str(value).lower()
        case str():
            text = repr(value)
        case dict() | list():
            text = json.dumps(value, ensure_ascii=False, default=str)
        case _:
            text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def whole_wanted(low: int, high: int, value: Any) -> str:
    """Return what is allowed instead of *value*; the limit of everything is named to who goes over it."""
    over = type(value) is int and value > high
    return f"a whole number >= {low}" + (f" and <= {high}" if over or high != MOST else "")


@attrs.frozen
class Table:
    """One table of the file; the methods read one key each and refuse a wrong value."""

    source: Source
    values: dict[str, Any]
    path: Path

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def refuse(self, key: str, problem: str, allowed: str = "") -> NoReturn:
        """Raise ``Malformed`` at *key* of this table ("" for the table itself)."""
        self.source.refuse((*self.path, key) if key else self.path, problem, allowed)

    def _refuse_value(self, key: str, allowed: str) -> NoReturn:
        self.refuse(key, f"{shown(self.values[key])} is not allowed", allowed)

    def require(self, key: str, wanted: str) -> None:
        """Refuse the table if *key* is missing."""
        if key not in self.values:
            path = (*self.path, key)
            line = line_of(self.source.lines, self.path)
            raise Malformed(self.source.file, line, _dotted(path), "missing", wanted)

    def text(self, key: str, *, empty: bool = True) -> str:
        """Return a required text."""
        wanted = "a text" if empty else "a text that is not empty"
        self.require(key, wanted)
        value = self.values[key]
        if not isinstance(value, str) or not (value.strip() or empty):
            self._refuse_value(key, wanted)
        return value

    def text_or(self, key: str, default: str) -> str:
        """Return a text, or *default* if there is none."""
        return self.text(key) if key in self.values else default

    def choice(self, key: str, default: str, *allowed: str) -> str:
        """Return one of *allowed*."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in allowed:
            self.require(key, ", ".join(allowed))
            self._refuse_value(key, ", ".join(allowed))
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self._refuse_value(key, "true, false")
        return value

    def whole(self, key: str, default: int | None, low: int = 0, high: int = MOST) -> int:
        """Return a whole number from *low* to *high*; without a *default* the key is required."""
        if default is None:
            self.require(key, whole_wanted(low, high, None))
        value = self.values.get(key, default)
        if type(value) is not int or not low <= value <= high:
            self._refuse_value(key, whole_wanted(low, high, value))
        return value

    def whole_or_none(self, key: str, low: int = 0) -> int | None:
        """Return a whole number of at least *low*, or None where the key is not given."""
        return self.whole(key, None, low) if key in self.values else None

    def items(self, key: str, wanted: str) -> Iterator[tuple[Path, Any]]:
        """Yield path and value of each element of a list; nothing where the key is not given."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            self._refuse_value(key, f"a list of {wanted}")
        for index, item in enumerate(value):
            yield (*self.path, key, index), item

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        found = []
        for path, item in self.items(key, "texts"):
            if not isinstance(item, str):
                self.source.refuse(path, f"{shown(item)} is not allowed", "a text")
            found.append(item)
        return tuple(found)

    def choices(self, key: str, *allowed: str) -> tuple[str, ...]:
        """Return a list of which each is one of *allowed*."""
        for path, item in self.items(key, "texts"):
            if not isinstance(item, str) or item not in allowed:
                self.source.refuse(path, f"{shown(item)} is not allowed", ", ".join(allowed))
        return self.texts(key)

    def named(self, key: str) -> Iterator[tuple[str, Any]]:
        """Yield name and value of each key of a free table; nothing where it is not given."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self._refuse_value(key, "a table")
        yield from value.items()

    def tables(self, key: str, *allowed: str) -> Iterator[Table]:
        """Yield each table of an array of tables."""
        for path, item in self.items(key, f"tables: write [[{_dotted((*self.path, key))}]]"):
            yield self.source.table(item, path, *allowed)

    def table(self, key: str, *allowed: str) -> Table:
        """Return a table within this one, empty where it is not given."""
        return self.source.table(self.values.get(key, {}), (*self.path, key), *allowed)

    def json(self, key: str) -> str:
        """Return any value as JSON text; refuse what JSON cannot say (dates, infinity)."""
        try:
            return json.dumps(self.values[key], ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError):
            self._refuse_value(key, "what JSON can say: texts, numbers, true, false, lists, tables")


def read_toml(path: FilePath, name: str, *allowed: str) -> Table:
    """
    Return the top table of a TOML file.

    Args:
        path: The file.
        name: What complaints call it.
        allowed: The keys at the top.

    Raises:
        Malformed: The file cannot be read, is no UTF-8 or TOML, or has an unknown key.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise Malformed(name, 0, "", f"cannot be read: {error.strerror or error}", "a file") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Malformed(name, line, "", "is not UTF-8 text", "TOML in UTF-8") from error
    return parse_toml(text, name, *allowed)


def parse_toml(text: str, name: str, *allowed: str) -> Table:
    """Return the top table of a TOML *text*; raises as ``read_toml`` does."""
    deep = too_deep_at(text)
    if deep is not None:
        raise _too_deep(name, deep)
    values = _parsed(text, name)
    try:
        lines = key_lines(text)
    except TooDeep as problem:
        raise _too_deep(name, problem.line) from problem
    source = Source(name, lines)
    for path in too_big(values):
        source.refuse(path, "is a number of more than 64 bits", f"from {WHOLE_MIN} to {WHOLE_MAX}")
    return source.table(values, (), *allowed)


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, problem = _toml_problem(error, text)
        raise Malformed(name, line, "", f"is not TOML: {problem}", "TOML 1.0") from error
    except RecursionError as error:  # far from the top of the stack
        raise _too_deep(name, text.count("\n") + 1) from error
    except ValueError as error:  # Python reads no number of thousands of digits
        short = shortened(text)
        if short == text:
            raise Malformed(name, 1, "", f"is not TOML: {error}", "TOML 1.0") from error
        return _parsed(short, name)


def _too_deep(name: str, line: int) -> Malformed:
    return Malformed(
        name, line, "", "is nested too deeply", f"at most {LEVELS_MAX} levels of tables and lists"
    )


def _toml_problem(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """Return line and words of a parser's complaint, which ends in ``(at line 3, column 5)``."""
    words, _, place = str(error).rpartition(" (at ")
    if place.startswith("line "):
        return int(place.removeprefix("line ").split(",")[0]), words
    return unfinished_at(text), words or str(error)
