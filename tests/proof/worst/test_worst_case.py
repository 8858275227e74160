"""
What only this file catches: a maximum that is said to be reached and is not, or a file that does not show it.
"""

from __future__ import annotations

import io
from pathlib import Path

import attrs
import pytest

from stepfold.adapters.proof.worst import answer as answering
from stepfold.adapters.proof.worst.answer import computed, few_of, worst_case
from stepfold.adapters.proof.worst.closed import Bound, bounds
from stepfold.adapters.proof.worst.crosscheck import MAIN, least
from stepfold.adapters.proof.worst.quantities import Quantity, Sure, request_cost
from stepfold.adapters.proof.worst.showing.acting import TooLong, act
from stepfold.adapters.proof.worst.showing.cycle import cycle_text
from stepfold.adapters.proof.worst.showing.scenario_text import scenario_text
from stepfold.adapters.scenarios.check import ALL_OK, check_paths
from stepfold.adapters.scenarios.reading.load import loads
from stepfold.engine.config import Config, HookSpec, ModelSpec
from tests.proof.worst.test_closed_forms import some_config

HOOKS = (HookSpec("a", 2), HookSpec("b", 1))
RICH = least(
    max_turns=2,
    max_retries=1,
    max_resends=1,
    max_output_recoveries=1,
    escalated_output_tokens=2_000,
    reactive_compact=True,
    autocompact=True,
    max_compactor_retries=1,
    fallback_models=("second",),
    stop_hooks=HOOKS,
    token_budget_tokens=600,
)


def by_quantity(config: Config) -> dict[Quantity, Sure]:
    return {one.quantity: one.sure for one in worst_case(config).maxima}


# ---------------------------------------------------------------- acted out


@pytest.mark.parametrize("seed", range(100, 125))
def test_every_closed_form_is_reached_by_a_run_that_is_acted_out(seed: int) -> None:
    config = some_config(seed)

    for quantity, bound in bounds(config).items():
        assert bound.most == act(config, bound.plan()).costs[quantity], (quantity, config)


@pytest.mark.parametrize("quantity", list(Quantity))
def test_every_rung_at_once_is_reached(quantity: Quantity) -> None:
    bound = bounds(RICH)[quantity]

    assert bound.most == act(RICH, bound.plan()).costs[quantity]


def test_a_run_that_is_too_long_is_not_acted_out() -> None:
    config = Config(max_model_calls=None)

    with pytest.raises(TooLong):
        act(config, bounds(config)[Quantity.MODEL_CALLS].plan(), limit=50)


# ---------------------------------------------------------------- played


@pytest.mark.parametrize("calls", [None, 7, 40])
def test_each_file_reaches_what_it_says_and_passes_the_check(tmp_path: Path, calls: int | None) -> None:
    worst = worst_case(attrs.evolve(RICH, max_model_calls=calls, max_retries=0, max_resends=0))
    for name, text in worst.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    out = io.StringIO()

    assert dict.fromkeys(Quantity, Sure.REACHED) == {one.quantity: one.sure for one in worst.maxima}
    assert () == worst.problems
    assert {f"worst_{one.quantity}.toml" for one in worst.maxima if one.most} == set(worst.files)
    assert ALL_OK == check_paths([tmp_path], out=out), out.getvalue()


def test_a_run_that_comes_to_less_is_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    def more(config: Config) -> dict[Quantity, Bound]:
        found = bounds(config)
        calls = found[Quantity.MODEL_CALLS]
        return {**found, Quantity.MODEL_CALLS: Bound(calls.most + 1, calls.plan)}

    monkeypatch.setattr(answering, "bounds", more)

    one = worst_case(least(max_turns=2)).maxima[0]

    assert (Quantity.MODEL_CALLS, Sure.AT_MOST, 3, 2) == (one.quantity, one.sure, one.most, one.seen)


def test_a_history_without_rounds_to_drop_is_no_exact_answer() -> None:
    """With no tail a compaction takes every round, so its request cannot be shortened again and again."""
    config = least(
        max_turns=3, max_compactor_retries=2, autocompact=True, tail_min_tokens=0, tail_min_messages=0
    )

    assert Sure.AT_MOST is by_quantity(config)[Quantity.COMPACTIONS]


