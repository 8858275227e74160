"""Permission rules: patterns of tool names, deny before ask before allow."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from fnmatch import fnmatchcase

import attrs

from stepfold.engine.events import Verdict


class Found(enum.StrEnum):
    """What the rules say of a tool; ``NOTHING`` where no pattern fits."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"
    NOTHING = "nothing"


def _patterns(given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"rules are a list of patterns: write [{given!r}]")
    patterns = tuple(given)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"rules are a list of patterns of tool names; {pattern!r} is no text")
    return patterns


@attrs.frozen(kw_only=True)
class Rules:
    """
    Patterns such as ``bash``, ``mcp_*``; a pattern matches the whole name, letter case counts.

    Args:
        deny: Never run.
        ask: Always ask the user, even where a hook would allow it.
        allow: Run without asking.
        allow_read_only: Tools that are read-only need no pattern to be allowed.
    """

    deny: tuple[str, ...] = attrs.field(default=(), converter=_patterns)
    ask: tuple[str, ...] = attrs.field(default=(), converter=_patterns)
    allow: tuple[str, ...] = attrs.field(default=(), converter=_patterns)
    allow_read_only: bool = False

    def find(self, name: str, *, read_only: bool = False) -> Found:
        """Return what the rules say of the tool *name*."""
        for patterns, found in ((self.deny, Found.DENY), (self.ask, Found.ASK), (self.allow, Found.ALLOW)):
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                return found
        return Found.ALLOW if self.allow_read_only and read_only else Found.NOTHING


VERDICTS = {Found.DENY: Verdict.DENY, Found.ASK: Verdict.ASK, Found.ALLOW: Verdict.ALLOW}
