"""
What only this file catches: an end with a wrong payload, and a default that nobody wrote down twice.

Each of the ten is reached by real events; every default of State and Config is asserted by its value,
since a changed default breaks no other test that sets the value itself.
"""

from __future__ import annotations

from typing import Any

import pytest

from stepfold.engine import Terminal
from stepfold.engine.config import HookSpec, ModelSpec
from stepfold.engine.events import AbortKind, CallFacts, HookStop, HookVerdict, Stop
from stepfold.engine.failures import RETRYABLE, Failure, FailureKind
from stepfold.engine.terminals import (
    AbortedStreaming,
    AbortedTools,
    BlockingLimit,
    Completed,
    End,
    Ending,
    HookStopped,
    ImageError,
    Limit,
    MaxTurns,
    ModelError,
    PromptTooLong,
    StopHookPrevented,
)
from tests.engine.driven.answers import ONE_HOOK
from tests.engine.driven.context import OVER, full
from tests.engine.driven.drive import Drive, failure
from tests.engine.driven.walks import WALKS

# ---------------------------------------------------------------- each end by its name


REACHED: dict[str, End] = {
    "plain": Completed(Ending.END_TURN),
    "calls_spent": BlockingLimit(Limit.MODEL_CALLS, 0, 0),
    "context_full": BlockingLimit(Limit.CONTEXT, OVER + 2, 177_000),
    "reaction_failed": PromptTooLong(failure(FailureKind.PROMPT_TOO_LONG)),
    "media_failed": ImageError(failure(FailureKind.MEDIA_TOO_LARGE)),
    "invalid": ModelError(failure(FailureKind.INVALID), 1),
    "abort_crossed": AbortedStreaming(AbortKind.HARD),
    "abort_stream": AbortedStreaming(AbortKind.SUBMIT),
    "abort_waiting": AbortedStreaming(AbortKind.HARD),
    "abort_tools": AbortedTools(AbortKind.HARD),
    "prevented": StopHookPrevented("types", "no"),
    "tool_hook": HookStopped("guard", "enough"),
    "permission_stop": HookStopped("guard", "not today"),
    "turns": MaxTurns(3),
}


def test_these_walks_reach_all_ten() -> None:
    assert set(Terminal) == {end.reason for end in REACHED.values()}


@pytest.mark.parametrize("walk", REACHED)
def test_end(walk: str) -> None:
    assert REACHED[walk] == WALKS[walk]().end


def test_every_end_says_why_in_one_line() -> None:
    ends = [end for walk in WALKS.values() if (end := walk().state.end) is not None]

    assert [] == [end for end in ends if not end.why.strip() or "\n" in end.why]


# ---------------------------------------------------------------- endings


@pytest.mark.parametrize(
    ("stop", "ending"),
    [
        (Stop.END_TURN, Ending.END_TURN),
        (Stop.STOP_SEQUENCE, Ending.STOP_SEQUENCE),
        (Stop.TOOL_USE, Ending.MISSING_CALL),
        (Stop.OTHER, Ending.OTHER),
        (Stop.REFUSAL, Ending.REFUSAL),
        (Stop.PAUSE_TURN, Ending.PAUSED),
        (Stop.COMPACTION, Ending.PAUSED),
        (Stop.MAX_TOKENS, Ending.TRUNCATED),
    ],
    ids=str,
)
def test_ending(stop: Stop, ending: Ending) -> None:
    drive = Drive(max_resends=0, max_output_recoveries=0, max_output_tokens=100)
    drive.begin()
    drive.text()
    drive.close(stop)

    assert isinstance(drive.end, Completed)
    assert ending is drive.end.ending
    assert (ending in (Ending.END_TURN, Ending.STOP_SEQUENCE)) is drive.end.ok
    assert (ending is Ending.PAUSED) is drive.end.retryable
    assert ending in drive.end.why


def test_every_ending_is_reached_above() -> None:
    marks = test_ending.pytestmark  # type: ignore[attr-defined]
    assert set(Ending) == {ending for _, ending in marks[0].args[1]}


@pytest.mark.parametrize("stop", [Stop.MAX_TOKENS, Stop.REFUSAL, Stop.PAUSE_TURN, Stop.OTHER, Stop.TOOL_USE])
def test_only_a_truncated_end_shows_an_error(stop: Stop) -> None:
    drive = Drive(max_resends=0, max_output_recoveries=0, max_output_tokens=100)
    drive.begin()
    drive.text()
    drive.close(stop)

    wanted = [FailureKind.TRUNCATED] if stop is Stop.MAX_TOKENS else []
    assert wanted == [error.kind for error in drive.errors]


@pytest.mark.parametrize("stop", [Stop.REFUSAL, Stop.OTHER])
def test_the_words_of_the_stop_are_in_the_end(stop: Stop) -> None:
    drive = Drive()
    drive.begin()
    drive.text()
    drive.close(stop, details="words of the model's maker")

    assert isinstance(drive.end, Completed)
    assert "words of the model's maker" == drive.end.details
    assert "words of the model's maker" in drive.end.why


