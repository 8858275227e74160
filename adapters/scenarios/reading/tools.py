"""``[[tool]]`` tables."""

from __future__ import annotations

from typing import Final

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.reading.blocks import result_blocks
from stepfold.adapters.toml.config_keys import unique
from stepfold.adapters.toml.positions import Path
from stepfold.adapters.toml.reader import Table, shown, whole_wanted
from stepfold.engine.config import MOST
from stepfold.engine.events import Interrupt
from stepfold.engine.messages import Text

RULES: Final = 'allow, deny, { ask = "allow" }, { ask = "deny" }'
RESULTS: Final = "a text, { error = TEXT }, { blocks = [...] } or { chars = NUMBER }"
CHARS_MAX: Final = 10_000_000  # of one result
ALL_CHARS_MAX: Final = 100_000_000  # of all results that are given by their number
KEYS: Final = (
    "name", "safe", "result", "results", "takes", "never", "interrupt", "max_result_chars", "permission",
    "stop", "shell",
)  # fmt: skip


def tools_of(top: Table) -> tuple[f.Tool, ...]:
    """Return the tools of a file."""
    _check_chars(top)
    return unique(top, "tool", [_tool(table) for table in top.tables("tool", *KEYS)])


def _check_chars(top: Table) -> None:
    """Refuse a file whose ``chars`` together are more than a computer should hold."""
    left = ALL_CHARS_MAX
    for table in top.tables("tool", *KEYS):
        many = table.values.get("results")
        for value in (table.values.get("result"), *(many if isinstance(many, list) else ())):
            chars = value.get("chars") if isinstance(value, dict) else None
            left -= chars if type(chars) is int and 0 <= chars <= CHARS_MAX else 0
            if left < 0:
                key = "result" if "result" in table else "results"
                table.refuse(key, "is too much beside the others", f"{ALL_CHARS_MAX} chars together")


def _tool(table: Table) -> f.Tool:
    return f.Tool(
        name=table.text("name", empty=False),
        outcomes=_outcomes(table),
        safe=table.flag("safe"),
        timing=f.Timing(
            table.whole("takes", 0),
            table.flag("never"),
            Interrupt(table.choice("interrupt", "wait", "wait", "cancel")),
        ),
        rule=_rule(table),
        max_result_chars=_result_limit(table),
        stop=table.flag("stop"),
        shell=table.flag("shell"),
    )


def _outcomes(table: Table) -> tuple[f.ToolOutcome, ...]:
    if "result" in table and "results" in table:
        table.refuse("results", "stands beside result", "one of result, results")
    if "results" in table:
        found = tuple(
            _outcome(Table(table.source, {"result": item}, path[:-1]), path)
            for path, item in table.items("results", "results")
        )
        return found or table.refuse("results", "is empty", "at least one result")
    if "result" in table:
        return (_outcome(table, (*table.path, "result")),)
    return (f.Gives((Text("ok"),)),)


def _outcome(table: Table, path: Path) -> f.ToolOutcome:
    value = table.values["result"]
    if isinstance(value, str):
        return f.Gives((Text(value),))
    if not isinstance(value, dict):
        table.source.refuse(path, f"{shown(value)} is no result", RESULTS)
    inner = table.source.table(value, path, "error", "blocks", "chars")
    if len(value) != 1:
        table.source.refuse(path, f"{shown(value)} is no result", RESULTS)
    if "error" in inner:
        return f.Raises(inner.text("error"))
    if "chars" in inner:
        return f.Gives((Text("x" * inner.whole("chars", None, 0, CHARS_MAX)),))
    return f.Gives(result_blocks(inner, "blocks"))


def _rule(table: Table) -> f.Rule:
    value = table.values.get("permission", "allow")
    if isinstance(value, dict):
        inner = table.table("permission", "ask")
        inner.require("ask", "allow, deny")
        answer = inner.choice("ask", "", "allow", "deny")
        return f.Rule.ASK_ALLOW if answer == "allow" else f.Rule.ASK_DENY
    if not isinstance(value, str) or value not in ("allow", "deny"):
        table.refuse("permission", f"{shown(value)} is not allowed", RULES)
    return f.Rule.ALLOW if value == "allow" else f.Rule.DENY


def _result_limit(table: Table) -> int | None:
    value = table.values.get("max_result_chars", 50_000)
    if value == "infinite":
        return None
    if type(value) is not int or not 1 <= value <= MOST:
        wanted = f"{whole_wanted(1, MOST, value)}, infinite"
        table.refuse("max_result_chars", f"{shown(value)} is not allowed", wanted)
    return value
