"""What only this file catches: an output ladder so long that the question for the dearest run has no end."""

from __future__ import annotations

import attrs
import pytest

from stepfold.adapters.proof.worst import dearest
from stepfold.adapters.proof.worst.dearest import Dearest, dearest_of
from stepfold.adapters.proof.worst.rungs import output_prices, rungs_of
from stepfold.engine.config import Config, HookSpec

PLAIN = Config(max_model_calls=9, max_turns=4, max_retries=1, max_resends=1)
CONFIGS = {
    "plain": PLAIN,
    "two models": attrs.evolve(PLAIN, fallback_models=("second",)),
    "hooks": attrs.evolve(PLAIN, stop_hooks=(HookSpec("a", 2),)),
    "one turn": attrs.evolve(PLAIN, max_turns=1),
    "no reaction": attrs.evolve(PLAIN, reactive_compact=False, autocompact=False),
}


def dearest_with(config: Config, recoveries: int) -> Dearest:
    config = attrs.evolve(config, max_output_recoveries=recoveries)
    return dearest_of(rungs_of(config), output_prices(config))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_ladder_longer_than_all_requests_is_as_one_without_an_end(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told in one place instead of one a rung: the same worth, and a run that has it."""
    config = CONFIGS[name]
    whole = [dearest_with(config, recoveries) for recoveries in (9, 12)]
    monkeypatch.setattr(dearest, "FREE_MAX", 0)
    looped = [dearest_with(config, recoveries) for recoveries in (9, 12)]
    assert [one.worth for one in whole] == [one.worth for one in looped]
    assert all(one.plan for one in whole)
    assert all(one.plan for one in looped)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_shorter_ladder_is_never_told_too_cheap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS[name]
    exact = [dearest_with(config, recoveries).worth for recoveries in range(9)]
    monkeypatch.setattr(dearest, "FREE_MAX", 0)
    for recoveries, worth in enumerate(exact):
        bound = dearest_with(config, recoveries)
        assert bound.worth >= worth
        assert () == bound.plan


def test_limits_without_measure_are_answered_from_few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that are made stay small, whatever the limits are."""
    made: list[int] = []
    fill = dearest._Tables.fill

    def counted(self: dearest._Tables, *given: object, **more: object) -> None:
        made.append(len(self.places) * (self.rungs.requests + 1))
        fill(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(dearest._Tables, "fill", counted)
    huge = 10**9
    assert dearest_with(attrs.evolve(PLAIN, max_model_calls=1_000), huge).worth > 0
    bound = dearest_with(attrs.evolve(PLAIN, max_model_calls=10**7), huge)
    assert 10**7 * max(attrs.astuple(output_prices(PLAIN))) == bound.worth
    assert sum(made) <= dearest.WORK_MAX
