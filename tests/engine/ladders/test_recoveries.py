"""
What only this file catches: a rung of a ladder that is skipped, climbed twice, or wrongly taken.

The specification, section 5: truncation, the prompt and media ladders, stop hooks.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from stepfold.engine.config import HookSpec, ModelSpec
from stepfold.engine.effects import CallModel, Compact, CompactReason, Notice, RunHook
from stepfold.engine.events import HookVerdict, Stop, Usage
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Media, Message, Role, Text, Thinking
from tests.engine.driven.context import STAGED
from tests.engine.driven.drive import Drive, talk

IMAGE = Media("image", "{}")


def begun(**config: object) -> Drive:
    drive = Drive(**config)  # type: ignore[arg-type]
    drive.begin()
    return drive


def models(drive: Drive) -> list[str]:
    """Return the model of each request."""
    return [order.model for order in drive.all(CallModel)]


def limits(drive: Drive) -> list[int]:
    """Return the output limit of each request."""
    return [order.max_output_tokens for order in drive.all(CallModel)]


# ---------------------------------------------------------------- truncation


def test_8000_then_64000_then_three_resumes_then_the_surface() -> None:
    drive = begun()
    while drive.state.end is None:
        drive.text("part")
        drive.close(Stop.MAX_TOKENS)

    assert [8_000, 64_000, 64_000, 64_000, 64_000] == limits(drive)
    assert ["max_output_tokens_escalate"] + ["max_output_tokens_recovery"] * 3 == drive.continued
    assert "truncated" == drive.end.ending  # type: ignore[union-attr]
    assert 1 == drive.stones
    assert [FailureKind.TRUNCATED] == [error.kind for error in drive.errors]


@pytest.mark.parametrize(
    "config",
    [
        {"max_output_tokens": 8_000},
        {"model_max_output_tokens": 63_999},
        {"max_output_tokens": 64_000},
    ],
    ids=str,
)
def test_no_escalation_where_the_user_set_a_limit_or_the_model_cannot(config: dict[str, int]) -> None:
    drive = begun(**config)
    drive.text("part")
    drive.close(Stop.MAX_TOKENS)

    assert ["max_output_tokens_recovery"] == drive.continued


def test_a_turn_gives_escalation_and_resumes_anew() -> None:
    drive = begun()
    for _ in range(4):
        drive.text("part")
        drive.close(Stop.MAX_TOKENS)
    drive.turn("a")
    drive.text("part")
    drive.close(Stop.MAX_TOKENS)

    assert 8_000 == limits(drive)[-2]
    assert "max_output_tokens_escalate" == drive.continued[-1]


def test_the_limit_is_never_more_than_the_model_can() -> None:
    drive = begun(model_max_output_tokens=4_000)

    assert [4_000] == limits(drive)


def test_an_empty_truncated_answer_adds_no_message_but_the_resume() -> None:
    drive = begun(max_output_tokens=10)
    drive.block(Thinking("hm", "sig"))
    drive.close(Stop.MAX_TOKENS)

    assert ["prompt", "resume"] == [message.origin for message in drive.messages]


# ---------------------------------------------------------------- the prompt is too long


@pytest.mark.parametrize("kind", [FailureKind.PROMPT_TOO_LONG, FailureKind.REQUEST_TOO_LARGE])
def test_drain_then_reaction_then_the_surface(kind: FailureKind) -> None:
    drive = Drive(talk(6), collapses=STAGED, stop_hooks=(HookSpec("lint"),))
    drive.begin()
    drive.fail(kind)
    drive.fail(kind)
    drive.compacted(1_000)
    quiet = list(drive.errors)
    drive.fail(kind)

    assert ["collapse_drain_retry", "reactive_compact_retry"] == drive.continued
    assert ([], [kind]) == (quiet, [error.kind for error in drive.errors])
    assert "prompt_too_long" == drive.end.reason
    assert "stop_failure" in drive.notices
    assert [] == drive.all(RunHook)


@pytest.mark.parametrize(("tokens", "works"), [(176_999, True), (177_000, False), (199_999, False)], ids=str)
def test_a_reaction_must_come_under_the_blocking_limit(tokens: int, works: bool) -> None:
    drive = begun()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.compacted(tokens)

    assert works is bool(drive.continued)
    assert (0 if works else 1) == drive.state.control.compaction.failures


def test_after_a_prompt_too_long_the_view_before_counts_as_the_whole_window() -> None:
    drive = begun()  # an estimate of one token
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.compacted(100_000)

    assert ["reactive_compact_retry"] == drive.continued


def test_after_media_the_view_must_really_be_smaller() -> None:
    for tokens, works in ((99, True), (100, False)):
        drive = Drive()
        drive.begin("x" * 300)  # 100 tokens
        drive.fail(FailureKind.MEDIA_TOO_LARGE)
        drive.compacted(tokens)
        assert works is bool(drive.continued)


def test_a_reaction_strips_media_and_an_autocompact_does_not() -> None:
    drive = Drive((Message(Role.USER, (IMAGE,)), *talk(1)))
    drive.begin()
    drive.fail(FailureKind.MEDIA_TOO_LARGE)
    order = drive.open(Compact)

    assert (CompactReason.REACTIVE, True) == (order.reason, order.strip_media)
    assert "image removed" in str((*order.head, *order.tail))
    assert IMAGE not in [block for m in (*order.head, *order.tail) for block in m.content]


def test_an_open_breaker_does_not_stop_a_reaction() -> None:
    drive = Drive(talk(12), max_compaction_failures=1)
    drive.begin()
    drive.call("a")
    drive.close(Stop.TOOL_USE, output=0, prompt=170_000)
    drive.tool("a")
    drive.not_compacted()
    drive.fail(FailureKind.PROMPT_TOO_LONG)

    assert CompactReason.REACTIVE is drive.open(Compact).reason


def test_one_reaction_between_turns() -> None:
    drive = begun()
    for name in ("a", "b"):
        drive.fail(FailureKind.PROMPT_TOO_LONG)
        drive.compacted(1_000)
        drive.turn(name)

    assert 2 == drive.continued.count("reactive_compact_retry")


def test_a_stop_hook_does_not_give_the_reaction_back() -> None:
    drive = begun(stop_hooks=(HookSpec("lint"),))
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.compacted(1_000)
    drive.text()
    drive.close()
    drive.hook(HookVerdict.BLOCK)
    drive.fail(FailureKind.PROMPT_TOO_LONG)

    assert "prompt_too_long" == drive.end.reason


def test_a_shown_error_is_the_last_thing_before_the_end() -> None:
    drive = begun()
    drive.text("half")
    drive.fail(FailureKind.AUTHENTICATION, usage=Usage(1, 1))

    assert ["Tombstone", "Show", "Finish"] == [type(effect).__name__ for effect in drive.outputs[-1]]
    assert 1 == len(drive.messages)


# ---------------------------------------------------------------- stop hooks


def test_all_hooks_that_are_not_spent_are_asked_in_order_before_the_decision() -> None:
    drive = begun(stop_hooks=(HookSpec("a"), HookSpec("b", 2), HookSpec("c")))
    for verdict in (HookVerdict.BLOCK, HookVerdict.BLOCK, HookVerdict.PASS):
        if not drive.opened(RunHook):
            drive.text()
            drive.close()
        drive.hook(verdict, "words")
    drive.text()
    drive.close()
    drive.hook(HookVerdict.BLOCK, "again")
    drive.hook(HookVerdict.TIMEOUT)
    drive.text()
    drive.close()

    assert ["a", "b", "c", "b", "c", "c"] == [order.hook for order in drive.all(RunHook)]
    assert [False, False, False, True, True, True] == [order.active for order in drive.all(RunHook)]
    assert ["stop_hook_blocking"] * 2 == drive.continued
    assert [2, 1] == [len([m for m in d if m.origin == "hook"]) for d in hook_messages(drive)]


def hook_messages(drive: Drive) -> list[list[Message]]:
    """Return what each blocking continue brought."""
    views = [list(order.messages) for order in drive.all(CallModel)]
    return [new[len(old) :] for old, new in pairwise(views)]


@pytest.mark.parametrize("verdict", [HookVerdict.CRASH, HookVerdict.TIMEOUT])
def test_a_hook_that_crashes_or_times_out_has_not_blocked_and_is_a_notice(verdict: HookVerdict) -> None:
    drive = begun(stop_hooks=(HookSpec("lint"),))
    drive.text()
    drive.close()
    drive.hook(verdict, "boom")

    assert drive.end.ok
    assert "lint" in drive.last(Notice).text


def test_hooks_see_the_answer_that_they_judge() -> None:
    drive = begun(stop_hooks=(HookSpec("lint"),))
    drive.text("the answer")
    drive.close()

    assert (Text("the answer"),) == drive.open(RunHook).messages[-1].content
    assert 1 == len(drive.messages)


def test_the_count_of_blocks_is_not_reset_by_turns_but_by_a_new_run() -> None:
    drive = begun(stop_hooks=(HookSpec("lint"),))
    drive.text()
    drive.close()
    drive.hook(HookVerdict.BLOCK)
    drive.turn("a")
    drive.finish()
    drive.begin("again")
    drive.text()
    drive.close()

    assert drive.opened(RunHook)


def test_prices_are_those_of_the_current_model() -> None:
    specs = (ModelSpec("main", 200_000, 64_000, 0, 0), ModelSpec("second", 200_000, 64_000, 10**6, 10**6))
    drive = begun(models=specs, fallback_models=("second",))
    drive.fail(FailureKind.RATE_LIMITED, retry_after_ms=400_000, usage=Usage(9, 9))
    drive.text()
    drive.close(usage=Usage(3, 4))

    assert 7 == drive.state.control.spending.cost
