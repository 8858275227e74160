"""Faults of the ladders: reactive compaction, truncated answers, retries, fallbacks, limits."""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.adapters.fuzzing.museum.planting import (
    Exhibit,
    Rows,
    afterwards,
    before,
    believing,
    guard,
    instead,
    keeps,
    move,
    never,
    part,
    the_row,
    untold,
    without,
)
from stepfold.adapters.testing.world import Fault
from stepfold.engine.effects import ErrorShown, Show
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.moves.ends import surface_failure
from stepfold.engine.moves.sampling import resend
from stepfold.engine.phases import Calling
from stepfold.engine.state import Attempts, Stay, Withheld
from stepfold.engine.terminals import Terminal


def _reactive_reset(rows: Rows) -> Rows:
    reset = afterwards(lambda made, s, e, k: part(made, "recovery", reactive_compacted=False))
    return move(rows, "stop_hook_blocking", reset)


def _image_for_ever(rows: Rows) -> Rows:
    def unspent(c: Any) -> Any:
        return attrs.evolve(c, recovery=attrs.evolve(c.recovery, reactive_compacted=False))

    rows = guard(rows, "media_reactable", believing(unspent))
    return guard(
        rows,
        "worked",
        lambda old: lambda c, e, k: c.recovery.withheld is Withheld.MEDIA or old(c, e, k),
    )


def _error_first(rows: Rows) -> Rows:
    def told(made: Any, s: Any, e: Any, k: Any) -> Any:
        failure = getattr(e, "failure", Failure(FailureKind.WINDOW_EXCEEDED))
        return made._replace(effects=(Show(ErrorShown(failure)), *made.effects))

    return move(rows, "react", afterwards(told))


def _escalates_twice(rows: Rows) -> Rows:
    def forgotten(c: Any) -> Any:
        return attrs.evolve(c, recovery=attrs.evolve(c.recovery, output_limit_override=None))

    return guard(rows, "escalatable", believing(forgotten))


def _recoveries_uncounted(rows: Rows) -> Rows:
    return move(rows, "max_output_tokens_recovery", keeps("recovery", "output_recoveries"))


def _cut_calls_run(rows: Rows) -> Rows:
    return before(rows, the_row(rows, "Sampling", "StreamClosed", "has_calls"))


def _cut_stays_shown(rows: Rows) -> Rows:
    return move(rows, "max_output_tokens_escalate", untold("Tombstone"))


def _refusal_retried(rows: Rows) -> Rows:
    old = the_row(rows, "Sampling", "StreamClosed", "refused")
    return instead(rows, old, outcome=Stay.RESENDING, enters=Calling, by=resend)


def _pauses_uncounted(rows: Rows) -> Rows:
    return move(rows, "resend", keeps("attempts", "resends"))


def _retries_uncounted(rows: Rows) -> Rows:
    """A transport failure spends no retry."""

    def free(made: Any, s: Any, e: Any, k: Any) -> Any:
        if e.failure.kind is not FailureKind.TRANSPORT:
            return made
        return part(made, "attempts", retries=s.control.attempts.retries)

    return move(rows, "wait", afterwards(free))


def _waits_for_days(rows: Rows) -> Rows:
    return guard(guard(rows, "wait_too_long", never), "wait_too_long_replaceable", never)


def _fallback_ring(rows: Rows) -> Rows:
    def round_again(old: Any) -> Any:
        def fall(s: Any, e: Any, k: Any) -> Any:
            if s.control.attempts.fallbacks + 1 < len(k.all_models):
                return old(s, e, k)
            control = attrs.evolve(s.control, attempts=Attempts(fallbacks=-1))
            return old(attrs.evolve(s, control=control), e, k)

        return fall

    def any_overload(old: Any) -> Any:
        return lambda c, e, k: (
            e.failure.kind is FailureKind.OVERLOADED
            and c.attempts.overloads + 1 >= k.overloads_before_fallback
            and len(k.all_models) > 1
        )

    return guard(move(rows, "fall_back", round_again), "overloaded_thrice", any_overload)


def _attempt_stays_shown(rows: Rows) -> Rows:
    return move(rows, "wait", untold("Tombstone"))


def _requests_of_retries_uncounted(rows: Rows) -> Rows:
    def free(made: Any, s: Any, e: Any, k: Any) -> Any:
        if not s.control.attempts.retries:
            return made
        return made._replace(control=attrs.evolve(made.control, spending=s.control.spending))

    return move(rows, "call_model", afterwards(free))


def _turns_uncounted(rows: Rows) -> Rows:
    def free(made: Any, s: Any, e: Any, k: Any) -> Any:
        return made._replace(control=attrs.evolve(made.control, turn=s.control.turn))

    return move(rows, "next_turn", afterwards(free))


