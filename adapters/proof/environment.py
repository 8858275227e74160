"""
The hostile world, abstracted: what may happen next in a state.

Facts are enumerated, not texts: every event class, and every payload that a
guard or a move can tell from another.  ``World`` says which of them one
exploration plays; ``strays`` are the events that must be refused or change
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import attrs

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
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    CollapseStaged,
    Command,
    CommandQueued,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    Resumed,
    RunStarted,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolsChanged,
    ToolSpec,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse
from stepfold.engine.phases import Aborting, Done, Idle, Reply
from stepfold.engine.state import State

Made: TypeAlias = dict[tuple[type, int], tuple[Event, ...]]
WORD: Final = Text("x")
NOBODY: Final = 10**9  # an id that no exploration issues
START: Final = RunStarted((WORD,))


@attrs.frozen(kw_only=True)
class World:
    """
    What may happen.  Answers are given with the effect id 0 and get the right one.

    ``max_calls`` is how many calls one answer may hold.  ``company`` is what
    crosses the loop (queue, tools, and the side orders are always answered);
    ``again`` says that a run may follow on a run.
    """

    blocks: bool = False
    calls: tuple[CallFacts, ...] = ()
    max_calls: int = 1
    closes: tuple[StreamClosed, ...] = (StreamClosed(0, Stop.END_TURN),)
    fails: tuple[StreamFailed, ...] = ()
    compacted: tuple[Compacted, ...] = ()
    not_compacted: tuple[CompactionFailed, ...] = ()
    verdicts: tuple[HookVerdict, ...] = (HookVerdict.PASS, HookVerdict.BLOCK, HookVerdict.PREVENT)
    tools: tuple[ToolEnded, ...] = (ToolEnded(0),)
    permissions: tuple[PermissionAnswered, ...] = ()
    aborts: tuple[AbortKind, ...] = (AbortKind.HARD, AbortKind.SUBMIT)
    deaths: bool = True
    company: bool = False
    again: bool = False


def failed(*kinds: FailureKind, **more: Any) -> tuple[StreamFailed, ...]:
    """Return one failed call of each kind."""
    return tuple(StreamFailed(0, Failure(kind), **more) for kind in kinds)


def events_of(state: State, world: World, made: Made | None = None) -> Iterator[Event]:
    """
    Yield every event of *world* that the table should take in *state*.

    *made* keeps answers, by class and id of their order, for the next state.
    """
    made = {} if made is None else made
    phase = state.phase
    if isinstance(phase, Idle) or (world.again and isinstance(phase, Done)):
        yield START
    for order in state.data.ledger.owed:
        yield from _answers(state, order, world, made)
    yield from (AbortRequested(kind) for kind in world.aborts)
    if world.deaths:
        yield Resumed()
    if world.company:
        yield ToolsChanged((ToolSpec("t"),))
        yield CommandQueued(Command("c", (WORD,)))


def _answers(state: State, order: Owed, world: World, made: Made) -> Iterator[Event]:
    match order:
        case CallModel():
            yield from _stream(state, order, world, made)
        case RunTool():
            yield from _made(order, world.tools, made)
        case AskPermission():
            yield from _made(order, world.permissions, made)
        case Compact():
            yield from _made(order, (*world.compacted, *world.not_compacted), made)
        case RunHook():
            yield from (HookAnswered(order.id, verdict) for verdict in world.verdicts)
        case Wait():
            yield WaitElapsed(order.id)
        case StageCollapse():
            yield CollapseStaged(order.id, "s")
            yield CollapseStaged(order.id, None)
        case Summarise():
            yield SummaryReady(order.id, "s")
            yield SummaryReady(order.id, None)
        case Prefetch():
            yield Prefetched(order.id, ("m",))
            yield Prefetched(order.id)


def _stream(state: State, order: CallModel, world: World, made: Made) -> Iterator[Event]:
    call = order.id
    reply: Reply = state.phase.reply  # type: ignore[union-attr]  # a call is open in Sampling and Aborting
    if world.blocks:
        yield BlockCompleted(call, WORD)
    count = len(reply.schedule.calls)
    if count < world.max_calls:
        for facts in world.calls:
            yield BlockCompleted(call, ToolUse(f"c{count}", "t"), facts)
    if isinstance(state.phase, Aborting):
        yield StreamCancelled(call)
        yield StreamCancelled(call, open_text="x")
        yield StreamClosed(call, Stop.TOOL_USE)
        yield StreamFailed(call, Failure(FailureKind.CUT))
        return
    yield from _made(order, (*world.closes, *world.fails), made)


def _made(order: Owed, answers: tuple[Any, ...], made: Made) -> tuple[Event, ...]:
    """Return *answers* with the id of *order*; they are made once for each class and id."""
    key = (type(order), order.id)
    if key not in made:
        made[key] = tuple(attrs.evolve(answer, effect_id=order.id) for answer in answers)
    return made[key]


def one_of_each(effect_id: int) -> tuple[Event, ...]:
    """Return one answer of each class to *effect_id*."""
    return (
        BlockCompleted(effect_id, WORD),
        StreamClosed(effect_id, Stop.END_TURN),
        StreamFailed(effect_id, Failure(FailureKind.CUT)),
        StreamCancelled(effect_id),
        ToolEnded(effect_id),
        PermissionAnswered(effect_id, allowed=True),
        Compacted(effect_id, "s", 1),
        CompactionFailed(effect_id, Failure(FailureKind.CUT)),
        CollapseStaged(effect_id, "s"),
        HookAnswered(effect_id, HookVerdict.PASS),
        WaitElapsed(effect_id),
        SummaryReady(effect_id, "s"),
        Prefetched(effect_id),
    )


def late_answers(state: State) -> Iterator[Event]:
    """Yield an answer of each class to an order that is no longer owed, where one was ever issued."""
    owed = {order.id for order in state.data.ledger.owed}
    for effect_id in range(1, state.data.ledger.next_id):
        if effect_id not in owed:
            yield from one_of_each(effect_id)
            return


def misdirected(state: State, answers: dict[str, str]) -> Iterator[Event]:
    """
    Yield what nobody ordered: answers to ids never issued, and answers of a wrong class.

    *answers* is {class of answer: class of order}, from the spec.
    """
    yield from one_of_each(NOBODY)
    yield from one_of_each(0)
    for order in state.data.ledger.owed:
        for event in one_of_each(order.id):
            if answers[type(event).__name__] != type(order).__name__:
                yield event


def matching(state: State, answers: dict[str, str]) -> Iterator[Event]:
    """Yield an answer of each class that fits an order, and every free event; the spec says what is taken."""
    for order in state.data.ledger.owed:
        for event in one_of_each(order.id):
            if answers[type(event).__name__] == type(order).__name__:
                yield event
    yield START
    yield AbortRequested(AbortKind.HARD)
    yield Resumed()
    yield ToolsChanged(())
    yield CommandQueued(Command("c", (WORD,)))
