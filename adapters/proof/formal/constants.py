"""The constants of a TLC config of ``specs/``: the limits of a model, and what its world may say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, TypeAlias

Constants: TypeAlias = dict[str, Any]
ASSIGNED: Final = re.compile(r'(\w+) = (\{[^}]*\}|\w+|"\w+")')


def read_constants(path: Path) -> Constants:
    """Return {name: number, truth, word, or tuple of these (a set, in the order of the file)}."""
    text = re.sub(r"\\\*.*", "", path.read_text(encoding="utf-8"))
    body = text[text.index("CONSTANTS") :]
    return {name: _value(value) for name, value in ASSIGNED.findall(body)}


def _value(text: str) -> Any:
    text = text.strip()
    if text.startswith("{"):
        return tuple(_value(part) for part in text[1:-1].split(",") if part.strip())
    if text.startswith('"'):
        return text.strip('"')
    return {"TRUE": True, "FALSE": False}[text] if text in ("TRUE", "FALSE") else int(text)


def tla(value: Any) -> str:
    """Return *value* as TLA+ writes it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "<<" + ", ".join(map(tla, value)) + ">>"
    return str(value)
