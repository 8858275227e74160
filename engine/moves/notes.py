"""What crosses the loop at any time and decides nothing: queue, summaries, memories, tools, late answers."""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.effects import (
    Mark,
    MarkCommand,
    Notice,
    NoticeKind,
    Show,
    SummaryShown,
)
from stepfold.engine.events import (
    CollapseStaged,
    CommandQueued,
    Event,
    Prefetched,
    SummaryReady,
    ToolsChanged,
)
from stepfold.engine.frozen import evolve
from stepfold.engine.phases import Done, Idle
from stepfold.engine.state import Collapse, Late, Move, State


def ignore(s: State, e: Event | Late, k: Config) -> Move:
    """Messages cross on the wire: nothing happens."""
    return Move(s.control, s.phase, s.data)


def queue_command(s: State, e: CommandQueued, k: Config) -> Move:
    """Words wait for the next tool batch, or for the next run."""
    queue = (*s.data.side.queue, e.command)
    data = evolve(s.data, side=evolve(s.data.side, queue=queue))
    return Move(evolve(s.control, queued=len(queue)), s.phase, data)


def refuse_command(s: State, e: CommandQueued, k: Config) -> Move:
    """The queue is full."""
    notice = Notice(
        NoticeKind.QUEUE_FULL, f"the queue holds {s.control.queued} commands already", s.control.queued
    )
    return Move(s.control, s.phase, s.data, (MarkCommand(e.command.id, Mark.REFUSED), Show(notice)))


def hold_summary(s: State, e: SummaryReady, k: Config) -> Move:
    """A batch summary came while an answer streams: shown when the stream ends."""
    data = evolve(s.data, pending_tool_summary=_pending(s, e))
    if e.summary is not None:
        data = evolve(data, side=evolve(data.side, summary=e.summary, summary_id=e.effect_id))
    return Move(s.control, s.phase, data)


def show_summary(s: State, e: SummaryReady, k: Config) -> Move:
    """A batch summary came late: shown on arrival."""
    data = evolve(s.data, pending_tool_summary=_pending(s, e))
    shown = () if e.summary is None else (Show(SummaryShown(e.effect_id, e.summary)),)
    return Move(s.control, s.phase, data, shown)


def _pending(s: State, e: SummaryReady) -> int | None:
    pending = s.data.pending_tool_summary
    return None if pending == e.effect_id else pending


def take_prefetched(s: State, e: Prefetched, k: Config) -> Move:
    """Memories or skills are there; they join after the next tool batch."""
    found = (*s.data.side.prefetched, *e.texts)
    return Move(s.control, s.phase, evolve(s.data, side=evolve(s.data.side, prefetched=found)))


def take_staged(s: State, e: CollapseStaged, k: Config) -> Move:
    """A span was summarised in the background; a failure is none for the breaker."""
    layers = s.data.layers
    collapses = layers.collapses
    if e.summary:
        collapses = (*collapses, Collapse(layers.staging, e.summary))
    data = evolve(s.data, layers=evolve(layers, collapses=collapses, staging=0))
    recovery = evolve(s.control.recovery, staged=len(collapses))
    return Move(evolve(s.control, recovery=recovery), s.phase, data)


def change_tools(s: State, e: ToolsChanged, k: Config) -> Move:
    """Other tools are on offer from the next turn on; outside a run, at once."""
    if isinstance(s.phase, Idle | Done):
        context = evolve(s.data.tool_context, tools=e.tools)
        return Move(s.control, s.phase, evolve(s.data, tool_context=context))
    side = evolve(s.data.side, tools_changed=e.tools)
    return Move(s.control, s.phase, evolve(s.data, side=side))
