"""
Small limits, tiny histories, and the facts that the worlds are made of.

Every limit is at least 2 (the continuations of the budget 3), so that a
counter that is not counted, or one that is set back, shows.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.engine.config import Config, HookSpec, ModelSpec
from stepfold.engine.events import (
    CallFacts,
    Compacted,
    CompactionFailed,
    Stop,
    StreamClosed,
    Usage,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Message, Origin, Role, Text, user_text

WINDOW: Final = 100_000
OUTPUT: Final = 20_000
AUTOCOMPACT: Final = WINDOW - OUTPUT - 13_000
BLOCKING: Final = WINDOW - OUTPUT - 3_000
HUGE: Final = 10**6
SPEC: Final = ModelSpec("main", WINDOW, OUTPUT, 1_000_000, 1_000_000)


def rounds(count: int) -> tuple[Message, ...]:
    """Return a history of *count* tiny rounds."""
    answer = Message(Role.ASSISTANT, (Text("x"),), Origin.ANSWER)
    return tuple(m for _ in range(count) for m in (user_text("x", Origin.PROMPT), answer))


def small(**more: Any) -> Config:
    """Return a config with small limits, and the layers that look at messages off."""
    values: dict[str, Any] = {
        "models": (SPEC, attrs.evolve(SPEC, name="second"), attrs.evolve(SPEC, name="third")),
        "default_output_tokens": 1_000,
        "escalated_output_tokens": 2_000,
        "max_turns": 2,
        "max_model_calls": None,
        "max_output_recoveries": 2,
        "max_compaction_failures": 2,
        "max_compactor_retries": 2,
        "max_retries": 2,
        "max_resends": 2,
        "overloads_before_fallback": 2,
        "max_answer_blocks": 2,
        "max_queued_commands": 2,
        "max_parallel_tools": 2,
        "tail_min_tokens": 0,
        "tail_min_messages": 0,
        "collapse": False,
        "reactive_compact": False,
        "autocompact": False,
        **more,
    }
    return Config(**values)


TWO_HOOKS: Final = (HookSpec("a", 2), HookSpec("b", 2))
CUT: Final = StreamClosed(0, Stop.MAX_TOKENS)
DONE: Final = StreamClosed(0, Stop.END_TURN)
CALLS: Final = StreamClosed(0, Stop.TOOL_USE)
SAFE: Final = CallFacts(safe=True)
TOO_LONG: Final = Failure(FailureKind.PROMPT_TOO_LONG)
FULL_WINDOW: Final = StreamClosed(0, Stop.WINDOW_EXCEEDED)


def closes(*stops: Stop, prompts: tuple[int, ...] = ()) -> tuple[StreamClosed, ...]:
    """Return ends of an answer: one for each stop, and one that reports each of *prompts* (tokens)."""
    plain = tuple(StreamClosed(0, stop) for stop in stops)
    return plain + tuple(StreamClosed(0, Stop.TOOL_USE, usage=Usage(tokens)) for tokens in prompts)


LESS: Final = 100  # fewer tokens than any view has
COMPACTED: Final = (
    Compacted(0, "s", LESS),
    Compacted(0, "s", 1_000),
    Compacted(0, "s", AUTOCOMPACT),
    Compacted(0, "s", BLOCKING),
    Compacted(0, "", LESS),
)
NOT_COMPACTED: Final = (
    CompactionFailed(0, TOO_LONG),
    CompactionFailed(0, attrs.evolve(TOO_LONG, excess_tokens=HUGE)),
    CompactionFailed(0, Failure(FailureKind.UNUSABLE)),
)
