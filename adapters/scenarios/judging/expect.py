"""Compares what a scenario expects with what was observed; one line a difference."""

from __future__ import annotations

from collections.abc import Iterator

from stepfold.adapters.scenarios.format import (
    AtMost,
    CallsExpected,
    EndExpected,
    Expect,
    ShownExpected,
    ToolsExpected,
)
from stepfold.adapters.scenarios.judging.observe import Observed, Request, shape_of, texts_of


def differences(expect: Expect, seen: Observed) -> list[str]:
    """Return what differs: "what: expected this, got that"."""
    return [
        *_ends(expect.ends, seen),
        *_calls(expect.calls, seen),
        *_tools(expect.tools, seen),
        *_shown(expect.shown, seen),
    ]


def _differ(what: str, expected: object, got: object) -> Iterator[str]:
    if expected is not None and expected != got:
        yield f"{what}: expected {_words(expected)}, got {_words(got)}"


def _words(value: object) -> str:
    match value:
        case True | False:
            return str(value).lower()
        case tuple() | list():
            return "[" + ", ".join(map(_words, value)) + "]"
        case "" | None:
            return "none"
    return str(value)


def _ends(expect: EndExpected, seen: Observed) -> Iterator[str]:
    last = seen.last
    yield from _differ("terminal", expect.terminal, last.terminal)
    yield from _differ("terminals", expect.terminals, tuple(run.terminal for run in seen.runs))
    yield from _differ("ok", expect.ok, last.end is not None and last.end.ok)
    yield from _differ("ending", expect.ending, last.ending)
    yield from _differ("transitions", expect.transitions, last.transitions)


def _calls(expect: CallsExpected, seen: Observed) -> Iterator[str]:
    journal = seen.journal
    made = len(journal.requests)
    if isinstance(expect.model_calls, AtMost):
        if made > expect.model_calls.max:
            yield f"model_calls: expected at most {expect.model_calls.max}, got {made}"
    else:
        yield from _differ("model_calls", expect.model_calls, made)
    yield from _differ("compactions", expect.compactions, journal.compactions)
    yield from _differ("models", expect.models, tuple(request.order.model for request in journal.requests))
    yield from _waits(expect.waits_ms, tuple(journal.waits_ms))
    if expect.request is not None:
        what = f"request of call {expect.request.call}"
        request = _request(journal.requests, expect.request.call)
        got = f"{made} calls" if request is None else shape_of(request.messages)
        yield from _differ(what, expect.request.shape, got)
    if expect.contains is not None:
        what = f"request of call {expect.contains.call}"
        request = _request(journal.requests, expect.contains.call)
        if request is None:
            yield f"{what}: expected the text {expect.contains.text!r}, got {made} calls"
        elif not any(expect.contains.text in text for text in texts_of(request.messages)):
            yield f"{what}: expected the text {expect.contains.text!r}, got {texts_of(request.messages)!r}"


def _waits(expected: tuple[int, ...] | None, got: tuple[int, ...]) -> Iterator[str]:
    """Each number is a lower bound; the number of waits is exact."""
    if expected is None:
        return
    if len(expected) != len(got):
        yield f"waits_ms: expected {len(expected)} waits {_words(expected)}, got {len(got)} {_words(got)}"
    elif any(wait < least for wait, least in zip(got, expected, strict=True)):
        yield f"waits_ms: expected at least {_words(expected)}, got {_words(got)}"


def _request(requests: list[Request], call: int) -> Request | None:
    place = call if call < 0 else call - 1
    return requests[place] if -len(requests) <= place < len(requests) else None


def _tools(expect: ToolsExpected, seen: Observed) -> Iterator[str]:
    got = {name: status.value for name, status in seen.statuses.items()}
    for name, status in expect.tools:
        yield from _differ(f"tool {name}", status.value, got.get(name, "no such call"))
    for one, other in expect.overlap:
        if not seen.overlap(one, other):
            words = _idle(seen, one, other) or "one after the other"
            yield f"tool_overlap {one} {other}: expected at the same time, got {words}"
    for one, other in expect.no_overlap:
        if seen.overlap(one, other):
            yield f"no_overlap {one} {other}: expected one after the other, got at the same time"
        elif idle := _idle(seen, one, other):
            yield f"no_overlap {one} {other}: expected one after the other, got {idle}"
    for name, count in expect.hooks_run:
        yield from _differ(f"hooks_run {name}", count, seen.journal.hooks.get(name, 0))


def _idle(seen: Observed, one: str, other: str) -> str:
    """Return which of both did not run, "" where both did; one name twice means two runs of it."""
    if one == other:
        return "" if seen.runs_of(one) > 1 else f"{one} did not run twice"
    idle = [name for name in (one, other) if not seen.runs_of(name)]
    return f"{' and '.join(idle)} did not run" if idle else ""


def _shown(expect: ShownExpected, seen: Observed) -> Iterator[str]:
    yield from _differ("shown_errors", expect.shown_errors, seen.shown_errors)
    yield from _differ("tombstones", expect.tombstones, seen.tombstones)
