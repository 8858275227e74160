"""
What only this file catches: a formal model that cannot fail, or that says something else than the engine.

The quick graphs are compared here; all of them, and the traces in their number, by ``prove --deep``.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.proof.formal import nets
from stepfold.adapters.proof.formal import tlc as running
from stepfold.adapters.proof.formal.conformance import compare
from stepfold.adapters.proof.formal.constants import read_constants
from stepfold.adapters.proof.formal.covering import covering, outcome_of, sayable
from stepfold.adapters.proof.formal.fuzz import CONFIG, random_runs
from stepfold.adapters.proof.formal.graph import Graph, dumped, module_of
from stepfold.adapters.proof.formal.happenings import sayings
from stepfold.adapters.proof.formal.puppets import walked
from stepfold.adapters.proof.formal.recordings import NotInTheModel, limits_of
from stepfold.adapters.proof.formal.slices import GRAPHS
from stepfold.adapters.proof.formal.tlc import SPECS, Missing, Tool, Verdict, find_tool, run_tlc
from stepfold.adapters.proof.formal.traces import Judgement, Trace, judge, trace_of
from stepfold.adapters.proof.verdict import Status
from stepfold.adapters.recording import read_recording
from stepfold.adapters.scripted import ScriptedModel, says
from stepfold.effects import run_sync
from stepfold.engine import Config
from stepfold.engine.config import HookSpec
from stepfold.engine.events import Stop
from stepfold.engine.frozen import evolve
from stepfold.engine.step import step

QUICK = ("hooks", "nested", "pairs")
SLICES = {piece.name: piece for piece in GRAPHS}


def quiet(name: str, done: int, known: int) -> None:
    pass


@pytest.fixture(scope="module")
def tool() -> Tool:
    try:
        return find_tool()
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def graphs(tool: Tool) -> dict[str, Graph]:
    return {name: dumped(tool, SLICES[name].file)[0] for name in QUICK}


# ------------------------------------------------------------------------- the model


@pytest.mark.parametrize("name", ["hook-cap", "breaker", "reactive-flag"])
def test_a_model_without_a_guard_fails(tool: Tool, name: str) -> None:
    run = run_tlc(tool, "AgentLoopFaults", SPECS / "faults" / f"{name}.cfg")

    assert nets.FAULTS[name] is run.verdict


@pytest.mark.parametrize("name", sorted(nets.FAULTS))
def test_each_fault_takes_one_guard_away(name: str) -> None:
    text = (SPECS / "faults" / f"{name}.cfg").read_text(encoding="utf-8")

    (line,) = [line for line in text.splitlines() if "<-" in line]
    guard = line.split("<-")[0].strip()
    assert f"\n{guard}(n" in (SPECS / "AgentLoop.tla").read_text(encoding="utf-8")


def test_every_fault_and_every_graph_is_looked_at() -> None:
    assert sorted(nets.FAULTS) == sorted(path.stem for path in (SPECS / "faults").glob("*.cfg"))
    assert sorted(SLICES) == sorted(path.stem for path in (SPECS / "graphs").glob("*.cfg"))


def test_the_package_has_every_file_of_the_specs_by_a_link() -> None:
    root = Path(__file__).parents[3] / "specs"
    files = {path.relative_to(root) for kind in ("*.tla", "*.cfg") for path in root.rglob(kind)}

    assert files == {path.relative_to(SPECS) for path in SPECS.rglob("*") if path.is_file()}
    assert all((SPECS / path).samefile(root / path) for path in files)


def test_the_names_of_the_graph_say_all_that_the_model_says(tool: Tool, tmp_path: Path) -> None:
    config = SLICES["pairs"].file
    text = config.read_text(encoding="utf-8")
    named = tmp_path / "Graph.cfg"
    named.write_text(text[: text.index("INVARIANTS")] + "PROPERTY NextIsNamed\n", encoding="utf-8")
    module = tmp_path / "Graph.tla"
    said = tuple(sayings(read_constants(config)))
    module.write_text(module_of(said), encoding="utf-8")

    assert Verdict.HOLDS is run_tlc(tool, module, named).verdict
    module.write_text(module_of(said[1:]), encoding="utf-8")
    assert Verdict.TEMPORAL is run_tlc(tool, module, named).verdict


# ------------------------------------------------------------------------- conformance


@pytest.mark.parametrize("name", QUICK)
def test_the_engine_is_the_model(graphs: dict[str, Graph], name: str) -> None:
    found = compare(graphs[name], SLICES[name])

    assert [] == found.findings
    assert len(graphs[name].texts) == found.states


def test_a_step_that_does_something_else_is_found(graphs: dict[str, Graph]) -> None:
    def forgetful(*given: Any) -> Any:
        after, effects = step(*given)
        recovery = evolve(after.control.recovery, output_limit_override=None)
        return evolve(after, control=evolve(after.control, recovery=recovery)), effects

    found = compare(graphs["hooks"], SLICES["hooks"], stepping=forgetful)

    assert found.count
    assert "the model goes to" in found.findings[0]
    assert "escalated |-> TRUE" in found.findings[0]


def test_orders_that_are_left_out_are_found(graphs: dict[str, Graph]) -> None:
    def silent(*given: Any) -> Any:
        after, effects = step(*given)
        return after, tuple(each for each in effects if type(each).__name__ != "Tombstone")

    assert compare(graphs["hooks"], SLICES["hooks"], stepping=silent).count


def test_a_limit_that_is_not_the_models_is_found(graphs: dict[str, Graph]) -> None:
    piece = SLICES["hooks"]
    other = attrs.evolve(piece, config=attrs.evolve(piece.config, max_output_recoveries=3))

    assert compare(graphs["hooks"], other).count


# ------------------------------------------------------------------------- paths


@pytest.mark.parametrize("name", QUICK)
def test_the_interpreter_walks_every_pair_of_outcomes(graphs: dict[str, Graph], name: str) -> None:
    graph = graphs[name]
    cover = covering(graph)

    assert [] == [
        problem for start, path in cover.paths if (problem := walked(graph, SLICES[name], start, path))
    ]
    assert cover.pairs >= len(cover.paths) > 10


def test_the_paths_cover_all_pairs(graphs: dict[str, Graph]) -> None:
    graph = graphs["hooks"]

    def pairs(steps: list[tuple[int, int]]) -> set[Any]:
        labels = [(graph.said[place].event, outcome_of(graph.texts[to])) for place, to in steps]
        return {*pairwise(labels)}

    found = set().union(*(pairs(list(path)) for _, path in covering(graph).paths))
    every = {
        pair
        for number, edges in enumerate(graph.edges)
        for place, (to, *_) in edges.items()
        if sayable(graph.texts[number], graph.said[place])
        for second, (end, *_) in graph.edges[to].items()
        if sayable(graph.texts[to], graph.said[second])
        for pair in pairs([(place, to), (second, end)])
    }
    assert every == found


def test_an_interpreter_that_goes_another_way_is_found(graphs: dict[str, Graph]) -> None:
    graph, piece = graphs["hooks"], SLICES["hooks"]
    start, path = max(covering(graph).paths, key=lambda each: len(each[1]))
    place, to = path[-1]
    other = next(number for number in range(len(graph.texts)) if number != to)

    assert "led to" in walked(graph, piece, start, (*path[:-1], (place, other)))


# ------------------------------------------------------------------------- traces


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return [trace_of(events, state, CONFIG) for state, events in random_runs(60)]


def test_random_runs_are_walks_of_the_model(tool: Tool, traces: list[Trace]) -> None:
    assert judge(tool, traces, CONFIG).accepted


def lied(trace: Trace, place: int, **changes: Any) -> Trace:
    steps = list(trace.steps)
    steps[place] = attrs.evolve(steps[place], after={**steps[place].after, **changes})
    return attrs.evolve(trace, steps=tuple(steps))


@pytest.mark.parametrize(
    "changes", [{"retries": 7}, {"did": ("CallModel", "CallModel")}, {"turn": 2}, {"phase": "waiting"}]
)
def test_a_wrong_trace_is_refused(tool: Tool, traces: list[Trace], changes: dict[str, Any]) -> None:
    number, place = next(
        (number, place)
        for number, trace in enumerate(traces)
        for place, seen in enumerate(trace.steps)
        if place and seen.after["phase"] == "sampling"
    )
    wrong = [*traces[:number], lied(traces[number], place, **changes), *traces[number + 1 :]]

    said: Judgement = judge(tool, wrong, CONFIG)

    assert not said.accepted
    assert (number, place) == (said.trace, said.place)


def test_a_recorded_run_is_a_walk_of_the_model(tool: Tool, tmp_path: Path) -> None:
    config = Config(max_output_recoveries=2)
    model = ScriptedModel(
        [says("half", stop=Stop.MAX_TOKENS), says("half", stop=Stop.MAX_TOKENS), "the rest"]
    )
    run_sync("write it", model=model, config=config, log=JsonlLog(tmp_path / "run.jsonl"))
    seen = read_recording(tmp_path / "run.jsonl")
    trace = trace_of(seen.events, seen.state(), seen.begun.config)

    assert judge(tool, [trace], config).accepted
    said = judge(tool, [trace], Config(max_output_recoveries=0))
    assert not said.accepted
    assert said.place is not None


def test_the_file_has_the_limits_of_the_random_runs() -> None:
    kept = read_constants(SPECS / "trace.cfg")

    assert {name: kept[name] for name in limits_of(CONFIG)} == limits_of(CONFIG)


def test_what_the_model_does_not_tell_apart_is_named() -> None:
    with pytest.raises(NotInTheModel, match="stop_hooks"):
        limits_of(Config(stop_hooks=(HookSpec("a", 1), HookSpec("b", 2))))


# ------------------------------------------------------------------------- where it cannot run


def test_without_java_the_nets_are_skipped_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    checks = list(nets.cast(Config(), quiet))

    assert {Status.SKIPPED} == {check.status for check in checks}
    assert all("no Java" in check.words for check in checks)


def test_a_jar_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(running.shutil, "which", lambda name: "java")
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tmp_path / "newer.jar"))
    with pytest.raises(Missing, match=r"newer\.jar, which is no file"):
        find_tool()

    (tmp_path / "newer.jar").touch()
    assert tmp_path / "newer.jar" == find_tool().jar


def test_another_jar_than_the_known_one_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.shutil, "which", lambda name: "java")
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    monkeypatch.setattr(running, "JAR_SHA256", "0")
    with pytest.raises(Missing):
        find_tool()
