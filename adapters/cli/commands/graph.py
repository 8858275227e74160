"""
``stepfold graph``: the machine as a Mermaid flow chart, drawn from the table.

The picture leaves out what would hide the way of a run: events that change
nothing, and the rows for a new process that takes up a log (``--full`` draws
them too).
"""

from __future__ import annotations

import json as jsons
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from stepfold.adapters.cli.exits import OK
from stepfold.engine.events import Resumed
from stepfold.engine.state import Continue, Entered
from stepfold.engine.table import ANY, JUNCTIONS, SAME, TABLE, Row
from stepfold.engine.terminals import Terminal

LEGEND: Final = """\
%% Boxes wait for the world; diamonds are left at once; round ends are the ten terminals.
%% Thick arrows are the seven continues. An arrow says: event, and the condition if there is one.\
"""
LEFT_OUT: Final = "%% Left out: what decides nothing, and what a new process does with an open log (--full)."
CLASSES: Final = (
    "classDef phase fill:#e8f0fe,stroke:#4a6fa5,color:#111",
    "classDef junction fill:#fff7e0,stroke:#b08900,color:#111",
    "classDef terminal fill:#f3f3f3,stroke:#777,color:#111",
)


@attrs.frozen(order=True)
class Arrow:
    """An arrow of the picture: all rows between two places, but one for each continue (else "")."""

    source: str
    target: str
    reason: str


def graph_command(*, full: bool, json: bool) -> int:
    """Print the machine."""
    print(rows_json(TABLE) if json else mermaid(TABLE, full=full))
    return OK


def rows_json(table: Sequence[Row]) -> str:
    """Return the rows, one JSON object a line, in the order in which they are tried."""
    return "\n".join(jsons.dumps(_row_data(row)) for row in table)


def mermaid(table: Sequence[Row], *, full: bool = False) -> str:
    """Return the picture; *full* draws every row."""
    arrows: dict[Arrow, list[str]] = {}
    for row in table:
        for source in _sources(row, full):
            reason = row.outcome.value if isinstance(row.outcome, Continue) else ""
            arrow = Arrow(source, _target(row, source), reason)
            if full or not _left_out(row, arrow):
                arrows.setdefault(arrow, []).append(_label(row))
    nodes = dict.fromkeys(name for arrow in arrows for name in (arrow.source, arrow.target))
    lines = [LEGEND] if full else [LEGEND, LEFT_OUT]
    lines += ["flowchart TD", *(f"    {_node(name)}" for name in nodes)]
    lines += [f"    {_drawn(arrow, labels)}" for arrow, labels in arrows.items()]
    lines += [f"    {each}" for each in CLASSES]
    return "\n".join(lines)


def _sources(row: Row, full: bool) -> tuple[str, ...]:
    if full and set(row.phases) == set(ANY):
        return ("AnyPhase",)
    return tuple(phase.__name__ for phase in row.phases)


def _target(row: Row, source: str) -> str:
    if isinstance(row.outcome, Terminal):
        return row.outcome.value
    return source if row.enters is SAME else row.enters.__name__


def _left_out(row: Row, arrow: Arrow) -> bool:
    return arrow.source == arrow.target or row.event is Resumed or row.enters is SAME


def _label(row: Row) -> str:
    words = [] if row.event is Entered else [row.event.__name__]
    if row.when.__name__ != "always":
        words.append(row.when.__name__.replace("_", " "))
    return ": ".join(words) or "else"


def _node(name: str) -> str:
    if name in set(Terminal):
        return f'{name}(["{name}"]):::terminal'
    if name in {phase.__name__ for phase in JUNCTIONS}:
        return f'{name}{{"{name}"}}:::junction'
    return f'{name}["{name}"]:::phase'


def _drawn(arrow: Arrow, labels: Iterable[str]) -> str:
    lines = [*dict.fromkeys(labels)]
    if arrow.reason:
        text = "<br/>".join((f"<b>{arrow.reason}</b>", *lines))
        return f'{arrow.source} ==>|"{text}"| {arrow.target}'
    label = "" if lines == ["else"] else f'|"{"<br/>".join(lines)}"|'
    return f"{arrow.source} -->{label} {arrow.target}"


def _row_data(row: Row) -> dict[str, Any]:
    return {
        "phases": [phase.__name__ for phase in row.phases],
        "event": row.event.__name__,
        "when": row.when.__name__,
        "outcome": str(row.outcome),
        "kind": type(row.outcome).__name__.lower(),
        "enters": "same" if row.enters is SAME else row.enters.__name__,
        "by": f"{row.by.__module__.rsplit('.', 1)[-1]}.{row.by.__name__}",
    }
