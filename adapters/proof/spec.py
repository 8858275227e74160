"""
The second copy of the machine, ``specs/machine.toml``, as data.

It is written by hand from the specification and read strictly: an unknown
key, a missing one, a row that names a phase that is not listed are errors
that name file, line and key.  ``comparison`` holds it against the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from stepfold.adapters.proof.toml_text import Misfit, Place, SpecError, dotted, line_of, read_toml

SHIPPED: Final = Path(__file__).parent / "machine.toml"
FORMAT: Final = 1
TABLES: Final = (
    "machine",
    "phases",
    "events",
    "parts",
    "continues",
    "terminals",
    "endings",
    "blocked_by",
    "limits",
    "thresholds",
    "measure",
)
ARITHMETIC: Final = (
    "counters",
    "domains",
    "facts",
    "conditions",
    "changes",
    "known",
    "heights",
    "progress",
)
FIELDS: Final = (
    "messages",
    "compaction",
    "output_recoveries",
    "reactive_compacted",
    "output_limit_override",
    "pending_tool_summary",
    "stop_hook_active",
    "turn",
    "tool_context",
    "ledgers",
)
OFF: Final = "off"
Cell: TypeAlias = tuple[str, str]


@attrs.frozen
class SpecRow:
    """One row for one phase; ``line`` is where it stands in the file."""

    phase: str
    event: str
    condition: str
    outcome: str
    enters: str
    line: int


@attrs.frozen
class Spec:
    """
    What the file says.

    ``rows`` stand in the order of the file, one for each phase they name.
    ``matrix`` is {continue: {field: word}}, ``terminals`` {reason: payload
    fields}, ``limits`` {key of Config: default, None where it is off}.
    ``arithmetic`` holds the tables of the symbolic proof.
    """

    path: Path
    at_rest: tuple[str, ...]
    alive: tuple[str, ...]
    junctions: tuple[str, ...]
    answers: Mapping[str, str]
    events: tuple[str, ...]
    rows: tuple[SpecRow, ...]
    matrix: Mapping[str, Mapping[str, Any]]
    spends: Mapping[str, str]
    terminals: Mapping[str, tuple[str, ...]]
    endings_ok: tuple[str, ...]
    endings_not_ok: tuple[str, ...]
    blocked_by: tuple[str, ...]
    limits: Mapping[str, int | None]
    thresholds: Mapping[str, int]
    places: tuple[str, ...]
    arithmetic: Mapping[str, Mapping[str, Any]]

    @property
    def phases(self) -> tuple[str, ...]:
        """Every phase, junctions too."""
        return (*self.at_rest, *self.alive, *self.junctions)

    def cells(self) -> dict[Cell, tuple[SpecRow, ...]]:
        """Return the rows of each (phase, event), in order."""
        found: dict[Cell, tuple[SpecRow, ...]] = {}
        for row in self.rows:
            found[row.phase, row.event] = (*found.get((row.phase, row.event), ()), row)
        return found


def read_spec(path: Path = SHIPPED) -> Spec:
    """Read the spec at *path*; raises ``SpecError``, one line: file, line, key, what is wanted."""
    text, data = read_toml(path)
    try:
        return _spec(path, text, data)
    except Misfit as problem:
        where = f"{path}:{line_of(text, problem.place)}"
        raise SpecError(f"{where}: {dotted(problem.place)}: {problem}") from None


def _spec(path: Path, text: str, data: Mapping[str, Any]) -> Spec:
    _keys((), data, TABLES, ARITHMETIC)
    for name in (*TABLES, *ARITHMETIC):
        if name in data and name != "parts" and not isinstance(data[name], dict):
            raise Misfit((name,), "wanted a table")
    _keys(("machine",), data["machine"], ("format", "specification"))
    if data["machine"]["format"] != FORMAT:
        raise Misfit(("machine", "format"), f"{data['machine']['format']!r} is not known; wanted {FORMAT}")
    _keys(("phases",), data["phases"], ("at_rest", "alive", "junctions"))
    _keys(("events",), data["events"], ("inner", "free", "answers"))
    groups = {name: _names(("phases", name), value) for name, value in data["phases"].items()}
    answers = _texts(("events", "answers"), data["events"]["answers"])
    listed = [_names(("events", name), data["events"][name]) for name in ("inner", "free")]
    events = (*listed[0], *listed[1], *answers)
    continues, terminals = data["continues"], data["terminals"]
    for reason, table in continues.items():
        _keys(("continues", reason), table, ("spends", *FIELDS))
    _keys(("endings",), data["endings"], ("ok", "not_ok"))
    _keys(("blocked_by",), data["blocked_by"], ("limits",))
    _keys(("measure",), data["measure"], ("places",))
    return Spec(
        path=path,
        at_rest=groups["at_rest"],
        alive=groups["alive"],
        junctions=groups["junctions"],
        answers=answers,
        events=events,
        rows=tuple(_rows(text, data["parts"], groups, events)),
        matrix={reason: {name: table[name] for name in FIELDS} for reason, table in continues.items()},
        spends={reason: table["spends"] for reason, table in continues.items()},
        terminals={reason: _payload(reason, table) for reason, table in terminals.items()},
        endings_ok=_names(("endings", "ok"), data["endings"]["ok"]),
        endings_not_ok=_names(("endings", "not_ok"), data["endings"]["not_ok"]),
        blocked_by=_names(("blocked_by", "limits"), data["blocked_by"]["limits"]),
        limits={key: _limit(("limits", key), value) for key, value in data["limits"].items()},
        thresholds={key: _whole(("thresholds", key), value) for key, value in data["thresholds"].items()},
        places=_names(("measure", "places"), data["measure"]["places"]),
        arithmetic={name: data.get(name, {}) for name in ARITHMETIC},
    )


def _rows(
    text: str, parts: object, groups: Mapping[str, tuple[str, ...]], events: tuple[str, ...]
) -> Iterator[SpecRow]:
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise Misfit(("parts",), "wanted tables: write [[parts]]")
    every = (*groups["at_rest"], *groups["alive"], *groups["junctions"])
    sets = {**groups, "any": (*groups["at_rest"], *groups["alive"]), **{name: (name,) for name in every}}
    for number, part in enumerate(parts):
        _keys(("parts", number), part, ("title", "sections", "rows"))
        for place, row in enumerate(part["rows"]):
            where: Place = ("parts", number, "rows", place)
            if not isinstance(row, list) or len(row) != 5 or not all(isinstance(each, str) for each in row):
                raise Misfit(where, f"{row!r}; wanted five texts: phases, event, condition, outcome, enters")
            phases, event, condition, outcome, enters = row
            if event not in events:
                raise Misfit(where, f"there is no event {event!r}; wanted one of {', '.join(events)}")
            if enters != "same" and enters not in every:
                raise Misfit(where, f"there is no phase {enters!r}; wanted same, {', '.join(every)}")
            line = line_of(text, where)
            for name in phases.split() or [""]:
                if name not in sets:
                    raise Misfit(where, f"there is no phase {name!r}; phases are {', '.join(sets)}")
                for phase in sets[name]:
                    yield SpecRow(phase, event, condition, outcome, enters, line)


def _payload(reason: str, table: object) -> tuple[str, ...]:
    if not isinstance(table, dict):
        raise Misfit(("terminals", reason), "wanted { when = ..., payload = [...] }")
    _keys(("terminals", reason), table, ("when", "payload"))
    return _names(("terminals", reason), table["payload"])


def _limit(place: Place, value: object) -> int | None:
    return None if value == OFF else _whole(place, value, f', or "{OFF}"')


def _whole(place: Place, value: object, more: str = "") -> int:
    if type(value) is not int:
        raise Misfit(place, f"{value!r} is not allowed; wanted a whole number{more}")
    return value


def _names(place: Place, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Misfit(place, f"{value!r} is not allowed; wanted a list of names")
    twice = {name for name in value if value.count(name) > 1}
    if twice:
        raise Misfit(place, f"{', '.join(sorted(twice))} stands in it twice")
    return tuple(value)


def _texts(place: Place, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise Misfit(place, "wanted a table of names")
    return dict(value)


def _keys(
    place: Place, table: Mapping[str, Any], needed: tuple[str, ...], allowed: tuple[str, ...] = ()
) -> None:
    for key in table:
        if key not in needed and key not in allowed:
            known = ", ".join((*needed, *allowed))
            raise Misfit((*place, key), f"there is no such key; allowed are {known}")
    for key in needed:
        if key not in table:
            raise Misfit((*place, key), "is missing")
