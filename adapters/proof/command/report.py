"""The answer of ``stepfold prove``: tables for people, one JSON object a line for programs."""

from __future__ import annotations

import json as jsons
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

import attrs
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from stepfold.adapters.proof.verdict import Check, Summary
from stepfold.adapters.proof.worst.answer import NAMES
from stepfold.adapters.proof.worst.quantities import PRICE_UNIT, Maximum, Quantity, Sure

WIDTH: Final = 110
SECONDS_PER_HOUR: Final = 3_600


@attrs.define
class Report:
    """
    Where the answer goes.

    Progress goes to ``err``, and only to a terminal.
    """

    out: TextIO
    err: TextIO
    json: bool
    _progress: Progress | None = None
    _tasks: dict[str, TaskID] = attrs.field(factory=dict)

    def line(self, words: str, **facts: Any) -> None:
        """Print *words*, or *facts* as one JSON object; either may be left out."""
        if self.json and facts:
            print(jsons.dumps(facts), file=self.out, flush=True)
        elif not self.json and words:
            print(words, file=self.out, flush=True)

    def told(self, name: str, done: int, known: int) -> None:
        """Show how far a check is, on a terminal; *known* 0: nobody knows how much there is."""
        self._show_progress("here", name, done, known)

    def told_beside(self, name: str, done: int, known: int) -> None:
        """Show how far a check of another process is."""
        self._show_progress(name.split(":")[0], name, done, known)

    def _show_progress(self, line: str, name: str, done: int, known: int) -> None:
        if not self.err.isatty():
            return
        if self._progress is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}"))
            console = Console(file=self.err)
            self._progress = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
            self._progress.start()
        if line not in self._tasks:
            self._tasks[line] = self._progress.add_task(name)
        task = self._tasks[line]
        self._progress.update(task, description=name, completed=done, total=known or None)

    def cleared(self) -> None:
        """Take the progress away."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = None
        self._tasks.clear()

    def exploration(self, one: Summary) -> None:
        """Tell of one exploration, when it is done."""
        self.cleared()
        more = "" if one.complete else ", UNKNOWN: the bound was hit"
        words = f"  {one.name:14} {one.states:7} states {one.steps:8} steps  {one.about}{more}"
        facts = {"states": one.states, "steps": one.steps, "complete": one.complete, "digest": one.digest}
        self.line(words, exploration=one.name, **facts)

    def check(self, one: Check) -> None:
        """Tell of one check, when it is done; people see all that it says together with the others."""
        self.cleared()
        facts = {"status": one.status.value, "about": one.words, "findings": list(one.findings)}
        self.line(f"{one.name}: {one.status}", check=one.name, **facts)

    def checks(self, checks: Iterable[Check]) -> None:
        """Show people all checks together, and then what fails."""
        if self.json:
            return
        self.line("")
        table = Table("net", "answer", "about", box=None, pad_edge=False)
        findings = []
        for one in checks:
            table.add_row(one.name, one.status.value, one.words)
            findings += [f"{one.name}: {finding}" for finding in one.findings]
        self._show(table)
        for finding in findings:
            self.line(finding)

    def maxima(self, maxima: Sequence[Maximum], files: dict[Quantity, str]) -> None:
        """Show the worst case: what a run can cost, how sure that is, and where it can be seen."""
        table = Table("a run can cost", "", "", "", box=None, pad_edge=False)
        for one in maxima:
            file = files.get(one.quantity, "")
            self.line(
                "",
                worst=one.quantity.value,
                most=one.most,
                sure=one.sure.value,
                played=one.seen,
                about=one.words,
                scenario=file,
            )
            about = "; ".join(filter(None, (one.words, _played(one), file)))
            table.add_row(NAMES[one.quantity], amount(one), one.sure.value, about)
        if not self.json:
            self._show(table)

    def _show(self, table: Table) -> None:
        for column in table.columns[:-1]:
            column.no_wrap = True
        console = Console(file=self.out, width=WIDTH, highlight=False, color_system=None)
        with console.capture() as captured:
            console.print(table)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()), file=self.out, flush=True)


def _played(one: Maximum) -> str:
    if one.sure is not Sure.AT_MOST or one.seen is None:
        return ""
    return f"a run that comes to {amount(attrs.evolve(one, most=one.seen))} was played"


def amount(one: Maximum) -> str:
    """Return the number of *one* as people write it."""
    if one.most is None:
        return "?"
    turn = " a turn" if one.sure is Sure.ENDLESS else ""
    match one.quantity:
        case Quantity.WAITS_MS:
            seconds = -(-one.most // 1_000)
            hours = f" ({seconds / SECONDS_PER_HOUR:.1f} h)" if seconds >= SECONDS_PER_HOUR else ""
            return f"{seconds:,} s{hours}{turn}"
        case Quantity.COST:
            return f"{one.most / PRICE_UNIT:,.2f}{turn}"
        case _:
            return f"{one.most:,}{turn}"
