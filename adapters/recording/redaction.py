"""
Texts that shall not reach the disk, replaced before they do.

A replacement is as long as what it replaces: the engine's estimates of tokens,
and with them its decisions, stay what they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import orjson

Redact: TypeAlias = Callable[[str], str]

# What ties a recording together, or is no text of anybody's.
KEPT: Final = frozenset(
    {
        "$type",
        "id",
        "use_id",
        "answers",
        "run_id",
        "kind",
        "type",
        "status",
        "stop",
        "role",
        "origin",
        "verdict",
        "name",
        "model",
        "fallback_models",
        "signature",
        "error_type",
        "source",
    }
)
JSON_TEXTS: Final = frozenset({"input", "wire", "extra"})

_KEYS: Final = (
    r"sk-[A-Za-z0-9_-]{16,}",  # Anthropic, OpenAI
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"glpat-[\w-]{16,}",
    r"xox[abeprs]-[\w-]{10,}",
    r"A(?:KIA|SIA)[A-Z0-9]{12,}",
    r"AIza[\w-]{30,}",
    r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+",  # JSON web tokens
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END).)*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)
_NAMED: Final = (
    r"(?i:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|authorization|bearer)"
    r"(?:\\?[\"'])?\s*[:= ]\s*(?:\\?[\"'])?(?:(?i:bearer|basic)\s+)?"
    r"(?P<named>(?=[^\s\"'\\,;]*[\d_-])[^\s\"'\\,;]{8,})"
)
_MAIL: Final = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_HOME: Final = r"(?:/home/|/Users/|[A-Za-z]:(?:\\\\?|/)Users(?:\\\\?|/))(?P<home>[^/\\\s\"':]+)"
_PATTERNS: Final = re.compile(f"(?P<key>{'|'.join(_KEYS)})|(?P<mail>{_MAIL})|{_HOME}|{_NAMED}", re.DOTALL)
_LABELS: Final = {"key": "[key]", "named": "[key]", "mail": "[mail]", "home": "[home]"}


def common_secrets(text: str) -> str:
    """
    Return *text* without keys, mail addresses and names of home folders.

    What is replaced keeps its length, and its beginning says what it was:
    ``[key]***``.
    """
    return _PATTERNS.sub(_replaced, text)


def _replaced(found: re.Match[str]) -> str:
    name = found.lastgroup or "key"
    begin, end = (place - found.start() for place in found.span(name))
    whole = found.group()
    size = end - begin
    return whole[:begin] + (_LABELS[name] + "*" * size)[:size] + whole[end:]


def redacted(value: Any, redact: Redact) -> Any:
    """Return plain data with every text of it redacted, but what ties a recording together."""
    return _redacted(value, redact, "")


def _redacted(value: Any, redact: Redact, key: str) -> Any:
    if key in KEPT:
        return value
    if isinstance(value, str):
        return _json_text(value, redact) if key in JSON_TEXTS else redact(value)
    if isinstance(value, dict):
        return {name: _redacted(item, redact, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, redact, "") for item in value]
    return value


def _json_text(text: str, redact: Redact) -> str:
    """Return JSON text that is JSON still; what is none is a text like any other."""
    done = redact(text)
    if done == text or not _is_json(text) or _is_json(done):
        return done
    return orjson.dumps(redacted(orjson.loads(text), redact)).decode()


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
