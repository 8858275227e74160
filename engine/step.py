"""The only way a run changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, get_args

import attrs

from stepfold.engine.config import Config
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Continued,
    Effect,
    Prefetch,
    RunHook,
    RunTool,
    Show,
    StageCollapse,
    Summarise,
    Wait,
)
from stepfold.engine.events import (
    Answer,
    BlockCompleted,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    PermissionAnswered,
    Prefetched,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolSpec,
    WaitElapsed,
)
from stepfold.engine.history import History
from stepfold.engine.messages import Message
from stepfold.engine.moves.ledger import with_ledger
from stepfold.engine.phases import Idle, Phase
from stepfold.engine.state import (
    Collapse,
    Continue,
    Control,
    Data,
    Entered,
    Late,
    Layers,
    Ledger,
    Recovery,
    State,
    Step,
    ToolContext,
    Transition,
)
from stepfold.engine.table import JUNCTIONS, TABLE, Row

_ANSWERS: Final = frozenset(get_args(Answer))
_ORDER_OF: Final[dict[type, type]] = {
    BlockCompleted: CallModel,
    StreamClosed: CallModel,
    StreamFailed: CallModel,
    StreamCancelled: CallModel,
    ToolEnded: RunTool,
    PermissionAnswered: AskPermission,
    Compacted: Compact,
    CompactionFailed: Compact,
    CollapseStaged: StageCollapse,
    HookAnswered: RunHook,
    WaitElapsed: Wait,
    SummaryReady: Summarise,
    Prefetched: Prefetch,
}
_JUNCTIONS: Final = frozenset(JUNCTIONS)
_ENTERED: Final = Entered()


class UnexpectedEvent(Exception):
    """The event cannot happen in this phase.  The old state is still good."""


def _by_cell(table: tuple[Row, ...]) -> dict[tuple[type, type], tuple[Row, ...]]:
    cells: defaultdict[tuple[type, type], list[Row]] = defaultdict(list)
    for row in table:
        for phase in row.phases:
            cells[phase, row.event].append(row)
    return {cell: tuple(rows) for cell, rows in cells.items()}


_CELLS: Final = _by_cell(TABLE)


def start(
    messages: Iterable[Message] = (), tools: Iterable[ToolSpec] = (), collapses: Iterable[Collapse] = ()
) -> State:
    """
    Return the state before a first run.

    Args:
        messages: A history from outside; it may be broken and is repaired once, when the run starts.
        tools: The tools on offer.
        collapses: Summaries staged for spans of *messages*, oldest first.
    """
    staged = tuple(collapses)
    data = Data(
        messages=History[Message]().extend(messages),
        tool_context=ToolContext(tuple(tools)),
        layers=Layers(collapses=staged),
    )
    return State(Control(recovery=Recovery(staged=len(staged))), Idle(), data)


def step(state: State, event: Event, config: Config) -> Step:
    """
    Return the state after *event* and the effects to carry out, in order.

    Raises:
        UnexpectedEvent: If the table has no row for this phase and event, or
            the event answers an effect that was never issued.
    """
    state, fact = _received(state, event)
    effects: tuple[Effect, ...] = ()
    transition = state.control.transition
    while True:
        row = _row(state.control, state.phase, fact, config)
        move = row.by(state, fact, config)
        effects = (*effects, *move.effects) if move.effects else effects
        if isinstance(row.outcome, Continue):
            transition = Transition(row.outcome, move.count)
            effects = (*effects, Show(Continued(row.outcome, move.count, move.control.turn)))
        state = State(move.control, move.phase, move.data)
        if type(move.phase) not in _JUNCTIONS:
            return _stamped(state, transition), effects
        fact = _ENTERED


def _row(control: Control, phase: Phase, fact: Any, config: Config) -> Row:
    for row in _CELLS.get((type(phase), type(fact)), ()):
        if row.when(control, fact, config):
            return row
    raise UnexpectedEvent(f"{type(fact).__name__} in phase {phase.kind}")


def _received(state: State, event: Event) -> tuple[State, Event | Late | Entered]:
    """
    Return the state with the time moved on and the answered effect settled, and the fact to act on.

    An answer to an effect that is no longer outstanding is ``Late``.
    """
    data = state.data
    ledger = data.ledger
    now = event.at_ms if event.at_ms > ledger.now_ms else ledger.now_ms
    kind = type(event)
    fact: Event | Late = event
    owed = ledger.owed
    if kind in _ANSWERS:
        effect_id: int = event.effect_id  # type: ignore[union-attr]
        order = next((effect for effect in owed if effect.id == effect_id), None)
        if order is None:
            if not 0 < effect_id < ledger.next_id:
                raise UnexpectedEvent(f"{kind.__name__} answers effect {effect_id}, which was never issued")
            fact = Late(event)  # type: ignore[arg-type]
        elif type(order) is not _ORDER_OF[kind]:
            raise UnexpectedEvent(f"{kind.__name__} cannot answer {type(order).__name__} {effect_id}")
        elif kind is not BlockCompleted:
            owed = tuple(effect for effect in owed if effect is not order)
    if now == ledger.now_ms and owed is ledger.owed:
        return state, fact
    data = with_ledger(data, Ledger(owed, ledger.next_id, now))
    return State(state.control, state.phase, data), fact


def _stamped(state: State, transition: Transition | None) -> State:
    """Write into control what only the row decides: phase and transition."""
    control, kind = state.control, state.phase.kind
    if control.phase is kind and control.transition is transition:
        return state
    return State(attrs.evolve(control, phase=kind, transition=transition), state.phase, state.data)
