"""Paths over a graph that cover every pair of consecutive outcomes that a real world can bring."""

from __future__ import annotations

import re
from collections import deque
from typing import Final, TypeAlias

import attrs

from stepfold.adapters.proof.formal.graph import Graph
from stepfold.adapters.proof.formal.happenings import Saying
from stepfold.engine.state import Continue

Step: TypeAlias = tuple[int, int]  # what is said (a place in Graph.said), and the state after it
Path: TypeAlias = tuple[Step, ...]
Label: TypeAlias = tuple[str, str]  # an event, and what became of it
PHASE: Final = re.compile(r'(?<=phase \|-> ")\w+')
DID: Final = re.compile(r"(?<=did \|-> <<)[^>]*(?=>>)")
END: Final = re.compile(r'(?<=end \|-> <<")\w+')
OPEN: Final = "streaming |-> TRUE"
BEGUN: Final[Label] = ("", "")


@attrs.frozen
class Cover:
    """The paths, from the first start of the graph that reaches each, and how many pairs they cover."""

    paths: tuple[tuple[int, Path], ...]  # (start, path)
    pairs: int


def outcome_of(text: str) -> str:
    """Return what a step came to: how the run ended, why it goes round again, or its phase."""
    end = END.search(text)
    if end is not None:
        return end.group()
    did = DID.search(text)
    reasons = [each for each in Continue if did is not None and f'"{each}"' in did.group()]
    if reasons:
        return str(reasons[0])
    phase = PHASE.search(text)
    return phase.group() if phase is not None else ""


def sayable(text: str, saying: Saying) -> bool:
    """
    Return whether the outside of an interpreter can say this in the state *text*.

    A run that is at rest hears nobody but a new prompt, and a stream that was
    cancelled ends at once.
    """
    phase = PHASE.search(text)
    if '"idle"' in text or '"done"' in text:
        return saying.event == "RunStarted"
    if phase is not None and phase.group() == "aborting" and OPEN in text:
        return saying.event == "StreamCancelled"
    return True


def covering(graph: Graph) -> Cover:
    """Return paths in which each pair of consecutive (event, outcome) comes up at least once."""
    steps = [_steps(graph, number) for number in range(len(graph.texts))]
    outcomes = [outcome_of(text) for text in graph.texts]

    def label(step: Step) -> Label:
        return graph.said[step[0]].event, outcomes[step[1]]

    parents = _tree(graph, steps)
    wanted: dict[tuple[Label, Label], tuple[int, Path]] = {}
    for here in parents:
        for first in steps[here]:
            one = label(first)
            wanted.setdefault((BEGUN, one), (here, (first,)))
            for second in steps[first[1]]:
                wanted.setdefault((one, label(second)), (here, (first, second)))
    whole = {pair: _from_start(parents, here, tail) for pair, (here, tail) in wanted.items()}
    covered: set[tuple[Label, Label]] = set()
    paths = []
    for pair, (start, path) in sorted(whole.items(), key=lambda each: -len(each[1][1])):
        if pair in covered:
            continue
        paths.append((start, path))
        before = BEGUN
        for step in path:
            covered |= {(before, label(step)), (BEGUN, label(step))}
            before = label(step)
    return Cover(tuple(paths), len(wanted))


def _steps(graph: Graph, number: int) -> list[Step]:
    text = graph.texts[number]
    edges = graph.edges[number].items()
    return [(place, to) for place, ends in edges if sayable(text, graph.said[place]) for to in ends]


def _tree(graph: Graph, steps: list[list[Step]]) -> dict[int, tuple[int, Step] | None]:
    """Return how each state is reached first: (state before, step), None for a start."""
    parents: dict[int, tuple[int, Step] | None] = dict.fromkeys(graph.starts)
    waiting = deque(graph.starts)
    while waiting:
        here = waiting.popleft()
        for step in steps[here]:
            if step[1] not in parents:
                parents[step[1]] = (here, step)
                waiting.append(step[1])
    return parents


def _from_start(parents: dict[int, tuple[int, Step] | None], here: int, tail: Path) -> tuple[int, Path]:
    path = list(tail)
    while (parent := parents[here]) is not None:
        here, step = parent
        path.insert(0, step)
    return here, tuple(path)
