"""
What only this file catches: a closed form that is wrong where the limits are small enough to try everything.

And a search or a comparison that would not see it.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from stepfold.adapters.proof.verdict import Status
from stepfold.adapters.proof.worst import crosscheck as crosschecking
from stepfold.adapters.proof.worst.closed import closed_forms
from stepfold.adapters.proof.worst.crosscheck import CONFIGS, crosscheck, least
from stepfold.adapters.proof.worst.quantities import Quantity
from stepfold.adapters.proof.worst.rungs import FOREVER, budget_continuations
from stepfold.adapters.proof.worst.search import TooLarge, longest
from stepfold.engine.config import Config, HookSpec

LIMIT = 1_200


def quiet(name: str, done: int, known: int) -> None:
    pass


def some_config(seed: int) -> Config:
    """Return a config with small limits, drawn anew for each seed."""
    pick = random.Random(seed)
    values: dict[str, Any] = {
        "max_turns": pick.choice([1, 1, 2, 3]),
        "max_retries": pick.choice([0, 0, 1, 2]),
        "max_resends": pick.choice([0, 0, 1]),
        "max_output_recoveries": pick.choice([0, 1, 2]),
        "escalated_output_tokens": pick.choice([1_000, 2_000, 18_000, 30_000]),
        "reactive_compact": pick.random() < 0.4,
        "autocompact": pick.random() < 0.4,
        "max_compactor_retries": pick.choice([0, 1, 2]),
        "max_model_calls": pick.choice([None, *range(12)]),
        "fallback_models": ("second",) if pick.random() < 0.3 else (),
        "max_output_tokens": pick.choice([None, None, None, 500, 19_000]),
        "max_retry_after_ms": pick.choice([600, 300_000]),
        "token_budget_tokens": pick.choice([None, None, None, 100, 600]),
        "source": pick.choice(["user", "user", "user", "agent", "compact"]),
        "stop_hooks": pick.choice([(), (), (HookSpec("a", 2),), (HookSpec("a", 1), HookSpec("b", 2))]),
    }
    return least(**values)


def test_closed_forms_and_search_agree_on_the_configs_of_the_command() -> None:
    check = crosscheck(quiet)

    assert Status.PROVED is check.status, check.findings


def test_closed_forms_and_search_agree_on_configs_that_were_drawn() -> None:
    compared = 0
    for seed in range(40):
        config = some_config(seed)
        try:
            searched = longest(config, LIMIT).costs
        except TooLarge:
            continue
        compared += 1
        closed = closed_forms(config)
        assert {quantity: closed[quantity] for quantity in searched} == searched, config

    assert compared >= 20


@pytest.mark.parametrize("quantity", list(Quantity))
def test_a_closed_form_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, quantity: Quantity) -> None:
    def wrong(config: Config) -> dict[Quantity, int]:
        found = closed_forms(config)
        return {**found, quantity: found[quantity] + 1}

    monkeypatch.setattr(crosschecking, "closed_forms", wrong)

    check = crosscheck(quiet, CONFIGS[:1])

    assert Status.FAILED is check.status
    assert [True] == [line.startswith(f"{quantity}: the closed form says") for line in check.findings]


def test_a_search_that_hits_its_bound_is_unknown() -> None:
    check = crosscheck(quiet, CONFIGS[1:2], limit=5)

    assert Status.UNKNOWN is check.status
    assert "the limit of 5 states was hit with max_turns = 3, max_retries = 2" == check.words


def test_what_no_limit_holds_has_no_bound() -> None:
    found = closed_forms(Config(max_turns=None, max_model_calls=None))

    assert {quantity for quantity, most in found.items() if most >= FOREVER} == {
        Quantity.MODEL_CALLS,
        Quantity.TOOL_ROUNDS,
        Quantity.COMPACTIONS,
        Quantity.WAITS_MS,
        Quantity.OUTPUT_TOKENS,
    }
    assert 0 == found[Quantity.HOOK_RUNS]


def test_hooks_and_budget_are_bounded_without_turns() -> None:
    hooks = (HookSpec("a", 2), HookSpec("b", 1))
    found = closed_forms(Config(max_turns=None, max_model_calls=None, stop_hooks=hooks))

    assert 2 + 2 + 1 == found[Quantity.HOOK_RUNS]


@pytest.mark.parametrize(
    ("budget", "continuations"),
    [(None, 0), (1, 3), (555, 3), (556, 5), (1_111, 5), (1_112, 7), (500_000, 1_801)],
)
def test_the_budget_goes_on_so_often(budget: int | None, continuations: int) -> None:
    assert continuations == budget_continuations(Config(token_budget_tokens=budget))


def test_the_defaults_in_full() -> None:
    """Every number by hand: 121 calls in a trip, 6 trips a turn, 857 summaries beside 143 calls."""
    assert {
        Quantity.MODEL_CALLS: 1_000,
        Quantity.TOOL_ROUNDS: 200,
        Quantity.COMPACTIONS: 857,
        Quantity.HOOK_RUNS: 0,
        Quantity.WAITS_MS: (1_000 - 90) * 300_000,
        Quantity.OUTPUT_TOKENS: 997 * 64_000 + 20_000 + 2 * 8_000,
    } == closed_forms(Config())
    free = closed_forms(Config(max_model_calls=None))
    assert 200 * (6 * 121 + 6 * 4 + 4) == free[Quantity.MODEL_CALLS]
    assert 200 * (6 * 4 + 4) == free[Quantity.COMPACTIONS]
    assert 200 * 6 * 11 * 10 * 300_000 == free[Quantity.WAITS_MS]
