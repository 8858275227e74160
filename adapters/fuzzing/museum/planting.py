"""
Planting a fault: the rows of a table, changed.

A fault lives in the table that it is planted in and nowhere else: rows are
left out, moved, or given another condition or move.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from stepfold.adapters.testing.world import Fault
from stepfold.engine.state import Move, State
from stepfold.engine.table import Row

Rows: TypeAlias = tuple[Row, ...]
Function: TypeAlias = Callable[..., Any]
Plant: TypeAlias = Callable[[Rows], Rows]


@attrs.frozen
class Exhibit:
    """
    One fault.

    Args:
        name: What it is called on the command line.
        story: What went wrong where it was met, in our words.
        planted: What is changed.
        plant: Changes it.
        faults: What the world does to it, as ``--fault`` would say it; () is everything.
    """

    name: str
    story: str
    planted: str
    plant: Plant
    faults: tuple[Fault, ...] = ()


class NoSuchRow(LookupError):
    """What a fault wants to change is not in the table."""


def move(rows: Rows, name: str, make: Callable[[Function], Function]) -> Rows:
    """Return *rows* in which the move *name* is ``make(old)``."""
    return _changed(rows, [row.by.__name__ == name for row in rows], name, "by", make)


def guard(rows: Rows, name: str, make: Callable[[Function], Function]) -> Rows:
    """Return *rows* in which the condition *name* is ``make(old)``."""
    return _changed(rows, [row.when.__name__ == name for row in rows], name, "when", make)


def _changed(
    rows: Rows, those: list[bool], name: str, field: str, make: Callable[[Function], Function]
) -> Rows:
    if not any(those):
        raise NoSuchRow(f"no row has {name}")
    return tuple(
        instead_of(row, field, make(getattr(row, field))) if wanted else row
        for row, wanted in zip(rows, those, strict=True)
    )


def instead_of(row: Row, field: str, new: Function) -> Row:
    """Return *row* with another condition or move."""
    changes: dict[str, Any] = {field: new}
    return attrs.evolve(row, **changes)


def the_row(rows: Rows, phase: str, event: str, when: str = "always") -> Row:
    """Return the row of *phase* and *event* with this condition."""
    for row in rows:
        phases = {kind.__name__ for kind in row.phases}
        if phase in phases and row.event.__name__ == event and row.when.__name__ == when:
            return row
    raise NoSuchRow(f"no row for {event} in {phase} when {when}")


def without(rows: Rows, phase: str, event: str, when: str = "always") -> Rows:
    """Return *rows* without one, for one of its phases."""
    gone = the_row(rows, phase, event, when)
    left = tuple(kind for kind in gone.phases if kind.__name__ != phase)
    kept = (attrs.evolve(gone, phases=left),) if left else ()
    place = rows.index(gone)
    return (*rows[:place], *kept, *rows[place + 1 :])


def before(rows: Rows, new: Row, old: Row | None = None) -> Rows:
    """Return *rows* with *new* in front of *old*; in front of all where none is given."""
    place = 0 if old is None else rows.index(old)
    return (*rows[:place], new, *rows[place:])


def instead(rows: Rows, old: Row, **changes: Any) -> Rows:
    """Return *rows* with *changes* in one of them."""
    return tuple(attrs.evolve(row, **changes) if row is old else row for row in rows)


# ---------------------------------------------------------------- changes of moves


def part(made: Move, name: str, **changes: Any) -> Move:
    """Return a move with *changes* in one part of its control."""
    control = made.control
    return made._replace(
        control=attrs.evolve(control, **{name: attrs.evolve(getattr(control, name), **changes)})
    )


def data_of(made: Move, **changes: Any) -> Move:
    """Return a move with *changes* in its data."""
    return made._replace(data=attrs.evolve(made.data, **changes))


def afterwards(change: Callable[[Move, State, Any, Any], Move]) -> Callable[[Function], Function]:
    """Return what makes of a move one whose result goes through *change*(move, state, event, config)."""

    def make(old: Function) -> Function:
        return lambda s, e, k: change(old(s, e, k), s, e, k)

    return make


def keeps(name: str, field: str) -> Callable[[Function], Function]:
    """Return what makes of a move one that leaves a field of a part of control as it was."""
    return afterwards(
        lambda made, s, e, k: part(made, name, **{field: getattr(getattr(s.control, name), field)})
    )


def untold(kind: str) -> Callable[[Function], Function]:
    """Return what makes of a move one without its orders of a kind."""
    return afterwards(
        lambda made, s, e, k: made._replace(
            effects=tuple(one for one in made.effects if type(one).__name__ != kind)
        )
    )


def never(old: Function) -> Function:
    """Return a condition that never holds."""
    return lambda c, e, k: False


def believing(change: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return what makes of a condition one that reads a changed control."""

    def make(old: Function) -> Function:
        return lambda c, e, k: old(change(c), e, k)

    return make
