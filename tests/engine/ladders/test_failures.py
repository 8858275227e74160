"""
What only this file catches: a failed call that is retried once too often, waited for too long, or given up.

The specification, section 5: retries, back-off, fallbacks, pauses.
"""

from __future__ import annotations

import pytest

from stepfold.engine.effects import CallModel, Wait
from stepfold.engine.events import Stop
from stepfold.engine.failures import RETRYABLE, TOO_LONG, FailureKind
from stepfold.engine.messages import Media, Text, Thinking
from stepfold.engine.terminals import ModelError
from tests.engine.driven.drive import Drive

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


# ---------------------------------------------------------------- failed calls


@pytest.mark.parametrize("kind", FailureKind)
def test_which_failures_are_retried(kind: FailureKind) -> None:
    drive = begun(reactive_compact=False)
    drive.fail(kind)

    assert (kind in RETRYABLE) is bool(drive.opened(Wait))
    if kind not in RETRYABLE:
        wanted = {FailureKind.MEDIA_TOO_LARGE: "image_error"}.get(kind, "model_error")
        assert ("prompt_too_long" if kind in TOO_LONG else wanted) == drive.end.reason
        assert [kind] == [error.kind for error in drive.errors]


def test_ten_retries_after_the_first_try() -> None:
    drive = begun(jitter_percent=0)
    for _ in range(10):
        drive.fail(FailureKind.SERVER)
        drive.waited()
    drive.fail(FailureKind.SERVER)

    assert [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 32_000, 32_000, 32_000] == [
        wait.ms for wait in drive.all(Wait)
    ]
    assert 11 == len(drive.all(CallModel))
    assert isinstance(drive.end, ModelError)
    assert 11 == drive.end.attempts


def test_jitter_is_a_quarter_at_most_and_comes_from_the_seed() -> None:
    def waits(seed: int) -> list[tuple[int, int]]:
        drive = Drive()
        drive.begin(seed=seed)
        for _ in range(10):
            drive.fail(FailureKind.SERVER)
            drive.waited()
        return [(wait.ms, wait.jitter_ms) for wait in drive.all(Wait)]

    assert waits(1) == waits(1) != waits(2)
    for ms, jitter in waits(1) + waits(2):
        assert 0 <= jitter * 4 <= ms - jitter
    assert 10 < len({jitter for _, jitter in waits(1) + waits(2)})


@pytest.mark.parametrize(("after", "waits"), [(0, True), (7_000, True), (300_000, True), (300_001, False)])
def test_the_servers_own_wait_wins_and_a_too_long_one_is_not_waited_for(after: int, waits: bool) -> None:
    drive = begun()
    drive.fail(FailureKind.RATE_LIMITED, retry_after_ms=after)

    if waits:
        assert (after, 0) == (drive.open(Wait).ms, drive.open(Wait).jitter_ms)
    else:
        assert "model_error" == drive.end.reason
        assert drive.end.retryable


def test_a_wait_that_is_too_long_takes_the_next_model() -> None:
    drive = begun(fallback_models=("second",))
    drive.fail(FailureKind.RATE_LIMITED, retry_after_ms=300_001)

    assert ["main", "second"] == models(drive)


def test_a_failure_that_does_not_pass_is_surfaced_whatever_the_server_says() -> None:
    drive = begun(fallback_models=("second",))
    drive.fail(FailureKind.SPEND_LIMIT, retry_after_ms=400_000)

    assert ["main"] == models(drive)
    assert "model_error" == drive.end.reason


def test_retries_are_counted_anew_in_each_iteration() -> None:
    drive = begun(max_retries=1)
    for name in ("a", "b"):
        drive.fail(FailureKind.SERVER)
        drive.waited()
        drive.turn(name)

    assert drive.finish().ok


# ---------------------------------------------------------------- fallbacks


def test_the_third_overload_in_a_row_takes_the_next_model_at_once() -> None:
    drive = begun(fallback_models=("second",))
    for _ in range(2):
        drive.fail(FailureKind.OVERLOADED)
        drive.waited()
    effects = drive.fail(FailureKind.OVERLOADED)

    assert ["main"] * 3 + ["second"] == models(drive)
    assert [] == [effect for effect in effects if isinstance(effect, Wait)]
    assert "second" == drive.state.data.tool_context.model


def test_another_failure_between_breaks_the_row() -> None:
    drive = begun(fallback_models=("second",))
    for kind in (
        FailureKind.OVERLOADED,
        FailureKind.OVERLOADED,
        FailureKind.SERVER,
        FailureKind.OVERLOADED,
        FailureKind.OVERLOADED,
    ):
        drive.fail(kind)
        drive.waited()

    assert {"main"} == set(models(drive))


def test_fallbacks_spent_the_last_model_uses_its_ten() -> None:
    drive = begun(fallback_models=("second",))
    tries = 0
    while drive.state.end is None:
        drive.fail(FailureKind.OVERLOADED)
        tries += 1
        if drive.opened(Wait):
            drive.waited()

    assert 3 + 11 == tries
    assert ["main"] * 3 + ["second"] * 11 == models(drive)


def test_a_fallback_lasts_for_the_run_and_the_next_begins_with_the_first_model() -> None:
    drive = begun(fallback_models=("second",))
    drive.fail(FailureKind.RATE_LIMITED, retry_after_ms=400_000)
    drive.turn("a")
    drive.finish()
    drive.begin("again")

    assert ["main", "second", "second", "main"] == models(drive)
    assert "main" == drive.state.data.tool_context.model


def test_an_answer_remembers_the_model_that_wrote_it() -> None:
    drive = begun(fallback_models=("second",))
    drive.fail(FailureKind.RATE_LIMITED, retry_after_ms=400_000)
    drive.turn("a")

    assert ["", "second", ""] == [message.model for message in drive.messages]


# ---------------------------------------------------------------- pauses


@pytest.mark.parametrize("stop", [Stop.PAUSE_TURN, Stop.COMPACTION])
def test_a_pause_is_sent_back_unchanged_without_a_wait(stop: Stop) -> None:
    drive = begun()
    drive.text("so far")
    drive.block(Thinking("hm", "sig"))
    effects = drive.close(stop)
    order = drive.open(CallModel)

    assert order.resend
    assert (Text("so far"), Thinking("hm", "sig")) == order.messages[-1].content
    assert [] == [effect for effect in effects if isinstance(effect, Wait)]
    assert [] == drive.continued


def test_at_most_ten_re_sends() -> None:
    drive = begun()
    sent = 0
    while drive.state.end is None:
        drive.text("x")
        drive.close(Stop.PAUSE_TURN)
        sent += drive.state.end is None

    assert 10 == sent
    assert "paused" == drive.end.ending  # type: ignore[union-attr]


def test_an_empty_pause_adds_no_message_and_the_request_ends_with_the_user() -> None:
    drive = begun()
    drive.close(Stop.PAUSE_TURN)

    assert not drive.open(CallModel).resend
    assert 1 == len(drive.messages)
