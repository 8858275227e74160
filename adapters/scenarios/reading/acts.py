"""``[[act]]`` tables: points of a run, and what may happen there."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.toml.positions import line_of
from stepfold.adapters.toml.reader import Table, shown
from stepfold.engine.events import AbortKind

POINTS: Final = (
    "call N opened, call N block M, call N closed, tool ID started, tool ID ended, hook NAME started, "
    "compaction N started, retry N waiting (N and M from 1 to 999999999)"
)
DEEDS: Final = "abort hard, abort submit, queue TEXT, crash, close"
NUMBER: Final = r"([1-9][0-9]{0,8})"
PATTERNS: Final = (
    (re.compile(f"call {NUMBER} opened"), f.Moment.CALL_OPENED),
    (re.compile(f"call {NUMBER} block {NUMBER}"), f.Moment.CALL_BLOCK),
    (re.compile(f"call {NUMBER} closed"), f.Moment.CALL_CLOSED),
    (re.compile(r"tool (?P<name>.+) started", re.DOTALL), f.Moment.TOOL_STARTED),
    (re.compile(r"tool (?P<name>.+) ended", re.DOTALL), f.Moment.TOOL_ENDED),
    (re.compile(r"hook (?P<name>.+) started", re.DOTALL), f.Moment.HOOK_STARTED),
    (re.compile(f"compaction(?: {NUMBER})? started"), f.Moment.COMPACTION_STARTED),
    (re.compile(f"retry {NUMBER} waiting"), f.Moment.RETRY_WAITING),
)


def act_of(table: Table, hooks: Collection[str]) -> f.Act:
    """Return one ``[[act]]`` table; *hooks* are the names of the stop hooks."""
    at, do = table.text("at"), table.text("do")
    point, deed = point_of(at), deed_of(do)
    if point is None:
        table.refuse("at", f"{shown(at)} is no point of a run", POINTS)
    if point.moment is f.Moment.HOOK_STARTED and point.name not in hooks:
        table.refuse("at", f"there is no stop hook {shown(point.name)}", names(hooks, "a [[hook]]"))
    if deed is None:
        table.refuse("do", f"{shown(do)} is nothing that can happen", DEEDS)
    place = f"act {table.path[-1] + 1}, line {line_of(table.source.lines, table.path)}"  # type: ignore[operator]
    return f.Act(point, deed, f"{place} ({at!r}: {do!r})")


def names(found: Collection[str], nothing: str) -> str:
    """Return the names that there are, or how to make one."""
    return ", ".join(map(shown, found)) or f"nothing here: the file has not {nothing}"


def point_of(text: str) -> f.Point | None:
    """Return the point that *text* names, or None if it names none."""
    for pattern, moment in PATTERNS:
        found = pattern.fullmatch(text)
        if found:
            named = found.groupdict().get("name", "")
            if named:
                return f.Point(moment, name=named)
            number, block = (*(int(group or 1) for group in found.groups()), 0)[:2]
            return f.Point(moment, number, block)
    return None


def deed_of(text: str) -> f.Deed | None:
    """Return what *text* says that happens, or None if it says nothing known."""
    match text.split(" ", 1):
        case ["abort", "hard"]:
            return f.Abort(AbortKind.HARD)
        case ["abort", "submit"]:
            return f.Abort(AbortKind.SUBMIT)
        case ["queue", words] if words.strip():
            return f.Queue(words)
        case ["crash"]:
            return f.Crash()
        case ["close"]:
            return f.Close()
    return None
