"""The configs that a search tries: small limits, every gate on and off, the mildest value of a key first."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from stepfold.adapters.testing.world import Pick
from stepfold.engine.config import Config, HookSpec, ModelSpec

MODELS: Final = (
    ModelSpec("main", 40_000, 8_000, 3, 15),
    ModelSpec("second", 40_000, 4_000, 3, 15),
    ModelSpec("third", 30_000, 8_000, 3, 15),
)
ONE_HOOK: Final = (HookSpec("lint"),)
TWO_HOOKS: Final = (HookSpec("lint", 2), HookSpec("types"))
SPACE: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "models": (MODELS,),
        "default_output_tokens": (4_000,),
        "escalated_output_tokens": (8_000,),
        "fallback_models": ((), ("second",), ("second", "third")),
        "source": (*["user"] * 5, "agent", "compact"),
        "thinking": (True, False),
        "fixed_prompt_tokens": (0, 500, 0, 500, 29_500),
        "max_turns": (200, 3, 1),
        "max_model_calls": (None, None, 6, 2),
        "max_run_tokens": (None, None, None, 60_000),
        "max_cost": (None, None, None, 3),
        "token_budget_tokens": (None, 2_000, 100_000),
        "task_budget_tokens": (None, 20_000),
        "autocompact": (True, True, False),
        "reactive_compact": (True, True, False),
        "collapse": (True, True, False),
        "collapse_staging": (False, True),
        "streaming_tools": (True, False),
        "tool_summaries": (False, True),
        "prefetch_memories": (False, True),
        "prefetch_skills": (False, True),
        "snip_above_tokens": (None, None, 5_000),
        "microcompact_idle_minutes": (None, 1),
        "microcompact_trigger_results": (None, 1),
        "microcompact_keep_results": (0, 1),
        "tail_min_tokens": (0,),
        "tail_min_messages": (0, 2),
        "tail_max_tokens": (40_000, 1_000, 0),
        "max_retries": (10, 2, 0),
        "max_resends": (2, 0),
        "max_compactor_retries": (2, 0),
        "max_parallel_tools": (10, 2, 1),
        "max_answer_blocks": (10_000, 3),
        "max_queued_commands": (3,),
        "max_batch_result_chars": (200_000, 7_000),
        "result_preview_bytes": (20,),
        "jitter_percent": (0,),
        "stop_hooks": ((), ONE_HOOK, TWO_HOOKS),
    }
)

MILDEST: Final = Config(**{key: values[0] for key, values in SPACE.items()})


def config_of(pick: Pick, space: Mapping[str, tuple[Any, ...]] = SPACE) -> Config:
    """Return a config whose keys are chosen from *space*, {key: the values to try, the mildest first}."""
    return Config(**{key: pick(values) for key, values in space.items()})
