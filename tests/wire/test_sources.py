"""
What a run may do follows from its source: a run that makes a summary does nothing but that.

Only this file gives every source the same config with every layer on, and
compares what went out; the owner of each layer has its own tests.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stepfold.adapters.clock import ManualClock
from stepfold.adapters.ids import FixedIds
from stepfold.adapters.memory_log import MemoryLog
from stepfold.engine import Config, Terminal
from stepfold.engine.effects import Prefetch, Summarise
from stepfold.engine.events import Prefetched, Stop, SummaryReady, WaitElapsed
from stepfold.engine.messages import Message, Origin, Role, Text, user_text
from tests.wire.session import (
    OVERLOADED,
    Session,
    body,
    fails,
    gives,
    inside,
    play,
    played,
    says,
    uses,
    words,
)

NESTED = ("compact", "session_memory", "collapse")
OLD = [
    user_text("old question " * 200, Origin.PROMPT),
    Message(Role.ASSISTANT, (Text("old answer"),), Origin.ANSWER),
]


class Sides:
    """Memories, skills and summaries; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def prefetch(self, order: Prefetch) -> Prefetched:
        self.asked.append(str(order.kind))
        return Prefetched(order.id)

    async def summarise(self, order: Summarise) -> SummaryReady:
        self.asked.append("summary")
        return SummaryReady(order.id, "one line")


def busy(source: str, answers: list[Any]) -> tuple[Session, list[str]]:
    """Run with every gate on."""
    config = Config(
        source=source,
        prefetch_memories=True,
        prefetch_skills=True,
        tool_summaries=True,
        token_budget_tokens=1_000_000,
        snip_above_tokens=100,
        max_output_tokens=30_000,
    )
    sides = Sides()

    def hook(stopping: Any) -> str:
        sides.asked.append("hook")
        return "more work"

    session = play(
        answers, config, tools=gives(3), prefetcher=sides, summariser=sides, stop_hooks=[hook], messages=OLD
    )
    return session, sides.asked


@pytest.mark.parametrize("source", NESTED)
def test_a_nested_run_makes_one_request_and_asks_nobody(source: str) -> None:
    session, asked = busy(source, [says("in short")])
    assert ([], 1, True) == (asked, len(session.requests), session.result.ok)
    assert 20_000 == body(session.requests[0])["max_tokens"]
    main, more = busy("user", [says("in short", tokens=9)] * 2 + [says("at last", tokens=9)] * 9)
    assert 30_000 == body(main.requests[0])["max_tokens"]
    assert {"memories", "skills", "hook"} == set(more)
    assert len(main.requests) > 1


@pytest.mark.parametrize("source", NESTED)
@pytest.mark.parametrize(
    "answer",
    [
        says("half", stop=Stop.MAX_TOKENS),
        says("wait", stop=Stop.PAUSE_TURN),
        fails(OVERLOADED),
        uses("t1 read"),
    ],
    ids=["cut", "paused", "overloaded", "call"],
)
def test_a_nested_run_climbs_no_ladder_and_runs_no_tool(source: str, answer: Any) -> None:
    tools = gives(3)
    config = Config(source=source, fallback_models=("second",), max_model_calls=3)
    session = play([answer], config, tools=tools)
    assert ([], 1, False) == (tools.runs, len(session.requests), session.result.ok)


@pytest.mark.parametrize("source", NESTED)
def test_a_nested_run_is_not_blocked_by_the_limit_that_it_is_to_cure(source: str) -> None:
    def full(source: str) -> Session:
        config = Config(source=source, fixed_prompt_tokens=178_000)
        return play([says("in short")], config)

    assert (1, Terminal.COMPLETED) == (len(full(source).requests), full(source).result.terminal)
    assert (0, Terminal.BLOCKING_LIMIT) == (len(full("user").requests), full("user").result.terminal)


@pytest.mark.parametrize("source", NESTED)
def test_even_a_nested_run_counts_its_requests(source: str) -> None:
    session = play([], Config(source=source, max_model_calls=0))
    assert ([], Terminal.BLOCKING_LIMIT) == (session.requests, session.result.terminal)


@pytest.mark.parametrize("source", ["agent", "agent:finder"])
def test_a_sub_agent_has_all_layers_but_neither_budget_nor_summaries(source: str) -> None:
    agent, asked = busy(source, [uses("t1 read"), says("done"), says("done again")])
    assert ["hook"] == [what for what in asked if what == "hook"]
    assert {"memories", "skills", "hook"} == set(asked)
    assert 3 == len(agent.requests)
    assert not [text for text in words(agent.requests[-1]) if "token budget" in text]


# ---------------------------------------------------------------- the ports that remain


def test_a_log_makes_the_next_run_go_on_where_the_last_one_ended() -> None:
    async def twice(log: MemoryLog | None) -> Session:
        await played([says("Blue.")], log=log, prompt="My colour is blue.")
        return await played([says("Blue.")], log=log, prompt="Which is it?")

    kept, new = inside(twice(MemoryLog())), inside(twice(None))
    assert ["My colour is blue.", "Blue.", "Which is it?"] == words(kept.requests[0])
    assert ["Which is it?"] == words(new.requests[0])


def retried(seed: int, ms: int) -> tuple[bool, int]:
    """Return whether a retry was made within *ms*, and how long its wait was."""

    async def session() -> tuple[bool, int]:
        clock, log = ManualClock(), MemoryLog()
        answers = [fails(OVERLOADED), says("done")]
        running = asyncio.create_task(played(answers, clock=clock, log=log, ids=FixedIds(seed=seed)))
        await clock.advance(ms)
        made = any(isinstance(event, WaitElapsed) for event in log.events)
        await clock.advance(1_000)
        return made, (await running).notices("retrying")[0].count

    return inside(session())


def test_ids_and_clock_decide_when_a_retry_leaves() -> None:
    """How long the wait is comes from the run's seed; when it is over, from the clock."""
    assert [False, True] == [retried(7, ms)[0] for ms in (499, 625)]
    waits = {retried(seed, 0)[1] for seed in range(1, 9)}
    assert len(waits) > 1
    assert all(500 <= ms <= 625 for ms in waits)
