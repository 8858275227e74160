"""What only this file catches: a config file that is half understood, or refused without a place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from stepfold.adapters.config_file import (
    ConfigFileError,
    HookCommand,
    Settings,
    parse_settings,
    read_settings,
)
from stepfold.adapters.toml.config_keys import KEYS, OPTIONAL
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
context_window_tokens = 100_000
max_output_tokens = 10_000
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

    assert (
        Config(
            model="m1",
            fallback_models=("m2", "m3"),
            max_turns=None,
            max_output_tokens=5_000,
            autocompact=False,
            system_prompt="max_turn = 3\n",
            models=(ModelSpec("m1", 100_000, 10_000, 3),),
            stop_hooks=(HookSpec("lint", 1), HookSpec("test", 3)),
        )
        == settings.config()
    )
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
        ("max_turn = 3", 1, "max_turn: there is no such key (did you mean max_turns?); allowed: max_turns, "),
        ("\n\nzzz = 3", 3, "zzz: there is no such key; allowed: "),
        ("max_turns = 0", 1, "max_turns: 0 is not allowed; allowed: a whole number >= 1"),
        (
            "max_turns = 1.5",
            1,
            'max_turns: 1.5 is not allowed; allowed: a whole number >= 1, or off (None; "off" in a file)',
        ),
        ('max_retries = "off"', 1, "max_retries: 'off' is not allowed; allowed: a whole number >= 0"),
        ("max_turns = true", 1, "max_turns: True is not allowed; allowed: a whole number"),
        ('autocompact = "no"', 1, "autocompact: 'no' is not allowed; allowed: bool (true or false)"),
        ("fallback_models = 3", 1, "fallback_models: 3 is not allowed; allowed: a list of names"),
        ("model = 3", 1, "model: 3 is not allowed; allowed: a name"),
        ('source = "boss"', 1, "source: 'boss' is not allowed; allowed: user, agent"),
        ("# x\nfallback_models = [\n 'a',\n 'a',\n]", 2, "fallback_models: ('a', 'a') names one twice"),
        (
            "source_kind = 'user'",
            1,
            "source_kind: there is no such key (did you mean source?); allowed: source, ",
        ),
        (FULL.replace("max_blocks", "max_block"), 28, "stop_hooks[2].max_block: there is no such key"),
        (
            FULL.replace("max_blocks = 3", "max_blocks = 0"),
            28,
            "stop_hooks[2].max_blocks: 0 is not allowed; allowed: a whole",
        ),
        (
            FULL.replace('command = "pytest"', ""),
            25,
            "stop_hooks[2].command: missing; allowed: a text that is not empty",
        ),
        (FULL.replace("price = 3", "price = 'x'"), 19, "models[1].input_price: 'x' is not allowed"),
        (FULL.replace('["bash"]', '"bash"'), 32, "permissions.deny: 'bash' is not allowed"),
        (
            "[permissions]\nrefuse = []",
            2,
            "permissions.refuse: there is no such key; allowed: allow, ask, deny",
        ),
        ("permissions = 3", 1, "permissions: 3 is not a table; allowed: a table of allow, ask, deny"),
        ("stop_hooks = ['a']", 1, "stop_hooks[1]: 'a' is not a table; allowed: a table of name, command"),
        ("models = 3", 1, "models: 3 is not allowed; allowed: a list of tables: write [[models]]"),
        ("max_turns = 3\nmax_turns = 4", 2, "is not TOML: Cannot overwrite a value"),
        ("# x\na = [\n 1,\n", 2, "is not TOML: "),
        ("a = 1\nb = [1, }]\nc = 2", 2, "is not TOML: "),
        ("a = " + "[" * 5_000, 1, "is nested too deeply; allowed: at most 100 levels"),
        ("# x\na = 1" + "0" * 5_000, 2, "a: is a number of more than 64 bits; allowed: from -922"),
        (
            FULL.replace('"test"', '"lint"'),
            26,
            "stop_hooks[2].name: 'lint' is there twice; allowed: a name of",
        ),
        (
            FULL.replace('"m1"\ncontext', '"m9"\ncontext').replace(
                "[[stop", '[[models]]\nname="m9"\ncontext_window_tokens=1\nmax_output_tokens=1\n[[stop', 1
            ),
            22,
            "models[2].name: 'm9' is there twice",
        ),
        ("model = ' '", 1, "model: ' ' is not allowed; allowed: a name that is not empty"),
        (
            "fallback_models = ['main']",
            1,
            "fallback_models: 'main' is the first model already; allowed: names",
        ),
        (
            "escalated_output_tokens = 5",
            1,
            "escalated_output_tokens: 5 is under default_output_tokens; allowed",
        ),
        (
            "max_turns = 1_000_000_000_001",
            1,
            "max_turns: 1000000000001 is not allowed; allowed: a whole number >= 1 and <= 1000000000000",
        ),
        (
            "max_output_tokens = 64_001",
            1,
            "max_output_tokens: 64001 is more than 'main' can put out; allowed: a ",
        ),
        (
            "context_window_tokens = 20_000",
            1,
            "context_window_tokens: 'main' has a window of 20000 tokens, all ",
        ),
        (
            FULL.replace("100_000", "9_999"),
            17,
            "models[1].context_window_tokens: 'm1' has a window of 9999 toke",
        ),
        (
            FULL.replace("price = 3", "price = -1"),
            19,
            "models[1].input_price: -1 is not allowed; allowed: a whole",
        ),
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


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"models": (ModelSpec("a", 1, 1, -1),)},
            "models: input_price of 'a' is -1; wanted a whole number >= 0",
        ),
        (
            {"models": (ModelSpec("a", 1, True),)},
            "models: max_output_tokens of 'a' is True; wanted a whole num",
        ),
        (
            {"models": (ModelSpec("a", 10**13, 1),)},
            "models: context_window_tokens of 'a' is 10000000000000; wante",
        ),
        (
            {"models": (ModelSpec(" ", 1, 1),)},
            "models: (' ',) is not allowed; wanted a list of names that are not",
        ),
        (
            {"stop_hooks": (HookSpec("a", 10**13),)},
            "stop_hooks: max_blocks of 'a' is 10000000000000; wanted a who",
        ),
        ({"model": ""}, "model: '' is not allowed; wanted a name that is not empty"),
        (
            {"max_turns": 10**12 + 1},
            "max_turns: 1000000000001 is not allowed; wanted a whole number >= 1 and <= 1",
        ),
        (
            {"max_turns": 10**5000},
            "max_turns: a number of 16610 bits is not allowed; wanted a whole number >= 1 ",
        ),
        ({"model": 10**5000}, "model: a number of 16610 bits is not allowed; wanted a name"),
        ({"system_prompt": ["x" * 10_000]}, "system_prompt: ['xxx"),
        (
            {"max_output_tokens": 64_001},
            "max_output_tokens: 64001 is more than 'main' can put out; wanted a whole",
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_what_config_itself_refuses_names_what_is_wanted(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(**values)

    assert str(caught.value).startswith(words)
    assert str(caught.value) == f"{caught.value.key}: {caught.value.problem}; wanted {caught.value.allowed}"
    assert len(str(caught.value)) < 250


def test_a_smaller_fallback_is_no_reason_to_refuse_the_limit_of_the_user() -> None:
    config = Config(
        max_output_tokens=64_000, fallback_models=("small",), models=(ModelSpec("small", 50_000, 4_000),)
    )

    assert 64_000 == config.max_output_tokens