def _budget_never_fades(rows: Rows) -> Rows:
    def hungry(old: Any) -> Any:
        return lambda c, e, k: bool(
            k.token_budget_tokens
            and not k.sub_agent
            and 10 * c.spending.output_tokens < 9 * k.token_budget_tokens
        )

    return guard(rows, "budget_left", hungry)


def _wrong_terminal(rows: Rows) -> Rows:
    old = the_row(rows, "Sampling", "StreamFailed", "media_too_large")
    return instead(rows, old, outcome=Terminal.MODEL_ERROR, by=surface_failure)


def _back_off_deaf(rows: Rows) -> Rows:
    return without(rows, "Waiting", "AbortRequested")


EXHIBITS: Final = (
    Exhibit(
        "reactive-flag-reset-by-a-stop-hook",
        "A prompt that stays too long is compacted in an emergency, once. A stop hook that blocked gave that "
        "one try back, and the two kept each other going all night.",
        "stop_hook_blocking sets reactive_compacted to False",
        _reactive_reset,
        (Fault.TOO_LONG, Fault.HOOK_BLOCKS),
    ),
    Exhibit(
        "image-retried-for-ever",
        "An image over the maximum is a request that can never succeed; it was retried like any other "
        "failure.",
        "media is compacted away whether or not that has been tried",
        _image_for_ever,
    ),
    Exhibit(
        "error-shown-before-recovery",
        "The consumer saw the error and gave up, while the loop behind it was recovering.",
        "react shows the failure that it keeps back",
        _error_first,
    ),
    Exhibit(
        "escalation-fires-twice",
        "An answer that was cut is asked for again with a higher limit; without a note that this was done it "
        "is done for ever, with the same limit.",
        "escalatable does not look at the limit in force",
        _escalates_twice,
    ),
    Exhibit(
        "recoveries-not-counted",
        "Answers cut at the output limit were resumed without end: the same cut, the same resume.",
        "a resume is not counted",
        _recoveries_uncounted,
    ),
    Exhibit(
        "calls-of-a-cut-answer-run",
        "A truncated answer held calls that looked whole; they were run with half of their input.",
        "has_calls stands before truncated",
        _cut_calls_run,
    ),
    Exhibit(
        "cut-answer-stays-shown",
        "The answer that was thrown away stayed on the screen, and its second half followed the whole one.",
        "escalation withdraws nothing",
        _cut_stays_shown,
    ),
    Exhibit(
        "refusal-retried",
        "A refusal was no reason that anybody knew, so it was retried, half a million tokens a time.",
        "a refused answer is sent for again",
        _refusal_retried,
    ),
    Exhibit(
        "pauses-not-counted",
        "A paused turn is sent back as it is; a server that pauses every time never let go.",
        "a re-send is not counted",
        _pauses_uncounted,
    ),
    Exhibit(
        "transport-failures-not-counted",
        "Only the errors of the API counted as tries; on a broken line the back-off began anew for ever.",
        "a retry after a transport failure is not counted",
        _retries_uncounted,
    ),
    Exhibit(
        "waits-for-days",
        "A quota error said to come back in sixteen days, and the loop sat there and waited.",
        "any Retry-After is waited for",
        _waits_for_days,
    ),
    Exhibit(
        "fallback-ring",
        "After the last fallback model came the first again, and round it went under an outage.",
        "the chain of models is a ring",
        _fallback_ring,
        (Fault.OVERLOADS,),
    ),
    Exhibit(
        "failed-attempt-stays-shown",
        "An overload in mid-stream was retried; the reader saw the beginning of the answer twice.",
        "a retry withdraws nothing",
        _attempt_stays_shown,
    ),
    Exhibit(
        "retries-are-no-requests",
        "The limit on requests counted first tries only, so the bill was a multiple of what was allowed.",
        "a request made again is not counted",
        _requests_of_retries_uncounted,
    ),
    Exhibit(
        "turns-not-counted",
        "The model called one tool with one input for ever, and no counter moved.",
        "next_turn keeps the number of the turn",
        _turns_uncounted,
    ),
    Exhibit(
        "budget-never-fades",
        "A token budget sent the model on and on for answers that brought nothing more.",
        "small gains are no reason to stop",
        _budget_never_fades,
    ),
    Exhibit(
        "wrong-terminal",
        "Whoever called could not tell rejected media from an outage, and tried the same again later.",
        "rejected media ends as model_error",
        _wrong_terminal,
    ),
    Exhibit(
        "back-off-cannot-be-aborted",
        "The user pressed the key during a back-off of half a minute, and nothing happened.",
        "there is no row for an abort in Waiting",
        _back_off_deaf,
    ),
)
