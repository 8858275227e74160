"""
The table read by the letter: which rows one event takes.

The explorer goes on from what ``step`` returns; this second, slow walk names
the rows that were taken and is held against it at every step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from stepfold.engine.config import Config
from stepfold.engine.events import BlockCompleted, Event, RunStarted
from stepfold.engine.frozen import evolve
from stepfold.engine.state import Continue, Entered, Late, State, Transition
from stepfold.engine.table import JUNCTIONS, TABLE, Row

Index: TypeAlias = dict[tuple[type, type], tuple[tuple[int, Row], ...]]
ENTERED: Final = Entered()


class Taken(NamedTuple):
    """Row *number* of the table was taken: the state before it, and the one after, stamped."""

    number: int
    row: Row
    before: State
    after: State


def indexed(table: Iterable[Row] = TABLE) -> Index:
    """Return the rows of each (phase, event) with their numbers, in order."""
    found: Index = {}
    for number, row in enumerate(table):
        for phase in row.phases:
            found[phase, row.event] = (*found.get((phase, row.event), ()), (number, row))
    return found


def walk(index: Index, state: State, event: Event, config: Config) -> list[Taken] | None:
    """Return the rows that *event* takes, in order, or None where there is none."""
    fact, now = _received(state, event)
    taken: list[Taken] = []
    while True:
        for number, row in index.get((type(now.phase), type(fact)), ()):  # noqa: B007  (used below)
            if row.when(now.control, fact, config):
                break
        else:
            return None
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
    if all(effect.id != effect_id for effect in ledger.owed):
        return Late(event), state  # type: ignore[arg-type]  # what has an effect_id is an answer
    if isinstance(event, BlockCompleted):
        return event, state
    rest = tuple(effect for effect in ledger.owed if effect.id != effect_id)
    return event, evolve(state, data=evolve(state.data, ledger=evolve(ledger, owed=rest)))
