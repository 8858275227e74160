"""Faults of the context layers, of compaction and of what stands before a request."""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.engine.context.repair import Repaired
from stepfold.engine.context.request import project
from stepfold.engine.effects import ErrorShown, Show
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.state import Collapse, Move
from tests.mutants.planting import Function, Mutant, Planting, part


def no_breaker(p: Planting) -> None:
    def due(old: Function) -> Function:
        return lambda c, e, k: old(attrs.evolve(c, compaction=attrs.evolve(c.compaction, failures=0)), e, k)

    p.swap("compaction_due", due)


def breaker_for_reactive(p: Planting) -> None:
    def closed(old: Function) -> Function:
        return lambda c, e, k: c.compaction.failures < k.max_compaction_failures and old(c, e, k)

    p.swap("reactable", closed, "guards.answer")
    for name in ("too_long_reactable", "window_reactable", "media_reactable"):
        p.swap(name, closed)


def breaker_never_reset(p: Planting) -> None:
    def keep(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "compaction", failures=s.control.compaction.failures)

    p.swap("take_compaction", keep)


def breaker_reset_by_reactive(p: Planting) -> None:
    def forget(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "compaction", failures=0)

    p.swap("reactive_compact_retry", forget)


def gainless_counts_as_success(p: Planting) -> None:
    p.swap("under_threshold", lambda old: lambda c, e, k: bool(e.summary.strip()))


def gainless_reaction_retries(p: Planting) -> None:
    p.swap("worked", lambda old: lambda c, e, k: True)


def compactor_blocked(p: Planting) -> None:
    def blocked(old: Function) -> Function:
        return lambda c, e, k: old(c, e, k) or c.fill.tokens >= k.thresholds[c.attempts.fallbacks].blocking

    def only_nested(old: Function) -> Function:
        made = blocked(old)
        return lambda c, e, k: made(c, e, k) if k.nested else old(c, e, k)

    p.swap("context_full", only_nested)


def compactor_compacts(p: Planting) -> None:
    def open_to_all(old: Function) -> Function:
        return lambda c, e, k: old(c, e, attrs.evolve(k, source="user"))

    p.swap("compaction_due", open_to_all)


def floor_forgotten(p: Planting) -> None:
    def no_floor(old: Function) -> Function:
        return lambda c, e, k: old(attrs.evolve(c, fill=attrs.evolve(c.fill, floor=0)), e, k)

    p.swap("compaction_due", no_floor)
    p.swap("context_full", no_floor)


def block_before_recovery(p: Planting) -> None:
    def early(old: Function) -> Function:
        return lambda c, e, k: (
            (not k.nested and c.fill.tokens >= k.thresholds[c.attempts.fallbacks].blocking) or old(c, e, k)
        )

    p.swap("context_full", early)


def snip_not_subtracted(p: Planting) -> None:
    def stale(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "fill", tokens=s.control.fill.tokens)

    p.swap("prepare", stale)


def drain_not_subtracted(p: Planting) -> None:
    def stale(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "fill", tokens=s.control.fill.tokens)

    p.swap("drain_staged", stale)


def whole_results(p: Planting) -> None:
    p.swap("hold_to_budget", lambda old: lambda message, *rest: (message, 0), "context.results")


def repair_off(p: Planting) -> None:
    p.swap("repair", lambda old: lambda messages: Repaired(tuple(messages)), "context.repair")


def compaction_before_drain(p: Planting) -> None:
    p.drop("Fitting", "Entered", "staged_at_threshold")


def drain_for_ever(p: Planting) -> None:
    """What was committed stays staged, and the drain before this one is forgotten."""

    def staged(old: Function) -> Function:
        def drain(s: Any, e: Any, k: Any) -> Move:
            move: Move = part(old(s, e, k), "recovery", staged=1)
            layers = attrs.evolve(move.data.layers, collapses=(Collapse(1, "again"),))
            return move._replace(data=attrs.evolve(move.data, layers=layers))

        return drain

    def blind(old: Function) -> Function:
        return lambda c, e, k: old(attrs.evolve(c, transition=None), e, k)

    p.swap("collapse_drain_retry", staged)
    for name in ("too_long_drainable", "window_drainable"):
        p.swap(name, blind)


