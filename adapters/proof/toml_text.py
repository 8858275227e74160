"""TOML that people write: what is wrong is told with file, line and key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, TypeAlias

Place: TypeAlias = tuple[str | int, ...]


class SpecError(ValueError):
    """The spec cannot be used; the text is one line for people."""


class Misfit(Exception):
    """Something at *place* of the data is wrong; the reader adds file and line."""

    def __init__(self, place: Place, words: str) -> None:
        super().__init__(words)
        self.place = place


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of *path* and what it holds; raises ``SpecError``."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    try:
        return text, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))
        line = found[1] if found else text.count("\n") + 1
        words = str(error).split(" (at ")[0]
        raise SpecError(f"{path}:{line}: is not TOML: {words}") from error


def dotted(place: Place) -> str:
    """Return *place* as people write it; items count from 1."""
    text = ""
    for step in place:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def line_of(text: str, place: Place) -> int:
    """
    Return the line, from 1, on which *place* is written; that of its table where it is missing.

    Reads the layout of ``specs/machine.toml``: headers of tables, a key at
    the begin of a line, one row of a list of lists a line.
    """
    lines, found = text.split("\n"), 1
    table, count = "", -1
    wanted = [step for step in place if isinstance(step, str)]
    numbers = [step for step in place if isinstance(step, int)]
    inside, row = False, -1
    for number, line in enumerate(lines, 1):
        if header := re.match(r"\[\[?([\w.]+(?:\.?\"[^\"]*\")?)\]\]?\s*(?:#.*)?$", line):
            count = count + 1 if header[1] == table and line.startswith("[[") else 0
            table, inside = header[1], False
            here = _keys_of(table)
            repeated = line.startswith("[[")
            if wanted[: len(here)] == here and (not repeated or numbers[:1] == [count]):
                found = number
                inside, row = True, -1
        elif inside:
            rest = wanted[len(_keys_of(table)) :]
            items = numbers[1:] if text_is_list(text, table) else numbers
            if rest and re.match(rf"\"?{re.escape(rest[0])}\"?\s*=", line):
                found = number
                row = 0 if items else -1
            elif row >= 0 and re.match(r"\s+\[", line):
                row += 1
                if row - 1 == items[0]:
                    return number
    return found


def _keys_of(header: str) -> list[str]:
    return [quoted or bare for quoted, bare in re.findall(r"\"([^\"]*)\"|([\w-]+)", header)]


def text_is_list(text: str, table: str) -> bool:
    """Return whether *table* is a list of tables in *text*."""
    return f"[[{table}]]" in text
