"""Config: frozen when a run begins, never read again from outside."""

from __future__ import annotations

import enum
import re
from typing import Any, Final, NoReturn

import attrs

from stepfold.engine.frozen import frozen

SUMMARY_RESERVE_TOKENS: Final = 20_000
AUTOCOMPACT_MARGIN_TOKENS: Final = 13_000
BLOCKING_MARGIN_TOKENS: Final = 3_000
WARNING_MARGIN_TOKENS: Final = 20_000
TASK_BUDGET_FLOOR_TOKENS: Final = 20_000
MOST: Final = 1_000_000_000_000  # of anything: sums of such numbers stay far under 64 bits
SHOWN_CHARS_MAX: Final = 80
SOURCE: Final = re.compile(r"user|agent|agent:.+|compact|session_memory|collapse")


class SourceKind(enum.StrEnum):
    """Who runs the loop; guards read the kind only."""

    USER = "user"
    AGENT = "agent"
    COMPACT = "compact"
    SESSION_MEMORY = "session_memory"
    COLLAPSE = "collapse"


NESTED: Final = frozenset({SourceKind.COMPACT, SourceKind.SESSION_MEMORY, SourceKind.COLLAPSE})


@frozen(slots=True)
class HookSpec:
    """A stop hook: its name and how often it may send the model back in one run (at least 1, finite)."""

    name: str
    max_blocks: int = 1


@frozen(slots=True)
class ModelSpec:
    """What one model can do; prices in millionths of a currency unit per million tokens, None unknown."""

    name: str
    context_window_tokens: int
    max_output_tokens: int
    input_price: int | None = None
    output_price: int | None = None
    cache_read_price: int | None = None
    cache_creation_price: int | None = None


PRICES: Final = ("input_price", "output_price", "cache_read_price", "cache_creation_price")


class ConfigError(ValueError):
    """
    A value of Config is impossible.

    Args:
        key: The key that has it.
        problem: What is wrong with it.
        allowed: What would be right.
    """

    def __init__(self, key: str, problem: str, allowed: str) -> None:
        super().__init__(f"{key}: {problem}; wanted {allowed}")
        self.key = key
        self.problem = problem
        self.allowed = allowed


def _shown(value: object) -> str:
    """Return *value* for people, in a line; integers beyond any limit have no text in Python."""
    if type(value) is int and not -(2**64) <= value <= 2**64:
        return f"a number of {value.bit_length()} bits"
    text = f"{value!r}"
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 3] + "..."


def _refuse(key: str, value: object, allowed: str) -> NoReturn:
    raise ConfigError(key, f"{_shown(value)} is not allowed", allowed)


def _whole(low: int, high: int = MOST, *, off: bool = False) -> Any:
    """Return a validator for integers from *low* to *high*; None is allowed where *off* says so."""
    or_off = ', or off (None; "off" in a file)' if off else ""

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not (value is None and off) and not (type(value) is int and low <= value <= high):
            _refuse(attribute.name, value, _range(low, high, value) + or_off)

    return check


def _range(low: int, high: int, value: object) -> str:
    """Return what is allowed instead of *value*; the limit of everything is named to who goes over it."""
    over = type(value) is int and value > high
    return f"a whole number >= {low}" + (f" and <= {high}" if over or high != MOST else "")


