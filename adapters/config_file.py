"""
Settings from a TOML file: the keys of Config, models, stop hooks, permission rules.

    model = "claude-sonnet-5-5"
    max_turns = 50
    token_budget_tokens = "off"          # what may be off is turned off by this word

    [[models]]                           # limits and prices of a model that the table lacks
    name = "my-model"
    context_window_tokens = 200_000
    max_output_tokens = 64_000

    [[stop_hooks]]                       # a command that is asked when the model thinks it is done
    name = "lint"
    command = "ruff check ."
    max_blocks = 2

    [permissions]                        # deny before ask before allow, by patterns of tool names
    allow = ["write", "edit"]
    deny = ["bash"]

Whatever is wrong is a ``ConfigFileError`` that names file, line, key and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from stepfold.adapters.toml.config_keys import KEYS, config_of, hook_of, unique, values_of, without_prices
from stepfold.adapters.toml.reader import Malformed, Table, parse_toml, read_toml
from stepfold.engine.config import Config, HookSpec

HOOK_KEYS: Final = ("name", "command", "max_blocks")
RULE_KEYS: Final = ("allow", "ask", "deny")
TOP: Final = (*KEYS, "permissions")


class ConfigFileError(ValueError):
    """A config file cannot be used; the text is one line for people."""


@attrs.frozen
class HookCommand:
    """A stop hook that is a shell command; how its exit code is read is its runner's business."""

    name: str
    command: str
    max_blocks: int = 1


@attrs.frozen
class Settings:
    """
    What a config file says.

    Args:
        values: Keywords of Config, ready to use.
        hooks: The stop hooks with their commands, in order.
        allow, ask, deny: Patterns of tool names.
    """

    values: Mapping[str, Any] = attrs.field(factory=dict)
    hooks: tuple[HookCommand, ...] = ()
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def config(self, **changes: Any) -> Config:
        """Return the Config, *changes* over what the file says; raises ``ConfigError``."""
        return Config(**{**self.values, **changes})


def read_settings(path: str | Path) -> Settings:
    """Read a config file; raises ``ConfigFileError``."""
    try:
        return _settings(read_toml(Path(path), str(path), *TOP))
    except Malformed as problem:
        raise ConfigFileError(str(problem)) from problem


def parse_settings(text: str, name: str) -> Settings:
    """Read the text of a config file; *name* stands in errors.  Raises ``ConfigFileError``."""
    try:
        return _settings(parse_toml(text, name, *TOP))
    except Malformed as problem:
        raise ConfigFileError(str(problem)) from problem


def _settings(top: Table) -> Settings:
    values = values_of(top, "permissions")
    hooks = unique(top, "stop_hooks", [_hook(table) for table in top.tables("stop_hooks", *HOOK_KEYS)])
    values["stop_hooks"] = tuple(HookSpec(hook.name, hook.max_blocks) for hook in hooks)
    config_of(top, {**values, "max_cost": None})
    config_of(top, without_prices(values))
    rules = top.table("permissions", *RULE_KEYS)
    return Settings(values, hooks, *(rules.texts(key) for key in RULE_KEYS))


def _hook(table: Table) -> HookCommand:
    spec = hook_of(table)
    return HookCommand(spec.name, table.text("command", empty=False), spec.max_blocks)
