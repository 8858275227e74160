"""One fault for each guard: it holds always, or never."""

from __future__ import annotations

from tests.proof.planted.fault import (
    ARITHMETIC,
    CONFORMANCE,
    EXPLORER,
    MEASURE,
    Fault,
    ever,
    never,
)

# (guard, holds always?, net, where, what it says)
TABLE = (
    # before a request
    ("requests_spent", False, EXPLORER, "model calls", "a request beyond max_model_calls"),
    ("staged_at_threshold", False, ARITHMETIC, "context", "the condition staged_at_threshold"),
    ("compaction_due", True, MEASURE, "context", ""),
    ("compaction_barred", False, ARITHMETIC, "model calls", "the condition compaction_barred"),
    ("context_full", False, ARITHMETIC, "no room", "the condition context_full"),
    # an answer
    ("answer_overflows", False, EXPLORER, "answers", "always limits hold: blocks"),
    ("a_call", False, CONFORMANCE, "pairs", ""),
    ("window_exceeded", False, ARITHMETIC, "context", "the condition window_exceeded"),
    ("window_drainable", True, MEASURE, "context", "it stayed"),
    ("window_reactable", True, MEASURE, "short history", ""),
    ("window_barred", False, ARITHMETIC, "model calls", "the condition window_barred"),
    ("truncated", False, CONFORMANCE, "answers", ""),
    ("escalatable", True, MEASURE, "answers", ""),
    ("resumable", True, MEASURE, "answers", "it fell under 0"),
    ("refused", False, CONFORMANCE, "answers", ""),
    ("resendable", False, CONFORMANCE, "answers", ""),
    ("paused", False, CONFORMANCE, "answers", ""),
    ("has_calls", False, CONFORMANCE, "hooks", ""),
    ("hooks_due", False, CONFORMANCE, "hooks", ""),
    # a call that failed
    ("too_long", False, ARITHMETIC, "short history", "the condition too_long:"),
    ("too_long_drainable", True, MEASURE, "context", ""),
    ("too_long_reactable", True, MEASURE, "short history", ""),
    ("too_long_barred", False, ARITHMETIC, "model calls", "the condition too_long_barred"),
    ("media_too_large", False, ARITHMETIC, "context", "the condition media_too_large"),
    ("media_reactable", True, MEASURE, "context", ""),
    ("media_barred", False, ARITHMETIC, "model calls", "the condition media_barred"),
    ("overloaded_thrice", False, ARITHMETIC, "failures", "the condition overloaded_thrice"),
    ("wait_too_long", False, ARITHMETIC, "failures", "the condition wait_too_long:"),
    ("wait_too_long_replaceable", False, ARITHMETIC, "failures", "the condition wait_too_long_replaceable"),
    ("retryable", True, MEASURE, "failures", "it fell under 0"),
    ("retries_left", True, MEASURE, "failures", "it fell under 0"),
    # a compaction
    ("under_threshold", True, ARITHMETIC, "short history", "the condition under_threshold"),
    ("worked", True, ARITHMETIC, "short history", "the condition worked"),
    ("summary_too_long", True, ARITHMETIC, "short history", "the condition summary_too_long"),
    ("summary_barred", False, ARITHMETIC, "model calls", "the condition summary_barred"),
    ("reaction_too_long", True, ARITHMETIC, "short history", "the condition reaction_too_long"),
    ("reaction_barred", False, ARITHMETIC, "model calls", "the condition reaction_barred"),
    ("media_withheld", False, ARITHMETIC, "context", "the condition media_withheld"),
    # calls
    ("head_skipped", False, CONFORMANCE, "pairs", ""),
    ("head_refused", False, CONFORMANCE, "pairs", ""),
    ("head_asks", False, CONFORMANCE, "pairs", ""),
    ("head_starts", False, EXPLORER, "hooks", "always a run that is not over is owed an answer"),
    ("stream_open", False, CONFORMANCE, "pairs", ""),
    ("calls_open", False, CONFORMANCE, "pairs", ""),
    ("tool_hook_stopped", False, CONFORMANCE, "pairs", ""),
    ("turns_spent", False, EXPLORER, "hooks", "always limits hold: turn"),
    ("permitted", False, CONFORMANCE, "pairs", ""),
    # hooks, budget, abort, crash, queue
    ("more_hooks", False, CONFORMANCE, "hooks", ""),
    ("prevented", False, CONFORMANCE, "hooks", ""),
    ("blocked", False, CONFORMANCE, "hooks", ""),
    ("budget_left", True, MEASURE, "budget", ""),
    ("harder", False, CONFORMANCE, "pairs", ""),
    ("still_open", False, CONFORMANCE, "pairs", ""),
    ("response_complete", False, CONFORMANCE, "pairs", ""),
    ("first_crash", True, ARITHMETIC, "hooks", "the condition first_crash"),
    ("crash_barred", False, ARITHMETIC, "model calls", "the condition crash_barred"),
    ("queue_full", False, EXPLORER, "company", "always limits hold: queue"),
)
GUARDS = tuple(
    Fault(
        guard,
        "always holds" if always else "never holds",
        net,
        where,
        told,
        plant=ever(guard) if always else never(guard),
    )
    for guard, always, net, where, told in TABLE
)
