"""Faults of the context: compaction and its breaker, the blocking check, layers, thinking."""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.adapters.fuzzing.museum.planting import (
    Exhibit,
    Rows,
    afterwards,
    believing,
    data_of,
    guard,
    keeps,
    move,
    part,
)
from stepfold.adapters.testing.world import Fault
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Message, Role
from stepfold.engine.state import Collapse


def _no_breaker(rows: Rows) -> Rows:
    def closed(c: Any) -> Any:
        return attrs.evolve(c, compaction=attrs.evolve(c.compaction, failures=0))

    return guard(rows, "compaction_due", believing(closed))


def _breaker_blind(rows: Rows) -> Rows:
    def blind(made: Any, s: Any, e: Any, k: Any) -> Any:
        failure = getattr(e, "failure", None)
        if failure is None or failure.kind not in (FailureKind.TRANSPORT, FailureKind.TIMEOUT):
            return made
        return part(made, "compaction", failures=s.control.compaction.failures)

    return move(rows, "fail_compaction", afterwards(blind))


def _breaker_lost(rows: Rows) -> Rows:
    lost = afterwards(lambda made, s, e, k: part(made, "compaction", failures=0))
    for name in ("call_after_crash", "wait_after_crash", "calls_after_crash"):
        rows = move(rows, name, lost)
    return rows


def _gainless(rows: Rows) -> Rows:
    return guard(rows, "under_threshold", lambda old: lambda c, e, k: bool(e.summary.strip()))


def _empty_summary(rows: Rows) -> Rows:
    return guard(rows, "under_threshold", lambda old: lambda c, e, k: old(c, attrs.evolve(e, summary="x"), k))


def _compaction_free(rows: Rows) -> Rows:
    def free(made: Any, s: Any, e: Any, k: Any) -> Any:
        return made._replace(control=attrs.evolve(made.control, spending=s.control.spending))

    return move(rows, "start_compaction", afterwards(free))


def _summary_retried(rows: Rows) -> Rows:
    return move(rows, "retry_compaction", keeps("compaction", "retries"))


def _gainless_reaction(rows: Rows) -> Rows:
    """A reactive compaction that fails is taken for one that worked, as often as it is asked for."""

    def unspent(made: Any, s: Any, e: Any, k: Any) -> Any:
        return part(made, "recovery", reactive_compacted=False)

    rows = guard(rows, "worked", lambda old: lambda c, e, k: True)
    return move(rows, "reactive_compact_retry", afterwards(unspent))


def _compactor_blocked(rows: Rows) -> Rows:
    def anybody(old: Any) -> Any:
        return lambda c, e, k: old(c, e, k) or c.fill.tokens >= k.thresholds[c.attempts.fallbacks].blocking

    return guard(rows, "context_full", anybody)


def _blocked_too_soon(rows: Rows) -> Rows:
    def at_once(old: Any) -> Any:
        return lambda c, e, k: (
            not k.nested and c.fill.tokens >= k.thresholds[c.attempts.fallbacks].autocompact
        )

    return guard(rows, "context_full", at_once)


def _snip_unsubtracted(rows: Rows) -> Rows:
    return move(rows, "prepare", keeps("fill", "tokens"))


def _drain_for_ever(rows: Rows) -> Rows:
    def staged(made: Any, s: Any, e: Any, k: Any) -> Any:
        made = part(made, "recovery", staged=1)
        return data_of(made, layers=attrs.evolve(made.data.layers, collapses=(Collapse(1, "again"),)))

    def forgetful(c: Any) -> Any:
        return attrs.evolve(c, transition=None)

    rows = move(rows, "collapse_drain_retry", afterwards(staged))
    return guard(
        guard(rows, "too_long_drainable", believing(forgetful)), "window_drainable", believing(forgetful)
    )


def _foreign_thinking(rows: Rows) -> Rows:
    def relabelled(made: Any, s: Any, e: Any, k: Any) -> Any:
        name = k.all_models[made.control.attempts.fallbacks].name
        view = type(made.data.messages)().extend(_written_by(m, name) for m in made.data.messages)
        return data_of(made, messages=view)

    return move(move(rows, "call_model", afterwards(relabelled)), "begin", afterwards(relabelled))


def _written_by(message: Message, model: str) -> Message:
    return attrs.evolve(message, model=model) if message.role is Role.ASSISTANT else message


EXHIBITS: Final = (
    Exhibit(
        "no-compaction-breaker",
        "Each compaction failed, and each turn tried again: more than a thousand sessions with fifty "
        "failures in a row and more.",
        "compaction_due does not look at the failures",
        _no_breaker,
        (Fault.COMPACTOR_FAILURES, Fault.USAGE),
    ),
    Exhibit(
        "breaker-blind-to-transport",
        "The breaker counted the failures that the API named, so a compactor behind a dead line was "
        "asked for ever.",
        "a compaction that fails in transport is not counted",
        _breaker_blind,
        (Fault.COMPACTOR_FAILURES, Fault.USAGE),
    ),
    Exhibit(
        "breaker-lost-on-resume",
        "The count of failed compactions lived in the process. A supervisor that restarted it began "
        "again at nought.",
        "a resume sets the failures to 0",
        _breaker_lost,
        (Fault.COMPACTOR_FAILURES, Fault.DEATHS),
    ),
    Exhibit(
        "compaction-that-does-not-shrink",
        "What could not be removed was over the threshold by itself; 211 compactions in one session, "
        "each a success.",
        "any summary counts as one that worked",
        _gainless,
        (Fault.COMPACTOR_USELESS, Fault.USAGE),
    ),
    Exhibit(
        "empty-summary-accepted",
        "The summary was empty, the history was gone, and the loop went on.",
        "a blank summary counts as one that worked",
        _empty_summary,
        (Fault.COMPACTOR_USELESS, Fault.USAGE),
    ),
    Exhibit(
        "compactions-are-no-requests",
        "Summaries were calls to the model that no limit counted.",
        "a compaction is not counted as a request",
        _compaction_free,
    ),
    Exhibit(
        "summary-request-too-long-for-ever",
        "The request for the summary was itself too long, was cut a little, and sent again, and again.",
        "the retries inside one compaction are not counted",
        _summary_retried,
    ),
    Exhibit(
        "failed-compaction-taken-as-leave-to-retry",
        "The compactor said that it had not compacted; the loop read that it had answered, and sent the "
        "same again.",
        "every reactive compaction has worked, and costs nothing",
        _gainless_reaction,
    ),
    Exhibit(
        "blocking-check-on-the-compactor",
        "The context was full, so the run that was to shrink it was not allowed to start.",
        "context_full holds for nested runs, too",
        _compactor_blocked,
    ),
    Exhibit(
        "blocked-while-a-recovery-is-left",
        "The run ended at the limit though an emergency compaction had never been tried.",
        "context_full does not wait for a rejection",
        _blocked_too_soon,
    ),
    Exhibit(
        "snip-not-subtracted",
        "Old rounds had left the view; the count did not know, and the rest was compacted for nothing.",
        "prepare keeps the old count of tokens",
        _snip_unsubtracted,
    ),
    Exhibit(
        "drain-for-ever",
        "Summaries that had been committed stayed in the drawer and were committed again after each "
        "rejection.",
        "a drain leaves what it drained, and is forgotten",
        _drain_for_ever,
        (Fault.TOO_LONG,),
    ),
    Exhibit(
        "thinking-sent-to-another-model",
        "After a fallback the new model got thinking with the signatures of the old one, and refused it.",
        "what any model wrote counts as written by the one that is asked",
        _foreign_thinking,
        (Fault.OVERLOADS, Fault.THINKING),
    ),
)
