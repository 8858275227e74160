"""A scenario file -> ``Scenario``; everything that the format does not know is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.reading.answers import entry_of
from stepfold.adapters.scenarios.reading.blocks import history_message, result_blocks
from stepfold.adapters.scenarios.reading.expectations import expect_of
from stepfold.adapters.scenarios.reading.reader import Table, parse_toml, read_toml
from stepfold.engine.config import Config, ConfigError, HookSpec, ModelSpec
from stepfold.engine.events import AbortKind, HookVerdict, Interrupt
from stepfold.engine.messages import Text

TABLES = ("config", "history", "user", "model", "tool", "hook", "compact", "collapse", "act", "expect")
TOP = ("format", "title", "about", *TABLES)
CONFIG_FIELDS = {field.name: field for field in attrs.fields(Config) if field.init}
MODEL_KEYS = tuple(field.name for field in attrs.fields(ModelSpec))
OFF = "off"
RULES = 'allow, deny, { ask = "allow" }, { ask = "deny" }'
POINTS = (
    "call N opened, call N block M, call N closed, tool ID started, tool ID ended, hook NAME started, "
    "compaction N started, retry N waiting"
)
DEEDS = "abort hard, abort submit, queue TEXT, crash, close"
HOOK_ANSWERS = "pass, block: WORDS, prevent: WORDS, crash, timeout"


def load(path: Path, name: str | None = None) -> f.Scenario:
    """
    Return the scenario in the file at *path*.

    Args:
        path: The file.
        name: What complaints call it; the path itself by default.

    Raises:
        Malformed: With file, line, key and what is allowed.
    """
    return scenario_of(read_toml(path, name or str(path), *TOP))


def loads(text: str, name: str = "scenario") -> f.Scenario:
    """Return the scenario in *text*; raises as ``load`` does."""
    return scenario_of(parse_toml(text, name, *TOP))


def scenario_of(top: Table) -> f.Scenario:
    """Return the scenario of a whole file."""
    top.require("format", str(f.FORMAT))
    if top.values["format"] != f.FORMAT or type(top.values["format"]) is not int:
        top.refuse("format", f"{top.values['format']!r} is not known here", str(f.FORMAT))
    title = top.text("title", empty=False)
    prompts = tuple(user.text("text", empty=False) for user in top.tables("user", "text"))
    if not prompts:
        top.refuse("user" if "user" in top else "", "no [[user]] prompt", "at least one [[user]] with a text")
    hooks = _unique(top, "hook", tuple(_hook(table) for table in _tables(top, "hook")))
    config = _config(top, hooks)
    return f.Scenario(
        title=title,
        about=top.text_or("about", ""),
        config=config,
        prompts=prompts,
        history=tuple(history_message(m, config.model) for m in top.tables("history", "role", "content")),
        staged=_staged(top),
        world=f.World(
            entries=_entries(top),
            tools=_unique(top, "tool", tuple(_tool(table) for table in _tables(top, "tool"))),
            hooks=hooks,
            compactions=tuple(_compaction(t) for t in top.tables("compact", "summary", "error", "tokens")),
            acts=tuple(_act(table) for table in top.tables("act", "at", "do")),
        ),
        expect=expect_of(top),
    )


def _tables(top: Table, key: str) -> list[Table]:
    keys = {"tool": TOOL_KEYS, "hook": ("name", "answers", "max_blocks")}[key]
    return list(top.tables(key, *keys))


def _unique(top: Table, key: str, named: tuple[Any, ...]) -> tuple[Any, ...]:
    names = [one.name for one in named]
    for index, name in enumerate(names):
        if name in names[:index]:
            top.source.refuse((key, index, "name"), f"{name!r} is there twice", "a name of its own")
    return named


# ---------------------------------------------------------------- config


def _config(top: Table, hooks: tuple[f.Hook, ...]) -> Config:
    table = top.table("config", *(name for name in CONFIG_FIELDS if name != "stop_hooks"))
    values: dict[str, Any] = {"jitter_percent": 0}
    for key in table.values:
        values[key] = _config_value(table, key)
    values["stop_hooks"] = tuple(HookSpec(hook.name, hook.max_blocks) for hook in hooks)
    try:
        return Config(**values)
    except ConfigError as error:
        known = error.key in table.values
        table.refuse(error.key if known else "", error.problem if known else str(error))


def _config_value(table: Table, key: str) -> Any:
    value = table.values[key]
    if key == "models":
        return tuple(_model_spec(spec) for spec in table.tables(key, *MODEL_KEYS))
    if value == OFF and "None" in str(CONFIG_FIELDS[key].type):
        return None
    return table.texts(key) if isinstance(value, list) else value


def _model_spec(table: Table) -> ModelSpec:
    prices = ("input_price", "output_price", "cache_read_price", "cache_creation_price")
    for key in ("context_window_tokens", "max_output_tokens"):
        table.require(key, "a whole number >= 1")
    return ModelSpec(
        table.text("name", empty=False),
        table.whole("context_window_tokens", 1, 1),
        table.whole("max_output_tokens", 1, 1),
        *(table.whole_or_none(price) for price in prices),
    )


# ---------------------------------------------------------------- what the world does


def _entries(top: Table) -> tuple[f.Entry, ...]:
    keys = ("blocks", "stop", "usage", "takes", "times", "model", "error", "open", "cut")
    tables = list(top.tables("model", *keys))
    return tuple(entry_of(table, last=table is tables[-1]) for table in tables)


TOOL_KEYS = (
    "name", "safe", "result", "results", "takes", "never", "interrupt", "max_result_chars", "permission",
    "stop", "shell",
)  # fmt: skip


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


def _outcome(table: Table, path: tuple[str | int, ...]) -> f.ToolOutcome:
    value = table.values["result"]
    if isinstance(value, str):
        return f.Gives((Text(value),))
    kinds = ("error", "blocks", "chars")
    wanted = "a text, { error = TEXT }, { blocks = [...] } or { chars = NUMBER }"
    if not isinstance(value, dict):
        table.source.refuse(path, "is no result", wanted)
    inner = table.source.table(value, path, *kinds)
    if len(value) != 1:
        table.source.refuse(path, "is no result", wanted)
    if "error" in inner:
        return f.Raises(inner.text("error"))
    if "chars" in inner:
        return f.Gives((Text("x" * inner.whole("chars", 0)),))
    return f.Gives(result_blocks(inner, "blocks"))


def _rule(table: Table) -> f.Rule:
    value = table.values.get("permission", "allow")
    if isinstance(value, dict):
        answer = table.table("permission", "ask").choice("ask", "", "allow", "deny")
        return f.Rule.ASK_ALLOW if answer == "allow" else f.Rule.ASK_DENY
    if value not in ("allow", "deny"):
        table.refuse("permission", f"{value!r} is not allowed", RULES)
    return f.Rule.ALLOW if value == "allow" else f.Rule.DENY


def _result_limit(table: Table) -> int | None:
    value = table.values.get("max_result_chars", 50_000)
    if value == "infinite":
        return None
    if type(value) is not int or value < 1:
        table.refuse("max_result_chars", f"{value!r} is not allowed", "a whole number >= 1, infinite")
    return value


def _hook(table: Table) -> f.Hook:
    replies = []
    for index, answer in enumerate(table.texts("answers")):
        kind, colon, words = answer.partition(":")
        if kind not in ("pass", "block", "prevent", "crash", "timeout") or (
            bool(colon) != (kind in ("block", "prevent"))
        ):
            table.source.refuse((*table.path, "answers", index), f"{answer!r} is no answer", HOOK_ANSWERS)
        replies.append(f.HookReply(HookVerdict(kind), words.strip()))
    name = table.text("name", empty=False)
    return f.Hook(name, tuple(replies) or (f.HookReply(HookVerdict.PASS),), table.whole("max_blocks", 1, 1))


def _compaction(table: Table) -> f.Compaction:
    if ("summary" in table) == ("error" in table):
        table.refuse("", "has neither or both", "exactly one of summary, error")
    if "error" in table:
        if "tokens" in table:
            table.refuse("tokens", "stands beside error", "tokens only with a summary")
        return f.NoSummary(table.text("error"))
    return f.Summary(table.text("summary"), table.whole_or_none("tokens"))


def _staged(top: Table) -> tuple[f.Staged, ...]:
    staged: list[f.Staged] = []
    for table in top.tables("collapse", "through", "summary"):
        least = staged[-1].through + 1 if staged else 1
        table.require("through", f"a whole number >= {least}")
        staged.append(f.Staged(table.whole("through", least, least), table.text("summary")))
    return tuple(staged)


# ---------------------------------------------------------------- acts


def _act(table: Table) -> f.Act:
    at, do = table.text("at"), table.text("do")
    point, deed = point_of(at), deed_of(do)
    if point is None:
        table.refuse("at", f"{at!r} is no point of a run", POINTS)
    if deed is None:
        table.refuse("do", f"{do!r} is nothing that can happen", DEEDS)
    return f.Act(point, deed)


PATTERNS = (
    (re.compile(r"call ([1-9]\d*) opened"), f.Moment.CALL_OPENED),
    (re.compile(r"call ([1-9]\d*) block ([1-9]\d*)"), f.Moment.CALL_BLOCK),
    (re.compile(r"call ([1-9]\d*) closed"), f.Moment.CALL_CLOSED),
    (re.compile(r"tool (?P<name>.+) started"), f.Moment.TOOL_STARTED),
    (re.compile(r"tool (?P<name>.+) ended"), f.Moment.TOOL_ENDED),
    (re.compile(r"hook (?P<name>.+) started"), f.Moment.HOOK_STARTED),
    (re.compile(r"compaction(?: ([1-9]\d*))? started"), f.Moment.COMPACTION_STARTED),
    (re.compile(r"retry ([1-9]\d*) waiting"), f.Moment.RETRY_WAITING),
)


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
