"""Plain values as TOML, in one line each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL: Final = re.compile(r"[\u007f]")


def text(words: str) -> str:
    """Return *words* as a basic string; what UTF-8 cannot say is replaced."""
    sound = words.encode("utf-8", "replace").decode("utf-8")
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", json.dumps(sound, ensure_ascii=False))


def key(name: str) -> str:
    """Return *name* as a key."""
    return name if _BARE.fullmatch(name) else text(name)


def value(given: Any) -> str:
    """Return *given* (texts, numbers, booleans, lists, tables); a key without a value (None) is left out."""
    match given:
        case bool():
            return "true" if given else "false"
        case int():
            return str(given)
        case float():
            return repr(given)
        case str():
            return text(given)
        case Mapping():
            return table(given)
        case Sequence():
            return f"[{', '.join(value(each) for each in given if each is not None)}]"
    raise TypeError(f"{given!r} has no place in TOML")


def table(given: Mapping[str, Any]) -> str:
    """Return *given* as an inline table."""
    pairs = [f"{key(name)} = {value(each)}" for name, each in given.items() if each is not None]
    return f"{{ {', '.join(pairs)} }}" if pairs else "{}"


def lines(given: Mapping[str, Any]) -> list[str]:
    """Return *given* with one key a line; a key whose value is None is left out."""
    return [f"{key(name)} = {value(each)}" for name, each in given.items() if each is not None]
