"""
The arithmetic held against the engine, by execution, in the states of the explorations.

For every row of the shipped table that an event takes: each condition of its
phase and event, what is known before and behind it, each counter that it
changes or leaves, and each place of the measure.  Without this the proof
would be one about a copy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from stepfold.adapters.proof.canonical import controls_of, key_of, phase_of, tiny
from stepfold.adapters.proof.environment import events_of, late_answers
from stepfold.adapters.proof.explore import Progress, Slice, words_of
from stepfold.adapters.proof.spec import Spec, SpecRow
from stepfold.adapters.proof.symbolic.arithmetic import DONE, Arithmetic, Change
from stepfold.adapters.proof.symbolic.expressions import Closed, Expression, Lookup, Plain
from stepfold.adapters.proof.symbolic.views import counters_of, facts_of, fits, limits_of, schedule_of
from stepfold.adapters.proof.walk import Taken, indexed, walk
from stepfold.engine.config import Config
from stepfold.engine.events import BlockCompleted, Event
from stepfold.engine.measure import PLACES, measure
from stepfold.engine.messages import ToolUse
from stepfold.engine.state import State
from stepfold.engine.table import TABLE, Row

STATES_MAX: Final = 400  # of one exploration
ENOUGH: Final = 15  # times that one row is compared in one phase of one exploration
TOLD: Final = 2  # ways of one difference that are kept
EVERY: Final = 500  # states between two calls of the progress callback


@attrs.define
class Executed:
    """How often each row was compared, by (place in the table, phase), and what differs."""

    compared: Counter[tuple[int, str]] = attrs.Factory(Counter)
    findings: list[str] = attrs.Factory(list)
    told: Counter[str] = attrs.Factory(Counter)

    def found(self, words: str, taken: Taken, event: Any) -> None:
        """Keep a difference; the first few ways are enough for each."""
        self.told[words.split(":")[0]] += 1
        if self.told[words.split(":")[0]] <= TOLD:
            phase = type(taken.before.phase).__name__
            self.findings.append(f"{phase}, {words_of(event)}, {taken.row.when.__name__}: {words}")


class Comparison:
    """The arithmetic as functions of real states."""

    def __init__(self, spec: Spec, arithmetic: Arithmetic, table: tuple[Row, ...] = TABLE) -> None:
        self.a = arithmetic
        self.answers = dict(spec.answers)
        self.rows: dict[tuple[str, str, str], SpecRow] = {
            (row.phase, row.event, row.condition): row for row in spec.rows
        }
        self.index = indexed(table)
        self.cells: defaultdict[tuple[type, type], list[Row]] = defaultdict(list)
        for row in table:
            for phase in row.phases:
                self.cells[phase, row.event].append(row)
        self.closed: dict[str, Closed] = {}

    def value(self, expression: Expression, look: Lookup) -> Any:
        """Return *expression* in whatever *look* says."""
        closed = self.closed.get(expression.text)
        if closed is None:
            closed = self.closed[expression.text] = expression.close(Plain())
        return closed(look)

    def look(self, *places: dict[str, Any]) -> Lookup:
        """Return what names stand for: the first of *places* that has them, else a condition."""

        def found(name: str) -> Any:
            name = name.removeprefix("on ")
            for place in places:
                if name in place:
                    return place[name]
            return self.value(self.a.conditions[name], found)

        return found

    def differences(self, taken: Taken, event: Any, config: Config) -> Iterator[str]:
        """Yield where the row that was taken and the arithmetic differ."""
        before, phase = taken.before, type(taken.before.phase).__name__
        fact = event if taken.row.event is type(event) else None
        counters = counters_of(before.control, schedule_of(before))
        limits = limits_of(config, before.control.attempts.fallbacks)
        facts = {} if fact is None else facts_of(fact, before, config)
        said = {f"event.{name}": value for name, value in facts.items()}
        look = self.look(counters, said, limits)
        yield from self._conditions(taken, fact, config, look)
        if fact is not None and taken.row.event.__name__ in self.a.facts:
            yield from self._facts(taken.row.event.__name__, facts, self.look(facts, counters, limits))
        for number, given in enumerate(self.a.given):
            if not self.value(given, look):
                yield f"what is known of every config, {number + 1}: it does not hold"
        for name, expression in self.a.holding(phase).items():
            if not self.value(expression, look):
                yield f"the invariant {name!r} in {phase}: it does not hold"
        row = self.rows[phase, taken.row.event.__name__, taken.row.when.__name__]
        if row.enters != DONE:
            yield from self._changes(self.a.changes[row], taken, counters, said, limits)
        yield from self._places(taken.after, config)

    def _conditions(self, taken: Taken, fact: Any, config: Config, look: Lookup) -> Iterator[str]:
        control = taken.before.control
        for row in self.cells[type(taken.before.phase), taken.row.event]:
            name = row.when.__name__
            engine, ours = row.when(control, fact, config), self.value(self.a.conditions[name], look)
            if bool(engine) is not bool(ours):
                yield f"the condition {name}: the engine says {engine}, the spec {ours}"

    def _facts(self, event: str, facts: dict[str, Any], look: Lookup) -> Iterator[str]:
        known = self.a.facts[event]
        for name, domain in known.domains.items():
            if not fits(facts[name], domain):
                yield f"the fact {name} of {event}: {facts[name]!r} is none that it may say"
        if known.given is not None and not self.value(known.given, look):
            yield f"what is known when {event} comes: it does not hold"

    def _changes(
        self, change: Change, taken: Taken, before: dict[str, Any], *more: dict[str, Any]
    ) -> Iterator[str]:
        after = counters_of(taken.after.control, schedule_of(taken.after))
        look = self.look({f"new.{name}": value for name, value in after.items()}, before, *more)
        for name, domain in self.a.counters.items():
            wanted = after[name]
            if name in change.values:
                wanted = self.value(change.values[name], look)
            elif name not in change.free:
                wanted = before[name]
            if after[name] != wanted:
                old, new = before[name], after[name]
                yield f"the change of {name}: the engine makes {new} of {old}, the spec {wanted}"
            if not fits(after[name], domain):
                yield f"the counter {name}: {after[name]!r} is no value of it"
        for expression in change.where:
            if not self.value(expression, look):
                yield f"what messages may decide: it does not hold that {expression.text}"

    def _places(self, state: State, config: Config) -> Iterator[str]:
        phase, control = type(state.phase).__name__, state.control
        look = self.look(counters_of(control), limits_of(config, control.attempts.fallbacks))
        places = [self.value(each, look) for each in self.a.heights]
        inside = self.a.within.get(phase)
        ours = (*places, self.a.rank[phase], 0 if inside is None else self.value(inside, look))
        for name, engine, spec in zip(PLACES, measure(control, config), ours, strict=True):
            if engine != spec:
                yield f"the place {name} of the measure: the engine says {engine}, the spec {spec}"


def executed(
    slices: Iterable[Slice],
    comparison: Comparison,
    states: int = STATES_MAX,
    told: Progress = lambda name, done, known: None,
    enough: int = ENOUGH,
) -> Executed:
    """
    Compare row by row in the first states of each exploration.

    Args:
        slices: The explorations.
        comparison: The arithmetic, held against one table.
        states: How many states of each.
        told: Called now and then with (exploration, states done, states known).
        enough: How often one row is compared in one phase of one exploration.
    """
    result = Executed()
    for piece in slices:
        seen = Counter[tuple[int, str]]()
        for taken, event in _rows(piece, comparison, states, told):
            sign = (taken.number, type(taken.before.phase).__name__)
            seen[sign] += 1
            if seen[sign] <= enough:
                result.compared[sign] += 1
                for words in comparison.differences(taken, event, piece.config):
                    result.found(words, taken, event)
    return result


def _rows(piece: Slice, comparison: Comparison, states: int, told: Progress) -> Iterator[tuple[Taken, Event]]:
    """Yield the rows that are taken in the first *states* of *piece*, breadth first."""
    quotient = piece.quotient()
    waiting, known = list(piece.starts()), set[tuple[Any, ...]]()
    for place, state in enumerate(waiting):
        if place % EVERY == 0:
            told(piece.name, place, len(waiting))
        for event in (*events_of(state, piece.world), *_repeated(state), *late_answers(state)):
            rows = walk(comparison.index, state, event, piece.config)
            if rows is None:
                continue
            yield from ((taken, event) for taken in rows)
            if len(waiting) >= states:
                continue
            after = rows[-1].after
            phase = phase_of(after, quotient)
            for control in controls_of(state.control, after.control, piece.config, quotient):
                key = key_of(control, phase, after.data, piece.config, quotient)
                if key not in known:
                    known.add(key)
                    waiting.append(State(control, phase, tiny(after.data, quotient)))


def _repeated(state: State) -> Iterator[Event]:
    """Yield the first call of an answer that streams in once more."""
    reply = getattr(state.phase, "reply", None)
    if reply is None or not reply.schedule.calls or not state.control.batch.streaming:
        return
    call = reply.schedule.calls[0]
    use = call.use
    again = ToolUse(call.original_id, use.name, use.input, use.extra)
    yield BlockCompleted(reply.call_id, again, call.facts)
