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

# Each part is bounded, or gives nothing back: time grows with the text, not with its square.
_KEYS: Final = (
    r"sk-[A-Za-z0-9_-]{16,}",  # Anthropic, OpenAI
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"glpat-[\w-]{16,}",
    r"xox[abeprs]-[\w-]{10,}",
    r"A(?:KIA|SIA)[A-Z0-9]{12,}",
    r"AIza[\w-]{30,}",
    r"eyJ[\w-]{8,1024}+\.[\w-]{8,}+\.[\w-]+",  # JSON web tokens
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END).)*+(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)
_NAMED: Final = (
    r"(?i:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|authorization|bearer)"
    r"(?:\\?[\"'])?(?:\s*+[:=]\s*+|\s++(?<= ))(?:\\?[\"'])?(?:(?i:bearer|basic)\s++)?"
    r"(?P<named>(?=[^\s\"'\\,;]{0,200}[\d_-])[^\s\"'\\,;]{8,})"
)
_MAIL: Final = r"[\w.+-]{1,64}+@[\w-]+(?:\.[\w-]+)+"
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
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return done
    try:
        value = orjson.loads(done)
    except orjson.JSONDecodeError:
        done = text  # what was replaced went over the end of a text in it
    inner = _inner(value, redact)  # what is escaped in the text is seen here only
    return done if inner == value else orjson.dumps(inner).decode()


def _inner(value: Any, redact: Redact) -> Any:
    """Return the data of a JSON text with every text redacted, and every name."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(name): _named(name, item, redact) for name, item in value.items()}
    if isinstance(value, list):
        return [_inner(item, redact) for item in value]
    return value


def _named(name: str, value: Any, redact: Redact) -> Any:
    """Return a member's value redacted; the name may say that it is secret."""
    if not isinstance(value, str):
        return _inner(value, redact)
    before = f"{name}: "
    whole = redact(before + value)
    return whole.removeprefix(before) if whole.startswith(before) else redact(value)
