"""
The table read by the letter: which rows one event takes.

The explorer goes on from what ``step`` returns; this second, slow walk names
the rows that were taken and is held against it at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from stepfold.engine.config import Config
from stepfold.engine.events import BlockCompleted, Event, RunStarted
from stepfold.engine.frozen import evolve
from stepfold.engine.guards import always
from stepfold.engine.state import Continue, Entered, Late, State, Transition
from stepfold.engine.table import JUNCTIONS, TABLE, Row

When: TypeAlias = Callable[..., bool]
Index: TypeAlias = dict[tuple[type, type], tuple[tuple[int, When | None, Row], ...]]
ENTERED: Final = Entered()
WAY_STATIONS: Final = frozenset(JUNCTIONS)


class Taken(NamedTuple):
    """Row *number* of the table was taken: the state before it, and the one after, stamped."""

    number: int
    row: Row
    before: State
    after: State


def indexed(table: Iterable[Row] = TABLE) -> Index:
    """Return the rows of each (phase, event): number, condition (None: always), row; in order."""
    found: Index = {}
    for number, row in enumerate(table):
        when = None if row.when is always else row.when
        for phase in row.phases:
            found[phase, row.event] = (*found.get((phase, row.event), ()), (number, when, row))
    return found


def walk(
    index: Index, state: State, event: Event, config: Config, known: State | None = None
) -> list[Taken] | None:
    """
    Return the rows that *event* takes, in order, or None where there is none.

    Where the state after them is *known*, the move of a row that enters no
    junction is not made again.
    """
    fact, now = _received(state, event)
    taken: list[Taken] = []
    while True:
        for number, when, row in index.get((type(now.phase), type(fact)), ()):  # noqa: B007  (used below)
            if when is None or when(now.control, fact, config):
                break
        else:
            return None
        if known is not None and row.enters not in WAY_STATIONS:
            taken.append(Taken(number, row, now, known))
            return taken
        move = row.by(now, fact, config)
        control, transition, kind = move.control, now.control.transition, move.phase.kind
        if isinstance(row.outcome, Continue):
            transition = Transition(row.outcome, move.payload)
        elif row.event is RunStarted:
            transition = None  # a new run has not continued yet
        if control.phase is not kind or control.transition is not transition:
            control = evolve(control, transition=transition, phase=kind)
        after = State(control, move.phase, move.data, now.now_ms)
        taken.append(Taken(number, row, now, after))
        if type(move.phase) not in JUNCTIONS:
            return taken
        now, fact = after, ENTERED


def _received(state: State, event: Event) -> tuple[Any, State]:
    """Return the fact, and the state in which the order that it answers is settled."""
    effect_id = getattr(event, "effect_id", None)
    if effect_id is None:
        return event, state
    ledger = state.data.ledger
    if effect_id not in [effect.id for effect in ledger.owed]:
        return Late(event), state  # type: ignore[arg-type]  # what has an effect_id is an answer
    if isinstance(event, BlockCompleted):
        return event, state
    rest = tuple([effect for effect in ledger.owed if effect.id != effect_id])
    return event, evolve(state, data=evolve(state.data, ledger=evolve(ledger, owed=rest)))
