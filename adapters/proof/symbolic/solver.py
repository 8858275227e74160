"""
The proof by z3: every row, every value of every limit.

For each row, from any counters that the invariants allow: the invariants hold
again behind it, the measure is never negative, it falls with each continue,
request and second try, and the finer order falls, or the row is one that may
stutter.  For each phase and event: some row applies, and none is hidden
behind others, so exactly one applies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import z3  # type: ignore[import-untyped]

from stepfold.adapters.proof.spec import Cell, Spec, SpecRow
from stepfold.adapters.proof.symbolic.arithmetic import (
    DONE,
    Arithmetic,
    Domain,
    Flag,
    Number,
    Words,
)
from stepfold.adapters.proof.symbolic.expressions import Closed, Expression, Lookup, Thunk

SECONDS: Final = 20  # for one question; what takes longer is unknown, not proved
MODEL: Final = "model."  # names that hang on the current model
CURRENT: Final = "attempts.fallbacks"


class Symbols:
    """The algebra of z3's terms; a name of an enum is a number."""

    def __init__(self) -> None:
        self.words: dict[str, int] = {}

    def word(self, text: str) -> Any:
        """Return the number that stands for *text*."""
        return z3.IntVal(self.words.setdefault(text, len(self.words)))

    def number(self, value: int) -> Any:
        """Return the constant."""
        return z3.IntVal(value)

    def truth(self, value: bool) -> Any:
        """Return the constant."""
        return z3.BoolVal(value)

    def every(self, parts: list[Thunk]) -> Any:
        """Return the conjunction."""
        return z3.And([part() for part in parts])

    def some(self, parts: list[Thunk]) -> Any:
        """Return the disjunction."""
        return z3.Or([part() for part in parts])

    def negated(self, value: Any) -> Any:
        """Return the negation."""
        return z3.Not(value)

    def choice(self, condition: Any, then: Thunk, other: Thunk) -> Any:
        """Return the term that is one of the two."""
        return z3.If(condition, then(), other())

    def compared(self, sign: str, left: Any, right: Any) -> Any:
        """Return the comparison."""
        match sign:
            case "==":
                return left == right
            case "!=":
                return left != right
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
        return left >= right

    def reckoned(self, sign: str, left: Any, right: Any) -> Any:
        """Return the sum, or what stands for it."""
        match sign:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "max":
                return z3.If(left >= right, left, right)
        return -((-left) / right)  # division of z3 rounds down for a divisor > 0

    def on(self, value: Any) -> Any:
        """Return whether it is there: a flag of its own."""
        return value


