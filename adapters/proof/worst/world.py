"""
What the world may say in the search for the worst case: few answers, each with its events and its TOML.

An answer is one that costs something or lets the run go on.  What only ends a
run sooner (aborts, refusals, hooks that prevent) costs nothing and is left out.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import attrs

from stepfold.engine.config import Config
from stepfold.engine.effects import CallModel, Compact, Owed, RunHook, RunTool, Wait
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookVerdict,
    Stop,
    StreamClosed,
    StreamFailed,
    ToolEnded,
    Usage,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse
from stepfold.engine.state import State

TOO_LONG: Final = "prompt is too long"
TOOL: Final = "work"
MOVING: Final = (CallModel, Compact, RunHook, RunTool, Wait)


class Says(enum.Enum):
    """What one request to the model comes to."""

    BUSY = "the server names the longest wait that is waited for"
    DROPPED = "the connection is lost"
    AWAY = "the server names a wait that is too long: the next model"
    OVERLOADED = "overloaded"
    TOO_LONG = "the prompt is too long"
    PAUSED = "the server pauses"
    CUT = "the answer is cut at its limit"
    DONE = "a whole answer"
    CALLS = "a call of a tool"


@attrs.frozen
class Answer:
    """What the model says; ``prompt`` and ``output`` are the tokens that are reported, 0: none are."""

    says: Says
    prompt: int = 0
    output: int = 0

    def usage(self) -> Usage | None:
        """Return what the API reports."""
        return Usage(self.prompt, self.output) if self.prompt or self.output else None


@attrs.frozen
class Summary:
    """What the compactor says; ``tokens`` None: its request was too long."""

    tokens: int | None


def events_of(answer: Answer, call: int, config: Config) -> tuple[Event, ...]:
    """Return the events that *answer* to effect *call* brings, up to the end of its stream."""
    usage = answer.usage()
    match answer.says:
        case Says.BUSY:
            return (_failed(call, FailureKind.RATE_LIMITED, config.max_retry_after_ms),)
        case Says.DROPPED:
            return (_failed(call, FailureKind.TRANSPORT),)
        case Says.AWAY:
            return (_failed(call, FailureKind.RATE_LIMITED, config.max_retry_after_ms + 1_000),)
        case Says.OVERLOADED:
            return (_failed(call, FailureKind.OVERLOADED),)
        case Says.TOO_LONG:
            return (_failed(call, FailureKind.PROMPT_TOO_LONG),)
        case Says.CALLS:
            use = ToolUse(f"t{call}", TOOL, "{}")
            return (BlockCompleted(call, use, CallFacts()), StreamClosed(call, Stop.TOOL_USE, usage=usage))
        case Says.PAUSED | Says.CUT | Says.DONE:
            stops = {Says.PAUSED: Stop.PAUSE_TURN, Says.CUT: Stop.MAX_TOKENS, Says.DONE: Stop.END_TURN}
            closed = StreamClosed(call, stops[answer.says], usage=usage)
            return (BlockCompleted(call, Text("x")), closed)


def summary_event(summary: Summary, order: int) -> Event:
    """Return what the compactor's answer is to the engine."""
    if summary.tokens is None:
        return CompactionFailed(order, Failure(FailureKind.PROMPT_TOO_LONG, TOO_LONG))
    return Compacted(order, "s", summary.tokens)


def _failed(call: int, kind: FailureKind, after_ms: int | None = None) -> StreamFailed:
    return StreamFailed(call, Failure(kind, retry_after_ms=after_ms))


def waited_for(state: State) -> Owed:
    """Return the order that the run waits for; there is one, since one call is made in an answer."""
    return next(order for order in state.data.ledger.owed if isinstance(order, MOVING))


@attrs.frozen
class Sizes:
    """
    The sizes of a view that matter, in tokens.

    Args:
        small: Under every threshold, over the fixed part.
        full: At the threshold of autocompact and under the blocking limit; 0 where there is none such.
    """

    small: int
    full: int


def sizes_of(config: Config) -> Sizes:
    """Return the sizes for *config*: those of the model with the smallest window."""
    limits = min(config.thresholds, key=lambda each: each.window)
    floor = config.fixed_prompt_tokens
    small = min(floor + 100, max(floor, limits.autocompact - 1))
    usable = config.autocompact and not config.nested and floor < limits.autocompact
    return Sizes(small, limits.autocompact if usable else 0)


def answers_of(config: Config) -> tuple[Answer, ...]:
    """Return everything that the model may say, for an exhaustive search."""
    prompts = (0, full) if (full := sizes_of(config).full) else (0,)
    outputs = (0,) if config.token_budget_tokens is None else (0, config.budget_delta_tokens)
    ends = (Says.PAUSED, Says.CUT, Says.DONE, Says.CALLS)
    closed = (Answer(says, prompt, output) for says in ends for prompt in prompts for output in outputs)
    fails = (Says.BUSY, Says.DROPPED, Says.AWAY, Says.OVERLOADED, Says.TOO_LONG)
    return (*map(Answer, fails), *closed)


def summaries_of(config: Config) -> tuple[Summary, ...]:
    """Return everything that the compactor may say, for an exhaustive search."""
    sizes = sizes_of(config)
    return (Summary(None), Summary(sizes.small), *((Summary(sizes.full),) if sizes.full else ()))


def everything(state: State, config: Config) -> Iterator[tuple[Event, ...]]:
    """Yield what may come next in *state*, each with the events that it brings."""
    match waited_for(state):
        case CallModel(id):
            yield from (events_of(answer, id, config) for answer in answers_of(config))
        case Compact(id):
            yield from ((summary_event(summary, id),) for summary in summaries_of(config))
        case RunHook(id):
            yield from ((HookAnswered(id, verdict),) for verdict in (HookVerdict.PASS, HookVerdict.BLOCK))
        case Wait(id):
            yield (WaitElapsed(id),)
        case RunTool(id):
            yield (ToolEnded(id),)
