"""What a world may answer to an order, and what may come unasked: one event each, chosen by a ``Pick``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stepfold.adapters.testing.world import Fault, Pick, World
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Owed,
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
    CompactionFailed,
    Event,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    Usage,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Opaque, Text, ToolUse

ANSWERS: Final[Mapping[type, tuple[type, ...]]] = MappingProxyType(
    {
        # the classes of events that may answer an order of a class
        CallModel: (BlockCompleted, StreamClosed, StreamFailed, StreamCancelled),
        RunTool: (ToolEnded,),
        AskPermission: (PermissionAnswered,),
        Compact: (Compacted, CompactionFailed),
        StageCollapse: (CollapseStaged,),
        RunHook: (HookAnswered,),
        Wait: (WaitElapsed,),
        Summarise: (SummaryReady,),
        Prefetch: (Prefetched,),
    }
)
EITHER: Final = (False, True)
SELDOM: Final = (False, False, True)
_WHOLE: Final = (Stop.END_TURN, Stop.TOOL_USE)


def answer(world: World, order: Owed, pick: Pick, *, cancelling: bool = False) -> Event:
    """
    Return what *world* answers to an open order; to a call, how its stream ends.

    Args:
        world: Who answers.
        order: What was ordered and is not answered.
        pick: Chooses.
        cancelling: The stream of this call is being closed from here.
    """
    said, done = world.said, world.done
    match order:
        case CallModel(id):
            crosses = not cancelling or pick(SELDOM)
            if not crosses:
                return StreamCancelled(id, pick(said.usages), pick(said.open_texts))
            return end_of(world, id, pick)
        case RunTool(id):
            content, status = pick(done.results), pick(done.statuses)
            return ToolEnded(id, content, status, pick(done.stops), pick(done.extra))
        case AskPermission(id):
            return PermissionAnswered(id, pick(done.allowed), "words", pick(done.inputs), pick(done.stops))
        case Compact(id):
            fails = bool(done.compactor_failures) and pick(EITHER)
            if fails:
                return CompactionFailed(id, pick(done.compactor_failures), pick(said.usages))
            return Compacted(id, pick(done.summaries), pick(done.summary_tokens), usage=pick(said.usages))
        case RunHook(id):
            return HookAnswered(id, pick(done.verdicts), "words")
        case Wait(id):
            return WaitElapsed(id)
        case StageCollapse(id):
            return CollapseStaged(id, pick(done.side))
        case Summarise(id):
            return SummaryReady(id, pick(done.side))
        case Prefetch(id):
            text = pick(done.side)
            return Prefetched(id, () if text is None else (text,))


def end_of(world: World, call_id: int, pick: Pick) -> StreamClosed | StreamFailed:
    """Return how the stream of a call ends when nobody cancels it."""
    said = world.said
    fails = bool(said.failures) and pick(SELDOM)
    if fails:
        return StreamFailed(
            call_id, pick(said.failures), pick(said.usages), pick(said.open_texts), pick(EITHER)
        )
    stop = pick(said.stops)
    return StreamClosed(
        call_id,
        stop,
        stop.value,
        pick(said.usages),
        "" if stop in _WHOLE else pick(said.open_texts),
        pick(EITHER),
        pick(said.cleared_tokens),
    )


def block(world: World, call_id: int, pick: Pick) -> BlockCompleted:
    """Return one whole block of an open answer that is no call."""
    return BlockCompleted(call_id, pick(world.said.blocks))


def call(world: World, call_id: int, pick: Pick, fresh: str) -> BlockCompleted:
    """
    Return one whole call of an open answer, with what the border knows of it.

    Args:
        world: Who answers; its tools are asked about, whatever is on offer just now.
        call_id: Of the order whose answer this is in.
        pick: Chooses.
        fresh: An id that no call has had, for a world that reuses none.
    """
    id = pick(world.said.call_ids) if world.said.call_ids else fresh
    name, (input, raw) = pick(world.said.call_names), pick(world.said.call_inputs)
    use = ToolUse(id, name, input, raw_input=raw)
    return BlockCompleted(call_id, use, world.facts(use))


def server_call(call_id: int, name: str) -> BlockCompleted:
    """Return a call of the server's own search, with the id *name*."""
    wire = f'{{"type":"server_tool_use","id":"{name}","name":"web_search","input":{{}}}}'
    return BlockCompleted(call_id, Opaque("server_tool_use", wire, name))


def server_result(call_id: int, name: str) -> BlockCompleted:
    """Return the result of the server's call *name*."""
    wire = f'{{"type":"web_search_tool_result","tool_use_id":"{name}","content":[]}}'
    return BlockCompleted(call_id, Opaque("web_search_tool_result", wire, answers=name))


def friendly(order: Owed, *, cancelling: bool = False) -> tuple[Event, ...]:
    """Return the good answer to an open order: met by these alone, every run comes to its end."""
    match order:
        case CallModel(id) if cancelling:
            return (StreamCancelled(id),)
        case CallModel(id):
            closed = StreamClosed(id, Stop.END_TURN, "end_turn", Usage(10, 1_000))
            return (BlockCompleted(id, Text("all is done")), closed)
        case RunTool(id):
            return (ToolEnded(id, (Text("fine"),)),)
        case AskPermission(id):
            return (PermissionAnswered(id, True),)
        case Compact(id):
            return (Compacted(id, "summary", 100),)
        case RunHook(id):
            return (HookAnswered(id, HookVerdict.PASS),)
        case Wait(id):
            return (WaitElapsed(id),)
        case StageCollapse(id):
            return (CollapseStaged(id, None),)
        case Summarise(id):
            return (SummaryReady(id, "did it"),)
        case Prefetch(id):
            return (Prefetched(id),)


def one_of_each(effect_id: int) -> tuple[Event, ...]:
    """Return one answer of each class to the order with this id: late, or to nobody, or of a wrong class."""
    return (
        BlockCompleted(effect_id, Text("x")),
        StreamClosed(effect_id, Stop.END_TURN),
        StreamFailed(effect_id, Failure(FailureKind.SERVER)),
        StreamCancelled(effect_id),
        ToolEnded(effect_id),
        PermissionAnswered(effect_id, True),
        Compacted(effect_id, "s", 1),
        CompactionFailed(effect_id, Failure(FailureKind.OTHER)),
        CollapseStaged(effect_id, "s"),
        HookAnswered(effect_id, HookVerdict.BLOCK),
        WaitElapsed(effect_id),
        SummaryReady(effect_id, "s"),
        Prefetched(effect_id, ("s",)),
    )


def strays(world: World, gone: tuple[int, ...], pick: Pick) -> Event | None:
    """Return an answer to one of the *gone* orders, which changes nothing; None where there is none."""
    if not gone or not world.has(Fault.STRAYS):
        return None
    return pick(one_of_each(pick(gone)))
