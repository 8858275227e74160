"""Faults of retries, fallbacks, re-sends and of the count of requests."""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.engine.state import Attempts, Move
from tests.mutants.planting import Function, Mutant, Planting, part, untold


def retries_uncounted(p: Planting) -> None:
    def free(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "attempts", retries=s.control.attempts.retries)

    p.swap("wait", free)


def requests_uncounted_at_retries(p: Planting) -> None:
    def free(old: Function) -> Function:
        def call(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            if not s.control.attempts.retries:
                return move
            return move._replace(control=attrs.evolve(move.control, spending=s.control.spending))

        return call

    p.swap("call_model", free)


def limit_for_first_tries_only(p: Planting) -> None:
    row = p.the_row("Calling", "Entered", "requests_spent")

    def first(c: Any, e: Any, k: Any) -> bool:
        return row.when(c, e, k) and not (c.attempts.retries or c.attempts.fallbacks)

    p.rows[p.rows.index(row)] = attrs.evolve(row, when=first)


def fallback_twice(p: Planting) -> None:
    def round_again(old: Function) -> Function:
        def fall(s: Any, e: Any, k: Any) -> Any:
            if s.control.attempts.fallbacks + 1 < len(k.all_models):
                return old(s, e, k)
            control = attrs.evolve(s.control, attempts=Attempts(fallbacks=-1))
            return old(attrs.evolve(s, control=control), e, k)

        return fall

    def thrice(old: Function) -> Function:
        return lambda c, e, k: (
            e.failure.kind == "overloaded"
            and c.attempts.overloads + 1 >= k.overloads_before_fallback
            and len(k.all_models) > 1
        )

    p.swap("fall_back", round_again)
    p.swap("overloaded_thrice", thrice)


def overloads_not_reset(p: Planting) -> None:
    def sticky(old: Function) -> Function:
        def wait(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            most = max(s.control.attempts.overloads, move.control.attempts.overloads)
            return part(move, "attempts", overloads=most)

        return wait

    p.swap("wait", sticky)


def fallback_for_one_iteration(p: Planting) -> None:
    def first_again(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "attempts", fallbacks=0)

    p.swap("next_turn", first_again)


def every_failure_retried(p: Planting) -> None:
    def all_kinds(old: Function) -> Function:
        return lambda c, e, k: not k.nested and c.attempts.retries < k.max_retries

    p.swap("retryable", all_kinds)


def long_waits_waited(p: Planting) -> None:
    for name in ("wait_too_long", "wait_too_long_replaceable"):
        p.swap(name, lambda old: lambda c, e, k: False)


def attempt_not_withdrawn(p: Planting) -> None:
    p.swap("wait", lambda old: untold(old, "Tombstone"))


def retry_after_ignored(p: Planting) -> None:
    def hasty(old: Function) -> Function:
        def wait(s: Any, e: Any, k: Any) -> Any:
            failure = attrs.evolve(e.failure, retry_after_ms=None)
            return old(s, attrs.evolve(e, failure=failure), k)

        return wait

    p.swap("wait", hasty)


def paused_ends_the_run(p: Planting) -> None:
    p.drop("Sampling", "StreamClosed", "resendable")


def pauses_without_end(p: Planting) -> None:
    def free(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "attempts", resends=0)

    p.swap("resend", free)


FAULTS: tuple[Mutant, ...] = (
    Mutant(
        "retries are not counted",
        "the back-off never ends",
        retries_uncounted,
        ("failures/server-error-for-ever",),
    ),
    Mutant(
        "requests are not counted at retries",
        "only first tries count against max_model_calls",
        requests_uncounted_at_retries,
        ("limits/requests",),
    ),
    Mutant(
        "the limit of requests stands before first tries only",
        "retries and fallbacks pass it",
        limit_for_first_tries_only,
        ("limits/requests",),
    ),
    Mutant(
        "a fallback model is used twice",
        "after the last model comes the first",
        fallback_twice,
        ("failures/overloaded-for-ever",),
    ),
    Mutant(
        "the count of overloads is not reset",
        "other failures in between do not matter",
        overloads_not_reset,
        ("failures/two-overloads",),
    ),
    Mutant(
        "a fallback lasts for one iteration",
        "next_turn goes back to the first model",
        fallback_for_one_iteration,
        ("failures/fallback-lasts-for-the-run",),
    ),
    Mutant("every failure is retried", "4xx included", every_failure_retried, ("failures/bad-request",)),
    Mutant(
        "any Retry-After is waited for",
        "days included",
        long_waits_waited,
        ("failures/retry-after-sixteen-days",),
    ),
    Mutant(
        "Retry-After is ignored",
        "the back-off is waited for instead",
        retry_after_ignored,
        ("failures/retry-after",),
    ),
    Mutant(
        "a paused answer ends the run",
        "the row that sends it back is gone",
        paused_ends_the_run,
        ("turns/paused-turn",),
    ),
    Mutant(
        "a broken attempt stays shown",
        "the retry withdraws nothing",
        attempt_not_withdrawn,
        ("failures/overloaded-in-mid-stream",),
    ),
    Mutant(
        "a paused answer is sent back for ever",
        "re-sends are not counted",
        pauses_without_end,
        ("turns/paused-for-ever",),
    ),
)
