"""The only way a run changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

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
    BlockCompleted,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    PermissionAnswered,
    Prefetched,
    RunStarted,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolSpec,
    WaitElapsed,
)
from stepfold.engine.frozen import evolve
from stepfold.engine.guards import always
from stepfold.engine.history import History
from stepfold.engine.messages import Message, ToolUse
from stepfold.engine.moves.ledger import with_ledger
from stepfold.engine.phases import Idle, PhaseKind
from stepfold.engine.state import (
    Collapse,
    Continue,
    Control,
    Data,
    Entered,
    Late,
    Layers,
    Ledger,
    Move,
    Recovery,
    State,
    Step,
    ToolContext,
    Transition,
)
from stepfold.engine.table import JUNCTIONS, TABLE, Row

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


Entry: TypeAlias = tuple[Callable[..., bool] | None, Callable[..., Move], Continue | None]
Cells: TypeAlias = dict[type, dict[type, tuple[Entry, ...]]]
Stepper: TypeAlias = Callable[[State, Event, Config], Step]


def cells_of(table: tuple[Row, ...]) -> Cells:
    """
    Index *table* by phase, then event: (condition, move, continue) in the order of the rows.

    A row that always holds has no condition to call; a row that is no
    continue has nothing to stamp.
    """
    cells: defaultdict[type, defaultdict[type, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for row in table:
        reason = row.outcome if isinstance(row.outcome, Continue) else None
        for phase in row.phases:
            cells[phase][row.event].append((None if row.when is always else row.when, row.by, reason))
    return {phase: {event: tuple(rows) for event, rows in events.items()} for phase, events in cells.items()}


_CELLS: Final = cells_of(TABLE)


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
    return _walked(_CELLS, state, event, config)


def stepping(cells: Cells) -> Stepper:
    """
    Return ``step`` over the cells of another table, for what watches or changes rows.

    It is the code that ``step`` runs; ``step`` itself stays as it is.
    """

    def over(state: State, event: Event, config: Config) -> Step:
        return _walked(cells, state, event, config)

    return over


def _walked(cells: Cells, state: State, event: Event, config: Config) -> Step:
    """Walk from row to row, out of junctions, until something outside is waited for."""
    fact, data = _received(state.data, event)
    now_ms = event.at_ms if event.at_ms > state.now_ms else state.now_ms
    control, phase, transition = state.control, state.phase, state.control.transition
    if type(event) is RunStarted:
        transition = None  # a new run has not continued yet
    if data is not state.data or now_ms != state.now_ms:
        state = State(control, phase, data, now_ms)
    effects: tuple[Effect, ...] = ()
    junctions, kind = _JUNCTIONS, type(phase)
    while True:
        for when, by, reason in cells[kind].get(type(fact), ()):  # noqa: B007  (used below)
            if when is None or when(control, fact, config):
                break
        else:
            raise UnexpectedEvent(f"{type(fact).__name__} in phase {phase.kind}")
        control, phase, data, more, payload = by(state, fact, config)
        if more:
            effects += more
        if reason is not None:
            transition = Transition(reason, payload)
            effects += (Show(Continued(reason, payload, control.turn)),)
        kind = type(phase)
        if kind not in junctions:
            if control.phase is not phase.kind or control.transition is not transition:
                control = _stamped(control, phase.kind, transition)
            return State(control, phase, data, now_ms), effects
        state, fact = State(control, phase, data, now_ms), _ENTERED


def _received(data: Data, event: Event) -> tuple[Event | Late | Entered, Data]:
    """
    Return the fact to act on, and data with the answered effect settled.

    An answer to an effect that is no longer outstanding is ``Late``.
    """
    order_kind = _ORDER_OF.get(type(event))
    if order_kind is None:
        return event, data
    effect_id: int = event.effect_id  # type: ignore[union-attr]  # the answers are the keys of _ORDER_OF
    owed = data.ledger.owed
    for place, order in enumerate(owed):  # noqa: B007  (used below)
        if order.id == effect_id:
            break
    else:
        if not 0 < effect_id < data.ledger.next_id:
            name = type(event).__name__
            raise UnexpectedEvent(f"{name} answers effect {effect_id}, which was never issued")
        return Late(event), data  # type: ignore[arg-type]
    if type(order) is not order_kind:
        raise UnexpectedEvent(f"{type(event).__name__} cannot answer {type(order).__name__} {effect_id}")
    if type(event) is BlockCompleted:
        if (type(event.block) is ToolUse) is (event.facts is None):
            raise UnexpectedEvent("BlockCompleted: a ToolUse needs facts, no other block has any")
        return event, data
    rest = owed[:place] + owed[place + 1 :]
    return event, with_ledger(data, Ledger(rest, data.ledger.next_id))


def _stamped(control: Control, kind: PhaseKind, transition: Transition | None) -> Control:
    """Write into control what only the row decides: phase and transition."""
    return evolve(control, phase=kind, transition=transition)
