"""What the run has used, and the hard limits that stand before every request (specification, section 2)."""

from __future__ import annotations

from stepfold.engine.config import Config, ModelSpec
from stepfold.engine.events import Usage
from stepfold.engine.frozen import evolve
from stepfold.engine.guards.facts import AnyEvent, current_model
from stepfold.engine.state import Control, Spending

PER_MILLION = 1_000_000


def requests_spent(c: Control, e: AnyEvent, k: Config) -> bool:
    """A hard limit of the run stands before any further request."""
    return _over(c.spending, k)


def requests_spent_after(c: Control, usage: Usage | None, k: Config) -> bool:
    """A hard limit stands before any further request, once the *usage* of this event is counted."""
    return _over(spend(c, usage, current_model(c, k)), k)


def _over(spent: Spending, k: Config) -> bool:
    return (
        (k.max_model_calls is not None and spent.model_calls >= k.max_model_calls)
        or (k.max_run_tokens is not None and spent.input_tokens + spent.output_tokens >= k.max_run_tokens)
        or (k.max_cost is not None and spent.cost >= k.max_cost)
    )


def spend(control: Control, usage: Usage | None, model: ModelSpec) -> Spending:
    """Return the run's spending with one reported *usage* of *model* added; cost is rounded up."""
    spent = control.spending
    if usage is None:
        return spent
    cost = 0 if model.input_price is None else _cost(usage, model)
    return evolve(
        spent,
        input_tokens=spent.input_tokens + usage.prompt_tokens,
        output_tokens=spent.output_tokens + usage.output_tokens,
        cost=spent.cost - (-cost // PER_MILLION),
    )


def _cost(usage: Usage, model: ModelSpec) -> int:
    """Cache tokens without a price of their own cost what input costs; a price of 0 is a price."""
    read, made = model.cache_read_price, model.cache_creation_price
    priced = (
        (usage.input_tokens, model.input_price),
        (usage.output_tokens, model.output_price),
        (usage.cache_read_tokens, model.input_price if read is None else read),
        (usage.cache_creation_tokens, model.input_price if made is None else made),
    )
    return sum(tokens * (price or 0) for tokens, price in priced)
