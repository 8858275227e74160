"""
What only this file catches: a comparison of graphs that has gone blind.

Each fault is planted in the engine and must be told from the model by the graph that the table names; a
sample always, and all of them unless -m 'not slow' is given.
"""

from __future__ import annotations

import pytest

from stepfold.adapters.proof.formal.graph import Graph, dumped
from stepfold.adapters.proof.formal.tlc import Missing, find_tool
from tests.proof.formal.faults import BEYOND, CAUGHT
from tests.proof.formal.strength import FAULTS, SLICES, caught

EACH = [(graph, name) for graph, names in CAUGHT.items() for name in names]
SAMPLE = [(graph, name) for graph in ("agent", "hooks", "nested", "pairs") for name in CAUGHT[graph][:2]]


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    return {}


def missed(graphs: dict[str, Graph], faults: list[tuple[str, str]]) -> list[str]:
    """Return the faults that their graph does not catch."""
    try:
        tool = find_tool()
    except Missing as missing:
        pytest.skip(str(missing))
    for graph, _ in faults:
        if graph not in graphs:
            graphs[graph], _run = dumped(tool, SLICES[graph].file)
    return [name for graph, name in faults if caught(FAULTS[name], graphs, [graph]) != graph]


def test_a_sample_of_the_faults_is_caught(graphs: dict[str, Graph]) -> None:
    assert [] == missed(graphs, SAMPLE)


@pytest.mark.slow
def test_each_fault_is_caught_by_its_graph(graphs: dict[str, Graph]) -> None:
    assert [] == missed(graphs, EACH)


def test_the_table_names_faults_that_there_are_each_once() -> None:
    named = [*(name for _, name in EACH), *BEYOND]

    assert [] == sorted({*named} - {*FAULTS})
    assert len(named) == len({*named})
    assert len(EACH) >= 100
