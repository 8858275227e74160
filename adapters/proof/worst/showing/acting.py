"""
A plan acted out against the real ``step``: what the world says at each point, written down as a script.

The actor looks at the state before it speaks, so a plan that asks for more
than there is comes to less, and never to something that cannot happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from stepfold.adapters.proof.worst.plans import Trip, Way
from stepfold.adapters.proof.worst.quantities import NOTHING, Quantity, costs_of
from stepfold.adapters.proof.worst.search import BEGIN, before_the_run
from stepfold.adapters.proof.worst.world import (
    Answer,
    Says,
    Sizes,
    Summary,
    events_of,
    sizes_of,
    summary_event,
    waited_for,
)
from stepfold.engine.config import Config
from stepfold.engine.effects import CallModel, Compact, CompactReason, Effect, RunHook, RunTool, Wait
from stepfold.engine.events import Event, HookAnswered, HookVerdict, ToolEnded, WaitElapsed
from stepfold.engine.guards import retries_left
from stepfold.engine.phases import Reacting
from stepfold.engine.state import State
from stepfold.engine.step import step

REQUESTS_MAX: Final = 2_000  # longer runs are not acted out


@attrs.frozen
class Script:
    """
    What the world said in a run, in order, and what it cost; ``end`` is the name of the terminal.

    ``full`` says that the view is at the threshold of autocompact when the
    run begins; ``hooks`` are the answers of each stop hook of the config.
    """

    answers: tuple[Answer, ...]
    summaries: tuple[Summary, ...]
    hooks: tuple[tuple[HookVerdict, ...], ...]
    full: bool
    costs: dict[Quantity, int] = attrs.field(hash=False)
    waits_ms: tuple[int, ...]
    end: str


class TooLong(Exception):
    """The run makes more requests than are acted out."""


def act(config: Config, plan: Iterable[Trip], limit: int = REQUESTS_MAX) -> Script:
    """
    Return the script of the run that follows *plan*.

    Raises:
        TooLong: It makes more than *limit* requests.
    """
    actor = _Actor(config, iter(plan))
    state = before_the_run(config, full=actor.trip.asks > 0)
    events: tuple[Event, ...] = (BEGIN,)
    while True:
        for event in events:
            state = actor.take(state, event)
        if state.end is not None:
            return actor.script(state.end.reason.value)
        if actor.costs[Quantity.MODEL_CALLS] > limit:
            raise TooLong
        events = actor.says(state)


def _begins_a_trip(effect: Effect) -> bool:
    return isinstance(effect, CallModel) or (
        isinstance(effect, Compact) and effect.reason is CompactReason.AUTO
    )


class _Actor:
    """The world that follows a plan."""

    def __init__(self, config: Config, plan: Iterator[Trip]) -> None:
        self.config = config
        self.plan = plan
        self.sizes: Sizes = sizes_of(config)
        self.trip = next(plan, Trip(Way.END))
        self.next = next(plan, Trip(Way.END))
        self.full = self.trip.asks > 0
        self.made = self.asked = 0  # calls of this trip, requests of this compaction
        self.answers: list[Answer] = []
        self.summaries: list[Summary] = []
        self.hooks: list[list[HookVerdict]] = [[] for _ in config.stop_hooks]
        self.waits: list[int] = []
        self.costs: dict[Quantity, int] = dict(NOTHING)
        self.leaving = False

    def take(self, state: State, event: Event) -> State:
        """Return the state after *event*, its costs counted."""
        after, effects = step(state, event, self.config)
        for quantity, cost in costs_of(effects, state, after, self.config).items():
            self.costs[quantity] += cost
        self.waits += [effect.ms for effect in effects if isinstance(effect, Wait)]
        if self.leaving and any(map(_begins_a_trip, effects)):
            self.trip, self.next = self.next, next(self.plan, Trip(Way.END))
            self.made = self.asked = 0
            self.leaving = False
        return after

    def script(self, end: str) -> Script:
        """Return what was said."""
        hooks = tuple(map(tuple, self.hooks))
        said = (tuple(self.answers), tuple(self.summaries), hooks)
        return Script(*said, self.full, self.costs, tuple(self.waits), end)

    def says(self, state: State) -> tuple[Event, ...]:
        """Return the events of what the world says next."""
        match waited_for(state):
            case CallModel(id):
                return events_of(self._answer(state, id), id, self.config)
            case Compact(id):
                return (summary_event(self._summary(state), id),)
            case RunHook(id, name):
                return (HookAnswered(id, self._verdict(state, name), "go on"),)
            case Wait(id):
                return (WaitElapsed(id),)
            case RunTool(id):
                return (ToolEnded(id),)
        raise AssertionError("a run waits for one of these")

    def _answer(self, state: State, call: int) -> Answer:
        self.made += 1
        answer = self._waste(state) if self.made < self.trip.calls else None
        if answer is None:
            self.leaving = True
            self.asked = 0
            answer = self._leave(state, call)
        self.answers.append(answer)
        return answer

    def _waste(self, state: State) -> Answer | None:
        """Return what makes the same trip call once more, or None if nothing does."""
        control, config = state.control, self.config
        if retries_left(control, BEGIN, config):
            base = min(config.backoff_initial_ms << min(control.attempts.retries, 30), config.backoff_max_ms)
            return Answer(Says.BUSY if config.max_retry_after_ms >= base else Says.DROPPED)
        if control.attempts.resends < config.max_resends and not config.nested:
            return Answer(Says.PAUSED)
        if control.attempts.fallbacks + 1 < len(config.all_models) and not config.nested:
            return Answer(Says.AWAY)
        return None

    def _leave(self, state: State, call: int) -> Answer:
        """Return the answer that ends this trip."""
        prompt = self.sizes.full if self.next.asks else 0
        match self.trip.way:
            case Way.CUT:
                return Answer(Says.CUT, prompt)
            case Way.REACT:
                return Answer(Says.TOO_LONG)
            case Way.BLOCK:
                return Answer(Says.DONE, prompt)
            case Way.WIDE:
                outputs = (0, self.config.budget_delta_tokens)
                answers = (Answer(Says.DONE, prompt, output) for output in outputs)
                passing = (answer for answer in answers if self._goes_on(state, answer, call))
                return next(passing, Answer(Says.CALLS, prompt))
            case Way.TURN | Way.END:
                return Answer(Says.CALLS, prompt)

    def _goes_on(self, state: State, answer: Answer, call: int) -> bool:
        """Return whether the token budget continues the run after *answer* and hooks that let it end."""
        if self.config.token_budget_tokens is None:
            return False
        before = state.control.spending.continuations
        for event in events_of(answer, call, self.config):
            state, _ = step(state, event, self.config)
        while state.end is None and isinstance(order := waited_for(state), RunHook):
            state, _ = step(state, HookAnswered(order.id, HookVerdict.PASS), self.config)
        return state.control.spending.continuations > before

    def _summary(self, state: State) -> Summary:
        self.asked += 1
        reacting = isinstance(state.phase, Reacting)
        wanted = self.trip.reaction if reacting else self.trip.asks
        if self.asked < wanted:
            summary = Summary(None)
        else:
            self.asked = 0
            summary = Summary(self.sizes.full if reacting and self.next.asks else self.sizes.small)
        self.summaries.append(summary)
        return summary

    def _verdict(self, state: State, name: str) -> HookVerdict:
        """The hook with most blocks left blocks, where the plan says that one does."""
        spent, hooks = state.data.book.hook_blocks, self.config.stop_hooks
        left = [hook.max_blocks - used for hook, used in zip(hooks, spent, strict=True)]
        place = next(place for place, hook in enumerate(hooks) if hook.name == name)
        first = self.trip.way is Way.BLOCK and not state.control.hooks.blocking
        blocks = first and place == left.index(max(left))
        verdict = HookVerdict.BLOCK if blocks else HookVerdict.PASS
        self.hooks[place].append(verdict)
        return verdict