def test_spent_hooks_are_listed() -> None:
    drive = Drive(stop_hooks=(HookSpec("lint"), HookSpec("types", 2)))
    drive.begin()
    for verdict in (HookVerdict.BLOCK, HookVerdict.BLOCK):
        drive.text()
        drive.close()
        if len(drive.continued) == 0:
            drive.hook(verdict)
        drive.hook(HookVerdict.PASS)

    assert isinstance(drive.end, Completed)
    assert ("lint",) == drive.end.spent_hooks
    assert "lint" in drive.end.why


def test_a_budget_that_fades_is_told() -> None:
    end = WALKS["budget"]().end

    assert isinstance(end, Completed)
    assert end.budget_cut_short
    assert end.ok
    assert "budget" in end.why


# ---------------------------------------------------------------- limits


def test_limit_of_the_context_with_its_floor() -> None:
    drive = Drive(fixed_prompt_tokens=177_000)
    drive.begin()

    assert isinstance(drive.end, BlockingLimit)
    assert (Limit.CONTEXT, 177_000, 177_000) == (drive.end.which, drive.end.limit, drive.end.floor)
    assert "177000" in drive.end.why


def test_limit_of_the_context_without_a_floor() -> None:
    end = full(OVER, autocompact=False, reactive_compact=False).end

    assert BlockingLimit(Limit.CONTEXT, OVER + 2, 177_000, 0) == end


def test_limit_of_model_calls() -> None:
    drive = Drive(max_model_calls=1)
    drive.begin()
    drive.turn("a")

    assert BlockingLimit(Limit.MODEL_CALLS, 1, 1) == drive.end


def test_limit_of_run_tokens() -> None:
    drive = Drive(max_run_tokens=150)
    drive.begin()
    drive.call("a")
    drive.close(Stop.TOOL_USE, output=50, prompt=100)
    drive.tool("a")

    assert BlockingLimit(Limit.RUN_TOKENS, 150, 150) == drive.end


def test_limit_of_cost() -> None:
    drive = Drive(max_cost=4, models=(ModelSpec("main", 200_000, 64_000, 1_000_000, 2_000_000),))
    drive.begin()
    drive.call("a")
    drive.close(Stop.TOOL_USE, output=1, prompt=2)
    drive.tool("a")

    assert BlockingLimit(Limit.COST, 4, 4) == drive.end


def test_no_limit_is_retryable_or_ok() -> None:
    for which in Limit:
        end = BlockingLimit(which, 2, 1)
        assert (False, False) == (end.ok, end.retryable)
        assert which in end.why


# ---------------------------------------------------------------- ok and retryable


@pytest.mark.parametrize(
    ("end", "retryable"),
    [
        (PromptTooLong(Failure(FailureKind.PROMPT_TOO_LONG)), False),
        (ImageError(Failure(FailureKind.MEDIA_TOO_LARGE)), False),
        (AbortedStreaming(AbortKind.HARD), True),
        (AbortedTools(AbortKind.SUBMIT), True),
        (StopHookPrevented("h"), False),
        (HookStopped("h"), False),
        (MaxTurns(2), False),
        *((ModelError(Failure(kind), 1), kind in RETRYABLE) for kind in FailureKind),
    ],
    ids=lambda value: str(getattr(value, "reason", value)),
)
def test_nothing_but_completed_is_ok(end: Any, retryable: bool) -> None:
    assert (False, retryable) == (end.ok, end.retryable)


def test_which_failures_pass_with_time() -> None:
    assert {
        "transport",
        "timeout",
        "cut",
        "overloaded",
        "rate_limited",
        "server",
        "conflict",
        "crashed",
    } == {kind.value for kind in RETRYABLE}


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind in RETRYABLE])
def test_attempts_made_are_counted(kind: FailureKind) -> None:
    drive = Drive(max_retries=2)
    drive.begin()
    for _ in range(2):
        drive.fail(kind)
        drive.waited()
    drive.fail(kind)

    assert ModelError(failure(kind), 3) == drive.end
    assert "3 attempts" in drive.end.why


def test_hosts_with_stop_hooks_are_told_that_they_were_not_asked() -> None:
    assert ["stop_failure"] == WALKS["invalid"]().notices
    assert "stop_failure" not in WALKS["reaction_failed"]().notices  # no hooks there


def test_a_stop_hook_is_never_asked_after_a_failed_answer() -> None:
    drive = Drive(stop_hooks=ONE_HOOK)
    drive.begin()
    drive.text()
    drive.close(Stop.REFUSAL)

    assert "completed" == drive.end.reason
    assert not drive.owed


def test_a_call_that_is_not_safe_does_not_run_after_the_end() -> None:
    drive = Drive()
    drive.begin()
    drive.call("a", facts=CallFacts())
    drive.close(Stop.TOOL_USE)
    drive.tool("a", stop=HookStop("guard"))

    assert "hook_stopped" == drive.end.reason
    assert "guard" in drive.end.why
