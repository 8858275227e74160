"""
Planting one fault in the imported engine.

``Planting`` swaps functions wherever the package holds them, rows of the table
included, and ``grow`` puts the changed table into force.  A mutated run may
run away: the rows that it takes are counted, and past ``MAX_ROWS`` it breaks off.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeAlias

import attrs
import pytest

from stepfold.engine.events import RunStarted
from stepfold.engine.state import Move
from stepfold.engine.table import TABLE, Row

MAX_ROWS = 20_000
MACHINE = importlib.import_module("stepfold.engine.step")  # the name in the package is the function

Function: TypeAlias = Callable[..., Any]
Plant: TypeAlias = Callable[["Planting"], None]
Catcher: TypeAlias = str | Callable[[], str]


class RanAway(Exception):
    """A mutated run took more rows than any scenario needs."""


@attrs.frozen
class Mutant:
    """
    One fault.

    Args:
        name: The fault, in a few words.
        planted: What is changed.
        plant: Changes it.
        caught_by: What turns red, each of them: scenario files (below tests/scenarios, without
            suffix), and probes, which return what is wrong or "".
    """

    name: str
    planted: str
    plant: Plant
    caught_by: tuple[Catcher, ...]


class Planting:
    """A copy of the table to be changed, and the swaps to be undone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rows = list(TABLE)
        self._patch = patch

    def swap(self, name: str, make: Callable[[Function], Function], module: str = "") -> None:
        """
        Put ``make(old)`` in the place of a function, wherever the package holds it.

        *name* is that of a row's condition or move; of any other function, *module* (below
        ``stepfold.engine``) says where it is defined.
        """
        old = self._old(name, module)
        new = make(old)
        for each in list(sys.modules.values()):
            if getattr(each, "__name__", "").startswith("stepfold.") and vars(each).get(name) is old:
                self._patch.setattr(each, name, new)
        self.rows = [
            attrs.evolve(
                row,
                when=new if row.when is old else row.when,
                by=new if row.by is old else row.by,
            )
            for row in self.rows
        ]

    def _old(self, name: str, module: str) -> Function:
        if module:
            found: Function = getattr(importlib.import_module(f"stepfold.engine.{module}"), name)
            return found
        named = {f.__name__: f for row in self.rows for f in (row.when, row.by)}
        return named[name]

    def the_row(self, phase: str, event: str, when: str = "always") -> Row:
        """Return the one row of *phase* and *event* with this condition."""
        (found,) = [row for row in self.rows if _is(row, phase, event, when)]
        return found

    def drop(self, phase: str, event: str, when: str = "always") -> None:
        """Take a row out, for one of its phases."""
        place = self.rows.index(self.the_row(phase, event, when))
        row = self.rows[place]
        left = tuple(kind for kind in row.phases if kind.__name__ != phase)
        self.rows[place : place + 1] = [attrs.evolve(row, phases=left)] if left else []

    def first(self, row: Row) -> None:
        """Put *row* in front of all others."""
        self.rows.insert(0, row)

    def grow(self, most: int = MAX_ROWS) -> None:
        """Put the changed table into force; a run that takes more than *most* rows is broken off."""
        taken = count(1)

        def counted(by: Function) -> Function:
            def take(state: Any, event: Any, config: Any) -> Any:
                nonlocal taken
                if type(event) is RunStarted:
                    taken = count(1)
                if next(taken) > most:
                    raise RanAway(f"more than {most} rows were taken")
                return by(state, event, config)

            return take

        table = tuple(attrs.evolve(row, by=counted(row.by)) for row in self.rows)
        self._patch.setattr(MACHINE, "_CELLS", MACHINE.cells_of(table))


def _is(row: Row, phase: str, event: str, when: str) -> bool:
    phases = {kind.__name__ for kind in row.phases}
    return phase in phases and row.event.__name__ == event and row.when.__name__ == when


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Plant *mutant*; it is gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        planting = Planting(patch)
        mutant.plant(planting)
        planting.grow()
        yield


def part(move: Move, name: str, **changes: Any) -> Move:
    """Return *move* with *changes* in one part of its control."""
    control = move.control
    return move._replace(
        control=attrs.evolve(control, **{name: attrs.evolve(getattr(control, name), **changes)})
    )


def untold(old: Function, kind: str) -> Function:
    """Return the move *old* without its orders of one *kind*."""

    def move(s: Any, e: Any, k: Any) -> Move:
        made: Move = old(s, e, k)
        return made._replace(effects=tuple(one for one in made.effects if type(one).__name__ != kind))

    return move
