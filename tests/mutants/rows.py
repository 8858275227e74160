"""Rows that are gone, one by one: the ladder goes on one rung lower, or the event is illegal."""

from __future__ import annotations

from functools import partial

from tests.mutants.planting import Mutant, Planting

GONE = (
    ("Sampling", "BlockCompleted", "answer_overflows", "limits/blocks-of-one-answer"),
    ("Sampling", "StreamClosed", "window_drainable", "context/window-full-then-drained"),
    ("Sampling", "StreamClosed", "window_barred", "limits/no-request-for-a-full-window"),
    ("Sampling", "StreamClosed", "window_reactable", "context/window-full-in-mid-answer"),
    ("Sampling", "StreamClosed", "paused", "turns/paused-for-ever-asks-no-hook"),
    ("Sampling", "StreamFailed", "too_long_drainable", "context/drain"),
    ("Sampling", "StreamFailed", "too_long_barred", "limits/no-request-for-a-reactive-compaction"),
    ("Sampling", "StreamFailed", "too_long_reactable", "context/reactive-compaction"),
    ("Sampling", "StreamFailed", "media_barred", "limits/no-request-for-an-image"),
    ("Sampling", "StreamFailed", "media_reactable", "media/image-too-large"),
    ("Sampling", "PermissionAnswered", "permitted", "tools/permission-while-the-answer-streams"),
    ("Sampling", "PermissionAnswered", "always", "tools/permission-while-the-answer-streams"),
    ("Compacting", "CompactionFailed", "summary_barred", "limits/no-second-request-for-autocompact"),
    ("Reacting", "Compacted", "media_withheld", "media/image-without-gain"),
    ("Reacting", "CompactionFailed", "reaction_barred", "limits/no-second-request-for-a-summary"),
    ("Reacting", "CompactionFailed", "reaction_too_long", "context/summary-request-too-long"),
    ("Reacting", "CompactionFailed", "media_withheld", "media/image-and-no-summary"),
    ("Reacting", "AbortRequested", "always", "abort/in-a-reactive-compaction"),
    ("Reacting", "Resumed", "crash_barred", "limits/no-request-after-a-death"),
    ("Reacting", "Resumed", "first_crash", "crash/reactive-compaction-was-running"),
    ("Reacting", "Resumed", "media_withheld", "crash/two-deaths-over-an-image"),
    ("Reacting", "Resumed", "always", "crash/two-deaths-in-a-reactive-compaction"),
    ("Checking", "Resumed", "prevented", "crash/second-death-behind-a-prevent"),
    ("Checking", "Resumed", "blocked", "crash/second-death-behind-a-block"),
    ("Running", "CommandQueued", "queue_full", "queue/full"),
    ("Waiting", "CommandQueued", "always", "queue/while-it-waits"),
    ("Reacting", "CommandQueued", "always", "queue/while-it-waits"),
    ("Checking", "CommandQueued", "always", "queue/while-it-waits"),
)


def gone(phase: str, event: str, when: str, p: Planting) -> None:
    p.drop(phase, event, when)


FAULTS = tuple(
    Mutant(
        f"no row for {event} in {phase} when {when}",
        "the row is gone",
        partial(gone, phase, event, when),
        (catcher,),
    )
    for phase, event, when, catcher in GONE
)
