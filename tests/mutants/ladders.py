"""Faults of the ladders for output and compaction, of stop hooks, turns and the budget."""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.engine.moves.ends import surface_failure
from stepfold.engine.moves.hooks import check
from stepfold.engine.phases import Checking
from stepfold.engine.state import Continue, Move, Stay
from stepfold.engine.terminals import Terminal
from tests.mutants.planting import Function, Mutant, Planting, part, untold

# ---------------------------------------------------------------- reactive compaction, truncated answers


def reactive_reset_by_hook(p: Planting) -> None:
    def reset(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "recovery", reactive_compacted=False)

    p.swap("stop_hook_blocking", reset)


def reactive_never_set(p: Planting) -> None:
    def unset(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "recovery", reactive_compacted=False)

    p.swap("reactive_compact_retry", unset)


def reactive_not_given_back(p: Planting) -> None:
    def stays(old: Function) -> Function:
        return lambda s, e, k: part(
            old(s, e, k), "recovery", reactive_compacted=s.control.recovery.reactive_compacted
        )

    p.swap("next_turn", stays)


def escalation_twice(p: Planting) -> None:
    def again(old: Function) -> Function:
        return lambda c, e, k: old(
            attrs.evolve(c, recovery=attrs.evolve(c.recovery, output_limit_override=None)), e, k
        )

    p.swap("escalatable", again)


def override_lost_by_recovery(p: Planting) -> None:
    def lost(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "recovery", output_limit_override=None)

    p.swap("max_output_tokens_recovery", lost)


def recoveries_reset_by_escalate(p: Planting) -> None:
    def reset(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "recovery", output_recoveries=0)

    p.swap("max_output_tokens_escalate", reset)


def escalates_past_the_users_limit(p: Planting) -> None:
    def unlimited(old: Function) -> Function:
        return lambda c, e, k: old(c, e, attrs.evolve(k, max_output_tokens=None))

    p.swap("escalatable", unlimited)


def cut_answer_stays_shown(p: Planting) -> None:
    p.swap("max_output_tokens_escalate", lambda old: untold(old, "Tombstone"))


# ---------------------------------------------------------------- stop hooks


def hooks_after_failures(p: Planting) -> None:
    row = p.the_row("Sampling", "StreamFailed")

    def due(c: Any, e: Any, k: Any) -> bool:
        return bool(c.hooks.due > 0)

    place = p.rows.index(row)
    p.rows.insert(place, attrs.evolve(row, when=due, outcome=Stay.CHECKING, enters=Checking, by=check))


def hooks_after_cut_answers(p: Planting) -> None:
    p.drop("Sampling", "StreamClosed", "truncated")


