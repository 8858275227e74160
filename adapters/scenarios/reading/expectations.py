"""The ``[expect]`` table."""

from __future__ import annotations

import re
from collections.abc import Collection

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.reading.acts import names
from stepfold.adapters.toml.reader import Table, shown
from stepfold.engine.config import MOST
from stepfold.engine.events import CallStatus
from stepfold.engine.state import Continue
from stepfold.engine.terminals import Ending

KEYS = (
    "terminal", "terminals", "ok", "ending", "transitions", "model_calls", "compactions", "tools",
    "tool_overlap", "no_overlap", "hooks_run", "waits_ms", "shown_errors", "tombstones", "models", "request",
    "contains",
)  # fmt: skip
STATUSES = tuple(status.value for status in CallStatus)
SHAPE = re.compile(r"(user|assistant|system):.*", re.DOTALL)


def expect_of(top: Table, hooks: Collection[str]) -> f.Expect:
    """Return what the file expects; *hooks* are the names of the stop hooks."""
    table = top.table("expect", *KEYS)
    return f.Expect(_ends(table), _calls(table), _tools(table, hooks), _shown(table))


def _ends(table: Table) -> f.EndExpected:
    return f.EndExpected(
        terminal=table.choice("terminal", "", *f.TERMINALS) if "terminal" in table else None,
        terminals=table.choices("terminals", *f.TERMINALS) if "terminals" in table else None,
        ok=table.flag("ok") if "ok" in table else None,
        ending=table.choice("ending", "", *Ending) if "ending" in table else None,
        transitions=table.choices("transitions", *Continue) if "transitions" in table else None,
    )


def _calls(table: Table) -> f.CallsExpected:
    return f.CallsExpected(
        model_calls=_model_calls(table),
        compactions=table.whole_or_none("compactions"),
        models=table.texts("models") if "models" in table else None,
        waits_ms=_waits(table) if "waits_ms" in table else None,
        request=_request(table),
        contains=_contains(table),
    )


def _model_calls(table: Table) -> int | f.AtMost | None:
    value = table.values.get("model_calls")
    if isinstance(value, dict):
        inner = table.table("model_calls", "max")
        return f.AtMost(inner.whole("max", None))
    if value is not None and type(value) is not int:
        table.refuse("model_calls", f"{shown(value)} is not allowed", "a whole number >= 0, { max = NUMBER }")
    return table.whole_or_none("model_calls")


def _waits(table: Table) -> tuple[int, ...]:
    waits = []
    for path, item in table.items("waits_ms", "milliseconds"):
        if type(item) is not int or not 0 <= item <= MOST:
            table.source.refuse(path, f"{shown(item)} is not allowed", f"a whole number >= 0 and <= {MOST}")
        waits.append(item)
    return tuple(waits)


def _call_number(table: Table) -> int:
    wanted = "a call number from 1, or -1 for the last"
    table.require("call", wanted)
    value = table.values["call"]
    if type(value) is not int or value == 0 or abs(value) > MOST:
        table.refuse("call", f"{shown(value)} is not allowed", wanted)
    return value


def _request(table: Table) -> f.RequestShape | None:
    if "request" not in table:
        return None
    inner = table.table("request", "call", "shape")
    inner.require("shape", "a list of one text a message")
    shape = inner.texts("shape")
    for index, message in enumerate(shape):
        if not SHAPE.fullmatch(message):
            place = (*inner.path, "shape", index)
            inner.source.refuse(place, f"{shown(message)} is no message", "ROLE: BLOCK BLOCK ...")
    return f.RequestShape(_call_number(inner), tuple(" ".join(message.split()) for message in shape))


def _contains(table: Table) -> f.Contains | None:
    if "contains" not in table:
        return None
    inner = table.table("contains", "call", "text")
    return f.Contains(_call_number(inner), inner.text("text", empty=False))


def _tools(table: Table, known: Collection[str]) -> f.ToolsExpected:
    tools = table.table("tools", *(name for name, _ in table.named("tools")))
    hooks = table.table("hooks_run", *(name for name, _ in table.named("hooks_run")))
    for name in hooks.values:
        if name not in known:
            hooks.refuse(name, "there is no such stop hook", names(known, "a [[hook]]"))
    return f.ToolsExpected(
        tools=tuple((name, CallStatus(tools.choice(name, "", *STATUSES))) for name in tools.values),
        overlap=_pairs(table, "tool_overlap"),
        no_overlap=_pairs(table, "no_overlap"),
        hooks_run=tuple((name, hooks.whole(name, 0)) for name in hooks.values),
    )


def _pairs(table: Table, key: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for path, item in table.items(key, "pairs of call ids"):
        if not isinstance(item, list) or len(item) != 2 or not all(isinstance(one, str) for one in item):
            table.source.refuse(path, f"{shown(item)} is no pair", 'two call ids, ["t1", "t2"]')
        pairs.append((item[0], item[1]))
    return tuple(pairs)


def _shown(table: Table) -> f.ShownExpected:
    return f.ShownExpected(table.whole_or_none("shown_errors"), table.whole_or_none("tombstones"))
