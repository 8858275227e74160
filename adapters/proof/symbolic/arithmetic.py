"""
The arithmetic of the machine, as data: the tables of ``specs/machine.toml`` behind the places of the measure.

Read as strictly as the rest: an unknown name in an expression, a row without
changes, a change of no row are errors that name file, line and key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from stepfold.adapters.proof.spec import ARITHMETIC, Spec, SpecRow
from stepfold.adapters.proof.symbolic.expressions import Expression, ExpressionError, read_expression
from stepfold.adapters.proof.toml_text import Misfit, Place, SpecError, dotted, line_of, read_toml

ANYTHING: Final = "?"
DONE: Final = "Done"
NEEDED: Final[tuple[Place, ...]] = (
    *((name,) for name in ARITHMETIC),
    ("domains", "given"),
    ("known", "in"),
    ("heights", "rank"),
    ("heights", "within"),
    ("progress", "falls"),
    ("progress", "rank"),
    ("progress", "within"),
    ("progress", "stutter"),
    ("progress", "endless"),
)


@attrs.frozen
class Number:
    """A whole number from ``low`` on (None: any); ``off`` says that it may be missing."""

    low: int | None = 0
    off: bool = False


@attrs.frozen
class Flag:
    """True or false."""


@attrs.frozen
class Words:
    """One of some names."""

    values: tuple[str, ...]


Domain = Number | Flag | Words


@attrs.frozen
class Change:
    """What a row does: new values, the counters that messages decide, and what holds of those."""

    values: Mapping[str, Expression]
    free: tuple[str, ...]
    where: tuple[Expression, ...]


@attrs.frozen
class Facts:
    """What an event says, and what is known when it comes (in names without ``event.``)."""

    domains: Mapping[str, Domain]
    given: Expression | None


@attrs.frozen
class Arithmetic:
    """
    Counters, limits, facts, conditions, changes, invariants, places.

    ``changes`` has one entry for each row that does not end the run.
    ``order`` is the finer order of each phase, without the places before
    ``rank``; the last of it may rise where a row stutters.  ``endless`` says
    when a row spends nothing because its limit is off.
    """

    counters: Mapping[str, Domain]
    limits: Mapping[str, Domain]
    given: tuple[Expression, ...]
    facts: Mapping[str, Facts]
    conditions: Mapping[str, Expression]
    changes: Mapping[SpecRow, Change]
    known: Mapping[str, Expression]
    known_in: Mapping[str, Expression]
    heights: tuple[Expression, ...]
    rank: Mapping[str, int]
    within: Mapping[str, Expression]
    order: Mapping[str, tuple[Expression, ...]]
    falls: frozenset[SpecRow]
    stutter: Mapping[SpecRow, Expression]
    endless: Mapping[SpecRow, Expression]

    def holding(self, phase: str) -> dict[str, Expression]:
        """Return the invariants in *phase*; none at rest, where nothing but a prompt comes."""
        if phase in ("Idle", DONE):
            return {}
        inside = {phase: self.known_in[phase]} if phase in self.known_in else {}
        return {**self.known, **inside}


def read_arithmetic(spec: Spec) -> Arithmetic:
    """Return the arithmetic of *spec*; raises ``SpecError``, one line: file, line, key, what is wrong."""
    try:
        return _Reader(spec).read()
    except Misfit as problem:
        text, _ = read_toml(spec.path)
        where = f"{spec.path}:{line_of(text, problem.place)}"
        raise SpecError(f"{where}: {dotted(problem.place)}: {problem}") from None


def rows_meant(spec: Spec, name: str) -> tuple[SpecRow, ...]:
    """Return the rows that *name* stands for: an outcome, or phase (or "any"), event and condition."""
    words = name.split()
    if len(words) != 3:
        return tuple(row for row in spec.rows if row.outcome == name)
    phase, event, condition = words
    return tuple(
        row
        for row in spec.rows
        if phase in ("any", row.phase) and (row.event, row.condition) == (event, condition)
    )


class _Reader:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.tables = spec.arithmetic
        for place in NEEDED:
            table: Any = self.tables
            for name in place:
                if not isinstance(table, Mapping) or not table.get(name):
                    raise Misfit(place, "is missing")
                table = table[name]
        self.counters = dict(_flat(("counters",), self.tables["counters"]))
        limits = {k: v for k, v in self.tables["domains"].items() if k != "given"}
        self.limits = dict(_flat(("domains",), limits))
        self.names = {*self.counters, *self.limits, *self.tables["conditions"]}
        self.facts = {name: self._facts(name, table) for name, table in self.tables["facts"].items()}

    def read(self) -> Arithmetic:
        """Return all of it, checked."""
        heights, progress, known = self.tables["heights"], self.tables["progress"], self.tables["known"]
        plain = {name: value for name, value in heights.items() if name not in ("rank", "within")}
        if (*plain, "rank", "within") != self.spec.places:
            raise Misfit(("heights",), f"wanted, in this order, {', '.join(self.spec.places)}")
        rank = {phase: self._whole(("heights", "rank", phase), n) for phase, n in heights["rank"].items()}
        self._phases(("heights", "rank"), rank, every=True)
        return Arithmetic(
            counters=self.counters,
            limits=self.limits,
            given=tuple(self._expressions(("domains", "given"), self.tables["domains"]["given"]).values()),
            facts=self.facts,
            conditions=self._conditions(),
            changes=self._changes(),
            known=self._expressions(("known",), {k: v for k, v in known.items() if k != "in"}),
            known_in=self._in_phases(("known", "in"), known["in"]),
            heights=tuple(self._expressions(("heights",), plain).values()),
            rank=rank,
            within=self._in_phases(("heights", "within"), heights["within"]),
            order=dict(self._order(progress, rank, heights["within"])),
            falls=self._falls(progress["falls"]),
            stutter=self._sometimes(progress["stutter"], "stutter"),
            endless=self._sometimes(progress["endless"], "endless"),
        )

    # ------------------------------------------------------------ parts

    def _facts(self, event: str, table: Mapping[str, Any]) -> Facts:
        place = ("facts", event)
        if event not in self.spec.events:
            raise Misfit(place, "there is no such event")
        domains = dict(_flat(place, {name: value for name, value in table.items() if name != "given"}))
        given = None
        if "given" in table:
            given = self._expression((*place, "given"), table["given"], set(domains))
        return Facts(domains, given)

    def _conditions(self) -> dict[str, Expression]:
        made = self._expressions(("conditions",), self.tables["conditions"], self._said(None))
        for row in self.spec.rows:
            if row.condition not in made:
                raise Misfit(("conditions", row.condition), "is missing")
            said = self._said(row.event)
            for name in self._reads(made, row.condition, ()):
                if name not in self.names and name not in said:
                    place = ("conditions", row.condition)
                    raise Misfit(place, f"{row.event} says no {name!r}")
        return made

    def _reads(self, made: Mapping[str, Expression], name: str, above: tuple[str, ...]) -> Iterator[str]:
        """Yield what condition *name* reads, through the words that it shares."""
        if name in above:
            raise Misfit(("conditions", name), "is told by itself")
        for inner in made[name].names | made[name].asked:
            if inner in made:
                yield from self._reads(made, inner, (*above, name))
            else:
                yield inner

    def _said(self, event: str | None) -> set[str]:
        """Return the names of the facts of *event*, of all events where it is None."""
        kinds = self.facts if event is None else [event] if event in self.facts else []
        return {f"event.{name}" for kind in kinds for name in self.facts[kind].domains}

    def _changes(self) -> dict[SpecRow, Change]:
        tables = self.tables["changes"]
        chosen: dict[SpecRow, str] = {}
        for size in (1, 3):  # the name of a row wins over its outcome, and a phase over "any"
            names = [name for name in tables if len(name.split()) == size]
            for name in sorted(names, key=lambda name: not name.startswith("any ")):
                for row in rows_meant(self.spec, name):
                    chosen[row] = name
        for row in self.spec.rows:
            if row.enters != DONE and row not in chosen:
                where = f"{row.phase} {row.event} {row.condition}"
                raise Misfit(("changes", where), f"is missing, and so is one for all {row.outcome!r}")
        likes = {name for table in tables.values() for name in self._likes(table)}
        for name in tables:
            if name not in chosen.values() and name not in likes:
                raise Misfit(("changes", name), "no row is meant by it")
        return {row: self._change(row, chosen[row]) for row in self.spec.rows if row.enters != DONE}

    def _likes(self, table: Mapping[str, Any]) -> list[str]:
        """Return the sets that *table* takes up: the name of one row, or of some sets."""
        text = str(table.get("like", ""))
        return [text] if text in self.tables["changes"] else text.split()

    def _change(self, row: SpecRow, name: str) -> Change:
        values, where = dict[str, Expression](), list[Expression]()
        free = dict[str, None]()
        for each in self._together(name, ()):
            for key, text in self.tables["changes"][each].items():
                place = ("changes", each, key)
                if key == "where":
                    news = {f"new.{counter}" for counter in self.counters}
                    where.append(self._expression(place, text, self._said(row.event) | news))
                elif key != "like" and key not in self.counters:
                    raise Misfit(place, "there is no such counter")
                elif text == ANYTHING:
                    values.pop(key, None)
                    free[key] = None
                elif key != "like":
                    free.pop(key, None)
                    values[key] = self._expression(place, text, self._said(row.event))
        return Change(values, tuple(free), tuple(where))

    def _together(self, name: str, above: tuple[str, ...]) -> Iterator[str]:
        """Yield the sets that make up *name*, itself last."""
        place = ("changes", name)
        if name not in self.tables["changes"] or name in above:
            raise Misfit(("changes", above[-1], "like"), f"{name!r} is no set, or takes up itself")
        if not isinstance(self.tables["changes"][name], dict):
            raise Misfit(place, "wanted a table")
        for each in self._likes(self.tables["changes"][name]):
            yield from self._together(each, (*above, name))
        yield name

    def _order(
        self, progress: Mapping[str, Any], rank: Mapping[str, int], within: Mapping[str, str]
    ) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        """Yield (phase, rank and what is within it), all of one length."""
        lists, ranks = progress["within"], progress["rank"]
        self._phases(("progress", "within"), lists)
        self._phases(("progress", "rank"), ranks)
        longest = max(len(each) for each in lists.values())
        for phase in self.spec.phases:
            parts = lists.get(phase, [within.get(phase, "0")])
            texts = [ranks.get(phase, str(rank[phase])), *parts[:-1]]
            texts += ["0"] * (longest - len(parts)) + parts[-1:]
            place = ("progress", "within", phase)
            yield phase, tuple(self._expression(place, text) for text in texts)

    def _falls(self, names: Any) -> frozenset[SpecRow]:
        if not isinstance(names, list):
            raise Misfit(("progress", "falls"), "wanted a list of names")
        found = {row for row in self.spec.rows if row.outcome in self.spec.matrix}
        for number, name in enumerate(names):
            rows = rows_meant(self.spec, str(name))
            if not rows:
                raise Misfit(("progress", "falls", number), f"no row is meant by {name!r}")
            found.update(rows)
        return frozenset(found)

    def _sometimes(self, table: Mapping[str, str], key: str) -> dict[SpecRow, Expression]:
        """Return when the rows that *table* names are let off."""
        found: dict[SpecRow, Expression] = {}
        for name, text in table.items():
            place = ("progress", key, name)
            rows = rows_meant(self.spec, name)
            if not rows:
                raise Misfit(place, "no row is meant by it")
            for row in rows:
                found[row] = self._expression(place, text, self._said(row.event))
        return found

    # ------------------------------------------------------------ expressions

    def _in_phases(self, place: Place, table: Mapping[str, Any]) -> dict[str, Expression]:
        self._phases(place, table)
        return self._expressions(place, table)

    def _phases(self, place: Place, table: Mapping[str, Any], every: bool = False) -> None:
        for phase in table:
            if phase not in self.spec.phases:
                raise Misfit((*place, phase), "there is no such phase")
        missing = [phase for phase in self.spec.phases if phase not in table]
        if every and missing:
            raise Misfit(place, f"{', '.join(missing)} is missing")

    def _expressions(
        self, place: Place, table: Mapping[str, Any], more: set[str] | None = None
    ) -> dict[str, Expression]:
        return {name: self._expression((*place, name), text, more) for name, text in table.items()}

    def _expression(self, place: Place, text: object, more: set[str] | None = None) -> Expression:
        if not isinstance(text, str):
            raise Misfit(place, f"{text!r} is not allowed; wanted an expression, a text")
        try:
            made = read_expression(text)
        except ExpressionError as problem:
            raise Misfit(place, str(problem)) from problem
        for name in sorted(made.names | made.asked):
            if name not in self.names and name not in (more or ()):
                raise Misfit(place, f"there is no {name!r} to read")
        return made

    def _whole(self, place: Place, value: object) -> int:
        if type(value) is not int:
            raise Misfit(place, f"{value!r} is not allowed; wanted a whole number")
        return value


def _flat(place: Place, table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Domain]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat((*place, name), value, f"{above}{name}.")
        else:
            yield f"{above}{name}", _domain((*place, name), value)


def _domain(place: Place, text: object) -> Domain:
    if not isinstance(text, str) or not text.split():
        raise Misfit(place, f"{text!r} is not allowed; wanted number, flag, any, a least value, or names")
    words = text.split()
    off = words[-1] == "off"
    match words[:-1] if off else words:
        case ["number"]:
            return Number(0, off)
        case ["any"]:
            return Number(None, off)
        case ["flag"]:
            return Flag()
        case [low] if low.isdigit():
            return Number(int(low), off)
    return Words(tuple(words))
