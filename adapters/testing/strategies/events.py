"""Strategies for events: of every class, and those that may come in a state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import hypothesis.strategies as st

from stepfold.adapters.testing import answers
from stepfold.adapters.testing.machine.drawing import chosen
from stepfold.adapters.testing.strategies import messages as m
from stepfold.adapters.testing.world import Pick, World
from stepfold.engine import State
from stepfold.engine.effects import CallModel, Owed
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    CallStatus,
    CollapseStaged,
    Command,
    CommandQueued,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookStop,
    HookVerdict,
    Interrupt,
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
    Usage,
    Verdict,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse
from stepfold.engine.phases import PhaseKind

_TOKENS: Final = st.sampled_from([0, 1, 100, 18_500, 170_000, 10**9])
_MS: Final = st.sampled_from([0, 1, 1_000, 10**10])
_IDS: Final = st.integers(1, 9)
_STOPS: Final = st.none() | st.builds(HookStop, st.just("guard"), m.TEXTS)
_PROMPT: Final = st.builds(Text, m.TEXTS).map(lambda block: (block,))


def usages() -> st.SearchStrategy[Usage | None]:
    """Return what an answer reports, or None."""
    return st.none() | st.builds(Usage, _TOKENS, _TOKENS, _TOKENS, _TOKENS)


def failures() -> st.SearchStrategy[Failure]:
    """Return failures of every kind."""
    return st.builds(
        Failure,
        st.sampled_from(FailureKind),
        m.TEXTS,
        retry_after_ms=st.sampled_from([None, 0, 400_000]),
        excess_tokens=st.sampled_from([0, 2_000]),
    )


def call_facts() -> st.SearchStrategy[CallFacts]:
    """Return what the border may know of a call."""
    flags = st.booleans()
    return st.builds(
        CallFacts,
        known=st.sampled_from([True, True, False]),
        valid=st.sampled_from([True, True, False]),
        safe=flags,
        verdict=st.sampled_from(Verdict),
        interrupt=st.sampled_from(Interrupt),
        idempotent=flags,
        shell=flags,
    )


def tool_specs() -> st.SearchStrategy[tuple[ToolSpec, ...]]:
    """Return the tools that may be on offer, each name once."""
    one = st.builds(
        ToolSpec, m.NAMES, max_result_chars=st.sampled_from([50_000, 10, None]), clearable=st.booleans()
    )
    return st.lists(one, max_size=3, unique_by=lambda spec: spec.name).map(tuple)


_Fields: TypeAlias = dict[type, dict[str, st.SearchStrategy[Any]]]


def _by_class() -> Mapping[type, st.SearchStrategy[Any]]:
    common = {"at_ms": _MS}
    made = {**_of_streams({"effect_id": _IDS, **common}), **_of_answers({"effect_id": _IDS, **common})}
    made |= {
        RunStarted: {**common, "prompt": _PROMPT, "seed": st.integers(0, 9)},
        ToolsChanged: {**common, "tools": tool_specs()},
        CommandQueued: {**common, "command": st.builds(Command, st.sampled_from(["c1", "c2"]), _PROMPT)},
        AbortRequested: {**common, "kind": st.sampled_from([AbortKind.HARD, AbortKind.SUBMIT])},
        Resumed: common,
    }
    found: dict[type, st.SearchStrategy[Any]] = {k: st.builds(k, **given) for k, given in made.items()}
    plain = m.answer_blocks().filter(lambda block: not isinstance(block, ToolUse))
    found[BlockCompleted] = st.one_of(
        st.builds(BlockCompleted, _IDS, plain, at_ms=_MS),
        st.builds(BlockCompleted, _IDS, m.tool_uses(), call_facts(), _MS),
    )
    return found


def _of_streams(answer: dict[str, st.SearchStrategy[Any]]) -> _Fields:
    return {
        StreamClosed: {
            **answer,
            "stop": st.sampled_from(Stop),
            "usage": usages(),
            "open_text": m.TEXTS,
            "shown": st.booleans(),
            "cleared_tokens": _TOKENS,
            "details": m.TEXTS,
        },
        StreamFailed: {
            **answer,
            "failure": failures(),
            "usage": usages(),
            "open_text": m.TEXTS,
            "shown": st.booleans(),
        },
        StreamCancelled: {**answer, "usage": usages(), "open_text": m.TEXTS, "shown": st.booleans()},
    }


def _of_answers(answer: dict[str, st.SearchStrategy[Any]]) -> _Fields:
    content = st.lists(m.result_blocks(), max_size=2).map(tuple)
    extra = st.lists(m.messages(), max_size=1).map(tuple)
    summary = st.none() | m.TEXTS
    return {
        ToolEnded: {
            **answer,
            "content": content,
            "status": st.sampled_from([CallStatus.COMPLETED, CallStatus.FAILED, CallStatus.CANCELLED]),
            "stop": _STOPS,
            "messages": extra,
        },
        PermissionAnswered: {
            **answer,
            "allowed": st.booleans(),
            "words": m.TEXTS,
            "input": st.none() | m.INPUTS,
            "stop": _STOPS,
        },
        Compacted: {
            **answer,
            "summary": m.TEXTS,
            "tokens": _TOKENS,
            "attachments": extra,
            "usage": usages(),
        },
        CompactionFailed: {**answer, "failure": failures(), "usage": usages()},
        CollapseStaged: {**answer, "summary": summary},
        HookAnswered: {**answer, "verdict": st.sampled_from(HookVerdict), "words": m.TEXTS},
        WaitElapsed: answer,
        SummaryReady: {**answer, "summary": summary},
        Prefetched: {**answer, "texts": st.lists(m.TEXTS, max_size=2).map(tuple)},
    }


def events(*kinds: type) -> st.SearchStrategy[Event]:
    """
    Return events of these classes, all by default; their ids are from 1 to 9.

    Raises:
        ValueError: A class is none of an event.
    """
    known = _by_class()
    for kind in kinds:
        if kind not in known:
            raise ValueError(f"{kind.__name__} is no event; there are {', '.join(k.__name__ for k in known)}")
    return st.one_of([made for kind, made in known.items() if not kinds or kind in kinds])


def events_in(state: State, world: World) -> st.SearchStrategy[Event]:
    """
    Return events that *world* may bring in *state*: each answers what is owed, or comes from outside.

    Args:
        state: Of the loop.
        world: What it may say, as ``world_of`` makes it.
    """
    free: list[st.SearchStrategy[Event]] = [
        st.sampled_from(world.aborts).map(AbortRequested),
        st.sampled_from(world.said.texts).map(lambda text: CommandQueued(Command("c", (Text(text),)))),
        st.sampled_from(world.other_tools).map(ToolsChanged),
        st.just(Resumed()),
    ]
    if state.control.phase in (PhaseKind.IDLE, PhaseKind.DONE):
        free.insert(0, st.just(RunStarted((Text("go"),))))
    told: list[st.SearchStrategy[Event]] = []
    for order in reversed(state.data.ledger.owed):
        told.append(chosen(partial(_answer, world, order)))
        if isinstance(order, CallModel):
            fresh = f"t{state.data.ledger.next_id}.{state.control.blocks}"
            told.append(chosen(partial(_block, world, order.id)))
            told.append(chosen(partial(_call, world, order.id, fresh)))
    return st.one_of([*told, *free])


def _answer(world: World, order: Owed, pick: Pick) -> Event:
    return answers.answer(world, order, pick)


def _block(world: World, call_id: int, pick: Pick) -> Event:
    return answers.block(world, call_id, pick)


def _call(world: World, call_id: int, fresh: str, pick: Pick) -> Event:
    return answers.call(world, call_id, pick, fresh)
