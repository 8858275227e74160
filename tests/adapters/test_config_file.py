"""What only this file catches: a config file that is half understood, or refused without a place."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from stepfold.adapters.config_file import (
    KEYS,
    OPTIONAL,
    ConfigFileError,
    HookCommand,
    Settings,
    parse_settings,
    read_settings,
)
from stepfold.engine.config import Config, ConfigError, HookSpec, ModelSpec

FULL = """
# a comment
model = "m1"
fallback_models = [
    "m2",
    "m3",
]
max_turns = "off"
max_output_tokens = 5_000
autocompact = false
system_prompt = \"\"\"
max_turn = 3
\"\"\"

[[models]]
name = "m1"
context_window_tokens = 1000
max_output_tokens = 100
input_price = 3

[[stop_hooks]]
name = "lint"
command = "ruff check ."

[[stop_hooks]]
name = "test"
command = "pytest"
max_blocks = 3

[permissions]
allow = ["read", "mcp_*"]
deny = ["bash"]
"""


def test_everything_a_file_may_say() -> None:
    settings = parse_settings(FULL, "a.toml")

    assert Config(
        model="m1",
        fallback_models=("m2", "m3"),
        max_turns=None,
        max_output_tokens=5_000,
        autocompact=False,
        system_prompt="max_turn = 3\n",
        models=(ModelSpec("m1", 1000, 100, 3),),
        stop_hooks=(HookSpec("lint", 1), HookSpec("test", 3)),
    ) == settings.config()
    assert (HookCommand("lint", "ruff check ."), HookCommand("test", "pytest", 3)) == settings.hooks
    assert (("read", "mcp_*"), (), ("bash",)) == (settings.allow, settings.ask, settings.deny)


def test_an_empty_file_says_nothing() -> None:
    assert Config() == parse_settings("", "a.toml").config()
    assert "m" == parse_settings("", "a.toml").config(model="m").model
    assert Config() == Settings().config()


def test_every_key_of_config_can_be_written() -> None:
    for name in KEYS:
        default = getattr(Config(), name)
        if isinstance(default, bool | int | str):
            text = f"{name} = {str(default).lower() if isinstance(default, bool) else repr(default)}"
        elif default is None:
            text = f'{name} = "off"'
        else:
            text = f"{name} = []"
        assert Config() == parse_settings(text, "a.toml").config(), name
    assert {"max_turns", "max_cost", "token_budget_tokens"} <= OPTIONAL
    assert {field.name for field in attrs.fields(Config) if field.init} == set(KEYS)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("max_turn = 3", 1, "max_turn: there is no such key; the closest is max_turns"),
        ("\n\nzzz = 3", 3, "zzz: there is no such key; the closest is "),
        ("max_turns = 0", 1, "max_turns: 0 is not allowed; wanted a whole number >= 1"),
        ("max_turns = 1.5", 1, 'max_turns: 1.5 is not allowed; wanted a whole number, or "off"'),
        ('max_retries = "off"', 1, "max_retries: 'off' is not allowed; wanted a whole number >= 0"),
        ("max_turns = true", 1, "max_turns: True is not allowed; wanted a whole number"),
        ('autocompact = "no"', 1, "autocompact: 'no' is not allowed; wanted bool"),
        ("fallback_models = 3", 1, "fallback_models: 3 is not allowed; wanted a list of names"),
        ("model = 3", 1, "model: 3 is not allowed; wanted str"),
        ('source = "boss"', 1, "source: 'boss' is not allowed; wanted user, agent"),
        ("# x\nfallback_models = [\n 'a',\n 'a',\n]", 2, "fallback_models: ('a', 'a') names one twice"),
        ("source_kind = 'user'", 1, "source_kind: there is no such key; the closest is source"),
        (FULL.replace("max_blocks", "max_block"), 28, "stop_hooks[2].max_block: there is no such key"),
        (FULL.replace("max_blocks = 3", "max_blocks = 0"), 21, "stop_hooks: max_blocks of 'test' is 0"),
        (FULL.replace('command = "pytest"', ""), 25, "stop_hooks[2]: command is missing; wanted a text"),
        (FULL.replace("price = 3", "price = 'x'"), 19, "models[1].input_price: 'x' is not allowed"),
        (FULL.replace('["bash"]', '"bash"'), 32, "permissions.deny: 'bash' is not allowed"),
        ("[permissions]\nrefuse = []", 2, "permissions.refuse: there is no such key; allowed are allow, ask"),
        ("permissions = 3", 1, "permissions: wanted a table"),
        ("stop_hooks = ['a']", 1, "stop_hooks: wanted tables: write [[stop_hooks]]"),
        ("models = 3", 1, "models: wanted tables"),
        ("max_turns = 3\nmax_turns = 4", 2, "is not TOML: Cannot overwrite a value"),
        ("# x\na = [\n 1,\n", 2, "is not TOML: "),
        ("a = 1\nb = [1, }]\nc = 2", 2, "is not TOML: "),
        ("a = " + "[" * 5_000, 1, "is not TOML: "),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse_settings(text, "a.toml")

    assert str(caught.value).startswith(f"a.toml:{line}: {problem}")
    assert "\n" not in str(caught.value)


def test_a_money_limit_may_wait_for_prices_that_somebody_else_knows() -> None:
    settings = parse_settings('model = "m"\nmax_cost = 5', "a.toml")

    with pytest.raises(ConfigError, match="max_cost"):
        settings.config()
    assert settings.config(models=(ModelSpec("m", 10, 10, 1, 1),)).max_cost == 5
    with pytest.raises(ConfigFileError, match="max_cost: -1 is not allowed"):
        parse_settings("max_cost = -1", "a.toml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"model = '\xff'")

    told = {"": "cannot be read", "no.toml": "No such file", "bad.toml": "UTF-8"}
    for path, problem in ((tmp_path / name, problem) for name, problem in told.items()):
        with pytest.raises(ConfigFileError, match=problem):
            read_settings(path)
