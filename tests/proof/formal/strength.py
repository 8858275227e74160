"""The faults of ``tests/mutants``, planted one at a time under the comparison of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import pytest

from stepfold.adapters.proof.formal.conformance import compare
from stepfold.adapters.proof.formal.graph import Graph
from stepfold.adapters.proof.formal.slices import GRAPHS
from stepfold.engine.step import step
from tests.mutants.planting import MACHINE, Mutant, Planting, RanAway
from tests.mutants.test_mutants import MUTANTS

ROWS_MAX = 200  # of one step
SLICES = {piece.name: piece for piece in GRAPHS}
FAULTS = {mutant.name: mutant for mutant in MUTANTS}


def caught(mutant: Mutant, graphs: Mapping[str, Graph], names: Iterable[str]) -> str:
    """Return the first graph, of *names*, that tells the engine with *mutant* from the model, or nothing."""
    with pytest.MonkeyPatch.context() as patch:
        planting = Planting(patch)
        mutant.plant(planting)
        taken = [0]
        rows = tuple(attrs.evolve(row, by=_counted(row.by, taken)) for row in planting.rows)
        patch.setattr(MACHINE, "_CELLS", MACHINE.cells_of(rows))

        def stepping(*given: Any) -> Any:
            taken[0] = 0
            return step(*given)

        for name in names:
            if compare(graphs[name], SLICES[name], stepping=stepping, enough=1).count:
                return name
    return ""


def _counted(by: Callable[..., Any], taken: list[int]) -> Callable[..., Any]:
    """Return *by*, broken off where one step takes rows without end."""

    def take(state: Any, event: Any, config: Any) -> Any:
        taken[0] += 1
        if taken[0] > ROWS_MAX:
            raise RanAway(f"more than {ROWS_MAX} rows in one step")
        return by(state, event, config)

    return take
