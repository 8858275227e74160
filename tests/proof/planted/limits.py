"""One fault for each limit: a guard that takes one more, a move that forgets to count, no bound at all."""

from __future__ import annotations

from stepfold.adapters.proof.formal.nets import FAULTS as WITHOUT_A_GUARD
from tests.proof.planted.fault import (
    ARITHMETIC,
    CROSSHAIR,
    EXPLORER,
    MEASURE,
    TLC,
    TRACES,
    Z3,
    Fault,
    off_by,
    sets,
    without,
)

ONE_MORE = (
    # (limit, guard, amount, net, where, what it says)
    ("max_turns", "turns_spent", 1, EXPLORER, "hooks", "always limits hold: turn"),
    ("max_model_calls", "requests_spent", 1, EXPLORER, "model calls", "a request beyond max_model_calls"),
    ("max_run_tokens", "requests_spent", 1, ARITHMETIC, "run tokens", "the condition requests_spent"),
    ("max_cost", "requests_spent", 1, ARITHMETIC, "cost", "the condition requests_spent"),
    ("token_budget_tokens", "budget_left", 10_000, ARITHMETIC, "budget", "the condition budget_left"),
    ("default_output_tokens", "escalatable", 1_000, ARITHMETIC, "answers", "the condition escalatable"),
    ("escalated_output_tokens", "escalatable", 10**5, ARITHMETIC, "answers", "the condition escalatable"),
    ("max_output_recoveries", "resumable", 1, MEASURE, "answers", "it fell under 0"),
    ("max_compaction_failures", "compaction_due", 1, EXPLORER, "compactions that fail", "the breaker open"),
    ("max_compactor_retries", "summary_too_long", 1, MEASURE, "compactions that fail", "it fell under 0"),
    ("max_retries", "retryable", 1, MEASURE, "failures", "it fell under 0"),
    ("max_resends", "resendable", 1, EXPLORER, "answers", "always limits hold: resends"),
    ("overloads_before_fallback", "overloaded_thrice", 1, ARITHMETIC, "failures", "overloaded_thrice"),
    ("max_retry_after_ms", "wait_too_long", 10**6, ARITHMETIC, "failures", "the condition wait_too_long:"),
    ("min_budget_continuations", "budget_left", 9, MEASURE, "budget", ""),
    ("budget_delta_tokens", "budget_left", -1, MEASURE, "budget", ""),
    ("max_parallel_tools", "head_starts", 1, EXPLORER, "batch", "always limits hold: parallel calls"),
    ("max_answer_blocks", "answer_overflows", 1, EXPLORER, "answers", "always limits hold: blocks"),
    ("max_queued_commands", "queue_full", 1, EXPLORER, "company", "always limits hold: queue"),
)
GATES = (
    Fault(
        "max_output_tokens",
        "read as off",
        ARITHMETIC,
        "capped",
        "the condition escalatable",
        plant=without("max_output_tokens", "escalatable"),
    ),
)
SPECS = (
    # Both copies wrong in the same way: nothing differs, and the measure does not fall.
    ("max_turns", "one turn more in both copies", "Scheduling Entered", "next_turn",
     (("on(max_turns) and turn + 1 > max_turns", "on(max_turns) and turn > max_turns"),)),
    ("max_resends", "one re-send more in both copies", "Sampling StreamClosed", "never negative",
     (("attempts.resends < max_resends", "attempts.resends <= max_resends"),)),
    ("max_retries", "one retry more in both copies", "Sampling StreamFailed", "never negative",
     (("attempts.retries < max_retries", "attempts.retries <= max_retries"),)),
    ("max_output_recoveries", "a resume is not counted in either copy", "Sampling StreamClosed",
     "the measure falls", (('"recovery.output_recoveries + 1"', '"recovery.output_recoveries"'),)),
    ("models", "a fallback begins again with the first model in both copies", "Sampling StreamFailed",
     "the measure falls", (('"attempts.fallbacks + 1"', '"0"'),)),
    ("stop_hook_blocks", "one hook too many is asked in both copies", "Sampling StreamClosed", "'Checking'",
     (('"hooks.left" = "hooks.due - 1"', '"hooks.left" = "hooks.due"'),)),
    ("max_compactor_retries", "one retry more in both copies", "Compacting CompactionFailed",
     "never negative",
     (("compaction.retries < max_compactor_retries", "compaction.retries <= max_compactor_retries"),)),
    ("budget_delta_tokens", "small deltas go on in both copies", "Settling Entered",
     "token_budget_continuation", (("- spending.last_total < budget_delta_tokens and", "< 0 and"),)),
)
UNCOUNTED = (
    # (limit, words, contract, plant)
    ("max_retries", "a wait after a crash is not counted", "waiting_resumed",
     sets("wait_after_crash", "attempts", retries=lambda c: c.attempts.retries)),
    ("max_retries", "a failed call is not counted", "sampling_failed_for_now",
     sets("wait", "attempts", retries=lambda c: c.attempts.retries)),
    ("max_resends", "a re-send is not counted", "sampling_closed_paused",
     sets("resend", "attempts", resends=lambda c: c.attempts.resends)),
    ("max_compactor_retries", "a retry of reactive compaction is not counted", "reacting_failed_too_long",
     sets("retry_reaction", "compaction", reactive_retries=lambda c: c.compaction.reactive_retries)),
    ("crashed", "a compaction is begun again after every crash", "reacting_resumed",
     sets("compact_again", "attempts", crashed=False)),
    ("stop_hook_blocks", "a hook that let it pass is still to be asked", "checking_next_hook",
     sets("ask_next", "hooks", left=lambda c: c.hooks.left + 1)),
    ("models", "a fallback is not counted", "sampling_failed_overloaded",
     sets("fall_back", "attempts", fallbacks=lambda c: c.attempts.fallbacks)),
)
TRACED = (
    ("max_retries", "the eleventh retry is made", off_by(1, "max_retries", "retryable")),
    ("max_output_recoveries", "a fourth resume is made", off_by(1, "max_output_recoveries", "resumable")),
)
LIMITS = (
    *(
        Fault(limit, f"{guard} takes {amount:+}", net, where, told, plant=off_by(amount, limit, guard))
        for limit, guard, amount, net, where, told in ONE_MORE
    ),
    *GATES,
    *(Fault(limit, words, Z3, where, told, edits=edits) for limit, words, where, told, edits in SPECS),
    *(Fault(limit, words, CROSSHAIR, where, plant=plant) for limit, words, where, plant in UNCOUNTED),
    *(Fault(limit, words, TRACES, "real limits", plant=plant) for limit, words, plant in TRACED),
    *(Fault(name, "the model goes without it", TLC, name) for name in sorted(WITHOUT_A_GUARD)),
)
