"""A death of the process after every event, and what the resumed run comes to."""

from __future__ import annotations

from collections.abc import Iterator

from stepfold.adapters.scenarios.judging.invariants import (
    request_violations,
    run_violations,
    sampled,
    tape_violations,
)
from stepfold.adapters.scenarios.playing.play import Played, Take, resume

CHECKED = 15_000  # messages of all requests of a resumed run that are checked
MAX_STEPS = 30_000  # events played again for one log, all deaths together


def crash_violations(played: Played) -> Iterator[str]:
    """Return how a resumed run goes wrong: no terminal or two, an invalid request or history, a limit."""
    for take in played.takes:
        for events in deaths(take):
            try:
                problems = list(_resumed(played, take, events))
            except Exception as problem:  # whatever the resumed run raised is what is wrong with it
                problems = [f"{type(problem).__name__}: {problem}"]
            if problems:
                event = type(take.tape.steps[events - 1].event).__name__
                yield f"crash after event {events} ({event}): {problems[0]}"


def deaths(take: Take) -> list[int]:
    """
    Return after how many events the process dies: after every one.

    A log so long that this would take minutes is sampled: its beginning, its
    end, and every event that is the first of its kind in its phase.
    """
    steps = take.tape.steps
    count = len(steps)
    if count * (count + 1) // 2 <= MAX_STEPS:
        return list(range(1, count + 1))
    firsts: dict[tuple[object, ...], int] = {}
    for number, one in enumerate(steps, 1):
        control = one.state.control
        firsts.setdefault((type(one.event), control.phase, control.transition), number)
    edge = max(1, MAX_STEPS // (4 * count))
    chosen = {*range(1, edge + 1), *range(count - edge + 1, count + 1)}
    chosen |= set(list(firsts.values())[: 2 * edge])
    return sorted(chosen)


def _resumed(played: Played, take: Take, events: int) -> Iterator[str]:
    seen, journal, tape = resume(played, take, events)
    if seen.end is None:
        yield "the resumed run has no terminal"
    yield from request_violations(sampled(journal.requests, CHECKED))
    yield from run_violations(seen)
    yield from tape_violations(tape)
