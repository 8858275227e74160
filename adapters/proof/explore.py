"""
Every state that a hostile world can bring the real ``step`` to, breadth first.

The search follows what ``step`` returns and names the rows by ``walk``.  It
has a hard limit on states: an exploration that hits it is *unknown*, never
proved.  States that behave alike are one (``canonical``).
"""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import attrs

from stepfold.adapters.proof.canonical import (
    Key,
    Quotient,
    controls_by,
    key_of,
    phase_of,
    reduced,
    short_key_of,
    tiny,
)
from stepfold.adapters.proof.environment import (
    Made,
    World,
    events_of,
    late_answers,
    matching,
    misdirected,
)
from stepfold.adapters.proof.invariants import Edge, disagreement, violations
from stepfold.adapters.proof.matrix import Matrix
from stepfold.adapters.proof.spec import Cell, Spec
from stepfold.adapters.proof.tracing import Traced
from stepfold.adapters.proof.walk import Index, indexed, walk
from stepfold.engine.config import Config
from stepfold.engine.events import Event, RunStarted
from stepfold.engine.history import History
from stepfold.engine.measure import measure
from stepfold.engine.messages import Message
from stepfold.engine.phases import Done
from stepfold.engine.state import Collapse, Continue, Control, State, Stay
from stepfold.engine.step import UnexpectedEvent, start, step

Progress: TypeAlias = Callable[[str, int, int], None]
STUTTER: Final = frozenset({Stay.LATE, Stay.NOTED})
TOLD: Final = 2  # ways to break one property that are kept
COMPARED: Final = 20  # steps of each way through the table that are held against it in full
EVERY: Final = 2_000  # states between two calls of the progress callback


@attrs.frozen(kw_only=True)
class Slice:
    """One exploration: a config, a world, a history to begin with, and what is held as {left, last}."""

    name: str
    about: str
    config: Config
    world: World
    messages: tuple[Message, ...] = ()
    staged: bool = False
    counters: frozenset[str] = frozenset({"turn"})

    def quotient(self) -> Quotient:
        """Return how states of this exploration are told apart."""
        return Quotient(self.counters, History[Message]().extend(self.messages), self.world.again)

    def starts(self) -> tuple[State, ...]:
        """Return the states before a first run."""
        plain = start(self.messages)
        if not self.staged:
            return (plain,)
        return (plain, start(self.messages, (), (Collapse(2, "s"),)))


@attrs.define
class Exploration:
    """
    What one exploration found.

    ``edges[n]`` are the successors of state n: (state, spends a turn or
    begins a run, changes nothing that decides).  ``findings`` are properties
    that fail, one line each, with the events that lead there.
    """

    name: str
    keys: list[Key] = attrs.Factory(list)
    edges: list[list[tuple[int, bool, bool]]] = attrs.Factory(list)
    rows: Counter[tuple[int, str]] = attrs.Factory(Counter)
    ends: set[tuple[str, ...]] = attrs.Factory(set)
    findings: list[str] = attrs.Factory(list)
    steps: int = 0
    complete: bool = True
    parents: list[tuple[int, Event | None]] = attrs.Factory(list)
    told: Counter[str] = attrs.Factory(Counter)

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.keys)

    def digest(self) -> str:
        """Return a digest of states, edges and rows: the same in every process."""
        told = hashlib.sha256()
        for key, edges in zip(self.keys, self.edges, strict=True):
            told.update(repr((key, edges)).encode())
        told.update(repr(sorted(self.rows.items())).encode())
        return told.hexdigest()

    def path_to(self, number: int) -> str:
        """Return the events that lead to state *number*."""
        words: list[str] = []
        while number >= 0:
            number, event = self.parents[number]
            if event is not None:
                words.append(words_of(event))
        return " ; ".join(reversed(words))

    def found(self, words: str, number: int, event: Event | None = None) -> None:
        """Note that a property fails; the first few ways are enough for each."""
        name = words.split(": ")[0]
        self.told[name] += 1
        if self.told[name] <= TOLD:
            last = "" if event is None else f" ; {words_of(event)}"
            self.findings.append(f"{self.name}: {words}\n    after {self.path_to(number)}{last}")


def words_of(event: Any) -> str:
    """Return an event, or a part of one, in short: its class, and what is not as it is by default."""
    said = []
    for field in attrs.fields(type(event)):
        value = getattr(event, field.name)
        if field.name in ("effect_id", "block", "prompt") or value == field.default:
            continue
        if attrs.has(type(value)):
            said.append(words_of(value))
        else:
            said.append(str(value) if isinstance(value, str) else f"{field.name} {value}")
    return f"{type(event).__name__}({', '.join(said)})"


