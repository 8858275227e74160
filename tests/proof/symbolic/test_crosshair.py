"""
What only this file catches: contracts that say nothing, and a "not confirmed" that is told as proved.

The contracts themselves are confirmed by ``stepfold prove --deep``; here each
runs once with plain numbers, and a few are confirmed, or refuted.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from stepfold.adapters.proof.spec import read_spec
from stepfold.adapters.proof.symbolic import nets
from stepfold.adapters.proof.symbolic.contracts import answers, calls, compacting, every, others
from stepfold.adapters.proof.symbolic.given import Given, small, sound
from stepfold.adapters.proof.symbolic.nets import by_crosshair, verdict
from stepfold.adapters.proof.verdict import Status
from tests.proof.planted.fault import CROSSHAIR
from tests.proof.planted.limits import LIMITS

SPEC = read_spec()
MODULES = (answers, compacting, calls, others)
BESIDE = ("SummaryReady", "Prefetched", "CollapseStaged", "ToolsChanged", "CommandQueued", "Late")


def plain() -> Given:
    """Return one run, with numbers that every contract allows."""
    numbers = {field.name: (False if field.type == "bool" else 1) for field in attrs.fields(Given)}
    limits = {name: 9 for name in numbers if name.startswith(("max_", "min_"))}
    more = {"models": 3, "delta": 500, "budget": 90_000, "threshold": 50_000, "staged": 0}
    return Given(**{**numbers, **limits, **more, "turn": 1, "last_total": 0})


def test_every_contract_holds_for_plain_numbers() -> None:
    given = plain()
    assert sound(given)
    assert small(given)
    for contract in every().values():
        contract(given)


def test_every_phase_and_event_has_a_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set[tuple[str, str]]()

    def noted(real: Callable[..., bool]) -> Callable[..., bool]:
        def taken(before: Any, event: Any, phase: Any, *more: Any, **named: Any) -> bool:
            answered = getattr(event, "effect_id", None)
            owed = {order.id for order in more[0].ledger.owed}
            kind = "Late" if answered is not None and answered not in owed else type(event).__name__
            seen.add((type(phase).__name__, kind))
            return real(before, event, phase, *more, **named)

        return taken

    for module in MODULES:
        for name in ("falls", "begins"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, noted(getattr(module, name)))
    for contract in every().values():
        contract(plain())

    cells = {(row.phase, row.event) for row in SPEC.rows if row.phase in SPEC.alive}
    deciding = {cell for cell in cells if cell[1] not in BESIDE}
    assert set() == deciding - seen
    assert set(BESIDE) == {event for _, event in seen} & set(BESIDE)
    assert ("Done", "RunStarted") in seen


# ---------------------------------------------------------------- what is told


def said(name: str, state: str) -> dict[str, Any]:
    return {"contract": name, "state": state, "words": "w", "seconds": 1}


@pytest.mark.parametrize(
    ("answers_", "status", "told"),
    [
        ([said("a", "confirmed"), said("b", "confirmed")], Status.PROVED, ""),
        ([said("a", "confirmed"), said("b", "cannot_confirm")], Status.UNKNOWN, "b: not confirmed"),
        ([said("a", "confirmed"), said("b", "post_fail")], Status.FAILED, "b: post_fail: w"),
        ([said("a", "confirmed"), said("b", "pre_unsat")], Status.FAILED, "b: pre_unsat: w"),
        ([said("a", "confirmed"), said("b", "missing")], Status.FAILED, "b: missing: w"),
        ([said("a", "confirmed")], Status.UNKNOWN, "b: no answer: it broke"),
        ([], Status.UNKNOWN, "a: no answer: it broke"),
    ],
)
def test_only_what_is_confirmed_is_proved(
    answers_: list[dict[str, Any]], status: Status, told: str
) -> None:
    check = verdict(["a", "b"], answers_, "it broke")

    assert status is check.status
    assert told == "" or told in check.findings
    assert f"{sum(each['state'] == 'confirmed' for each in answers_)} of 2" in check.words


def test_nothing_asked_is_nothing_proved() -> None:
    assert Status.UNKNOWN is verdict([], []).status


def test_without_the_extra_it_is_skipped_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    check = by_crosshair((), lambda name, done, known: None)

    assert Status.SKIPPED is check.status
    assert "stepfold[proof]" in check.words


# ---------------------------------------------------------------- the real thing, where it is quick


def test_the_contracts_of_planted_faults_are_confirmed_on_the_shipped_step() -> None:
    told: list[tuple[str, int, int]] = []
    names = sorted({fault.where for fault in LIMITS if fault.net == CROSSHAIR})

    check = by_crosshair(names, lambda *each: told.append(each))

    assert () == check.findings
    assert Status.PROVED is check.status
    assert f"{len(names)} of {len(names)} contracts" in check.words
    assert ("crosshair", len(names) - 1, len(names)) == told[-1]


def test_a_name_that_is_no_contract_is_no_proof() -> None:
    check = by_crosshair(["nothing"], lambda name, done, known: None)

    assert Status.UNKNOWN is check.status
    assert check.findings[0].startswith("nothing: no answer: ")


def test_the_checks_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nets, "by_crosshair", lambda names, told: verdict(names, []))
    monkeypatch.setattr(nets, "all_slices", lambda config: ())
    names = [check.name for check in nets.cast(nets.Config(), lambda name, done, known: None)]

    assert ["arithmetic", "z3", "crosshair"] == names
