"""
On which line of a TOML text each key stands.

``tomllib`` says what a file means and not where; this small scanner says where
and not what.  It is only given text that ``tomllib`` has accepted, so it can
be plain: it knows strings, brackets, comments and keys, nothing of values.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import attrs

Path: TypeAlias = tuple[str | int, ...]

LEVELS_MAX: Final = 100

_BARE: Final = re.compile(r"[\w-]*")
_PLAIN: Final = re.compile(r"[^,\]}#\r\n]*")  # a number, a date, true, false
_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK_IN_LINE: Final = re.compile(r"[ \t]*")
# Up to two quotes may stand before the closing three.
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\]|\\.)*"' r"|'[^']*'", re.DOTALL
)


class TooDeep(ValueError):
    """Something on ``line`` is nested deeper than allowed."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is nested too deeply")
        self.line = line


def key_lines(text: str) -> dict[Path, int]:
    """
    Return the line (from 1) of every key and array element of a valid TOML *text*.

    A path names tables by their keys and elements of arrays by their index
    from 0: ``("model", 2, "blocks", 0, "text")``.

    Raises:
        TooDeep: A path is longer than ``LEVELS_MAX``.
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Return the line of *path*, or of the nearest thing around it that has one; 1 at last."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


@attrs.define
class _Scanner:
    text: str
    at: int = 0
    line: int = 1
    lines: dict[Path, int] = attrs.Factory(dict)
    arrays: dict[Path, int] = attrs.Factory(dict)  # arrays of tables: index of the last one

    def document(self) -> None:
        table: Path = ()
        while True:
            self.blank()
            if self.at >= len(self.text):
                return
            line = self.line
            if self.text.startswith("[[", self.at):
                self.skip(2)
                table = self.element(self.keys())
                self.skip(2)
            elif self.peek() == "[":
                self.skip(1)
                table = self.resolved(self.keys())
                self.skip(1)
            else:
                self.pair(table)
                continue
            self.note(table, line)

    def note(self, path: Path, line: int) -> None:
        """Remember where *path* stands first."""
        if len(path) > LEVELS_MAX:
            raise TooDeep(line)
        self.lines.setdefault(path, line)

    def resolved(self, keys: Path) -> Path:
        """Return the path of a table: a key that is an array of tables means its last element."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self.arrays:
                path = (*path, self.arrays[path])
        return path

    def element(self, keys: Path) -> Path:
        """Return the path of the next element of an array of tables."""
        array = (*self.resolved(keys[:-1]), keys[-1])
        self.arrays[array] = self.arrays.get(array, -1) + 1
        self.note(array, self.line)
        return (*array, self.arrays[array])

    def pair(self, table: Path) -> None:
        line = self.line
        path: Path = table
        for key in self.keys():
            path = (*path, key)
            self.note(path, line)
        self.skip(1)  # the equals sign
        self.blank_in_line()
        self.value(path)

    def value(self, path: Path) -> None:
        match self.peek():
            case '"' | "'":
                self.string()
            case "[":
                self.array(path)
            case "{":
                self.inline_table(path)
            case _:
                self.take(_PLAIN)

    def array(self, path: Path) -> None:
        self.skip(1)
        index = 0
        while True:
            self.blank()
            if self.peek() == "]":
                self.skip(1)
                return
            self.note((*path, index), self.line)
            self.value((*path, index))
            index += 1
            self.blank()
            if self.peek() == ",":
                self.skip(1)

    def inline_table(self, path: Path) -> None:
        self.skip(1)
        while True:
            self.blank()
            if self.peek() == "}":
                self.skip(1)
                return
            self.pair(path)
            self.blank()
            if self.peek() == ",":
                self.skip(1)

    def keys(self) -> Path:
        """Read one dotted key."""
        keys: list[str] = []
        while True:
            self.blank_in_line()
            keys.append(self.string() if self.peek() in "\"'" else self.take(_BARE))
            if len(keys) > LEVELS_MAX:
                raise TooDeep(self.line)
            self.blank_in_line()
            if self.peek() != ".":
                return tuple(keys)
            self.skip(1)

    def string(self) -> str:
        """Skip a string; return what stands between its quotes (a key with escapes keeps them)."""
        whole = self.take(_STRING)
        quotes = 3 if whole[:3] in ('"""', "'''") and len(whole) > 2 else 1
        return whole[quotes:-quotes]

    def take(self, pattern: re.Pattern[str]) -> str:
        """Skip what *pattern* matches here, and return it."""
        found = pattern.match(self.text, self.at)
        assert found is not None, f"line {self.line}"
        self.skip(found.end() - self.at)
        return found[0]

    def blank(self) -> None:
        """Skip white space, line ends and comments."""
        self.take(_BLANK)

    def blank_in_line(self) -> None:
        self.take(_BLANK_IN_LINE)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count
