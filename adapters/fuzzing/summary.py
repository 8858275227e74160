"""What a session came to: lines for a terminal, an object for programs, a page."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final

from stepfold.adapters.fuzzing.driver.machine import row_name
from stepfold.adapters.fuzzing.findings.found import Found
from stepfold.adapters.fuzzing.session import Total, Wanted
from stepfold.engine.table import TABLE

SHADES: Final = "·░▒▓█"  # never taken, then ever more often
PER_LINE: Final = 56


def shade(times: int) -> str:
    """Return one character for how often a row was taken: each shade is fifty times the one before."""
    return SHADES[0] if not times else SHADES[1 + min(3, len(str(times)) * 10 // 17)]


def picture(total: Total) -> list[str]:
    """Return the rows of the table as a picture, one character a row, in the order of the table."""
    marks = "".join(shade(total.rows.get(place, 0)) for place in range(len(TABLE)))
    return [marks[begin : begin + PER_LINE] for begin in range(0, len(marks), PER_LINE)]


def never_taken(total: Total) -> list[str]:
    """Return the names of the rows that no run took."""
    return [row_name(row) for place, row in enumerate(TABLE) if not total.rows.get(place)]


def progress(total: Total) -> str:
    """Return one line for a session that goes on."""
    return (
        f"{total.runs:,} runs, {total.runs_a_second:,.0f} a second; rows {len(total.rows)} of {len(TABLE)}, "
        f"ways {len(total.ways):,}; worst run {total.worst_calls} calls, cost {total.worst_cost:,}; "
        f"corpus {len(total.corpus):,}"
    )


def lines(total: Total, found: Iterable[Found]) -> list[str]:
    """Return the summary for people."""
    missing = never_taken(total)
    said = [
        progress(total),
        *picture(total),
        f"{SHADES[0]} never taken, {SHADES[1]} to {SHADES[-1]} more often",
    ]
    if missing:
        said.append(f"never taken: {'; '.join(missing[:6])}{'; ...' if len(missing) > 6 else ''}")
    if total.printed is not None:
        words, tape = total.printed
        said.append(f"the target prints, first {words!r} in the run {tape.hex()}")
    for each in found:
        said.append(f"FOUND {each.explanation()}")
    return said


def plain(wanted: Wanted, total: Total, found: Iterable[Found]) -> dict[str, object]:
    """Return the summary for programs."""
    return {
        "target": wanted.target or "engine",
        "seed": wanted.seed,
        "runs": total.runs,
        "steps": total.steps,
        "seconds": round(total.seconds, 2),
        "rows": len(total.rows),
        "rows_of": len(TABLE),
        "ways": len(total.ways),
        "worst_calls": total.worst_calls,
        "worst_cost": total.worst_cost,
        "corpus": len(total.corpus),
        "never_taken": never_taken(total),
        "prints": None if total.printed is None else total.printed[0],
        "findings": [each.json() for each in found],
    }


def page(wanted: Wanted, total: Total, found: Iterable[Found]) -> str:
    """Return the summary as a page of HTML that needs nothing else."""
    most = max(total.rows.values(), default=1)
    rows = "\n".join(
        f'<tr class="{"taken" if total.rows.get(place) else "never"}"><td>{html.escape(row_name(row))}</td>'
        f"<td>{total.rows.get(place, 0):,}</td>"
        f'<td><meter max="{most}" value="{total.rows.get(place, 0)}"></meter></td></tr>'
        for place, row in enumerate(TABLE)
    )
    findings = "\n".join(f"<p>{html.escape(each.explanation())}</p>" for each in found) or "<p>None.</p>"
    title = f"stepfold fuzz {wanted.target or 'engine'}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        "<style>body{font-family:sans-serif;max-width:70em;margin:2em auto}td{padding:.1em .6em}"
        ".never td{color:#b00}td:nth-child(2){text-align:right}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(progress(total))}</p>"
        f"<h2>Findings</h2>{findings}<h2>Rows of the table</h2><table>{rows}</table></html>\n"
    )
