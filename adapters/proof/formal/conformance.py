"""
The whole graph of the model against the shipped ``step``, every state and every event.

Both are searched together from the start.  For each state of the model the
real states that reach it are kept, one for each way in which real states can
differ (``canonical``); each of them must give, for every event that the world
can say, exactly the successor of the model, or be refused where the model has
none.  What each step puts out is part of the model's state; the payloads of
orders are held against it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import attrs

from stepfold.adapters.proof.canonical import Key, Quotient, controls_of, key_of
from stepfold.adapters.proof.environment import late_answers, one_of_each
from stepfold.adapters.proof.formal.graph import Graph, changes
from stepfold.adapters.proof.formal.happenings import NOBODY, WORD, Speaker
from stepfold.adapters.proof.formal.orders import problems
from stepfold.adapters.proof.formal.projection import contradictions, did, variables
from stepfold.adapters.proof.formal.slices import GraphSlice, beginning, refreshed
from stepfold.engine.config import Config
from stepfold.engine.effects import Effect
from stepfold.engine.events import Command, CommandQueued, Event, ToolsChanged
from stepfold.engine.history import History
from stepfold.engine.messages import Message
from stepfold.engine.state import State
from stepfold.engine.step import UnexpectedEvent, step

Step: TypeAlias = Callable[[State, Event, Config], tuple[State, tuple[Effect, ...]]]
Told: TypeAlias = Callable[[str, int, int], None]
FINE: Final = Quotient(frozenset(), History[Message](), again=True)
TOLD: Final = 10  # findings that are kept
EVERY: Final = 500  # states between two calls of the progress callback


@attrs.define
class Compared:
    """What one comparison found: states and steps compared, real states, and what differs."""

    name: str
    states: int = 0
    real: int = 0
    steps: int = 0
    findings: list[str] = attrs.Factory(list)
    count: int = 0

    def found(self, words: str) -> None:
        """Note a difference; the first few are told."""
        self.count += 1
        if len(self.findings) < TOLD:
            self.findings.append(f"{self.name}: {words}")


class Comparison:
    """One graph against one config."""

    def __init__(self, graph: Graph, piece: GraphSlice, told: Told, stepping: Step, enough: int) -> None:
        self.graph = graph
        self.config = piece.config
        self.told = told
        self.step = stepping
        self.enough = enough
        self.speaker = Speaker(piece.config, graph.constants["MaxCalls"])
        self.written = tuple(saying.written() for saying in graph.said)
        self.result = Compared(piece.name)
        self.waiting: list[tuple[int, State]] = []
        self.seen: set[tuple[int, Key]] = set()
        self.met: set[int] = set()
        self.crossed: set[int] = set()
        self.strayed: set[tuple[object, ...]] = set()

    def run(self) -> Compared:
        """Compare to the end, or until enough differs."""
        for staged in self.graph.constants["Staged"]:
            state = beginning(staged)
            self._meet(self._number(state, ()), state, "at the start")
        place = 0
        while place < len(self.waiting) and self.result.count < self.enough:
            if place % EVERY == 0:
                self.told(f"conformance: {self.result.name}", place, len(self.graph.texts))
            number, state = self.waiting[place]
            self.waiting[place] = (number, _GONE)
            self._expand(number, state)
            place += 1
        self.result.states, self.result.real = len(self.met), len(self.waiting)
        missing = len(self.graph.texts) - len(self.met)
        if missing and not self.result.count:
            self.result.found(f"{missing} states of the model are never reached by the engine")
        return self.result

    def _number(self, state: State, effects: tuple[str, ...]) -> int | None:
        text = self.graph.text_of(variables(state, effects, self.config))
        return self.graph.number_of.get(text)

    def _meet(self, number: int | None, state: State, where: str) -> None:
        if number is None:
            self.result.found(f"{where}: the model has no such state")
            return
        control = controls_of(state.control, state.control, self.config, FINE)[0]
        key = (number, key_of(control, state.phase, state.data, self.config, FINE))
        if key in self.seen:
            return
        self.seen.add(key)
        for words in contradictions(state, self.config):
            self.result.found(f"{where}: {words}")
        self.met.add(number)
        self.waiting.append((number, refreshed(state)))

    def _expand(self, number: int, state: State) -> None:
        edges = self.graph.edges[number]
        for place, saying in enumerate(self.graph.said):
            event = self.speaker.spoken(saying, state)
            if event is not None:
                self._take(number, state, event, edges.get(place, ()), self.written[place])
        if number not in self.crossed:
            self.crossed.add(number)
            self._cross(number, state)

    def _cross(self, number: int, state: State) -> None:
        """Let come what decides nothing; once for each phase and set of orders, what is late and lost."""
        for event in _beside(state):
            self._stutter(number, state, event)
        kinds = tuple(type(order).__name__ for order in state.data.ledger.owed)
        sign = (state.phase.kind.value, kinds, state.data.ledger.next_id > len(kinds) + 1)
        if sign not in self.strayed:
            self.strayed.add(sign)
            for event in late_answers(state):
                self._stutter(number, state, event)
            for event in one_of_each(NOBODY):
                self._take(number, state, event, (), "an answer that nobody ordered")

    def _take(self, number: int, state: State, event: Event, wanted: tuple[int, ...], words: str) -> None:
        self.result.steps += 1
        try:
            after, effects = self.step(state, event, self.config)
        except UnexpectedEvent:
            if wanted:
                self._differs(number, words, wanted, "refuses it")
            return
        except Exception as problem:  # what step must never raise is a difference as well
            self._differs(number, words, wanted, f"raises {type(problem).__name__}: {problem}")
            return
        out = did(state, effects)
        found = self._number(after, out)
        if found is None or found not in wanted:
            text = self.graph.text_of(variables(after, out, self.config))
            self._differs(number, words, wanted, f"goes to {text}")
            return
        for what in problems(after, effects, self.config):
            self.result.found(f"{words}: {what}")
        self._meet(found, after, words)

    def _stutter(self, number: int, state: State, event: Event) -> None:
        """What decides nothing must change nothing, and put nothing out."""
        self.result.steps += 1
        words = f"{type(event).__name__}, which decides nothing,"
        try:
            after, effects = self.step(state, event, self.config)
        except UnexpectedEvent:
            self._differs(number, words, (number,), "refuses it")
            return
        before = variables(state, (), self.config)
        if did(state, effects) or variables(after, (), self.config) != before:
            self._differs(
                number, words, (number,), f"goes to {variables(after, did(state, effects), self.config)}"
            )

    def _differs(self, number: int, words: str, wanted: tuple[int, ...], engine: str) -> None:
        here, texts = self.graph.texts[number], [self.graph.texts[each] for each in wanted]
        model = f"goes to {' or '.join(changes(here, text) for text in texts)}" if texts else "refuses it"
        if engine.startswith("goes to ["):
            engine = f"goes to {changes(here, engine.removeprefix('goes to '))}"
        self.result.found(
            f"{words}: the model {model}, the engine {engine}; in {changes(self.graph.texts[0], here)}"
        )


_GONE: Final = beginning("none")


def _beside(state: State) -> Iterator[Event]:
    """Yield what may come in any phase and decides nothing."""
    yield ToolsChanged(state.data.tool_context.tools)
    yield CommandQueued(Command("c", (WORD,)))


def compare(
    graph: Graph,
    piece: GraphSlice,
    told: Told = lambda name, done, known: None,
    stepping: Step = step,
    enough: int = TOLD,
) -> Compared:
    """
    Hold the engine against *graph*.

    Args:
        graph: TLC's graph of the slice.
        piece: The slice.
        told: Called now and then with (name, states done, states known).
        stepping: What is compared; the shipped ``step``.
        enough: After so many differences the comparison stops.
    """
    return Comparison(graph, piece, told, stepping, enough).run()