class Proof:
    """All questions about one arithmetic, asked one after the other."""

    def __init__(self, spec: Spec, arithmetic: Arithmetic, seconds: int = SECONDS) -> None:
        self.spec = spec
        self.a = arithmetic
        self.symbols = Symbols()
        self.closed: dict[str, Closed] = {}
        self.limits, limits_hold = self._made("", arithmetic.limits)
        self.before, self.before_holds = self._made("", arithmetic.counters)
        self.after, self.after_holds = self._made("new.", arithmetic.counters)
        self.solver = z3.Solver()
        self.solver.set("timeout", seconds * 1000)
        self.solver.add([*limits_hold, *self.before_holds])
        self.solver.add([self.value(each, self.look(None)) for each in arithmetic.given])
        self.questions = self.unanswered = 0
        self.model: Any = None  # of the last claim that does not hold

    # ------------------------------------------------------------ symbols

    def _made(self, prefix: str, domains: Mapping[str, Domain]) -> tuple[dict[str, Any], list[Any]]:
        """Return a symbol for each name, and what its domain says of it."""
        symbols, holds = dict[str, Any](), list[Any]()
        for name, domain in domains.items():
            full = prefix + name
            match domain:
                case Flag():
                    symbols[name] = z3.Bool(full)
                case Words(values):
                    symbols[name] = z3.Int(full)
                    holds.append(z3.Or([symbols[name] == self.symbols.word(word) for word in values]))
                case Number(low, off):
                    symbols[name] = z3.Int(full)
                    if name.startswith(MODEL):  # of each model: a function of its place in the chain
                        symbols[name] = z3.Function(full, z3.IntSort(), z3.IntSort())
                    elif low is not None:
                        holds.append(symbols[name] >= low)
                    if off:
                        symbols[f"on {name}"] = z3.Bool(f"on {full}")
        return symbols, holds

    def look(self, event: Mapping[str, Any] | None, counters: Mapping[str, Any] | None = None) -> Lookup:
        """Return what names stand for: *counters* (those before the row), facts of *event*, limits, words."""
        now = self.before if counters is None else counters
        facts = {} if event is None else event

        def found(name: str) -> Any:
            for place in (now, facts, self.limits):
                if name in place:
                    value = place[name]
                    return value(now[CURRENT]) if name.startswith(MODEL) else value
            return self.value(self.a.conditions[name], found)

        return found

    def value(self, expression: Expression, look: Lookup) -> Any:
        """Return *expression* as a term."""
        if expression.text not in self.closed:
            self.closed[expression.text] = expression.close(self.symbols)
        return self.closed[expression.text](look)

    # ------------------------------------------------------------ questions

    def holds(self, claim: Any) -> bool:
        """Return whether *claim* follows; what z3 cannot tell does not."""
        self.questions += 1
        self.solver.push()
        self.solver.add(z3.Not(claim))
        answer = self.solver.check()
        self.model = self.solver.model() if answer == z3.sat else None
        self.solver.pop()
        return bool(answer == z3.unsat)

    def impossible(self) -> bool:
        """Return whether what is assumed cannot be so."""
        self.questions += 1
        return bool(self.solver.check() == z3.unsat)

    def cells(self, only: Collection[Cell] | None = None) -> Iterator[tuple[SpecRow, list[str]]]:
        """Yield each row with what fails of it; those of *only* these phases and events, where given."""
        for (phase, event), rows in self.spec.cells().items():
            if only is not None and (phase, event) not in only:
                continue
            facts, facts_hold = self._facts(event)
            self.solver.push()
            self.solver.add(facts_hold)
            look = self.look(facts)
            self.solver.add([self.value(each, look) for each in self.a.holding(phase).values()])
            conditions = [self.value(self.a.conditions[row.condition], look) for row in rows]
            some = self.holds(z3.Or(conditions))
            for row, condition in zip(rows, conditions, strict=True):
                self.solver.push()
                self.solver.add(condition)
                failing = [] if some else ["some row of this phase and event applies: not always"]
                yield row, failing + list(self._row(row, facts))
                self.solver.pop()
                self.solver.add(z3.Not(condition))
            self.solver.pop()

    def _facts(self, event: str) -> tuple[dict[str, Any], list[Any]]:
        if event not in self.a.facts:
            return {}, []
        facts = self.a.facts[event]
        symbols, holds = self._made("event.", facts.domains)
        named = {}
        for name, symbol in symbols.items():
            bare = name.removeprefix("on ")
            named[f"event.{bare}" if bare == name else f"on event.{bare}"] = symbol
        if facts.given is not None:
            holds.append(self.value(facts.given, self.look({**named, **symbols})))
        return named, holds

    def _row(self, row: SpecRow, facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield what fails of *row*, whose condition is assumed."""
        if self.impossible():
            yield "a row that can be taken: never, the rows before it take all"
            return
        if row.enters == DONE:
            return
        change, look = self.a.changes[row], self.look(facts)
        now: dict[str, Any] = dict(self.before)
        for name, expression in change.values.items():
            now[name] = self.value(expression, look)
        for name in change.free:
            now[name] = self.after[name]
        self.solver.push()
        self.solver.add(self.after_holds)
        chosen = {**{f"new.{name}": value for name, value in now.items()}, **facts}
        self.solver.add([self.value(each, self.look(chosen)) for each in change.where])
        yield from self._claims(row, facts, now)
        self.solver.pop()

    def _claims(self, row: SpecRow, facts: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
        into = row.phase if row.enters == "same" else row.enters
        for name, claim in self._invariants(into, now):
            if not self.holds(claim):
                yield f"{name} holds again in {into}: {self._told(row)}"
        if row.phase in self.spec.at_rest:
            return  # no run, or a new one: nothing is spent
        look, old, new = self.look(facts), self._measure(row.phase, self.before), self._measure(into, now)
        if not self.holds(z3.And([place >= 0 for place in new])):
            yield f"the measure is never negative: {self._told(row)}"
        still, endless = (
            self.value(table[row], look) if row in table else z3.BoolVal(False)
            for table in (self.a.stutter, self.a.endless)
        )
        if row in self.a.falls and not self.holds(z3.Or(endless, falling(old, new, strict=True))):
            yield f"the measure falls: {self._told(row)}"
        old, new = self._order(row.phase, self.before), self._order(into, now)
        idle = z3.And(still, falling(old[:-1], new[:-1], strict=False))
        if not self.holds(z3.Or(endless, idle, falling(old, new, strict=True))):
            yield f"the finer order falls: {self._told(row)}"

    def _invariants(self, phase: str, now: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield (name, claim): the domains first, that no number is negative."""
        numbers = [now[n] >= 0 for n, domain in self.a.counters.items() if isinstance(domain, Number)]
        yield "every number", z3.And(numbers)
        look = self.look(None, now)
        for name, expression in self.a.holding(phase).items():
            yield f"the invariant {name!r}", self.value(expression, look)

    def _measure(self, phase: str, now: Mapping[str, Any]) -> list[Any]:
        look = self.look(None, now)
        places = [self.value(each, look) for each in self.a.heights]
        inside = self.value(self.a.within[phase], look) if phase in self.a.within else z3.IntVal(0)
        return [*places, z3.IntVal(self.a.rank[phase]), inside]

    def _order(self, phase: str, now: Mapping[str, Any]) -> list[Any]:
        look = self.look(None, now)
        return [self.value(each, look) for each in (*self.a.heights, *self.a.order[phase])]

    def _told(self, row: SpecRow) -> str:
        """Return the counterexample in short: what the condition and the changes of *row* read, before it."""
        if self.model is None:
            self.unanswered += 1
            return f"unknown, z3 gave up after {SECONDS} s"
        change = self.a.changes[row]
        read = self._read(self.a.conditions[row.condition]) | set(change.values)
        for expression in (*change.values.values(), *change.where):
            read |= self._read(expression)
        said = []
        for declared in sorted(self.model.decls(), key=lambda each: str(each.name())):
            if declared.arity() == 0 and declared.name() in read:
                said.append(f"{declared.name()} = {self._word(declared.name(), self.model[declared])}")
        return ", ".join(said)

    def _read(self, expression: Expression) -> set[str]:
        """Return the names that *expression* reads, those in the words that it uses too."""
        found = set[str]()
        for name in expression.names | expression.asked:
            found |= self._read(self.a.conditions[name]) if name in self.a.conditions else {name}
        return found

    def _word(self, name: str, value: Any) -> str:
        """Return *value* as people write it: the name of an enum, else the number or flag."""
        facts = {f"event.{n}": d for facts in self.a.facts.values() for n, d in facts.domains.items()}
        if isinstance({**facts, **self.a.counters}.get(name), Words):
            for word, number in self.symbols.words.items():
                if str(number) == str(value):
                    return word
        return str(value).lower()


def falling(old: Sequence[Any], new: Sequence[Any], strict: bool) -> Any:
    """Return the claim that *new* is before *old* in lexicographic order, or may be the same."""
    claim = z3.BoolVal(not strict)
    for before, after in reversed(list(zip(old, new, strict=True))):
        if not before.eq(after):
            claim = z3.Or(after < before, z3.And(after == before, claim))
    return claim
