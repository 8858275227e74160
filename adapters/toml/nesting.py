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

_PART: Final = r"""(?:[\w-]++|"(?:[^"\\\n]|\\[^\n])*+"|'[^'\n]*+')"""  # of a key
# What begins is taken up to where it ends, or to where it would have to: so each character is read once.
_TOKEN: Final = re.compile(
    rf"(?P<long>(?:{_PART}[ \t]*+\.[ \t]*+){{{LEVELS_MAX}}})"
    r'|"""(?:\\.|[^\\])*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+"
    r"|[\w-]++"
    r"|[\[\]{}]",
    re.DOTALL,
)
_LONG_NUMBER: Final = re.compile(r"[0-9][0-9_]{999,}")


def too_deep_at(text: str) -> int | None:
    """Return the line, from 1, on which *text* goes more than ``LEVELS_MAX`` levels deep, or None."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["long"] is not None:
            return _line(text, token.start())
        depth += _deeper(token[0])
        if depth > LEVELS_MAX:
            return _line(text, token.start())
    return None


def unfinished_at(text: str) -> int:
    """Return the line, from 1, on which begins what the end of *text* leaves unfinished."""
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        match _deeper(token[0]):
            case 1:
                opened.append(token.start())
            case -1 if opened:
                opened.pop()
    if opened:
        return _line(text, opened[0])
    quotes = max(text.rfind('"""'), text.rfind("'''"))
    return _line(text, quotes if quotes >= 0 else len(text.rstrip()))


def _deeper(token: str) -> int:
    return 1 if token in ("[", "{") else -1 if token in ("]", "}") else 0


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


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
