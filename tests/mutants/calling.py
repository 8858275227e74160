"""Faults of the scheduler and of what decides whether calls run."""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.engine.failures import FailureKind
from stepfold.engine.ids import Ids
from stepfold.engine.messages import Message
from stepfold.engine.moves.hooks import settle
from stepfold.engine.phases import Settling
from stepfold.engine.state import Head, Move, State, Stay
from tests.mutants.planting import Function, Mutant, Planting


def batch_of(control: Any, **changes: Any) -> Any:
    return attrs.evolve(control, batch=attrs.evolve(control.batch, **changes))


def with_calls(state: State, change: Any) -> State:
    """Return *state* with every call of the open answer changed."""
    phase: Any = state.phase
    calls = tuple(map(change, phase.reply.schedule.calls))
    reply = attrs.evolve(phase.reply, schedule=attrs.evolve(phase.reply.schedule, calls=calls))
    return attrs.evolve(state, phase=attrs.evolve(phase, reply=reply))


def with_facts(call: Any, **changes: Any) -> Any:
    return attrs.evolve(call, facts=attrs.evolve(call.facts, **changes))


# ---------------------------------------------------------------- the scheduler


def unsafe_early(p: Planting) -> None:
    p.swap("head_starts", lambda old: lambda c, e, k: old(batch_of(c, complete=True), e, k))


def unsafe_in_company(p: Planting) -> None:
    p.swap("head_starts", lambda old: lambda c, e, k: old(batch_of(c, active=0), e, k))


def overtaking(p: Planting) -> None:
    p.swap("head_starts", lambda old: lambda c, e, k: old(batch_of(c, alone=False), e, k))


def no_cap(p: Planting) -> None:
    def wide(old: Function) -> Function:
        return lambda c, e, k: old(c, e, attrs.evolve(k, max_parallel_tools=1_000))

    p.swap("head_starts", wide)


def all_wait(p: Planting) -> None:
    def late(old: Function) -> Function:
        return lambda c, e, k: c.batch.complete and old(c, e, k)

    p.swap("head_starts", late)


def order_of_arrival(p: Planting) -> None:
    """The answer's results stand in the wrong order: the last call's first."""

    def reversed_(old: Function) -> Function:
        def results(*given: Any) -> tuple[Message, ...]:
            return tuple(attrs.evolve(m, content=m.content[::-1]) for m in old(*given))

        return results

    p.swap("results", reversed_, "moves.reply")


def siblings_survive(p: Planting) -> None:
    def harmless(old: Function) -> Function:
        return lambda s, e, k: old(with_calls(s, lambda call: with_facts(call, shell=False)), e, k)

    p.swap("end_call", harmless)


def denied_runs(p: Planting) -> None:
    p.swap("head_refused", lambda old: lambda c, e, k: False)


def user_not_asked(p: Planting) -> None:
    p.swap("head_asks", lambda old: lambda c, e, k: False)


def no_counts_as_yes(p: Planting) -> None:
    p.swap("permitted", lambda old: lambda c, e, k: old(c, attrs.evolve(e, allowed=True), k))


def repeated_call_runs_twice(p: Planting) -> None:
    def fresh(old: Function) -> Function:
        def take(s: Any, e: Any, k: Any) -> Move:
            known = {call.original_id for call in s.phase.reply.schedule.calls}
            block = attrs.evolve(e.block, id="") if e.block.id in known else e.block
            move: Move = old(s, attrs.evolve(e, block=block), k)
            return move

        return take

    p.swap("take_call", fresh)


