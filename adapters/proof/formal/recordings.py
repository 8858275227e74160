"""A config as constants of the model, so that any run of it can be judged: recordings, too."""

from __future__ import annotations

import re
from typing import Any, Final

from stepfold.adapters.proof.formal.constants import tla
from stepfold.adapters.proof.formal.tlc import SPECS
from stepfold.engine.config import Config

CONFIG: Final = SPECS / "trace.cfg"
NESTED: Final[dict[str, Any]] = {
    "MaxTurns": 1,
    "MaxRecoveries": 0,
    "MaxRetries": 0,
    "MaxResends": 0,
    "Fallbacks": 0,
    "Hooks": 0,
}


class NotInTheModel(ValueError):
    """The config has what the model does not tell apart; the words name the key."""


def limits_of(k: Config) -> dict[str, Any]:
    """
    Return the constants of the model that *k* stands for.

    Raises:
        NotInTheModel: Hooks differ in how often they may block, models in their windows or outputs, or a
            span may be staged beside the loop.
    """
    if len({hook.max_blocks for hook in k.stop_hooks}) > 1:
        raise NotInTheModel("stop_hooks: the model has one max_blocks for all of them")
    if len({(model.context_window_tokens, model.max_output_tokens) for model in k.all_models}) > 1:
        raise NotInTheModel("models: the model has one window and one output for all of them")
    if k.collapse_staging:
        raise NotInTheModel("collapse_staging: the model has no staging beside the loop")
    budget = None if k.sub_agent else k.token_budget_tokens
    found = {
        "MaxTurns": k.max_turns or 0,
        "MaxModelCalls": k.max_model_calls or 0,
        "MaxFailures": k.max_compaction_failures,
        "MaxShorter": k.max_compactor_retries,
        "MaxRecoveries": k.max_output_recoveries,
        "MaxRetries": k.max_retries,
        "MaxResends": k.max_resends,
        "Overloads": k.overloads_before_fallback,
        "Fallbacks": len(k.fallback_models),
        "Hooks": len(k.stop_hooks),
        "HookBlocks": max((hook.max_blocks for hook in k.stop_hooks), default=0),
        "Budget": budget or 0,
        "BudgetDelta": k.budget_delta_tokens if budget else 0,
        "MinContinuations": k.min_budget_continuations,
        "MaxBlocks": k.max_answer_blocks,
        "MaxCalls": k.max_answer_blocks,
        "MaxParallel": k.max_parallel_tools,
        "Gates": _gates(k),
    }
    return {**found, **NESTED} if k.nested else found


def _gates(k: Config) -> tuple[str, ...]:
    raised = (
        k.max_output_tokens is None
        and k.default_output_tokens < k.escalated_output_tokens <= k.all_models[0].max_output_tokens
    )
    gates = {
        "autocompact": k.autocompact and not k.nested,
        "reactive_compact": k.reactive_compact and not k.nested,
        "collapse": k.collapse and not k.nested,
        "escalate": raised and not k.nested,
        "streaming_tools": k.streaming_tools,
        "context_limit": not k.nested,
        "main_run": not k.sub_agent,
    }
    return tuple(name for name, on in gates.items() if on)


def config_text(k: Config) -> str:
    """Return ``specs/trace.cfg`` with the limits of *k*."""
    text = CONFIG.read_text(encoding="utf-8")
    for name, value in limits_of(k).items():
        said = "{" + ", ".join(map(tla, value)) + "}" if isinstance(value, tuple) else tla(value)
        text = re.sub(rf"\b{name} = (\{{[^}}]*\}}|\w+)", f"{name} = {said}", text)
    return text
