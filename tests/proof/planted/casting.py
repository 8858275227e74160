"""The nets, each in the cheap slice that shows the fault: what it says of the engine in this process."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest

from stepfold.adapters.proof import explore as exploring
from stepfold.adapters.proof.comparison import row_differences
from stepfold.adapters.proof.environment import World
from stepfold.adapters.proof.explore import Slice, explore
from stepfold.adapters.proof.formal.conformance import compare
from stepfold.adapters.proof.formal.fuzz import CONFIG
from stepfold.adapters.proof.formal.graph import Graph, dumped
from stepfold.adapters.proof.formal.nets import FAULTS as VERDICTS
from stepfold.adapters.proof.formal.slices import GRAPHS
from stepfold.adapters.proof.formal.tlc import SPECS, Missing, Tool, find_tool, run_tlc
from stepfold.adapters.proof.formal.traces import judge, trace_of
from stepfold.adapters.proof.invariants import FALLS
from stepfold.adapters.proof.spec import SHIPPED, read_spec
from stepfold.adapters.proof.symbolic.arithmetic import read_arithmetic
from stepfold.adapters.proof.symbolic.executed import Comparison, executed
from stepfold.adapters.proof.symbolic.solver import Proof
from stepfold.adapters.proof.walk import indexed
from stepfold.adapters.proof.worlds.everything import all_slices
from stepfold.adapters.proof.worlds.facts import (
    AUTOCOMPACT,
    COMPACTED,
    DONE,
    FULL_WINDOW,
    NOT_COMPACTED,
    SAFE,
    closes,
    rounds,
    small,
)
from stepfold.engine.config import Config, HookSpec
from stepfold.engine.effects import CallModel, Wait
from stepfold.engine.events import (
    Event,
    HookVerdict,
    RunStarted,
    Stop,
    StreamClosed,
    StreamFailed,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text
from stepfold.engine.step import start, step
from stepfold.engine.table import TABLE, Row
from tests.proof.planted.fault import (
    ARITHMETIC,
    CONFORMANCE,
    CROSSHAIR,
    EXPLORER,
    MATRIX,
    MEASURE,
    SECOND_COPY,
    TLC,
    TRACES,
    Z3,
    Fault,
)

FEWEST, FEW, MORE, MANY = 40, 200, 1_000, 6_000  # states of one exploration: most faults show early
ENOUGH = 1_000  # times that one row is compared
SPEC = read_spec()
ARITHMETIC_OF_SPEC = read_arithmetic(SPEC)
TEXT = SHIPPED.read_text(encoding="utf-8")
SLICES: dict[str, Slice] = {piece.name: piece for piece in all_slices(Config())}
SLICES["capped"] = attrs.evolve(
    SLICES["answers"], name="capped", config=attrs.evolve(SLICES["answers"].config, max_output_tokens=500)
)
SLICES["blocked after a compaction"] = Slice(
    name="blocked after a compaction",
    about="a stop hook blocks in the turn of a reactive compaction",
    config=small(stop_hooks=(HookSpec("a", 2),), reactive_compact=True),
    world=World(
        closes=(DONE, FULL_WINDOW),
        compacted=COMPACTED[:1],
        verdicts=(HookVerdict.BLOCK,),
        aborts=(),
        deaths=False,
    ),
    messages=rounds(4),
)
SLICES["compactions that fail"] = Slice(
    name="compactions that fail",
    about="the request of autocompact is itself too long again and again, or fails",
    config=small(autocompact=True),
    world=World(
        calls=(SAFE,),
        closes=closes(prompts=(AUTOCOMPACT,)),
        not_compacted=(NOT_COMPACTED[0], NOT_COMPACTED[2]),
        aborts=(),
        deaths=False,
    ),
    messages=rounds(8),
)
GRAPH_SLICES = {piece.name: piece for piece in GRAPHS}


def said(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    """Return what the net of *fault* says of the engine in this process, whose rows are *table*."""
    try:
        return NETS[fault.net](fault, table)
    except Missing as missing:
        pytest.skip(str(missing))


def right(net: str, where: str) -> list[str]:
    """Return what *net* says of the engine as it is."""
    return said(Fault("nothing", "as it is", net, where), TABLE)


def _second_copy(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    return list(row_differences(SPEC, table))


@functools.cache
def _as_it_is(where: str) -> list[str]:
    return explore(SLICES[where], SPEC, limit=FEW).findings


def _explored(fault: Fault, kind: Callable[[str], bool], table: tuple[Row, ...]) -> list[str]:
    """Return the findings of one kind; the search goes on until one of them tells of the fault."""
    if fault.plant is None:
        return [line for line in _as_it_is(fault.where) if kind(line)]
    found = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exploring, "indexed", lambda: indexed(table))
        for limit in (FEWEST, FEW, MORE, MANY):
            lines = explore(SLICES[fault.where], SPEC, limit=limit).findings
            found = [line for line in lines if kind(line)]
            if [line for line in found if fault.told in line]:
                break
    return found


def _explorer(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    return _explored(fault, lambda line: FALLS not in line and ": continues." not in line, table)


def _matrix(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    return _explored(fault, lambda line: ": continues." in line, table)


def _measure(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    return _explored(fault, lambda line: FALLS in line, table)


def _arithmetic(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    comparison, found = Comparison(SPEC, ARITHMETIC_OF_SPEC, table), list[str]()
    for states in (FEW,) if fault.plant is None else (FEWEST, FEW, MORE, MANY):
        enough = ENOUGH if fault.plant else 1
        found = executed([SLICES[fault.where]], comparison, states, enough=enough).findings
        if [line for line in found if fault.told in line]:
            break
    return found


def _z3(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    """The spec as it would be if both copies had the fault."""
    text = TEXT
    for old, new in fault.edits:
        assert 1 == text.count(old), old
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "machine.toml")
        path.write_text(text, encoding="utf-8")
        spec = read_spec(path)
    phase, event = fault.where.split()
    proof = Proof(spec, read_arithmetic(spec))
    return [f"{row.outcome}: {each}" for row, words in proof.cells({(phase, event)}) for each in words]


def _crosshair(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    """A process of its own, which plants the fault itself."""
    command = [sys.executable, "-m", "tests.proof.planted.confirming", fault.where, fault.name]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    states = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert 1 == len(states), run.stderr[-400:]
    return [f"{each['state']}: {each['words']}" for each in states if each["state"] != "confirmed"]


@functools.cache
def tool() -> Tool:
    """Return TLC; raises ``Missing`` where it cannot run."""
    return find_tool()


@functools.cache
def _graph(name: str) -> Graph:
    return dumped(tool(), GRAPH_SLICES[name].file)[0]


def _conformance(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    return compare(_graph(fault.where), GRAPH_SLICES[fault.where], enough=1).findings


def _traces(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    """Two runs to the end of a ladder, with real limits."""
    endings: tuple[Callable[[int], Event], ...] = (
        lambda call: StreamFailed(call, Failure(FailureKind.TRANSPORT)),
        lambda call: StreamClosed(call, Stop.MAX_TOKENS),
    )
    judgement = judge(tool(), [trace_of(_to_the_end(ending), start(), CONFIG) for ending in endings])
    return [] if judgement.accepted else [judgement.words]


def _to_the_end(ending: Callable[[int], Event]) -> list[Event]:
    events: list[Event] = [RunStarted((Text("x"),))]
    state, _ = step(start(), events[0], CONFIG)
    while state.end is None:
        (order,) = state.data.ledger.owed
        assert isinstance(order, CallModel | Wait)
        events.append(WaitElapsed(order.id) if isinstance(order, Wait) else ending(order.id))
        state, _ = step(state, events[-1], CONFIG)
    return events


def _tlc(fault: Fault, table: tuple[Row, ...]) -> list[str]:
    run = run_tlc(tool(), "AgentLoopFaults", SPECS / "faults" / f"{fault.where}.cfg")
    return [run.why] if run.verdict is VERDICTS[fault.where] else []


NETS: Mapping[str, Callable[[Fault, tuple[Row, ...]], list[str]]] = {
    SECOND_COPY: _second_copy,
    EXPLORER: _explorer,
    MATRIX: _matrix,
    MEASURE: _measure,
    ARITHMETIC: _arithmetic,
    Z3: _z3,
    CROSSHAIR: _crosshair,
    CONFORMANCE: _conformance,
    TRACES: _traces,
    TLC: _tlc,
}