def used_id_stays(p: Planting) -> None:
    def forgetful(old: Function) -> Function:
        def take(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(attrs.evolve(s, data=attrs.evolve(s.data, used_ids=Ids())), e, k)
            return move._replace(data=attrs.evolve(move.data, used_ids=s.data.used_ids))

        return take

    p.swap("take_call", forgetful)


def stop_ignored(p: Planting) -> None:
    p.drop("Scheduling", "Entered", "tool_hook_stopped")


def calls_start_after_a_stop(p: Planting) -> None:
    p.swap("head_skipped", lambda old: lambda c, e, k: c.batch.broken and old(c, e, k))


def last_tools_not_run(p: Planting) -> None:
    row = p.the_row("Scheduling", "Entered", "turns_spent")

    def before(c: Any, e: Any, k: Any) -> bool:
        spent: bool = row.when(c, e, k)
        return spent and c.batch.complete and c.batch.head is not Head.NONE

    p.first(attrs.evolve(row, when=before))


def cut_calls_run(p: Planting) -> None:
    p.first(p.the_row("Sampling", "StreamClosed", "has_calls"))


def paused_call_not_run(p: Planting) -> None:
    p.swap("resendable", lambda old: lambda c, e, k: old(batch_of(c, total=0), e, k))


def silent_end_is_an_end(p: Planting) -> None:
    row = p.the_row("Sampling", "StreamFailed", "retryable")

    def cut(c: Any, e: Any, k: Any) -> bool:
        return e.failure.kind is FailureKind.CUT

    p.first(attrs.evolve(row, when=cut, outcome=Stay.SETTLING, enters=Settling, by=settle))


def resend_as_any_other(p: Planting) -> None:
    """A paused answer goes back as if it were whole."""

    def plain(old: Function) -> Function:
        def resend(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            return move._replace(control=attrs.evolve(move.control, resending=False))

        return resend

    p.swap("resend", plain)


FAULTS = (
    Mutant(
        "an unsafe tool is started early",
        "it does not wait for the whole answer",
        unsafe_early,
        ("failures/unsafe-call-of-a-withdrawn-answer",),
    ),
    Mutant(
        "an unsafe tool runs beside others",
        "it does not wait for those that run",
        unsafe_in_company,
        ("tools/unsafe-runs-alone",),
    ),
    Mutant(
        "a safe call overtakes an unsafe one", "it starts beside it", overtaking, ("tools/unsafe-runs-alone",)
    ),
    Mutant(
        "any number of calls at once", "max_parallel_tools is not looked at", no_cap, ("tools/ten-at-once",)
    ),
    Mutant(
        "safe calls wait for the whole answer",
        "as with streaming_tools off",
        all_wait,
        ("tools/first-ends-before-the-second-arrives",),
    ),
    Mutant(
        "results out of call order",
        "the last call's result stands first",
        order_of_arrival,
        ("tools/side-by-side",),
    ),
    Mutant(
        "siblings of a failed shell call run on",
        "its trait is not looked at",
        siblings_survive,
        ("tools/shell-failure",),
    ),
    Mutant(
        "a denied call runs",
        "so do unknown tools and invalid inputs",
        denied_runs,
        ("tools/permissions",),
    ),
    Mutant(
        "the user is not asked",
        "a call that needs a permission begins",
        user_not_asked,
        ("tools/permissions",),
    ),
    Mutant(
        "a no counts as a yes",
        "the call runs whatever was answered",
        no_counts_as_yes,
        ("tools/permissions",),
    ),
    Mutant(
        "one call given twice runs twice",
        "the second gets an id of its own",
        repeated_call_runs_twice,
        ("tools/one-id-twice-in-one-answer",),
    ),
    Mutant(
        "a used id is used again",
        "ids of earlier answers are forgotten",
        used_id_stays,
        ("tools/an-id-that-was-used-before",),
    ),
    Mutant("a tool hook's stop is ignored", "the row is gone", stop_ignored, ("tools/hook-of-a-tool-stops",)),
    Mutant(
        "calls begin after a stop",
        "the rest of the answer runs",
        calls_start_after_a_stop,
        ("tools/hook-of-a-tool-stops",),
    ),
    Mutant(
        "the tools of the last turn do not run",
        "max_turns stands before them",
        last_tools_not_run,
        ("turns/last-turn-runs-its-tools",),
    ),
    Mutant(
        "calls of a cut answer run",
        "has_calls stands before truncated",
        cut_calls_run,
        ("output/calls-of-a-cut-answer",),
    ),
    Mutant(
        "a paused answer with a call is sent back",
        "the call counts for nothing",
        paused_call_not_run,
        ("turns/paused-with-a-call",),
    ),
    Mutant(
        "a silent end is an end",
        "a cut stream counts as a whole answer",
        silent_end_is_an_end,
        ("failures/silent-end",),
    ),
    Mutant(
        "a paused answer goes back as if whole",
        "the request does not say that it is a re-send",
        resend_as_any_other,
        ("turns/paused-turn",),
    ),
)
