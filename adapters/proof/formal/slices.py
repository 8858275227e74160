"""
The graphs that are compared: a TLC config of ``specs/graphs/`` beside the engine's config and histories.

Both sides are written down apart; where they do not say the same, the
comparison says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import attrs

from stepfold.adapters.proof.formal.projection import MUCH
from stepfold.adapters.proof.formal.tlc import SPECS
from stepfold.adapters.proof.worlds.facts import SPEC
from stepfold.engine.config import Config, HookSpec
from stepfold.engine.frozen import evolve
from stepfold.engine.history import History
from stepfold.engine.ids import Ids
from stepfold.engine.messages import Message, Origin, Role, Text, user_text
from stepfold.engine.state import Collapse, State
from stepfold.engine.step import start

ROUNDS: Final = 8
LARGE: Final = 150_000  # characters: about half of the window; gone, a full view is low again
ANSWER: Final = Message(Role.ASSISTANT, (Text("x" * 300),), Origin.ANSWER)
HUGE: Final = 10**6


@attrs.frozen(kw_only=True)
class GraphSlice:
    """One graph: its name (that of the TLC config), and the engine's config."""

    name: str
    config: Config

    @property
    def file(self) -> Path:
        """The TLC config."""
        return SPECS / "graphs" / f"{self.name}.cfg"


def history(staged: str) -> History[Message]:
    """Return a view of some rounds; where much is staged, the first one is large."""
    first = "x" * (LARGE if staged == MUCH else 300)
    texts = (first, *("x" * 300 for _ in range(ROUNDS - 1)))
    rounds = [m for text in texts for m in (user_text(text, Origin.PROMPT), ANSWER)]
    return History[Message]().extend((*rounds, user_text("x", Origin.PROMPT)))


VIEWS: Final = {staged: history(staged) for staged in ("none", "little", MUCH)}


def beginning(staged: str) -> State:
    """Return the state before a first run, with *staged* staged for the first round."""
    collapses = () if staged == "none" else (Collapse(2, staged),)
    return start(VIEWS[staged], (), collapses)


def refreshed(state: State) -> State:
    """
    Return *state* with the standing view in place of its own.

    Guards read no message; the view only says how often a compaction that is
    too long can be asked again, and whether it ends with a paused answer.
    """
    data = state.data
    collapses = data.layers.collapses
    view = VIEWS[collapses[0].summary if collapses else "none"]
    if data.messages and data.messages[-1].role is Role.ASSISTANT:
        view = view.append(ANSWER)
    return evolve(state, data=evolve(data, messages=view, used_ids=Ids()))


def config_of(**more: Any) -> Config:
    """Return a config with small limits; every gate of the context off, one model."""
    values: dict[str, Any] = {
        "models": (SPEC, *(attrs.evolve(SPEC, name=name) for name in ("second", "third"))),
        "default_output_tokens": 1_000,
        "escalated_output_tokens": 2_000,
        "max_turns": 2,
        "max_model_calls": None,
        "max_output_recoveries": 2,
        "max_compaction_failures": 2,
        "max_compactor_retries": 2,
        "max_retries": 2,
        "max_resends": 2,
        "overloads_before_fallback": 2,
        "max_answer_blocks": 2,
        "max_parallel_tools": 2,
        "tail_min_messages": 10**3,
        "tail_max_tokens": HUGE,
        "collapse": False,  # the tail is all
        "reactive_compact": False,
        "autocompact": False,
        **more,
    }
    return Config(**values)


CONTEXT: Final[dict[str, Any]] = {"collapse": True, "reactive_compact": True, "autocompact": True}
FIRST_RUNGS: Final[dict[str, Any]] = {
    "max_output_recoveries": 1,
    "max_compaction_failures": 1,
    "max_compactor_retries": 1,
    "max_retries": 1,
    "max_resends": 1,
    "max_answer_blocks": 1,
    "stop_hooks": (HookSpec("a", 1),),
    "fallback_models": ("second",),
    **CONTEXT,
}
NO_ESCALATION: Final[dict[str, Any]] = {"max_output_tokens": 1_000}
GRAPHS: Final[tuple[GraphSlice, ...]] = (
    GraphSlice(name="answers", config=config_of(stop_hooks=(HookSpec("a", 2),))),
    GraphSlice(
        name="context",
        config=config_of(**CONTEXT, **NO_ESCALATION, max_output_recoveries=0, max_answer_blocks=1),
    ),
    GraphSlice(
        name="failures",
        config=config_of(fallback_models=("second", "third"), max_output_recoveries=1, max_answer_blocks=1),
    ),
    GraphSlice(name="everything", config=config_of(**FIRST_RUNGS)),
    GraphSlice(
        name="hooks",
        config=config_of(stop_hooks=(HookSpec("a", 2), HookSpec("b", 2)), max_answer_blocks=1, max_retries=0),
    ),
    GraphSlice(
        name="budget",
        config=config_of(
            token_budget_tokens=4,
            budget_delta_tokens=2,
            stop_hooks=(HookSpec("a", 1),),
            max_output_recoveries=1,
            max_answer_blocks=1,
        ),
    ),
    GraphSlice(
        name="agent",
        config=config_of(
            source="agent",
            token_budget_tokens=4,
            stop_hooks=(HookSpec("a", 2),),
            max_answer_blocks=1,
            max_retries=0,
        ),
    ),
    GraphSlice(
        name="limits",
        config=config_of(
            max_model_calls=3,
            max_run_tokens=HUGE,
            fallback_models=("second",),
            stop_hooks=(HookSpec("a", 1),),
            max_answer_blocks=1,
            max_compaction_failures=1,
            max_resends=1,
            **CONTEXT,
        ),
    ),
    GraphSlice(
        name="calls",
        config=config_of(
            max_turns=1, max_answer_blocks=3, max_output_recoveries=0, max_retries=0, **NO_ESCALATION
        ),
    ),
    GraphSlice(name="pairs", config=config_of(streaming_tools=False, max_retries=0, **NO_ESCALATION)),
    GraphSlice(
        name="nested",
        config=config_of(
            source="compact", stop_hooks=(HookSpec("a", 2),), fallback_models=("second",), **CONTEXT
        ),
    ),
)
