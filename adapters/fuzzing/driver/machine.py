"""
The machine that is fuzzed: the engine's ``step`` over a table of one's own.

The rows that a step takes are noted, in order, so that a search knows what it
has covered; a run that takes more rows than any run needs is broken off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from stepfold.engine.config import Config
from stepfold.engine.state import Move, State
from stepfold.engine.step import Stepper, cells_of, stepping
from stepfold.engine.table import TABLE, Row

ROWS_MAX: Final = 2_000  # rows that one fuzzed run may take


class RanAway(Exception):
    """A run took more rows than any run needs: it would never have ended."""


@attrs.frozen
class Machine:
    """
    ``step`` over one table.

    Args:
        table: Its rows.
        step: Takes one event; other machines of the process are not touched.
        trail: The places in *table* of the rows taken since it was cleared, in order.
    """

    table: tuple[Row, ...]
    step: Stepper
    trail: list[int]


def machine_of(table: tuple[Row, ...] = TABLE) -> Machine:
    """Return a machine over *table* that notes the rows it takes."""
    trail: list[int] = []
    noted = tuple(attrs.evolve(row, by=_noted(row.by, place, trail)) for place, row in enumerate(table))
    return Machine(table, stepping(cells_of(noted)), trail)


def _noted(by: Callable[..., Move], place: int, trail: list[int]) -> Callable[..., Move]:
    note = trail.append

    def take(state: State, fact: Any, config: Config) -> Move:
        if len(trail) > ROWS_MAX:
            raise RanAway(f"a run took more than {ROWS_MAX} rows")
        note(place)
        return by(state, fact, config)

    return take


def row_name(row: Row) -> str:
    """Return what a row is called where there is one line for it: phases, event, condition, outcome."""
    phases = "|".join(kind.__name__ for kind in row.phases) if len(row.phases) <= 2 else "any"
    return f"{phases} {row.event.__name__} {row.when.__name__} -> {row.outcome}"
