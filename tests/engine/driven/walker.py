"""
The table read by the letter: a second, slow ``step`` that also tells which rows it took.

It shares the rows with the engine and nothing else; ``test_table`` compares it with ``step``, so that
neither an index of the rows nor a short cut can change what the table says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stepfold.engine import Config, Continue, State, UnexpectedEvent
from stepfold.engine.effects import Continued, Effect, Show
from stepfold.engine.events import BlockCompleted, Event, RunStarted
from stepfold.engine.frozen import evolve
from stepfold.engine.state import Entered, Late, Transition
from stepfold.engine.table import JUNCTIONS, TABLE, Row


@dataclass(frozen=True)
class Taken:
    """One row that was taken, the state it was taken in, and the phase that its move made."""

    row: Row
    state: State
    phase: Any


def walk(state: State, event: Event, config: Config) -> tuple[State, tuple[Effect, ...], list[Taken]]:
    """Return what ``step`` returns, and the rows taken, in order."""
    fact, data = received(state, event)
    now = evolve(state, data=data, now_ms=max(state.now_ms, event.at_ms))
    effects: list[Effect] = []
    taken: list[Taken] = []
    while True:
        row = next((row for row in TABLE if holds(row, now, fact, config)), None)
        if row is None:
            raise UnexpectedEvent(f"{type(fact).__name__} in {type(now.phase).__name__}")
        move = row.by(now, fact, config)
        taken.append(Taken(row, now, move.phase))
        transition = now.control.transition
        effects += move.effects
        if isinstance(row.outcome, Continue):
            transition = Transition(row.outcome, move.payload)
            effects.append(Show(Continued(row.outcome, move.payload, move.control.turn)))
        elif row.event is RunStarted:
            transition = None  # a new run has not continued yet
        kind = now.control.phase if type(move.phase) in JUNCTIONS else type(move.phase).kind
        control = evolve(move.control, transition=transition, phase=kind)
        now = State(control, move.phase, move.data, now.now_ms)
        if type(now.phase) not in JUNCTIONS:
            return now, tuple(effects), taken
        fact = Entered()


def holds(row: Row, state: State, fact: Any, config: Config) -> bool:
    """Return whether *row* may be taken."""
    return (
        type(state.phase) in row.phases and row.event is type(fact) and row.when(state.control, fact, config)
    )


def received(state: State, event: Any) -> tuple[Any, Any]:
    """Return the fact and the data in which the order that it answers is settled."""
    number = getattr(event, "effect_id", None)
    if number is None:
        return event, state.data
    ledger = state.data.ledger
    if number not in [order.id for order in ledger.owed]:
        if not 0 < number < ledger.next_id:
            raise UnexpectedEvent(f"{number} was never issued")
        return Late(event), state.data
    if isinstance(event, BlockCompleted):
        return event, state.data
    rest = tuple(order for order in ledger.owed if order.id != number)
    return event, evolve(state.data, ledger=evolve(ledger, owed=rest))
