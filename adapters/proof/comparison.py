"""
The second copy held against the engine: rows, limits, terminals, events, measure; both ways.

Each function returns one line a difference, which names both sides.  The
matrix is compared by execution, in ``matrix``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import attrs

from stepfold.adapters.proof.spec import Cell, Spec, SpecRow
from stepfold.engine.config import Config, ModelSpec, thresholds_of
from stepfold.engine.events import Event
from stepfold.engine.measure import PLACES
from stepfold.engine.state import Continue, Entered, Late, Outcome
from stepfold.engine.table import ANY, AT_REST, JUNCTIONS, SAME, TABLE, Row
from stepfold.engine.terminals import Completed, End, Ending, Limit, Terminal

NUMBERS: Final = ("int", "int | None", int, int | None)  # texts until somebody resolves them


def differences(spec: Spec, table: Sequence[Row] = TABLE, config: Config | None = None) -> list[str]:
    """Return how *spec* differs from *table*, the defaults of *config* and the payloads of the engine."""
    return [
        *_sets(spec),
        *row_differences(spec, table),
        *_limits(spec, Config() if config is None else config),
        *_terminals(spec),
        *_continues(spec, table),
        *_differ("the places of the measure", spec.places, PLACES),
    ]


def row_differences(spec: Spec, table: Sequence[Row]) -> Iterator[str]:
    """Return how the rows differ, cell by cell, order included."""
    ours, theirs = spec.cells(), table_cells(table)
    for cell in [*ours, *(cell for cell in theirs if cell not in ours)]:
        yield from _cell(spec, cell, ours.get(cell, ()), theirs.get(cell, ()))


def table_cells(table: Iterable[Row]) -> dict[Cell, tuple[str, ...]]:
    """Return the rows of each (phase, event) of the table, in order, in the words of ``spec_words``."""
    found: dict[Cell, tuple[str, ...]] = {}
    for row in table:
        enters = "same" if row.enters is SAME else row.enters.__name__
        for phase in row.phases:
            # A row that names its own phase and one that says "same" are one row.
            into = phase.__name__ if enters == "same" else enters
            cell = (phase.__name__, row.event.__name__)
            words = f"{row.when.__name__} -> {kind_of(row.outcome)}{row.outcome}, {into}"
            found[cell] = (*found.get(cell, ()), words)
    return found


def kind_of(outcome: Outcome) -> str:
    """Return a mark that tells a terminal or a continue from a reason of the same name."""
    match outcome:
        case Terminal():
            return "end:"
        case Continue():
            return "again:"
        case _:
            return ""


def spec_words(spec: Spec, row: SpecRow) -> str:
    """Return *row* in the words of ``table_cells``."""
    mark = "end:" if row.outcome in spec.terminals else "again:" if row.outcome in spec.matrix else ""
    into = row.phase if row.enters == "same" else row.enters
    return f"{row.condition} -> {mark}{row.outcome}, {into}"


def _cell(spec: Spec, cell: Cell, ours: Sequence[SpecRow], theirs: Sequence[str]) -> Iterator[str]:
    for place in range(max(len(ours), len(theirs))):
        mine = spec_words(spec, ours[place]) if place < len(ours) else None
        other = theirs[place] if place < len(theirs) else None
        if mine != other:
            line = f"line {ours[place].line} of {spec.path.name}" if mine else spec.path.name
            yield (
                f"{cell[0]}, {cell[1]}, row {place + 1}: {line} says {mine or 'no such row'};"
                f" the table says {other or 'no such row'}"
            )
            return


def _sets(spec: Spec) -> Iterator[str]:
    yield from _differ("phases at rest", spec.at_rest, tuple(p.__name__ for p in AT_REST))
    yield from _differ("phases of a run", {*spec.at_rest, *spec.alive}, {p.__name__ for p in ANY})
    yield from _differ("junctions", set(spec.junctions), {p.__name__ for p in JUNCTIONS})
    events = {kind.__name__ for kind in get_args(Event)} | {Entered.__name__, Late.__name__}
    yield from _differ("events", set(spec.events), events)
    answers = {kind.__name__ for kind in get_args(Event) if "effect_id" in _field_names(kind)}
    yield from _differ("answers", set(spec.answers), answers)


def _limits(spec: Spec, config: Config) -> Iterator[str]:
    numbers = {
        field.name: getattr(config, field.name)
        for field in attrs.fields(Config)
        if field.init and field.type in NUMBERS
    }
    for key in [*spec.limits, *(key for key in numbers if key not in spec.limits)]:
        mine = spec.limits.get(key, "no such limit")
        yield from _differ(f"limits.{key}", mine, numbers.get(key, "no such limit"))
    made = thresholds_of(ModelSpec("m", config.context_window_tokens, config.model_max_output_tokens))
    yield from _differ("thresholds", dict(spec.thresholds), attrs.asdict(made))


def _terminals(spec: Spec) -> Iterator[str]:
    payloads = {kind.reason.value: _field_names(kind) for kind in get_args(End)}
    for reason in [*spec.terminals, *(each for each in payloads if each not in spec.terminals)]:
        mine = spec.terminals.get(reason, "no such terminal")
        yield from _differ(f"terminals.{reason}", mine, payloads.get(reason, "no such terminal"))
    yield from _differ("terminals", set(spec.terminals), {each.value for each in Terminal})
    sound = {each.value for each in Ending if Completed(each).ok}
    yield from _differ("endings.ok", set(spec.endings_ok), sound)
    yield from _differ("endings.not_ok", set(spec.endings_not_ok), {each.value for each in Ending} - sound)
    yield from _differ("blocked_by.limits", set(spec.blocked_by), {each.value for each in Limit})


def _continues(spec: Spec, table: Sequence[Row]) -> Iterator[str]:
    yield from _differ("continues", set(spec.matrix), {each.value for each in Continue})
    used = {str(row.outcome) for row in table if isinstance(row.outcome, Continue | Terminal)}
    named = {row.outcome for row in spec.rows} & {*spec.matrix, *spec.terminals}
    yield from _differ("reasons that have a row", named, used)
    for reason, place in spec.spends.items():
        if place not in spec.places:
            yield f"continues.{reason}.spends: {place!r} is no place of the measure"


def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind))


def _differ(what: str, ours: object, theirs: object) -> Iterator[str]:
    if ours != theirs:
        yield f"{what}: the spec says {_words(ours)}; the engine says {_words(theirs)}"


def _words(value: object) -> str:
    match value:
        case set():
            return ", ".join(sorted(value))
        case tuple():
            return ", ".join(map(str, value)) or "nothing"
        case Mapping():
            return ", ".join(f"{key} {each}" for key, each in value.items())
        case None:
            return "off"
    return str(value)
