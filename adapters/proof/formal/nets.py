"""
The nets of the formal model, as checks: TLC on the model, the whole graph, paths, traces.

Without Java or the jar all of them are skipped, and say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stepfold.adapters.proof.explore import Progress
from stepfold.adapters.proof.formal.conformance import compare
from stepfold.adapters.proof.formal.covering import covering
from stepfold.adapters.proof.formal.fuzz import CONFIG, random_runs
from stepfold.adapters.proof.formal.graph import Graph, GraphError, dumped
from stepfold.adapters.proof.formal.puppets import walked
from stepfold.adapters.proof.formal.slices import GRAPHS
from stepfold.adapters.proof.formal.tlc import SPECS, Missing, Tool, Verdict, find_tool, run_tlc
from stepfold.adapters.proof.formal.traces import judge, trace_of
from stepfold.adapters.proof.verdict import Check, Status
from stepfold.engine.config import Config
from stepfold.engine.state import Continue
from stepfold.engine.terminals import Terminal

MODEL: Final = "model"
CONFORMANCE: Final = "conformance"
PATHS: Final = "paths"
TRACES: Final = "traces"
HOLDS: Final = ("terminates", "nospin", "fair")
# A model without this guard must fail, and in this way.
FAULTS: Final[dict[str, Verdict]] = {
    "breaker": Verdict.INVARIANT,
    "escalation": Verdict.TEMPORAL,
    "fading": Verdict.TEMPORAL,
    "fallbacks": Verdict.TEMPORAL,
    "hook-cap": Verdict.TEMPORAL,
    "reactive-flag": Verdict.TEMPORAL,
    "reactive-for-ever": Verdict.TEMPORAL,
    "recoveries": Verdict.TEMPORAL,
    "resends": Verdict.TEMPORAL,
    "retries": Verdict.TEMPORAL,
    "turns": Verdict.TEMPORAL,
}
WORDS: Final = re.compile(r'(?<=")\w+(?=")')
TRACES_WANTED: Final = 5_000


def cast(config: Config, told: Progress) -> Iterator[Check]:
    """
    Yield the checks of the formal model, each as soon as it is known.

    Args:
        config: Not looked at: the model has small limits of its own, the traces those of the defaults.
        told: Called now and then with (name of the check, done, of how many).
    """
    try:
        tool = find_tool()
    except Missing as problem:
        for name in (MODEL, CONFORMANCE, PATHS, TRACES):
            yield Check(name, Status.SKIPPED, str(problem))
        return
    yield model(tool, told)
    graphs: dict[str, Graph] = {}
    yield conformance(tool, told, graphs)
    yield paths(graphs, told)
    yield traces(tool, told)


def model(tool: Tool, told: Progress) -> Check:
    """Check the properties of the model, and that each model without a guard fails."""
    findings, states, done = [], 0, 0
    every = len(HOLDS) + len(FAULTS)
    for name in HOLDS:
        told(MODEL, done, every)
        run = run_tlc(tool, "AgentLoopProps", SPECS / f"{name}.cfg")
        states, done = states + run.states, done + 1
        if run.verdict is not Verdict.HOLDS:
            findings.append(f"{name}: {run.why}")
    for name, verdict in FAULTS.items():
        told(MODEL, done, every)
        run = run_tlc(tool, "AgentLoopFaults", SPECS / "faults" / f"{name}.cfg")
        done += 1
        if run.verdict is not verdict:
            findings.append(f"{name}: it must fail ({verdict.name.lower()}); TLC says: {run.why}")
    told(MODEL, done, every)
    words = f"{len(HOLDS)} configs of AgentLoop.tla hold, {states} states; {len(FAULTS)} without a guard fail"
    return Check(MODEL, Status.FAILED if findings else Status.PROVED, words, tuple(findings))


def conformance(tool: Tool, told: Progress, graphs: dict[str, Graph]) -> Check:
    """Hold the engine against the whole graph of every slice; the graphs are put into *graphs*."""
    findings, states, real, steps = list[str](), 0, 0, 0
    for piece in GRAPHS:
        told(f"{CONFORMANCE}: {piece.name}", 0, 0)
        try:
            graphs[piece.name], _ = dumped(tool, piece.file)
        except GraphError as problem:
            findings.append(str(problem))
            continue
        found = compare(graphs[piece.name], piece, told)
        findings += found.findings
        states, real, steps = states + found.states, real + found.real, steps + found.steps
    words = (
        f"{len(GRAPHS)} graphs, {states} states, each by {real} real ones together, {steps} steps compared"
    )
    return Check(CONFORMANCE, Status.FAILED if findings else Status.PROVED, words, tuple(findings))


def _missing(graphs: dict[str, Graph]) -> set[str]:
    """Return the continues and terminals that no graph has."""
    met = {word for graph in graphs.values() for text in graph.texts for word in WORDS.findall(text)}
    return {*map(str, Continue), *map(str, Terminal)} - met


def paths(graphs: dict[str, Graph], told: Progress) -> Check:
    """Drive the interpreter along paths that cover every pair of consecutive outcomes."""
    findings, pairs, runs, steps = list[str](), 0, 0, 0
    for piece in GRAPHS:
        if piece.name not in graphs:
            return Check(PATHS, Status.UNKNOWN, f"the graph of {piece.name} was not had")
        told(PATHS, runs, 0)
        cover = covering(graphs[piece.name])
        pairs, runs = pairs + cover.pairs, runs + len(cover.paths)
        for start, path in cover.paths:
            steps += len(path)
            problem = walked(graphs[piece.name], piece, start, path)
            findings += [problem] if problem else []
    words = f"{pairs} pairs of consecutive outcomes, {runs} runs of the interpreter, {steps} steps"
    return Check(PATHS, Status.FAILED if findings else Status.PROVED, words, tuple(findings[:10]))


def traces(tool: Tool, told: Progress, count: int = TRACES_WANTED) -> Check:
    """Let TLC accept random runs with real limits."""
    found = []
    for number, (state, events) in enumerate(random_runs(count)):
        if number % 100 == 0:
            told(TRACES, number, count)
        found.append(trace_of(events, state, CONFIG))
    judgement = judge(tool, found, CONFIG)
    steps = sum(len(trace.steps) for trace in found)
    words = f"{len(found)} runs with real limits, {steps} steps, are walks of the model"
    findings = () if judgement.accepted else (judgement.words,)
    return Check(TRACES, Status.PROVED if judgement.accepted else Status.FAILED, words, findings)
