"""
How deep a TOML file may be nested, and that its numbers are those of TOML.

Parser and scanner go down one call a level; a text that is nested without end
is refused before either sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from stepfold.adapters.toml.positions import LEVELS_MAX, Path

WHOLE_MIN: Final = -(2**63)
WHOLE_MAX: Final = 2**63 - 1

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}]",
    re.DOTALL,
)
_LONG_NUMBER: Final = re.compile(r"[0-9][0-9_]{999,}")


def too_deep_at(text: str) -> int | None:
    """Return the line, from 1, on which brackets open more than ``LEVELS_MAX`` levels, or None."""
    depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                if depth > LEVELS_MAX:
                    return text.count("\n", 0, token.start()) + 1
            case "]" | "}":
                depth -= 1
    return None


def shortened(text: str) -> str:
    """Return *text* with numbers too long for Python's parser as shorter ones that are too big as well."""
    return _LONG_NUMBER.sub("9" * 30, text)


def too_big(values: dict[str, Any]) -> Iterator[Path]:
    """Yield the path of each whole number of *values* that has no place in 64 bits."""
    waiting: list[tuple[Path, Any]] = [((), values)]
    while waiting:
        path, value = waiting.pop()
        match value:
            case dict():
                waiting += (((*path, key), inner) for key, inner in value.items())
            case list():
                waiting += (((*path, index), inner) for index, inner in enumerate(value))
            case int() if not WHOLE_MIN <= value <= WHOLE_MAX:
                yield path