def _flag(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not bool:
        _refuse(attribute.name, value, "bool (true or false)")


def _text(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not str:
        _refuse(attribute.name, value, "a text")


def _name(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not str or not value.strip():
        _refuse(attribute.name, value, "a name that is not empty")


def _source(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not str or not SOURCE.fullmatch(value):
        _refuse("source", value, "user, agent, agent:NAME, compact, session_memory or collapse")


def _names(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not tuple or not all(type(name) is str and name.strip() for name in value):
        _refuse(attribute.name, value, "a list of names that are not empty")
    if len(set(value)) != len(value):
        raise ConfigError(attribute.name, f"{_shown(value)} names one twice", "each name once")


def _of(kind: type[object], attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not tuple or not all(type(each) is kind for each in value):
        _refuse(attribute.name, value, f"a tuple of {kind.__name__}")


def _hooks(instance: object, attribute: attrs.Attribute[Any], value: tuple[HookSpec, ...]) -> None:
    _of(HookSpec, attribute, value)
    _names(instance, attribute, tuple(hook.name for hook in value))
    for hook in value:
        if type(hook.max_blocks) is not int or not 1 <= hook.max_blocks <= MOST:
            problem = f"max_blocks of {_shown(hook.name)} is {_shown(hook.max_blocks)}"
            raise ConfigError(attribute.name, problem, _range(1, MOST, hook.max_blocks))


def _models(instance: object, attribute: attrs.Attribute[Any], value: tuple[ModelSpec, ...]) -> None:
    _of(ModelSpec, attribute, value)
    _names(instance, attribute, tuple(model.name for model in value))
    for model in value:
        for key, low, number in _numbers(model):
            if type(number) is not int or not low <= number <= MOST:
                problem = f"{key} of {_shown(model.name)} is {_shown(number)}"
                raise ConfigError(attribute.name, problem, _range(low, MOST, number))


def _numbers(model: ModelSpec) -> tuple[tuple[str, int, object], ...]:
    """Return name, least value and value of each number that is known of *model*."""
    prices = (
        ("input_price", 0, model.input_price),
        ("output_price", 0, model.output_price),
        ("cache_read_price", 0, model.cache_read_price),
        ("cache_creation_price", 0, model.cache_creation_price),
    )
    return (
        ("context_window_tokens", 1, model.context_window_tokens),
        ("max_output_tokens", 1, model.max_output_tokens),
        *(price for price in prices if price[2] is not None),
    )


@frozen(slots=True)
class Thresholds:
    """
    What a view of one model is held against, in tokens (specification, section 2).

    ``effective`` is what a view may fill, the summary's reserve taken off;
    autocompact fires at ``autocompact``, no request is made at ``blocking``,
    one notice goes out at ``warning``: each at an estimate ``>=`` it.
    """

    window: int
    effective: int
    autocompact: int
    blocking: int
    warning: int


def thresholds_of(spec: ModelSpec) -> Thresholds:
    """Return the thresholds of one model's window."""
    effective = spec.context_window_tokens - min(spec.max_output_tokens, SUMMARY_RESERVE_TOKENS)
    autocompact = effective - AUTOCOMPACT_MARGIN_TOKENS
    return Thresholds(
        window=spec.context_window_tokens,
        effective=effective,
        autocompact=autocompact,
        blocking=effective - BLOCKING_MARGIN_TOKENS,
        warning=autocompact - WARNING_MARGIN_TOKENS,
    )


@attrs.frozen(kw_only=True)
class Config:
    """
    Limits, gates and names of one run (specification, sections 1 to 5).

    Sizes end in their unit.  Where a field may be None, None is off.  A value
    that is impossible raises ``ConfigError``, which names the key.
    """

    # models
    model: str = attrs.field(default="main", validator=_name)
    fallback_models: tuple[str, ...] = attrs.field(default=(), validator=_names)
    models: tuple[ModelSpec, ...] = attrs.field(default=(), validator=_models)
    source: str = attrs.field(default="user", validator=_source)
    system_prompt: str = attrs.field(default="", validator=_text)
    thinking: bool = attrs.field(default=True, validator=_flag)
    context_window_tokens: int = attrs.field(default=200_000, validator=_whole(1))
    model_max_output_tokens: int = attrs.field(default=64_000, validator=_whole(1))
    max_output_tokens: int | None = attrs.field(default=None, validator=_whole(1, off=True))
    default_output_tokens: int = attrs.field(default=8_000, validator=_whole(1))
    escalated_output_tokens: int = attrs.field(default=64_000, validator=_whole(1))
    fixed_prompt_tokens: int = attrs.field(default=0, validator=_whole(0))
    # hard limits of the run
    max_turns: int | None = attrs.field(default=200, validator=_whole(1, off=True))
    max_model_calls: int | None = attrs.field(default=1_000, validator=_whole(0, off=True))
    max_run_tokens: int | None = attrs.field(default=None, validator=_whole(0, off=True))
    max_cost: int | None = attrs.field(default=None, validator=_whole(0, off=True))
    token_budget_tokens: int | None = attrs.field(default=None, validator=_whole(1, off=True))
    task_budget_tokens: int | None = attrs.field(
        default=None, validator=_whole(TASK_BUDGET_FLOOR_TOKENS, off=True)
    )
    # gates
    autocompact: bool = attrs.field(default=True, validator=_flag)
    reactive_compact: bool = attrs.field(default=True, validator=_flag)
    collapse: bool = attrs.field(default=True, validator=_flag)
    collapse_staging: bool = attrs.field(default=False, validator=_flag)
    streaming_tools: bool = attrs.field(default=True, validator=_flag)
    tool_summaries: bool = attrs.field(default=False, validator=_flag)
    prefetch_memories: bool = attrs.field(default=False, validator=_flag)
    prefetch_skills: bool = attrs.field(default=False, validator=_flag)
    # context layers
    snip_above_tokens: int | None = attrs.field(default=None, validator=_whole(1, off=True))
    microcompact_idle_minutes: int | None = attrs.field(default=None, validator=_whole(1, off=True))
    microcompact_trigger_results: int | None = attrs.field(default=None, validator=_whole(1, off=True))
    microcompact_keep_results: int = attrs.field(default=5, validator=_whole(0))
    max_batch_result_chars: int = attrs.field(default=200_000, validator=_whole(1))
    result_preview_bytes: int = attrs.field(default=2_000, validator=_whole(0))
    tail_min_tokens: int = attrs.field(default=10_000, validator=_whole(0))
    tail_min_messages: int = attrs.field(default=5, validator=_whole(0))
    tail_max_tokens: int = attrs.field(default=40_000, validator=_whole(0))
    restore_max_tokens: int = attrs.field(default=50_000, validator=_whole(0))
    # ladders
    max_output_recoveries: int = attrs.field(default=3, validator=_whole(0))
    max_compaction_failures: int = attrs.field(default=3, validator=_whole(1))
    max_compactor_retries: int = attrs.field(default=3, validator=_whole(0))
    max_retries: int = attrs.field(default=10, validator=_whole(0))
    max_resends: int = attrs.field(default=10, validator=_whole(0))
    overloads_before_fallback: int = attrs.field(default=3, validator=_whole(1))
    backoff_initial_ms: int = attrs.field(default=500, validator=_whole(0))
    backoff_max_ms: int = attrs.field(default=32_000, validator=_whole(0))
    jitter_percent: int = attrs.field(default=25, validator=_whole(0, 100))
    max_retry_after_ms: int = attrs.field(default=300_000, validator=_whole(0))
    min_budget_continuations: int = attrs.field(default=3, validator=_whole(1))
    budget_delta_tokens: int = attrs.field(default=500, validator=_whole(1))
    stop_hooks: tuple[HookSpec, ...] = attrs.field(default=(), validator=_hooks)
    # tools, queue, bounds
    max_parallel_tools: int = attrs.field(default=10, validator=_whole(1))
    max_answer_blocks: int = attrs.field(default=10_000, validator=_whole(1))
    max_queued_commands: int = attrs.field(default=1_000, validator=_whole(1))
    notice_turn: int = attrs.field(default=20, validator=_whole(1))
    # deadlines, kept by the interpreter
    model_timeout_ms: int = attrs.field(default=600_000, validator=_whole(1))
    tool_timeout_ms: int = attrs.field(default=600_000, validator=_whole(1))
    hook_timeout_ms: int = attrs.field(default=60_000, validator=_whole(1))
    compactor_timeout_ms: int = attrs.field(default=600_000, validator=_whole(1))
    side_timeout_ms: int = attrs.field(default=60_000, validator=_whole(1))

    # derived once, so that no guard computes them again
    source_kind: SourceKind = attrs.field(init=False, eq=False, repr=False)
    nested: bool = attrs.field(init=False, eq=False, repr=False)
    sub_agent: bool = attrs.field(init=False, eq=False, repr=False)
    all_models: tuple[ModelSpec, ...] = attrs.field(init=False, eq=False, repr=False)
    thresholds: tuple[Thresholds, ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.model in self.fallback_models:
            problem = f"{_shown(self.model)} is the first model already"
            raise ConfigError("fallback_models", problem, "names of other models")
        if self.escalated_output_tokens < self.default_output_tokens:
            raise ConfigError(
                "escalated_output_tokens",
                f"{self.escalated_output_tokens} is under default_output_tokens",
                f"a whole number >= {self.default_output_tokens}",
            )
        if self.max_cost is not None:
            self._check_prices()
        kind = SourceKind(self.source.split(":")[0])
        named = {spec.name: spec for spec in self.models}
        standard = (self.context_window_tokens, self.model_max_output_tokens)
        chain = (self.model, *self.fallback_models)
        models = tuple(named.get(name, ModelSpec(name, *standard)) for name in chain)
        if self.max_output_tokens is not None and self.max_output_tokens > models[0].max_output_tokens:
            most = models[0].max_output_tokens
            problem = f"{self.max_output_tokens} is more than {_shown(self.model)} can put out"
            raise ConfigError("max_output_tokens", problem, f"a whole number >= 1 and <= {most}")
        object.__setattr__(self, "source_kind", kind)
        object.__setattr__(self, "nested", kind in NESTED)
        object.__setattr__(self, "sub_agent", kind is not SourceKind.USER)
        object.__setattr__(self, "all_models", models)
        object.__setattr__(self, "thresholds", tuple(map(thresholds_of, models)))

    def _check_prices(self) -> None:
        priced = {spec.name for spec in self.models if None not in (spec.input_price, spec.output_price)}
        for name in (self.model, *self.fallback_models):
            if name not in priced:
                problem = f"models has no input_price and output_price for {_shown(name)}"
                raise ConfigError("max_cost", problem, "both prices for every model that may be asked")
