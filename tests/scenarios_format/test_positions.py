"""Only this catches a complaint that points at the wrong line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.toml import positions
from stepfold.adapters.toml.positions import key_lines, line_of

FILES = sorted((Path(__file__).parent.parent / "scenarios").rglob("*.toml"))

TRICKY = '''# a comment with [brackets] and "quotes
first = "a # b"   # really a comment
'quoted key' = 1
text = """
not = a key
[[nor]] this"""
list = [ 1, # one
  "]",

  { deep = [ { deeper = 'x"' } ] },
]
[table."with.dot"]
a.b = 2
[[array]]
x = 1
[array.sub]
y = 2
[[array]]
[array.sub]
y = 3
[[array.inner]]
z = 4
[[array.inner]]
z = """five"""""
'''


def test_every_kind_of_key_has_its_line() -> None:
    lines = key_lines(TRICKY)

    assert {
        ("first",): 2,
        ("quoted key",): 3,
        ("text",): 4,
        ("list",): 7,
        ("list", 0): 7,
        ("list", 1): 8,
        ("list", 2): 10,
        ("list", 2, "deep"): 10,
        ("list", 2, "deep", 0, "deeper"): 10,
        ("table", "with.dot", "a", "b"): 13,
        ("array", 0): 14,
        ("array", 0, "x"): 15,
        ("array", 0, "sub", "y"): 17,
        ("array", 1): 18,
        ("array", 1, "sub"): 19,
        ("array", 1, "sub", "y"): 20,
        ("array", 1, "inner", 0, "z"): 22,
        ("array", 1, "inner", 1, "z"): 24,
    }.items() <= lines.items()
    assert tomllib.loads(TRICKY)["array"][1]["inner"][1]["z"] == 'five""'


def test_what_has_no_line_gets_that_of_what_is_around_it() -> None:
    lines = key_lines("a = 1\n[b]\nc = { d = 1 }\n")

    assert 3 == line_of(lines, ("b", "c", "d", "e"))
    assert 2 == line_of(lines, ("b", "x"))
    assert 1 == line_of(lines, ("nowhere",))


def paths(value: Any, path: positions.Path = ()) -> Iterator[positions.Path]:
    """Yield the path of every key and element in *value*."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from paths(inner, (*path, key))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_key_of_every_scenario_stands_on_its_line(file: Path) -> None:
    text = file.read_text()
    lines = key_lines(text)
    written = text.splitlines()

    for path in paths(tomllib.loads(text)):
        if isinstance(path[-1], str):
            assert path[-1] in written[lines[path] - 1], path
        assert lines[path] >= lines[path[:1]]
