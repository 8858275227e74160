"""
The worst case of small limits, by trying everything: the longest path through the real ``step``.

The states that behave alike are one (``canonical``), every counter exact.
What is found is what the closed forms are held against.
"""

from __future__ import annotations

from typing import Final

import attrs

from stepfold.adapters.proof.canonical import Key, Quotient, controls_of, key_of, phase_of, tiny
from stepfold.adapters.proof.worst.quantities import NOTHING, Costs, Quantity, costs_of, summed
from stepfold.adapters.proof.worst.world import everything, sizes_of
from stepfold.engine.config import Config
from stepfold.engine.events import Event, RunStarted
from stepfold.engine.frozen import evolve
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Origin, Role, Text, user_text
from stepfold.engine.phases import Done
from stepfold.engine.state import Continue, State
from stepfold.engine.step import start, step
from stepfold.engine.terminals import Completed, Ending

STATES_MAX: Final = 100_000
ROUNDS: Final = 8  # of the history: enough for every retry of a compaction
BEGIN: Final = RunStarted((Text("x"),))


class Endless(Exception):
    """A way through the states leads back to where it was: no longest one exists."""


class TooLarge(Exception):
    """There are more states than are looked at."""


def tiny_history(rounds: int = ROUNDS) -> tuple[Message, ...]:
    """Return a history of so many tiny rounds."""
    answer = Message(Role.ASSISTANT, (Text("x"),), Origin.ANSWER)
    return tuple(message for _ in range(rounds) for message in (user_text("x", Origin.PROMPT), answer))


def before_the_run(config: Config, full: bool = True) -> State:
    """Return the state after a run that left a tiny history; *full*: its view is at the threshold."""
    state = start(tiny_history())
    sizes = sizes_of(config)
    tokens = sizes.full if full and sizes.full else sizes.small
    control = evolve(state.control, fill=evolve(state.control.fill, tokens=tokens))
    return evolve(state, control=control, phase=Done(Completed(Ending.REFUSAL)))


@attrs.define
class Search:
    """The graph as it grows: for each state what each way out of it costs, and where it leads."""

    config: Config
    limit: int
    quotient: Quotient
    numbers: dict[Key, int] = attrs.Factory(dict)
    edges: list[list[tuple[int, Costs]]] = attrs.Factory(list)
    waiting: list[tuple[int, State]] = attrs.Factory(list)
    reached: set[Continue] = attrs.Factory(set)

    def meet(self, before: State, after: State) -> int:
        """Return the number of the state that stands for *after*."""
        control = controls_of(before.control, after.control, self.config, self.quotient)[0]
        phase, data = phase_of(after, self.quotient), tiny(after.data, self.quotient)
        key = key_of(control, phase, after.data, self.config, self.quotient)
        number = self.numbers.get(key)
        if number is None:
            if len(self.numbers) >= self.limit:
                raise TooLarge
            number = self.numbers[key] = len(self.edges)
            self.edges.append([])
            if not isinstance(phase, Done):
                self.waiting.append((number, State(control, phase, data)))
        return number

    def take(self, state: State, events: tuple[Event, ...]) -> tuple[State, dict[Quantity, int]]:
        """Return the state after *events*, and what they cost."""
        costs = dict(NOTHING)
        for event in events:
            before = state
            state, effects = step(state, event, self.config)
            costs = summed(costs, costs_of(effects, before, state, self.config))
            if (stamped := state.control.transition) is not None:
                self.reached.add(stamped.reason)
        return state, costs

    def grow(self, *firsts: State) -> None:
        """Meet every state that can come after one of *firsts*; state 0 stands before them all."""
        self.edges.append([])
        for first in firsts:
            after, costs = self.take(first, (BEGIN,))
            self.edges[0].append((self.meet(first, after), costs))
        while self.waiting:
            number, state = self.waiting.pop()
            for events in everything(state, self.config):
                after, costs = self.take(state, events)
                self.edges[number].append((self.meet(state, after), costs))


@attrs.frozen
class Found:
    """The most that a run can cost, each quantity by itself, and the continues that were taken."""

    costs: dict[Quantity, int]
    reached: frozenset[Continue]


def longest(config: Config, limit: int = STATES_MAX) -> Found:
    """
    Search all runs of *config*.

    Raises:
        Endless: Some circle costs something.
        TooLarge: There are more than *limit* states: the answer is unknown.
    """
    search = Search(config, limit, Quotient(frozenset(), History[Message]().extend(tiny_history())))
    search.grow(before_the_run(config), before_the_run(config, full=False))
    return Found(_paths(search.edges), frozenset(search.reached))


def _paths(edges: list[list[tuple[int, Costs]]]) -> dict[Quantity, int]:
    """Return the costs of the longest paths from state 0; each quantity has its own."""
    best: list[dict[Quantity, int] | None] = [None] * len(edges)
    open_states: set[int] = {0}
    work = [(0, 0)]
    while work:
        number, place = work.pop()
        if place < len(edges[number]):
            work.append((number, place + 1))
            target = edges[number][place][0]
            if target in open_states:
                raise Endless
            if best[target] is None:
                open_states.add(target)
                work.append((target, 0))
            continue
        found = dict(NOTHING)
        for target, costs in edges[number]:
            beyond = best[target]
            assert beyond is not None
            for quantity, cost in summed(costs, beyond).items():
                found[quantity] = max(found[quantity], cost)
        best[number] = found
        open_states.discard(number)
    assert best[0] is not None
    return best[0]


__all__ = ["Endless", "TooLarge", "longest"]