def blocks_given_back(p: Planting) -> None:
    def free(old: Function) -> Function:
        def blocking(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            book = attrs.evolve(move.data.book, hook_blocks=(0,) * len(k.stop_hooks))
            move = move._replace(data=attrs.evolve(move.data, book=book))
            return part(move, "hooks", due=len(k.stop_hooks), blocks_left=s.control.hooks.blocks_left)

        return blocking

    p.swap("stop_hook_blocking", free)


def block_wins(p: Planting) -> None:
    p.first(p.the_row("Checking", "HookAnswered", "blocked"))


def one_hook_decides(p: Planting) -> None:
    p.swap("more_hooks", lambda old: lambda c, e, k: False)


def crashed_hook_blocks(p: Planting) -> None:
    def harsh(old: Function) -> Function:
        return lambda c, e, k: old(c, e, k) or getattr(e, "verdict", "") in ("crash", "timeout")

    p.swap("blocked", harsh)


# ---------------------------------------------------------------- the budget, turns, rows


def budget_never_fades(p: Planting) -> None:
    p.swap("fading", lambda old: lambda c, k: False, "guards.settling")


def budget_for_sub_agents(p: Planting) -> None:
    def anyone(old: Function) -> Function:
        return lambda c, k: old(c, attrs.evolve(k, source="user"))

    p.swap("under_budget", anyone, "guards.settling")


def budget_before_hooks(p: Planting) -> None:
    p.swap("hooks_due", lambda old: lambda c, e, k: old(c, e, k) and not k.token_budget_tokens)


def refusal_is_a_clean_answer(p: Planting) -> None:
    p.drop("Sampling", "StreamClosed", "refused")


def turn_uncounted(p: Planting) -> None:
    def free(old: Function) -> Function:
        def turn(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            return move._replace(control=attrs.evolve(move.control, turn=s.control.turn))

        return turn

    p.swap("next_turn", free)


def one_turn_more(p: Planting) -> None:
    def later(old: Function) -> Function:
        return lambda c, e, k: old(attrs.evolve(c, turn=c.turn - 1), e, k)

    p.swap("turns_spent", later)


def recovery_costs_a_turn(p: Planting) -> None:
    def dear(old: Function) -> Function:
        def recover(s: Any, e: Any, k: Any) -> Move:
            move: Move = old(s, e, k)
            return move._replace(control=attrs.evolve(move.control, turn=move.control.turn + 1))

        return recover

    p.swap("max_output_tokens_recovery", dear)


def wrong_reason(p: Planting) -> None:
    row = p.the_row("Sampling", "StreamClosed", "resumable")
    p.rows[p.rows.index(row)] = attrs.evolve(row, outcome=Continue.MAX_OUTPUT_TOKENS_ESCALATE)


def wrong_terminal(p: Planting) -> None:
    row = p.the_row("Sampling", "StreamFailed", "media_too_large")
    p.rows[p.rows.index(row)] = attrs.evolve(row, outcome=Terminal.MODEL_ERROR, by=surface_failure)


FAULTS: tuple[Mutant, ...] = (
    Mutant(
        "the reactive flag is reset by a stop hook",
        "stop_hook_blocking gives reactive compaction back",
        reactive_reset_by_hook,
        ("hooks/after-a-compaction",),
    ),
    Mutant(
        "the reactive flag is never set",
        "reactive compaction is not spent",
        reactive_never_set,
        ("context/always-too-long",),
    ),
    Mutant(
        "a tool turn does not give back reactive compaction",
        "next_turn keeps the flag",
        reactive_not_given_back,
        ("context/reactive-again-after-a-turn",),
    ),
    Mutant(
        "escalation fires twice",
        "the override in force does not count",
        escalation_twice,
        ("output/cut-for-ever",),
    ),
    Mutant(
        "recovery drops the raised limit",
        "so escalation can fire again",
        override_lost_by_recovery,
        ("output/cut-for-ever",),
    ),
    Mutant(
        "the recovery counter is reset by escalate",
        "the resumes begin again",
        recoveries_reset_by_escalate,
        ("output/raise-after-a-fallback",),
    ),
    Mutant(
        "the user's output limit is raised",
        "escalation does not look at it",
        escalates_past_the_users_limit,
        ("output/limit-of-the-user",),
    ),
    Mutant(
        "the cut answer stays shown",
        "escalation withdraws nothing",
        cut_answer_stays_shown,
        ("output/raised-limit",),
    ),
    Mutant(
        "stop hooks after API errors",
        "a call that failed for good asks the hooks",
        hooks_after_failures,
        ("failures/server-error-for-ever",),
    ),
    Mutant(
        "stop hooks after cut answers",
        "a truncated answer takes the clean path",
        hooks_after_cut_answers,
        ("output/cut-for-ever",),
    ),
    Mutant(
        "hook blocks are not counted",
        "a hook never spends what it may block",
        blocks_given_back,
        ("hooks/block-for-ever",),
    ),
    Mutant(
        "block wins over prevent", "the rows stand the other way round", block_wins, ("hooks/prevent-wins",)
    ),
    Mutant("one hook decides", "the others are not asked", one_hook_decides, ("hooks/two-that-block",)),
    Mutant(
        "a crashed hook blocks",
        "a crash or a timeout counts as a block",
        crashed_hook_blocks,
        ("hooks/crash-after-the-last",),
    ),
    Mutant(
        "the budget never fades",
        "small gains go on for ever",
        budget_never_fades,
        ("budget/nothing-more-comes",),
    ),
    Mutant(
        "sub-agents follow the budget",
        "the source does not matter",
        budget_for_sub_agents,
        ("budget/sub-agents-stop",),
    ),
    Mutant(
        "the budget comes before the hooks",
        "with a budget no hook is asked",
        budget_before_hooks,
        ("budget/hooks-come-first",),
    ),
    Mutant(
        "a refusal is a clean answer",
        "it reaches hooks and budget",
        refusal_is_a_clean_answer,
        ("turns/refusal",),
    ),
    Mutant(
        "turns are not counted",
        "next_turn keeps the number",
        turn_uncounted,
        ("turns/the-same-call-for-ever",),
    ),
    Mutant(
        "one turn more than allowed",
        "max_turns is off by one",
        one_turn_more,
        ("turns/the-same-call-for-ever",),
    ),
    Mutant(
        "a resume costs a turn",
        "recovery counts against max_turns",
        recovery_costs_a_turn,
        ("limits/recoveries-before-the-last-turn",),
    ),
    Mutant(
        "a row with the wrong continue",
        "a resume is stamped as an escalation",
        wrong_reason,
        ("output/cut-for-ever",),
    ),
    Mutant(
        "a row with the wrong terminal",
        "rejected media ends as any other failure",
        wrong_terminal,
        ("media/second-rejection",),
    ),
)
