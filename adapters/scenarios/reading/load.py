"""A scenario file -> ``Scenario``; everything that the format does not know is refused."""

from __future__ import annotations

from pathlib import Path

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.reading.acts import act_of
from stepfold.adapters.scenarios.reading.answers import entry_of
from stepfold.adapters.scenarios.reading.blocks import history_message
from stepfold.adapters.scenarios.reading.expectations import expect_of
from stepfold.adapters.scenarios.reading.tools import tools_of
from stepfold.adapters.toml.config_keys import KEYS, config_of, hook_of, unique, values_of
from stepfold.adapters.toml.reader import Table, parse_toml, read_toml, shown
from stepfold.engine.config import Config, HookSpec
from stepfold.engine.events import HookVerdict

TABLES = ("config", "history", "user", "model", "tool", "hook", "compact", "collapse", "act", "expect")
TOP = ("format", "title", "about", *TABLES)
ENTRY_KEYS = ("blocks", "stop", "usage", "takes", "times", "model", "error", "open", "cut")
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
    if top.values.get("format", f.FORMAT) != f.FORMAT or type(top.values.get("format", f.FORMAT)) is not int:
        top.refuse("format", f"{shown(top.values['format'])} is not known here", str(f.FORMAT))
    title = top.text("title", empty=False)
    prompts = tuple(user.text("text", empty=False) for user in top.tables("user", "text"))
    if not prompts:
        top.refuse("user" if "user" in top else "", "no [[user]] prompt", "at least one [[user]] with a text")
    settings = top.table("config", *KEYS)
    hooks = _hooks(top, settings)
    config = _config(settings, hooks)
    named = [hook.name for hook in hooks]
    acts = tuple(act_of(table, named) for table in top.tables("act", "at", "do"))
    history = tuple(history_message(m, config.model) for m in top.tables("history", "role", "content"))
    return f.Scenario(
        title=title,
        about=top.text_or("about", ""),
        config=config,
        prompts=prompts,
        history=history,
        staged=_staged(top, len(history)),
        world=f.World(
            entries=_entries(top, stopped=any(not isinstance(act.do, f.Queue) for act in acts)),
            tools=tools_of(top),
            hooks=hooks,
            compactions=tuple(_compaction(t) for t in top.tables("compact", "summary", "error", "tokens")),
            acts=acts,
        ),
        expect=expect_of(top, named),
    )


# ---------------------------------------------------------------- config


def _config(table: Table, hooks: tuple[f.Hook, ...]) -> Config:
    values = {"jitter_percent": 0, **values_of(table)}
    values["stop_hooks"] = tuple(HookSpec(hook.name, hook.max_blocks) for hook in hooks)
    return config_of(table, values)


def _hooks(top: Table, config: Table) -> tuple[f.Hook, ...]:
    """Return the stop hooks of ``[config]``, which let every run end, then those that are scripted."""
    tables = config.tables("stop_hooks", "name", "max_blocks")
    plain = unique(config, "stop_hooks", [hook_of(table) for table in tables])
    scripted = unique(top, "hook", [_hook(t) for t in top.tables("hook", "name", "answers", "max_blocks")])
    names = [hook.name for hook in scripted]
    for index, hook in enumerate(plain):
        if hook.name in names:
            path = (*config.path, "stop_hooks", index, "name")
            top.source.refuse(path, f"{hook.name!r} is a [[hook]] too", "either of both")
    passing = (f.HookReply(HookVerdict.PASS),)
    return (*(f.Hook(hook.name, passing, hook.max_blocks) for hook in plain), *scripted)


# ---------------------------------------------------------------- what the world does


def _entries(top: Table, *, stopped: bool) -> tuple[f.Entry, ...]:
    """Return the answers of the model; *stopped* says that something in the file stops a stream."""
    tables = list(top.tables("model", *ENTRY_KEYS))
    return tuple(entry_of(table, last=table is tables[-1], stopped=stopped) for table in tables)


def _hook(table: Table) -> f.Hook:
    replies = []
    for index, answer in enumerate(table.texts("answers")):
        kind, colon, words = answer.partition(":")
        if kind not in ("pass", "block", "prevent", "crash", "timeout") or (
            bool(colon) != (kind in ("block", "prevent"))
        ):
            table.source.refuse(
                (*table.path, "answers", index), f"{shown(answer)} is no answer", HOOK_ANSWERS
            )
        replies.append(f.HookReply(HookVerdict(kind), words.strip()))
    if "answers" in table and not replies:
        table.refuse("answers", "is empty", f"at least one of {HOOK_ANSWERS}")
    spec = hook_of(table)
    return f.Hook(spec.name, tuple(replies) or (f.HookReply(HookVerdict.PASS),), spec.max_blocks)


def _compaction(table: Table) -> f.Compaction:
    if ("summary" in table) == ("error" in table):
        table.refuse("", "has neither or both", "exactly one of summary, error")
    if "error" in table:
        if "tokens" in table:
            table.refuse("tokens", "stands beside error", "tokens only with a summary")
        return f.NoSummary(table.text("error"))
    return f.Summary(table.text("summary"), table.whole_or_none("tokens"))


def _staged(top: Table, before: int) -> tuple[f.Staged, ...]:
    """Return the collapses; past the messages that stand *before* the run ``through`` means all of them."""
    staged: list[f.Staged] = []
    for table in top.tables("collapse", "through", "summary"):
        least = staged[-1].through + 1 if staged else 1
        through = table.whole("through", None, least)
        if least > before:
            table.refuse(
                "through", "no message is left for it to replace", "a collapse of [[history]] messages"
            )
        staged.append(f.Staged(min(through, before), table.text("summary")))
    return tuple(staged)
