"""Only this catches a value that nobody thought of: every key of the format, every kind of wrong value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import attrs
import pytest

from stepfold.adapters.scenarios.format import Scenario
from stepfold.adapters.scenarios.judging.expect import differences
from stepfold.adapters.scenarios.judging.invariants import violations
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import TOP, loads
from stepfold.adapters.toml.config_keys import KEYS, OPTIONAL
from stepfold.adapters.toml.reader import Malformed
from stepfold.engine.config import Config


@attrs.frozen
class Raw:
    """A value as it is written."""

    text: str


WRONG: Final[dict[str, object]] = {
    "0": 0,
    "-1": -1,
    "a billion": 10**9,
    "the most": 10**12,
    "more than the most": 10**12 + 1,
    "2**63 - 1": 2**63 - 1,
    "2**63": 2**63,
    "-2**63 - 1": -(2**63) - 1,
    "5000 digits": Raw("1" + "0" * 5_000),
    "5000 hex digits": Raw("0x" + "f" * 5_000),
    "1.5": 1.5,
    "1e308": 1e308,
    "nan": Raw("nan"),
    "-inf": Raw("-inf"),
    "true": True,
    "no words": "",
    "white space": " \t",
    "a word": "word",
    "a nul": Raw('"a\\u0000b"'),
    "off": "off",
    "forever": "forever",
    "long": "x" * 10_000,
    "call 9": Raw('"call 9' + "9" * 5_000 + ' opened"'),
    "a date": Raw("1979-05-27"),
    "a time": Raw("07:32:00"),
    "[]": [],
    "[[]]": [[]],
    "[0]": [0],
    "['']": [""],
    "['a', 'a']": ["a", "a"],
    "{}": {},
    "[{}]": [{}],
    "{ x }": {"x": 1},
    "lists in lists": Raw("[" * 90 + "]" * 90),
    "lists without end": Raw("[" * 5_000 + "]" * 5_000),
    "tables in tables": Raw("{ a = " * 90 + "1" + " }" * 90),
}
UNPLAYED: Final = ("white space", "a word", "off", "forever", "call 9")  # like "long" where they are taken
RUN: Final[dict[str, Any]] = {
    "format": 1,
    "title": "every key",
    "about": "once",
    "config": {"max_turns": 5},
    "history": [
        {"role": "user", "content": "earlier"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "h", "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "h", "content": "c"}]},
    ],
    "user": [{"text": "go"}, {"text": "on"}],
    "model": [
        {
            "blocks": [
                {"text": "I look."},
                {"thinking": "hm", "signature": "s"},
                {"redacted_thinking": "r"},
                {"tool_use": {"id": "t1", "name": "read", "input": {"path": "a"}}},
                {"raw": {"type": "image", "source": {"type": "url"}}},
                {"tool_use": {"id": "t2", "name": "write", "input": '{"n": 1}'}},
            ],
            "stop": "tool_use",
            "usage": {
                "input_tokens": 1,
                "output_tokens": 2,
                "cache_read_input_tokens": 3,
                "cache_creation_input_tokens": 4,
            },
            "takes": 10,
            "times": 1,
            "model": "main",
        },
        {"error": {"status": 429, "type": "rate_limit_error", "message": "slow", "retry_after": 1}},
        {"error": {"transport": "reset"}},
        {"blocks": [{"text": "a"}], "open": {"thinking": "b"}, "cut": True},
        {"blocks": [{"text": "a"}], "open": {"text": "b"}, "error": {"type": "api_error"}},
        {"open": {"tool_use": {"id": "t", "name": "read", "partial_json": "{"}}, "stop": "max_tokens"},
        {"blocks": [{"text": "done"}], "times": "forever"},
    ],
    "tool": [
        {
            "name": "read",
            "safe": True,
            "results": ["a", {"error": "e"}, {"blocks": [{"text": "b"}]}, {"chars": 3}],
            "takes": 1,
            "never": False,
            "interrupt": "wait",
            "max_result_chars": 10,
            "permission": {"ask": "allow"},
            "stop": False,
            "shell": False,
        },
        {"name": "write", "result": "r"},
    ],
    "hook": [{"name": "lint", "answers": ["block: a", "pass"], "max_blocks": 1}],
    "compact": [{"summary": "s", "tokens": 10}, {"error": "e"}],
    "collapse": [{"through": 2, "summary": "s"}],
    "act": [{"at": "call 1 opened", "do": "queue x"}],
    "expect": {
        "terminal": "completed",
        "terminals": ["completed", "completed"],
        "ok": True,
        "ending": "end_turn",
        "transitions": [],
        "model_calls": {"max": 99},
        "compactions": 0,
        "tools": {"t1": "completed"},
        "tool_overlap": [["t1", "t2"]],
        "no_overlap": [["t1", "t2"]],
        "hooks_run": {"lint": 1},
        "waits_ms": [1],
        "shown_errors": 0,
        "tombstones": 0,
        "models": ["main"],
        "request": {"call": 1, "shape": ["user: text"]},
        "contains": {"call": -1, "text": "a"},
    },
}
SPEC: Final = {
    "name": "main",
    "context_window_tokens": 200_000,
    "max_output_tokens": 64_000,
    "input_price": 1,
    "output_price": 1,
    "cache_read_price": 1,
    "cache_creation_price": 1,
}
Place = tuple[str | int, ...]


def toml(value: object) -> str:
    match value:
        case Raw(text):
            return text
        case bool():
            return str(value).lower()
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
            return f'"{escaped}"'
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return str(value)


def written(document: dict[str, Any]) -> str:
    """Return *document* with each key of a table on a line of its own."""
    plain = [f"{key} = {toml(value)}\n" for key, value in document.items() if not tables(value)]
    for key, value in document.items():
        if tables(value):
            for table in value if isinstance(value, list) else [value]:
                plain.append(f"[[{key}]]\n" if isinstance(value, list) else f"[{key}]\n")
                plain += [f"{name} = {toml(inner)}\n" for name, inner in table.items()]
    return "".join(plain)


def tables(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def places(value: object, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every key and element in *value*."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


def put(document: Any, place: Place, value: object) -> Any:
    """Return *document* with *value* at *place*."""
    if not place:
        return value
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    copy[place[0]] = put(copy[place[0]], place[1:], value)
    return copy


def cases() -> Iterator[tuple[str, dict[str, Any], Place]]:
    """Yield a document and a place in it for every key of the format and every key of Config."""
    for place in places(RUN):
        yield ".".join(map(str, place)), RUN, place
    for key in KEYS:
        default = getattr(Config(), key)
        if key in ("models", "stop_hooks"):
            continue
        value = "off" if default is None else list(default) if isinstance(default, tuple) else default
        yield f"config.{key}", put(RUN, ("config",), {key: value}), ("config", key)
    priced = put(RUN, ("config",), {"max_cost": 10**6, "models": [SPEC]})
    hooked = put(RUN, ("config",), {"stop_hooks": [{"name": "h", "max_blocks": 1}]})
    for document, key in ((priced, "models"), (hooked, "stop_hooks")):
        for place in places(document["config"][key], ("config", key)):
            yield ".".join(map(str, place)), document, place


CASES: Final = {name: (document, place) for name, document, place in cases()}


def read(text: str) -> Scenario | Malformed:
    try:
        return loads(text, "file.toml")
    except Malformed as refusal:
        return refusal


def outcome(text: str, *, plays: bool = True) -> str:
    """Return "malformed" or "played"; fails where it is neither."""
    scenario = read(text)
    if isinstance(scenario, Malformed):
        words = str(scenario)
        assert words.startswith(f"file.toml:{scenario.line}: "), words
        assert 1 <= scenario.line <= text.count("\n") + 1
        assert scenario.problem
        assert scenario.allowed
        assert "\n" not in words
        assert len(words) < 2_000
        return "malformed"
    if not plays:
        return "played"
    played = play(scenario)
    assert [] == [*violations(played)]
    assert isinstance(differences(scenario.expect, played.observed), list)
    return "played"


def test_the_sweep_begins_with_what_is_played() -> None:
    assert set(TOP) == set(RUN)
    for document, _ in CASES.values():
        assert "played" == outcome(written(document))
    assert "max_turns" in OPTIONAL


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_value_is_refused_with_its_place_or_played(name: str) -> None:
    document, place = CASES[name]

    found = {}
    for what, value in WRONG.items():
        try:
            found[what] = outcome(written(put(document, place, value)), plays=what not in UNPLAYED)
        except Exception as problem:
            raise AssertionError(f"{name} = {what}") from problem

    assert "malformed" == found["5000 digits"] == found["2**63"] == found["lists without end"]
