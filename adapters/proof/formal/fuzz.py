"""Random runs of the shipped ``step`` with real limits, of any length, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.proof.formal.happenings import FACTS, FAILURES, WORD, Saying, Speaker
from stepfold.adapters.proof.formal.slices import VIEWS
from stepfold.engine.config import Config, HookSpec
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Owed,
    RunHook,
    RunTool,
    Wait,
)
from stepfold.engine.events import Command, CommandQueued, Event, RunStarted, Stop, ToolEnded
from stepfold.engine.messages import Text
from stepfold.engine.phases import Aborting, Done, Running, Sampling
from stepfold.engine.state import Collapse, State
from stepfold.engine.step import start, step

STEPS_MAX: Final = 60
LARGE: Final = Text("x" * 45_000)
TOKENS: Final = (0, 0, 499, 500, 30_000)
STOPS: Final = (*("tool_use",) * 9, *("end_turn",) * 6, *("max_tokens",) * 5, *(stop.value for stop in Stop))
ENDINGS: Final = ("completed", "completed", "completed", "failed", "stop", "cancelled")
REPORTS: Final = ("none", "none", "low", "low", "full", "over")
CONFIG: Final = Config(
    fallback_models=("second", "third"),
    stop_hooks=(HookSpec("a", 2), HookSpec("b", 2)),
    token_budget_tokens=500_000,
)


def beginning(rng: random.Random) -> State:
    """Return the state before a random run: a history, and perhaps a collapse that is staged."""
    collapses = (Collapse(2, "little"),) if rng.random() < 0.5 else ()
    return start(VIEWS["none"], (), collapses)


def random_run(rng: random.Random, config: Config = CONFIG) -> tuple[State, list[Event]]:
    """Return a state before a run, and the events of it."""
    speaker = Speaker(config, config.max_answer_blocks)
    first = state = beginning(rng)
    events: list[Event] = [RunStarted((WORD,), seed=rng.randrange(1000))]
    state, _ = step(state, events[0], config)
    while len(events) < STEPS_MAX:
        event = _next(rng, speaker, state)
        state, _ = step(state, event, config)
        events.append(event)
        if isinstance(state.phase, Done) and rng.random() < 0.8:
            break
    return first, events


def _next(rng: random.Random, speaker: Speaker, state: State) -> Event:
    if isinstance(state.phase, Done):
        return RunStarted((WORD,))
    chance = rng.random()
    if chance < 0.01:
        return CommandQueued(Command("c", (WORD,)))
    event: Event | None = None
    while event is None:
        event = speaker.spoken(_saying(rng, state, chance), state)
    if isinstance(event, ToolEnded) and rng.random() < 0.2:
        return attrs.evolve(event, content=(LARGE,) * rng.randrange(1, 4))
    return event


def _saying(rng: random.Random, state: State, chance: float) -> Saying:
    if chance < 0.03:
        return Saying("AbortRequested", (rng.choice(("submit", "hard")),))
    if chance < 0.06:
        return Saying("Resumed")
    orders = [each for each in state.data.ledger.owed if isinstance(each, _ORDERS)]
    return _answer(rng, state, rng.choice(orders))


_ORDERS: Final = (CallModel, RunTool, AskPermission, Compact, RunHook, Wait)


def _answer(rng: random.Random, state: State, order: Owed) -> Saying:
    pick = rng.choice
    match order:
        case CallModel():
            return _streamed(rng, state)
        case RunTool(id):
            return Saying("ToolEnded", (_place(state, id), pick(ENDINGS)))
        case AskPermission(id):
            answer = pick(("allowed", "allowed", "denied", "stop"))
            return Saying("PermissionAnswered", (_place(state, id), answer))
        case Compact() if rng.random() < 0.6:
            return Saying(
                "Compacted", (pick(("low", "low", "full", "over", "empty")), pick((True, False)), False)
            )
        case Compact():
            return Saying("CompactionFailed", (pick(("too_long", "other")), pick((True, False)), False))
        case RunHook():
            return Saying("HookAnswered", (pick(("pass", "pass", "block", "block", "prevent", "crash")),))
        case _:
            return Saying("WaitElapsed")


def _streamed(rng: random.Random, state: State) -> Saying:
    pick, chance = rng.choice, rng.random()
    if isinstance(state.phase, Aborting) and chance < 0.5:
        return Saying("StreamCancelled")
    if chance < 0.45:
        return Saying("BlockCompleted", (pick(("text", *FACTS)),))
    if chance < 0.60:
        return Saying(
            "StreamFailed", (pick((*FAILURES, "transport", "overloaded")), pick((True, False)), False)
        )
    report = pick(REPORTS)
    return Saying("StreamClosed", (pick(STOPS), report, pick(TOKENS), pick((True, False)), False))


def _place(state: State, effect_id: int) -> int:
    phase: Any = state.phase
    assert isinstance(phase, Sampling | Running | Aborting)
    return 1 + [call.effect_id for call in phase.reply.schedule.calls].index(effect_id)


def random_runs(count: int, seed: int = 7) -> Iterator[tuple[State, list[Event]]]:
    """Yield *count* random runs; the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        yield random_run(rng)
