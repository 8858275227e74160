"""
The engine is pure: an allow-list over its source, and an audit of what happens in ``step``.

Only this file sees an impure call that no test happens to reach.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepfold.adapters.codec import digest
from stepfold.engine import Config, State, UnexpectedEvent, start, step
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    Event,
    Resumed,
    RunStarted,
    Stop,
    StreamClosed,
    ToolEnded,
    Usage,
)
from stepfold.engine.messages import Text, ToolUse
from tests.engine.driven.walks import WALKS

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "engine").rglob("*.py"))
MAY_IMPORT = {
    "__future__",
    "attrs",
    "collections",
    "collections.abc",
    "enum",
    "itertools",
    "re",
    "typing",
}
MAY_CALL = {  # of what Python itself has; anything else is impure or not needed
    "IndexError",
    "all",
    "any",
    "bool",
    "dict",
    "divmod",
    "enumerate",
    "frozenset",
    "getattr",
    "int",
    "isinstance",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "range",
    "set",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "zip",
}
MAY_TOUCH = {
    "config.py": {"__setattr__", "__init__"},
    "frozen.py": {"__class__", "__dict__", "__eq__", "__hash__", "__match_args__", "__new__", "__repr__"},
    "step.py": set(),
}
MAY_HASH = {"frozen.py"}  # the one place that defines __hash__


def _hidden(name: str) -> bool:
    return name.startswith("__") and name != "__name__"


def complaints(source: str, name: str = "") -> Iterator[str]:
    """Yield what an engine file may not hold."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name not in MAY_IMPORT)
            case ast.ImportFrom(module=module, level=level):
                inside = module is not None and module.split(".")[:2] == ["stepfold", "engine"]
                if level or (module not in MAY_IMPORT and not inside):
                    yield f"from {module}"
            case ast.Call(func=ast.Name(id="hash")) if name in MAY_HASH:
                pass
            case ast.Call(func=ast.Name(id=called)) if hasattr(builtins, called) and called not in MAY_CALL:
                yield f"{called}()"
            case ast.Attribute(attr=touched) if _hidden(touched) and touched not in MAY_TOUCH.get(name, ()):
                yield f".{touched}"
            case ast.AsyncFunctionDef() | ast.Await() | ast.Global() | ast.Nonlocal() | ast.Yield():
                yield type(node).__name__
            case ast.Constant(value=float()):
                yield f"the float {node.value}"
            case ast.BinOp(op=ast.Div()):
                yield "a division that makes floats"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_engine_file_is_pure(path: Path) -> None:
    assert [] == list(complaints(path.read_text(encoding="utf-8"), path.name))


@pytest.mark.parametrize(
    "bad",
    [
        "import time",
        "import json",
        "from datetime import datetime",
        "import secrets",
        "from . import x",
        "from stepfold.effects import run",
        "from stepfold import effects",
        "x = open('f')",
        "def f():\n    import uuid",
        "x = __import__('time')",
        "x = hash('a')",
        "x = id(x)",
        "async def f(): pass",
        "def f():\n    global x\n    x = 1",
        "print(1)",
        "x = 0.5",
        "x = 1 / 2",
        "x = getattr(y, 'z').__globals__",
        "object.__setattr__(x, 'y', 1)",
        "x = memoryview(b'')",
        "setattr(x, 'y', 1)",
    ],
)
def test_the_check_sees_what_is_bad(bad: str) -> None:
    assert list(complaints(bad))


def session() -> list[Event]:
    """Return the events of a run with a tool, a crash and an abort."""
    return [
        RunStarted((Text("go"),), "run", 7, at_ms=5),
        BlockCompleted(1, Text("look"), at_ms=10),
        BlockCompleted(1, ToolUse("t1", "read"), CallFacts(safe=True), at_ms=11),
        StreamClosed(1, Stop.TOOL_USE, usage=Usage(100, 20), at_ms=12),
        ToolEnded(2, (Text("x"),), at_ms=13),
        BlockCompleted(3, ToolUse("t2", "edit"), CallFacts(), at_ms=14),
        StreamClosed(3, Stop.TOOL_USE, at_ms=15),
        Resumed(at_ms=16),
        AbortRequested(AbortKind.HARD, at_ms=17),
    ]


def folded(events: list[Event]) -> State:
    state = start()
    for event in events:
        state, _ = step(state, event, Config())
    return state


_seen: list[str] | None = None


def _audit(name: str, arguments: tuple[object, ...]) -> None:
    if _seen is not None:
        _seen.append(name)


sys.addaudithook(_audit)


def test_nothing_audited_happens_in_a_step() -> None:
    """No file, socket, import, process or code object is touched."""
    global _seen
    config, state = Config(), start()
    for event in session():
        _seen = []
        try:
            state, _ = step(state, event, config)
        finally:
            happened, _seen = _seen, None
        assert [] == happened


def test_the_audit_sees_something() -> None:
    global _seen
    _seen = []
    try:
        Path(__file__).exists()
        compile("1", "x", "eval")
    finally:
        happened, _seen = _seen, None
    assert happened


def test_a_step_leaves_its_input_as_it_was() -> None:
    state = start()
    for event in session():
        before = digest(state)
        after, _ = step(state, event, Config())
        assert before == digest(state)
        state = after


def test_an_unexpected_event_leaves_the_state_good() -> None:
    state = folded(session()[:2])
    before = digest(state)
    with pytest.raises(UnexpectedEvent):
        step(state, ToolEnded(99), Config())
    with pytest.raises(UnexpectedEvent):
        step(state, RunStarted((Text("again"),)), Config())
    assert before == digest(state)


def test_the_hash_seed_does_not_matter() -> None:
    code = (
        "from tests.engine.driven.walks import WALKS\n"
        "from tests.test_purity import folded, session\n"
        "from stepfold.adapters.codec import digest\n"
        "print([digest(folded(session()[:n])) for n in range(len(session()) + 1)])\n"
        "for name, walk in WALKS.items():\n"
        "    drive = walk()\n"
        "    print(name, [digest(state) for state in drive.states], drive.outputs)\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert 1 == len(told)
    assert 64 < len(told.pop())


@pytest.mark.parametrize("name", WALKS)
def test_no_walk_changes_a_state_that_it_has_left(name: str) -> None:
    """Every state is what it was when it was new, after all later steps, refusals included."""
    drive = WALKS[name]()
    before = [digest(state) for state in (drive.first, *drive.states)]
    for state in (drive.first, *drive.states):
        for event in (*drive.events, RunStarted((Text("again"),)), Resumed()):
            with contextlib.suppress(UnexpectedEvent):
                step(state, event, drive.config)
    assert before == [digest(state) for state in (drive.first, *drive.states)]


def test_importing_the_engine_brings_no_vendor_and_no_loop() -> None:
    code = "import sys, stepfold.engine; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"anthropic", "cattrs", "orjson", "asyncio", "pydantic", "typer", "rich", "json"}