def test_what_is_too_long_to_play_is_computed() -> None:
    worst = worst_case(Config(max_model_calls=None))
    sure = {one.quantity: one.sure for one in worst.maxima}

    assert Sure.COMPUTED is sure[Quantity.MODEL_CALLS]
    assert Sure.REACHED is sure[Quantity.TOOL_ROUNDS]
    assert "worst_model_calls.toml" not in worst.files


def test_a_config_with_few_of_everything_keeps_its_gates() -> None:
    few = few_of(Config(max_model_calls=None, stop_hooks=HOOKS, token_budget_tokens=500_000))

    assert (2, 1, 1, True) == (few.max_turns, few.max_retries, few.max_resends, few.autocompact)
    assert bounds(few)[Quantity.MODEL_CALLS].most < 1_000


# ---------------------------------------------------------------- no bound, not known


def test_without_turns_and_calls_the_answer_is_that_of_a_turn_and_a_circle(tmp_path: Path) -> None:
    config = Config(max_turns=None, max_model_calls=None)
    worst = worst_case(config)
    path = tmp_path / "cycle.toml"
    path.write_text(worst.files["cycle.toml"], encoding="utf-8")

    assert not worst.ends
    assert Sure.ENDLESS is worst.maxima[0].sure
    assert computed(attrs.evolve(config, max_turns=1))[0].most == worst.maxima[0].most
    assert () == worst.problems
    assert ALL_OK == check_paths([path], out=io.StringIO())


def test_a_circle_that_changes_what_decides_is_told() -> None:
    assert not cycle_text(Config(max_model_calls=None))[1]  # turns are counted
    assert cycle_text(Config(max_turns=None, max_model_calls=None))[1]


def test_requests_end_what_has_no_turns() -> None:
    worst = worst_case(Config(max_turns=None, max_model_calls=5))

    assert worst.ends
    assert [5, 5] == [one.most for one in worst.maxima[:2]]


def test_a_price_that_is_not_known_is_named() -> None:
    config = least(models=(MAIN,), fallback_models=("third",))

    found = computed(config)[-1]

    assert (Quantity.COST, Sure.UNKNOWN, None) == (found.quantity, found.sure, found.most)
    assert "models has no input_price and output_price for 'third'" == found.words


@pytest.mark.parametrize(
    ("prices", "output", "cost"),
    [
        ((1_000_000, 5_000_000), 20_000, 80_000 + 5 * 20_000),
        ((5_000_000, 1_000_000), 20_000, 5 * 100_000),
        ((1_000_000, 5_000_000, 100_000, 1_250_000), 0, 125_000),
        ((1, 1), 20_000, 1),
    ],
)
def test_the_dearest_request_fills_its_window(prices: tuple[int, ...], output: int, cost: int) -> None:
    assert cost == request_cost(ModelSpec("m", 100_000, 20_000, *prices), output)


def test_hard_limits_on_what_is_reported_are_said() -> None:
    found = {one.quantity: one.words for one in computed(least(max_run_tokens=1_000, max_cost=7))}

    assert (
        "max_run_tokens stops the run under 21000 if every request reports its usage"
        == found[Quantity.OUTPUT_TOKENS]
    )
    assert found[Quantity.COST].startswith("max_cost stops the run under ")
    assert "" == found[Quantity.MODEL_CALLS]


# ---------------------------------------------------------------- the files


def test_a_file_gives_back_the_config_it_was_made_of() -> None:
    values = {"max_run_tokens": 5, "max_turns": None, "max_model_calls": 4}
    config = attrs.evolve(RICH, system_prompt='say "é"\n\x7f\t\\ done', **values)
    script = act(config, bounds(config)[Quantity.TOOL_ROUNDS].plan())

    loaded = loads(scenario_text(config, script, "a title", "about it"))

    assert config == loaded.config
    assert "a title" == loaded.title
