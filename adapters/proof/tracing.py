"""
The shipped ``step`` with its moves noted: which rows it takes, without making each move a second time.

The code that runs is that of ``step``; only the cells that it looks into are
wrapped.  What is noted is held against the table read by the letter
(``walk``) for the first steps of each way through it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from stepfold.adapters.proof.walk import Index, Taken, walk
from stepfold.engine.config import Config
from stepfold.engine.events import Event
from stepfold.engine.state import Move, State, Step
from stepfold.engine.step import Cells, Stepper, stepping
from stepfold.engine.table import TABLE

MODULE: Final[Any] = importlib.import_module("stepfold.engine.step")  # the package names the function


class Traced:
    """
    A ``step`` that can tell which rows it took.

    One that is not the shipped code, or whose cells are not those of the
    table, is called as it is, and its rows are found by ``walk``.
    """

    def __init__(self, function: Stepper, index: Index) -> None:
        self.function = function
        self.index = index
        self.noted: list[tuple[int, State]] = []
        self.traced: Stepper | None = None
        if function is MODULE.step and (cells := self._wrapped(MODULE._CELLS)) is not None:
            self.traced = stepping(cells)

    def step(self, state: State, event: Event, config: Config) -> Step:
        """Take one event; raises as ``step`` does."""
        if self.traced is None:
            return self.function(state, event, config)
        self.noted.clear()
        return self.traced(state, event, config)

    def rows(self, state: State, event: Event, config: Config, after: State) -> list[Taken] | None:
        """Return the rows of the step that was taken last; None where the table has none for it."""
        if self.traced is None:
            return walk(self.index, state, event, config, known=after)
        befores = [before for _, before in self.noted]
        afters = [*befores[1:], after]
        return [
            Taken(number, TABLE[number], before, then)
            for (number, before), then in zip(self.noted, afters, strict=True)
        ]

    def _wrapped(self, cells: Cells) -> Cells | None:
        """Return *cells* with every move noted, or None where they are not those of the table."""
        found: Cells = {}
        for phase, events in cells.items():
            found[phase] = {}
            for event, entries in events.items():
                rows = self.index.get((phase, event), ())
                if [when for when, _, _ in entries] != [when for _, when, _ in rows]:
                    return None
                found[phase][event] = tuple(
                    (when, self._noting(by, number), reason)
                    for (when, by, reason), (number, _, _) in zip(entries, rows, strict=True)
                )
        return found if sum(map(len, cells.values())) == len(self.index) else None

    def _noting(self, by: Callable[..., Move], number: int) -> Callable[..., Move]:
        note = self.noted.append

        def take(state: State, fact: Any, config: Config) -> Move:
            note((number, state))
            return by(state, fact, config)

        return take