def stale_collapses(p: Planting) -> None:
    """A compaction leaves what was staged for the view that is gone."""

    def kept(old: Function) -> Function:
        def take(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            collapses = s.data.layers.collapses or (Collapse(1, "stale"),)
            data = attrs.evolve(move.data, layers=attrs.evolve(move.data.layers, collapses=collapses))
            return part(move._replace(data=data), "recovery", staged=len(collapses))

        return take

    p.swap("reactive_compact_retry", kept)


def error_before_recovery(p: Planting) -> None:
    def told(old: Function) -> Function:
        def react(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            failure = getattr(e, "failure", Failure(FailureKind.WINDOW_EXCEEDED))
            return move._replace(effects=(Show(ErrorShown(failure)), *move.effects))

        return react

    p.swap("react", told)


def media_kept(p: Planting) -> None:
    p.swap("without_media", lambda old: tuple, "context.tail")


def summary_retried_for_ever(p: Planting) -> None:
    def counted_not(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "compaction", retries=0)

    p.swap("retry_compaction", counted_not)


def compactions_uncounted(p: Planting) -> None:
    def free(old: Function) -> Function:
        return lambda s, e, k: old(s, e, k)._replace(
            control=attrs.evolve(old(s, e, k).control, spending=s.control.spending)
        )

    p.swap("start_compaction", free)


def thinking_to_another_model(p: Planting) -> None:
    def to_all(old: Function) -> Function:
        return lambda message, model, thinking: project(message, message.model or model, thinking)

    p.swap("project", to_all, "context.request")


def thinking_though_off(p: Planting) -> None:
    def always(old: Function) -> Function:
        return lambda message, model, thinking: old(message, model, True)

    p.swap("project", always, "context.request")


def cut_answer_lost_in_a_full_window(p: Planting) -> None:
    def without(old: Function) -> Function:
        def retry(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(attrs.evolve(s, phase=attrs.evolve(s.phase, partial=())), e, k)
            return move

        return retry

    p.swap("reactive_compact_retry", without)


def estimate_of_the_answer_lost(p: Planting) -> None:
    """A reported prompt is taken for the whole view: what the answer and its results add is forgotten."""

    def forgetful(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "fill", tokens=s.control.fill.tokens)

    p.swap("next_turn", forgetful)


FAULTS = (
    Mutant(
        "no compaction breaker",
        "autocompact fires whatever the failures in a row",
        no_breaker,
        ("context/breaker-for-failing-compactions", "context/breaker-for-compactions-without-gain"),
    ),
    Mutant(
        "the breaker stops reactive compaction too",
        "three failures of autocompact leave nothing to climb",
        breaker_for_reactive,
        ("context/open-breaker-and-reactive",),
    ),
    Mutant(
        "success does not reset the breaker",
        "a compaction that works leaves the failures as they are",
        breaker_never_reset,
        ("context/success-resets-the-breaker",),
    ),
    Mutant(
        "reactive compaction resets the breaker",
        "its success forgets the failures in a row",
        breaker_reset_by_reactive,
        ("context/open-breaker-and-reactive",),
    ),
    Mutant(
        "a compaction that does not shrink counts as success",
        "any summary is under the threshold",
        gainless_counts_as_success,
        ("context/breaker-for-compactions-without-gain",),
    ),
    Mutant(
        "a reactive compaction without gain is retried on",
        "every summary has worked",
        gainless_reaction_retries,
        ("context/reactive-without-gain",),
    ),
    Mutant(
        "the blocking check is applied to the compactor",
        "a run with source compact ends before its request",
        compactor_blocked,
        ("context/source-of-a-compaction",),
    ),
    Mutant(
        "the compactor is compacted itself",
        "autocompact fires in a nested run",
        compactor_compacts,
        ("context/nested-run-compacts-nothing",),
    ),
    Mutant(
        "the fixed part is forgotten",
        "autocompact and the blocking check do not look at the floor",
        floor_forgotten,
        ("context/fixed-part-over-the-threshold", "context/fixed-part-too-big"),
    ),
    Mutant(
        "blocked while a recovery is left",
        "the blocking check does not wait for a real rejection",
        block_before_recovery,
        ("context/no-block-while-a-recovery-is-left",),
    ),
    Mutant(
        "what was snipped is not subtracted",
        "the token count stays as it was before the layers",
        snip_not_subtracted,
        ("context/snip-instead-of-autocompact",),
    ),
    Mutant(
        "what a drain freed is not subtracted",
        "so autocompact fires all the same",
        drain_not_subtracted,
        ("context/drain-instead-of-autocompact",),
    ),
    Mutant("no tool-result budget", "results join whole", whole_results, ("context/large-result",)),
    Mutant("no repair", "a history from outside is taken as it is", repair_off, ("protocol/missing-result",)),
    Mutant(
        "autocompact before the staged collapses",
        "the row that drains at the threshold is gone",
        compaction_before_drain,
        ("context/drain-instead-of-autocompact",),
    ),
    Mutant(
        "a drain for ever",
        "what was committed stays staged, and the previous drain is forgotten",
        drain_for_ever,
        ("context/whole-ladder",),
    ),
    Mutant(
        "stale collapses after a compaction",
        "summaries staged for the old view survive it",
        stale_collapses,
        ("context/always-too-long",),
    ),
    Mutant(
        "the error is shown before recovery",
        "a withheld failure reaches the consumer at once",
        error_before_recovery,
        ("context/reactive-compaction",),
    ),
    Mutant(
        "media is not stripped",
        "the compacted view keeps its images",
        media_kept,
        ("media/stripped-from-the-tail",),
    ),
    Mutant(
        "summary requests that are too long are retried for ever",
        "the retries inside one compaction are not counted",
        summary_retried_for_ever,
        ("context/summary-request-too-long-for-ever",),
    ),
    Mutant(
        "compactions are no requests",
        "a compaction does not count against max_model_calls",
        compactions_uncounted,
        ("limits/requests-and-compactions",),
    ),
    Mutant(
        "thinking is sent to another model",
        "a request keeps the thinking of every model",
        thinking_to_another_model,
        ("failures/stripped-thinking-stays-stripped",),
    ),
    Mutant(
        "thinking is sent though it is off",
        "the config's switch does not reach the request",
        thinking_though_off,
        ("protocol/thinking-off",),
    ),
    Mutant(
        "the answer that filled the window is lost",
        "the compacted view goes on without the partial answer",
        cut_answer_lost_in_a_full_window,
        ("context/window-full-in-mid-answer",),
    ),
    Mutant(
        "results take no room",
        "what joins after a tool turn is not added to the count",
        estimate_of_the_answer_lost,
        (
            "context/just-at-the-threshold",
            "media/image-in-a-result",
        ),
    ),
)
