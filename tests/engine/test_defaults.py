"""
What only this file catches: a default that changed, and a value of Config that should be refused.

Every default is written here a second time.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from stepfold.engine import Config, ConfigError, start
from stepfold.engine.config import HookSpec, ModelSpec, SourceKind, Thresholds
from stepfold.engine.events import ToolSpec
from stepfold.engine.phases import PhaseKind

DEFAULTS: dict[str, Any] = {
    "model": "main",
    "fallback_models": (),
    "models": (),
    "source": "user",
    "system_prompt": "",
    "thinking": True,
    "context_window_tokens": 200_000,
    "model_max_output_tokens": 64_000,
    "max_output_tokens": None,
    "default_output_tokens": 8_000,
    "escalated_output_tokens": 64_000,
    "fixed_prompt_tokens": 0,
    "max_turns": 200,
    "max_model_calls": 1_000,
    "max_run_tokens": None,
    "max_cost": None,
    "token_budget_tokens": None,
    "task_budget_tokens": None,
    "autocompact": True,
    "reactive_compact": True,
    "collapse": True,
    "collapse_staging": False,
    "streaming_tools": True,
    "tool_summaries": False,
    "prefetch_memories": False,
    "prefetch_skills": False,
    "snip_above_tokens": None,
    "microcompact_idle_minutes": None,
    "microcompact_trigger_results": None,
    "microcompact_keep_results": 5,
    "max_batch_result_chars": 200_000,
    "result_preview_bytes": 2_000,
    "tail_min_tokens": 10_000,
    "tail_min_messages": 5,
    "tail_max_tokens": 40_000,
    "restore_max_tokens": 50_000,
    "max_output_recoveries": 3,
    "max_compaction_failures": 3,
    "max_compactor_retries": 3,
    "max_retries": 10,
    "max_resends": 10,
    "overloads_before_fallback": 3,
    "backoff_initial_ms": 500,
    "backoff_max_ms": 32_000,
    "jitter_percent": 25,
    "max_retry_after_ms": 300_000,
    "min_budget_continuations": 3,
    "budget_delta_tokens": 500,
    "stop_hooks": (),
    "max_parallel_tools": 10,
    "max_answer_blocks": 10_000,
    "max_queued_commands": 1_000,
    "notice_turn": 20,
    "model_timeout_ms": 600_000,
    "tool_timeout_ms": 600_000,
    "hook_timeout_ms": 60_000,
    "compactor_timeout_ms": 600_000,
    "side_timeout_ms": 60_000,
}
GATES = [name for name, value in DEFAULTS.items() if type(value) is bool]
MAY_BE_OFF = [
    "max_output_tokens",
    "max_turns",
    "max_model_calls",
    "max_run_tokens",
    "max_cost",
    "token_budget_tokens",
    "task_budget_tokens",
    "snip_above_tokens",
    "microcompact_idle_minutes",
    "microcompact_trigger_results",
]
NUMBERS = [name for name, value in DEFAULTS.items() if type(value) is int or name in MAY_BE_OFF]
LEAST_ONE = [
    "context_window_tokens",
    "model_max_output_tokens",
    "max_output_tokens",
    "default_output_tokens",
    "escalated_output_tokens",
    "max_turns",
    "token_budget_tokens",
    "snip_above_tokens",
    "microcompact_idle_minutes",
    "microcompact_trigger_results",
    "max_batch_result_chars",
    "max_compaction_failures",
    "overloads_before_fallback",
    "min_budget_continuations",
    "budget_delta_tokens",
    "max_parallel_tools",
    "max_answer_blocks",
    "max_queued_commands",
    "notice_turn",
    "model_timeout_ms",
    "tool_timeout_ms",
    "hook_timeout_ms",
    "compactor_timeout_ms",
    "side_timeout_ms",
]


def test_every_key_of_config_is_listed_here() -> None:
    assert list(DEFAULTS) == [field.name for field in attrs.fields(Config) if field.init]


@pytest.mark.parametrize("key", DEFAULTS)
def test_default(key: str) -> None:
    assert DEFAULTS[key] == getattr(Config(), key)
    assert type(DEFAULTS[key]) is type(getattr(Config(), key))


def test_what_is_derived_by_default() -> None:
    config = Config()

    assert (SourceKind.USER, False, False) == (config.source_kind, config.nested, config.sub_agent)
    assert (ModelSpec("main", 200_000, 64_000),) == config.all_models
    assert (Thresholds(200_000, 180_000, 167_000, 177_000, 147_000),) == config.thresholds


@pytest.mark.parametrize(
    ("source", "kind", "nested", "sub_agent"),
    [
        ("user", SourceKind.USER, False, False),
        ("agent", SourceKind.AGENT, False, True),
        ("agent:reviewer", SourceKind.AGENT, False, True),
        ("compact", SourceKind.COMPACT, True, True),
        ("session_memory", SourceKind.SESSION_MEMORY, True, True),
        ("collapse", SourceKind.COLLAPSE, True, True),
    ],
)
def test_source(source: str, kind: SourceKind, nested: bool, sub_agent: bool) -> None:
    config = Config(source=source)

    assert (kind, nested, sub_agent) == (config.source_kind, config.nested, config.sub_agent)


def test_thresholds_follow_each_model() -> None:
    config = Config(
        models=(ModelSpec("main", 100_000, 8_000), ModelSpec("big", 1_000_000, 128_000)),
        fallback_models=("big",),
    )

    assert (
        Thresholds(100_000, 92_000, 79_000, 89_000, 59_000),
        Thresholds(1_000_000, 980_000, 967_000, 977_000, 947_000),
    ) == config.thresholds


# ---------------------------------------------------------------- what is refused


def refused(key: str, **values: Any) -> str:
    """Return the complaint about *key*; fails where the value is taken, or another key is blamed."""
    with pytest.raises(ConfigError) as told:
        Config(**values)
    assert key == told.value.key
    assert str(told.value).startswith(f"{key}: ")
    return str(told.value)


@pytest.mark.parametrize("value", ["x", ("x",), None, 1, (None,)], ids=repr)
@pytest.mark.parametrize(("key", "kind"), [("stop_hooks", "HookSpec"), ("models", "ModelSpec")])
def test_what_is_no_tuple_of_its_kind_is_refused_by_name(key: str, kind: str, value: object) -> None:
    assert f"wanted a tuple of {kind}" in refused(key, **{key: value})


@pytest.mark.parametrize("key", GATES)
@pytest.mark.parametrize("value", [1, "yes", None], ids=repr)
def test_a_gate_is_true_or_false(key: str, value: object) -> None:
    assert "wanted bool" in refused(key, **{key: value})


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", [-1, 1.0, "7", True], ids=repr)
def test_a_number_is_a_whole_number_that_is_not_negative(key: str, value: object) -> None:
    assert repr(value) in refused(key, **{key: value})
    assert "whole number" in refused(key, **{key: value})


@pytest.mark.parametrize("key", LEAST_ONE)
def test_zero_is_refused_where_it_makes_no_sense(key: str) -> None:
    assert "0 is not allowed" in refused(key, **{key: 0})


@pytest.mark.parametrize("key", [key for key in NUMBERS if key not in [*LEAST_ONE, "task_budget_tokens"]])
def test_zero_is_taken_elsewhere(key: str) -> None:
    config = Config(**{key: 0, **({"models": (ModelSpec("main", 1, 1, 0, 0),)} if key == "max_cost" else {})})

    assert 0 == getattr(config, key)


@pytest.mark.parametrize("key", NUMBERS)
def test_off_is_taken_where_it_is_listed_and_nowhere_else(key: str) -> None:
    if key in MAY_BE_OFF:
        assert getattr(Config(**{key: None}), key) is None
    else:
        refused(key, **{key: None})


@pytest.mark.parametrize("value", ["", "User", "agent:", "compactor", "user:me", 3])
def test_an_unknown_source_is_refused(value: object) -> None:
    assert "session_memory" in refused("source", source=value)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("model", {"model": 3}),
        ("system_prompt", {"system_prompt": None}),
        ("fallback_models", {"fallback_models": ["a"]}),
        ("fallback_models", {"fallback_models": ("",)}),
        ("fallback_models", {"fallback_models": ("a", "a")}),
        ("fallback_models", {"model": "a", "fallback_models": ("a",)}),
        ("models", {"models": (ModelSpec("a", 1, 1), ModelSpec("a", 1, 1))}),
        ("models", {"models": (ModelSpec("a", 0, 1),)}),
        ("models", {"models": (ModelSpec("a", 1, 0),)}),
        ("task_budget_tokens", {"task_budget_tokens": 19_999}),
        ("jitter_percent", {"jitter_percent": 101}),
        ("escalated_output_tokens", {"default_output_tokens": 10, "escalated_output_tokens": 9}),
        ("stop_hooks", {"stop_hooks": (HookSpec("a", 0),)}),
        ("stop_hooks", {"stop_hooks": (HookSpec("a", True),)}),
        ("stop_hooks", {"stop_hooks": (HookSpec("a"), HookSpec("a"))}),
        ("stop_hooks", {"stop_hooks": (HookSpec(""),)}),
        ("max_cost", {"max_cost": 1}),
        ("max_cost", {"max_cost": 1, "models": (ModelSpec("main", 1, 1, 1, None),)}),
        (
            "max_cost",
            {"max_cost": 1, "models": (ModelSpec("main", 1, 1, 1, 1),), "fallback_models": ("b",)},
        ),
    ],
    ids=str,
)
def test_an_impossible_value_is_refused_by_its_key(key: str, values: dict[str, Any]) -> None:
    refused(key, **values)


def test_the_least_task_budget_and_the_most_jitter_are_taken() -> None:
    config = Config(task_budget_tokens=20_000, jitter_percent=100)

    assert (20_000, 100) == (config.task_budget_tokens, config.jitter_percent)


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(TypeError, match="max_turn"):
        Config(max_turn=1)  # type: ignore[call-arg]


# ---------------------------------------------------------------- the state before a first run


def test_the_ten_fields_before_a_first_run() -> None:
    tools = (ToolSpec("read"),)
    state = start((), tools)
    control, data = state.control, state.data

    assert () == tuple(data.messages)
    assert (tools, "", "", 0) == (
        data.tool_context.tools,
        data.tool_context.model,
        data.tool_context.chain,
        data.tool_context.depth,
    )
    book = control.compaction
    assert (False, 0, 0) == (book.compacted, book.turns_since, book.failures)
    recovery = control.recovery
    assert 0 == recovery.output_recoveries
    assert recovery.reactive_compacted is False
    assert recovery.output_limit_override is None
    assert data.pending_tool_summary is None
    assert recovery.stop_hook_active is False
    assert 1 == control.turn
    assert control.transition is None


def test_the_rest_of_the_state_before_a_first_run() -> None:
    state = start()
    control, data = state.control, state.data

    assert (PhaseKind.IDLE, 0, None) == (control.phase, state.now_ms, state.end)
    assert ("end_turn", "none", 0, 0, False) == (
        control.stop,
        control.abort,
        control.queued,
        control.blocks,
        control.resending,
    )
    numbers = (control.attempts, control.spending, control.fill, control.hooks, control.batch)
    zeros = {value for part in numbers for value in attrs.astuple(part)}
    assert zeros == {0, "none"}
    assert ((), 1) == (data.ledger.owed, data.ledger.next_id)
    assert ((), (), None) == (data.side.queue, data.side.prefetched, data.side.tools_changed)
    assert ((), 0, (), False, 0) == (
        data.layers.collapses,
        data.layers.committed,
        data.layers.edits,
        data.layers.edits_pending,
        data.layers.staging,
    )
    assert (0, (), None, False, 0, None) == (
        data.book.seed,
        data.book.hook_blocks,
        data.book.last_answer_ms,
        data.book.warned,
        data.book.task_spent,
        data.book.task_remaining,
    )
