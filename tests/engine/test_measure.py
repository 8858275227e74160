"""
What only this file catches: a measure that falls by luck, in a place that the rules do not name.

The specification, section 5, "Every run terminates": what each step spends.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepfold.engine import Continue
from stepfold.engine.events import AbortKind, CallFacts, HookVerdict, Stop, Verdict
from stepfold.engine.failures import FailureKind
from stepfold.engine.measure import PLACES, measure
from stepfold.engine.phases import PhaseKind
from tests.engine.driven.brinks import TAKE, brink
from tests.engine.driven.company import COMPANY
from tests.engine.driven.drive import Drive
from tests.engine.driven.walks import WALKS

SPENDS = {
    Continue.NEXT_TURN: "turns",
    Continue.STOP_HOOK_BLOCKING: "hook_blocks",
    Continue.TOKEN_BUDGET_CONTINUATION: "budget",
    Continue.REACTIVE_COMPACT_RETRY: "reactive",
    Continue.MAX_OUTPUT_TOKENS_RECOVERY: "recoveries",
    Continue.MAX_OUTPUT_TOKENS_ESCALATE: "escalation",
    Continue.COLLAPSE_DRAIN_RETRY: "drain",
}


def of(drive: Drive) -> tuple[int, ...]:
    return measure(drive.state.control, drive.config)


def spent(drive: Drive, take: Callable[[], object]) -> str:
    """Return the first place that differs after *take*; fails where the measure did not fall."""
    before = of(drive)
    take()
    after = of(drive)
    assert after < before, (before, after)
    return next(name for name, old, new in zip(PLACES, before, after, strict=True) if old != new)


@pytest.mark.parametrize("reason", Continue, ids=str)
def test_each_continue_spends_its_own_place(reason: Continue) -> None:
    drive = brink(reason, "messages")

    assert SPENDS[reason] == spent(drive, lambda: TAKE[reason](drive))


def test_the_places_stand_in_the_order_of_the_continues() -> None:
    assert list(SPENDS.values()) == list(PLACES[: len(SPENDS)])
    assert ["fallbacks", "resends", "retries"] == list(PLACES[7:10])
    assert ["autocompact_retries", "reactive_retries"] == list(PLACES[10:12])


def test_retries_pauses_and_fallbacks_spend_their_places() -> None:
    drive = COMPANY[PhaseKind.SAMPLING]()

    assert "retries" == spent(drive, lambda: drive.fail(FailureKind.SERVER))
    assert "rank" == spent(drive, drive.waited)
    assert "resends" == spent(drive, lambda: (drive.text(), drive.close(Stop.PAUSE_TURN)))
    assert "fallbacks" == spent(drive, lambda: drive.fail(FailureKind.SERVER, retry_after_ms=400_000))


def test_compactions_spend_their_places() -> None:
    drive = COMPANY[PhaseKind.COMPACTING]()

    assert "within" == spent(drive, drive.resume)
    assert "autocompact_retries" == spent(drive, lambda: drive.not_compacted(FailureKind.PROMPT_TOO_LONG))
    assert "autocompact" == spent(drive, lambda: drive.compacted(10))
    drive = COMPANY[PhaseKind.REACTING]()
    assert "reactive_retries" == spent(drive, lambda: drive.not_compacted(FailureKind.PROMPT_TOO_LONG))


def test_hooks_and_their_crashes_fall_within_the_phase() -> None:
    drive = COMPANY[PhaseKind.CHECKING]()

    assert "within" == spent(drive, drive.resume)
    assert "within" == spent(drive, lambda: drive.hook(HookVerdict.PASS))
    assert "within" == spent(drive, drive.resume)


def test_calls_that_end_fall_within_the_phase() -> None:
    drive = Drive()
    drive.begin()
    for name in ("a", "b", "c"):
        drive.call(name)

    assert "rank" == spent(drive, lambda: drive.close(Stop.TOOL_USE))
    assert "within" == spent(drive, lambda: drive.tool("b"))
    assert "rank" == spent(drive, lambda: drive.abort(AbortKind.SUBMIT))
    assert "within" == spent(drive, lambda: drive.tool("a"))
    assert "rank" == spent(drive, lambda: drive.tool("c"))


def test_an_abort_of_a_stream_falls_with_the_stream_and_each_call() -> None:
    drive = Drive()
    drive.begin()
    drive.call("a")

    assert "rank" == spent(drive, lambda: drive.abort(AbortKind.SUBMIT))
    assert "within" == spent(drive, drive.cancelled)
    assert "rank" == spent(drive, lambda: drive.tool("a"))


def test_what_decides_nothing_changes_nothing() -> None:
    for make in COMPANY.values():
        drive = make()
        before = of(drive)
        drive.queue("c1")
        drive.tools()
        drive.fetched("x")
        drive.summarised()
        assert before == of(drive)


def test_a_permission_spends_nothing_and_its_call_does() -> None:
    drive = Drive()
    drive.begin()
    drive.call("a", facts=CallFacts(verdict=Verdict.ASK))
    drive.close(Stop.TOOL_USE)
    before = of(drive)
    drive.permit("a")

    assert before == of(drive)
    assert "turns" == spent(drive, lambda: drive.tool("a"))


@pytest.mark.parametrize("name", WALKS)
def test_no_place_is_ever_negative(name: str) -> None:
    drive = WALKS[name]()

    assert all(min(measure(state.control, drive.config)) >= 0 for state in drive.states)
    assert len(PLACES) == len(of(drive))


def test_without_a_limit_of_turns_the_first_place_is_constant() -> None:
    drive = Drive(max_turns=None)
    drive.begin()
    places = []
    for name in ("a", "b"):
        places.append(of(drive)[0])
        drive.turn(name)

    assert [0, 0] == places