class Explorer:
    """One exploration as it goes."""

    def __init__(self, piece: Slice, spec: Spec, matrix: Matrix, limit: int, progress: Progress) -> None:
        self.piece = piece
        self.config = piece.config
        self.quotient = piece.quotient()
        self.reduced = reduced(piece.config, self.quotient)
        self.made: Made = {}
        self.spec_cells: frozenset[Cell] = frozenset(spec.cells())
        self.answers = dict(spec.answers)
        self.matrix = matrix
        self.limit = limit
        self.progress = progress
        self.index: Index = indexed()
        self.traced = Traced(step, self.index)
        self.found = Exploration(piece.name)
        self.number_of: dict[Key, int] = {}
        self.waiting: list[State] = []
        self.strayed: set[tuple[object, ...]] = set()
        self.signs: Counter[tuple[int, ...]] = Counter()
        self.measured: tuple[int, ...] = ()
        self.taken: Counter[tuple[int, type]] = Counter()

    def run(self) -> Exploration:
        """Explore to the end, or to the limit.  Nothing made here refers to itself: no garbage is sought."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return self._run()
        finally:
            if collects:
                gc.enable()

    def _run(self) -> Exploration:
        for state in self.piece.starts():
            self._meet(state.control, state, -1, None)
        place = 0
        while place < len(self.waiting):
            if place % EVERY == 0:
                self.progress(self.piece.name, place, len(self.waiting))
            if len(self.waiting) > self.limit:
                self.found.complete = False
                break
            state, self.waiting[place] = self.waiting[place], None  # type: ignore[call-overload]
            self._expand(place, state)
            place += 1
        for (number, phase), count in self.taken.items():
            self.found.rows[number, phase.__name__] += count
        self.found.edges += [[] for _ in range(self.found.states - len(self.found.edges))]
        self.progress(self.piece.name, place, len(self.waiting))
        return self.found

    def _meet(self, before: Control, state: State, parent: int, event: Event | None) -> list[int]:
        """Return the numbers of the states that stand for *state*; one is new if its key is."""
        if (key := short_key_of(state, self.config, self.quotient)) is not None and key in self.number_of:
            return [self.number_of[key]]
        numbers, phase = [], phase_of(state, self.quotient)
        for control in controls_by(before, state.control, self.config, self.reduced):
            key = key_of(control, phase, state.data, self.config, self.quotient)
            number = self.number_of.get(key)
            if number is None:
                number = self.number_of[key] = len(self.waiting)
                self.waiting.append(State(control, phase, tiny(state.data, self.quotient)))
                self.found.keys.append(key)
                self.found.parents.append((parent, event))
                if is_over(key):
                    self.found.ends.add(tuple(map(str, key[1:3])))
            numbers.append(number)
        return numbers

    def _expand(self, place: int, state: State) -> None:
        edges: list[tuple[int, bool, bool]] = []
        self.measured = measure(state.control, self.config)
        for event in events_of(state, self.piece.world, self.made):
            edges += self._take(place, state, event)
        self.found.edges.append(list(dict.fromkeys(edges)))
        kinds = tuple(type(order).__name__ for order in state.data.ledger.owed)
        sign = (type(state.phase).__name__, kinds, state.data.ledger.next_id > len(kinds) + 1)
        if sign not in self.strayed:
            self.strayed.add(sign)
            self._stray(place, state)

    def _take(self, place: int, state: State, event: Event) -> Iterator[tuple[int, bool, bool]]:
        """Take *event*; yield the edges that it makes."""
        self.found.steps += 1
        try:
            after, effects = self.traced.step(state, event, self.config)
        except UnexpectedEvent:
            if (type(state.phase).__name__, type(event).__name__) in self.spec_cells:
                self.found.found("step refuses what the spec has a row for", place, event)
            return
        rows = self.traced.rows(state, event, self.config, after)
        if rows is None:
            self.found.found("step takes what the table has no row for", place, event)
            return
        edge = Edge(state, event, after, effects, tuple(rows), self.measured)
        for words in violations(edge, self.config):
            self.found.found(words, place, event)
        sign = tuple([taken.number for taken in rows])
        if self.signs[sign] < COMPARED:
            self.signs[sign] += 1
            for words in disagreement(edge, walk(self.index, state, event, self.config)):
                self.found.found(words, place, event)
        outcomes = []
        for taken in rows:
            self.taken[taken.number, type(taken.before.phase)] += 1
            outcomes.append(taken.row.outcome)
            if isinstance(taken.row.outcome, Continue):
                for words in self.matrix.watch(taken, self.config):
                    self.found.found(words, place, event)
        turn = Continue.NEXT_TURN in outcomes or isinstance(event, RunStarted)
        stutter = STUTTER.issuperset(outcomes)
        for number in self._meet(state.control, after, place, event):
            yield number, turn, stutter

    def _stray(self, place: int, state: State) -> None:
        """Feed what must be refused, what must change nothing, and one of all else."""
        phase = type(state.phase).__name__
        for event in misdirected(state, self.answers):
            if self._accepted(state, event):
                self.found.found("step takes an answer to what was never ordered", place, event)
        for event in late_answers(state):
            for _ in self._take(place, state, event):
                pass
            if not self._accepted(state, event):
                self.found.found("step refuses a late answer", place, event)
        for event in matching(state, self.answers):
            if self._accepted(state, event) != ((phase, type(event).__name__) in self.spec_cells):
                self.found.found("step and the spec differ on whether this can happen", place, event)

    def _accepted(self, state: State, event: Event) -> bool:
        try:
            step(state, event, self.config)
        except UnexpectedEvent:
            return False
        return True


def explore(
    piece: Slice,
    spec: Spec,
    matrix: Matrix | None = None,
    limit: int = 400_000,
    progress: Progress = lambda name, done, known: None,
) -> Exploration:
    """
    Explore *piece*.

    Args:
        piece: What is explored.
        spec: The second copy: it says which events can happen, and the matrix.
        matrix: Collects which cells of the matrix were told apart; a new one if None.
        limit: States at which the search gives up: what it found is incomplete then.
        progress: Called now and then with (name, states done, states known).
    """
    return Explorer(piece, spec, Matrix(spec) if matrix is None else matrix, limit, progress).run()


def is_over(key: Key) -> bool:
    """Return whether *key* is that of a finished run."""
    return bool(key[0] == Done.kind.value)
