"""A friendly world: whatever is open is answered well, so that a run comes to its end."""

from __future__ import annotations

from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    CancelModel,
    Compact,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
    Wait,
)
from stepfold.engine.events import (
    BlockCompleted,
    CollapseStaged,
    Compacted,
    Event,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    Stop,
    StreamCancelled,
    StreamClosed,
    SummaryReady,
    ToolEnded,
    Usage,
    WaitElapsed,
)
from stepfold.engine.messages import Text
from tests.engine.driven.drive import Drive

PATIENCE = 2_000  # events after which a run counts as one that never ends


def answers(drive: Drive) -> list[Event]:
    """Return good answers to the newest thing that is open."""
    order = list(drive.owed.values())[-1]
    match order:
        case CallModel(id):
            if any(isinstance(effect, CancelModel) and effect.id == id for effect in drive.effects):
                return [StreamCancelled(id)]
            closed = StreamClosed(id, Stop.END_TURN, usage=Usage(10, 1_000))
            return [BlockCompleted(id, Text("all is done")), closed]
        case RunTool(id):
            return [ToolEnded(id, (Text("fine"),))]
        case AskPermission(id):
            return [PermissionAnswered(id, True)]
        case Compact(id):
            return [Compacted(id, "summary", 100)]
        case RunHook(id):
            return [HookAnswered(id, HookVerdict.PASS)]
        case Wait(id):
            return [WaitElapsed(id)]
        case StageCollapse(id):
            return [CollapseStaged(id, None)]
        case Summarise(id):
            return [SummaryReady(id, "did it")]
        case Prefetch(id):
            return [Prefetched(id)]
    raise AssertionError(f"nobody answers {order}")


def complete(drive: Drive) -> None:
    """Answer until the run is over; fails where nothing is open, or where it does not end."""
    left = PATIENCE
    while drive.state.end is None:
        assert drive.owed, "the run is not over and waits for nothing"
        for event in answers(drive):
            drive.do(event)
            left -= 1
        assert left > 0, "the run does not end"
