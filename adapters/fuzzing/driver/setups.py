"""
How a fuzzed run is set up: its config, the history before it, and which faults it meets.

The first bytes of a run's choices say it: some for the faults, one bit each,
then one for each of ``DIALS``, whose first value is the plain one.  Limits are
small, so that they are met within a few events.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from stepfold.adapters.testing.config_space import SPACE
from stepfold.adapters.testing.world import ALL_FAULTS, Fault, World, world_of
from stepfold.engine import Config, State, start
from stepfold.engine.config import HookSpec
from stepfold.engine.events import Usage
from stepfold.engine.messages import Message, Origin, Role, Text
from stepfold.engine.state import Collapse

FAULTS: Final = tuple(Fault)
ALL: Final = (1 << len(FAULTS)) - 1
FEW: Final = 8  # so many faults, or fewer, are on in most runs
FAULT_BYTES: Final = (len(FAULTS) + 7) // 8
# Characters of each of the four texts of the history, and whether a summary is staged for half of them.
VIEWS: Final = ((0, False), (90, False), (90, True), (14_500, False), (14_500, True))
# With the models of the shared space autocompact fires at 19,000 tokens, and nothing is sent at 29,000.
SMALL: Final[Mapping[str, tuple[Any, ...]]] = {
    "fixed_prompt_tokens": (0, 500, 18_950, 29_500),
    "max_turns": (200, 1, 2),
    "max_model_calls": (1_000, 1, 2, 4),
    "max_run_tokens": (None, None, 600),
    "max_cost": (None, None, 3),
    "max_output_tokens": (None, None, 500),
    "max_output_recoveries": (3, 1, 0),
    "max_retries": (10, 1, 0),
    "max_resends": (10, 1, 0),
    "max_compaction_failures": (3, 1),
    "max_compactor_retries": (3, 1, 0),
    "overloads_before_fallback": (3, 1),
    "min_budget_continuations": (3, 1),
    "max_queued_commands": (1_000, 1),
    "snip_above_tokens": (None, 5_000, 100),
    "token_budget_tokens": (None, None, 2_000, 100_000),
    "stop_hooks": (
        (),
        (HookSpec("lint"),),
        (HookSpec("lint"), HookSpec("types")),
        (HookSpec("lint", 2),),
    ),
}
DIALS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("view", VIEWS),
    *{**SPACE, **SMALL}.items(),
)
HEADER: Final = FAULT_BYTES + len(DIALS)
OUTSIDE: Final = (
    Fault.ABORTS,
    Fault.DEATHS,
    Fault.QUEUE,
    Fault.TOOL_CHANGES,
    Fault.IDLE_TIME,
    Fault.STRAYS,
)


@attrs.frozen
class Theme:
    """Faults that meet each other, and the dials that say how soon a limit stands against them."""

    faults: tuple[Fault, ...]
    dials: tuple[str, ...]


THEMES: Final = (
    Theme(
        (Fault.FAILURES, Fault.OVERLOADS, Fault.FATAL_FAILURES, Fault.THINKING, Fault.DEATHS),
        ("fallback_models", "overloads_before_fallback", "max_retries", "max_model_calls"),
    ),
    Theme(
        (Fault.TOO_LONG, Fault.MEDIA, Fault.USAGE, Fault.COMPACTOR_FAILURES, Fault.COMPACTOR_USELESS),
        (
            "view",
            "fixed_prompt_tokens",
            "max_compaction_failures",
            "max_compactor_retries",
            "reactive_compact",
            "snip_above_tokens",
            "max_model_calls",
            "source",
        ),
    ),
    Theme(
        (Fault.TRUNCATION, Fault.REFUSALS, Fault.PAUSES, Fault.ODD_STOPS, Fault.USAGE, Fault.THINKING),
        ("max_output_recoveries", "max_resends", "max_output_tokens", "fallback_models"),
    ),
    Theme(
        (
            Fault.UNSAFE_CALLS,
            Fault.DENIALS,
            Fault.TOOL_FAILURES,
            Fault.TOOL_STOPS,
            Fault.BAD_CALLS,
            Fault.REUSED_IDS,
            Fault.SERVER_CALLS,
        ),
        ("streaming_tools", "max_parallel_tools", "max_turns", "max_answer_blocks", "tool_summaries"),
    ),
    Theme(
        (Fault.HOOK_BLOCKS, Fault.HOOK_PREVENTS, Fault.HOOK_CRASHES, Fault.USAGE),
        ("stop_hooks", "token_budget_tokens", "min_budget_continuations", "max_run_tokens", "max_cost"),
    ),
    Theme(
        (Fault.ABORTS, Fault.DEATHS, Fault.STRAYS, Fault.UNSAFE_CALLS, Fault.HOOK_CRASHES),
        ("view", "fixed_prompt_tokens", "stop_hooks", "max_compaction_failures", "max_retries"),
    ),
    Theme(
        (
            Fault.QUEUE,
            Fault.TOOL_CHANGES,
            Fault.IDLE_TIME,
            Fault.SIDE_FAILURES,
            Fault.ODD_TEXTS,
            Fault.STRAYS,
        ),
        (
            "max_queued_commands",
            "prefetch_memories",
            "prefetch_skills",
            "tool_summaries",
            "collapse_staging",
            "microcompact_idle_minutes",
            "microcompact_trigger_results",
            "max_batch_result_chars",
        ),
    ),
)


@attrs.frozen
class Setup:
    """
    Where a run begins.

    Args:
        config: Its limits and gates.
        messages, collapses: The history before it.
        first: The state before it.
        world: Everything that the world may say.
        outside: What may come unasked.
        again: Whether further prompts follow where a run has ended.
    """

    config: Config
    messages: tuple[Message, ...]
    collapses: tuple[Collapse, ...]
    first: State
    world: World
    outside: tuple[Fault, ...]
    again: bool


def bits_of(faults: Iterable[Fault]) -> int:
    """Return *faults* as bits, in the order of ``FAULTS``."""
    return sum(1 << FAULTS.index(fault) for fault in set(faults))


def setup_of(header: bytes, config: Config | None = None) -> Setup:
    """Return what *header* (``HEADER`` bytes) says; with a *config*, that stands in place of the dials."""
    bits = int.from_bytes(header[:FAULT_BYTES], "little") & ALL
    world = world_of(fault for place, fault in enumerate(FAULTS) if bits >> place & 1)
    dials = zip(DIALS, header[FAULT_BYTES:], strict=True)
    said = {name: values[byte % len(values)] for (name, values), byte in dials}
    chars, staged = said.pop("view")
    messages = history(chars)
    collapses = (Collapse(2, "what was said first"),) if staged else ()
    if config is not None:
        world = near(world, config)
    return Setup(
        config=Config(**said) if config is None else config,
        messages=messages,
        collapses=collapses,
        first=start(messages, world.specs, collapses),
        world=world,
        outside=tuple(fault for fault in OUTSIDE if world.has(fault)),
        again=world.has(Fault.MORE_RUNS),
    )


def near(world: World, config: Config) -> World:
    """Return *world* with token counts near the thresholds of *config*."""
    if not world.has(Fault.USAGE):
        return world
    limits = config.thresholds[0]
    tokens = (100, max(1, limits.autocompact), max(1, limits.blocking), max(1, limits.window))
    usages = (None, *(Usage(count, 20) for count in tokens), Usage(100, 600))
    done = attrs.evolve(
        world.done, summary_tokens=tuple(dict.fromkeys((*world.done.summary_tokens, *tokens)))
    )
    return attrs.evolve(world, said=attrs.evolve(world.said, usages=usages), done=done)


def history(chars: int) -> tuple[Message, ...]:
    """Return two questions with their answers, each text so many characters long; () for 0."""
    if not chars:
        return ()
    said = [f"{what} {number} ".ljust(chars, what[0]) for number in (1, 2) for what in ("question", "answer")]
    return tuple(
        Message(Role.ASSISTANT, (Text(text),), Origin.ANSWER, "main")
        if place % 2
        else Message(Role.USER, (Text(text),))
        for place, text in enumerate(said)
    )


def random_header(source: random.Random, allowed: Iterable[Fault] = ALL_FAULTS) -> bytes:
    """
    Return a header: up to three of the ``THEMES``, with half of their faults and most of their dials turned.

    Faults of other themes are off, so that those which are on meet each other often; other dials are
    seldom turned.
    """
    wanted = frozenset(allowed)
    share = 0.6 if len(wanted) > FEW else 0.9
    fitting = [theme for theme in THEMES if not wanted.isdisjoint(theme.faults)] or list(THEMES)
    themes = source.sample(fitting, min(len(fitting), source.randrange(1, 4)))
    faults = {fault for theme in themes for fault in theme.faults if source.random() < share}
    faults |= {Fault.MORE_RUNS} if source.random() < 0.7 else set()
    turned = {dial for theme in themes for dial in theme.dials}
    dials = bytes(
        source.randrange(1, 256) if source.random() < (0.6 if name in turned else 0.08) else 0
        for name, _ in DIALS
    )
    return (bits_of(faults) & bits_of(wanted)).to_bytes(FAULT_BYTES, "little") + dials
