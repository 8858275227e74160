"""Which of the seven continues and the ten terminals were seen, and where first."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from rich.console import Console
from rich.table import Table

from stepfold.engine.state import Continue
from stepfold.engine.terminals import Terminal


@attrs.define
class Seen:
    """Where each continue and each terminal was seen first, by name."""

    continues: dict[str, str] = attrs.field(factory=dict)
    terminals: dict[str, str] = attrs.field(factory=dict)

    def note(self, place: str, transitions: Iterable[str], terminal: str) -> None:
        """Note one run."""
        for reason in transitions:
            self.continues.setdefault(reason, place)
        self.terminals.setdefault(terminal, place)

    @property
    def complete(self) -> bool:
        """Whether all seven and all ten were seen."""
        return set(Continue) <= set(self.continues) and set(Terminal) <= set(self.terminals)

    def print(self, console: Console) -> None:
        """Print two tables."""
        for title, names, places in (
            ("continues", [each.value for each in Continue], self.continues),
            ("terminals", [each.value for each in Terminal], self.terminals),
        ):
            found = sum(name in places for name in names)
            table = Table(title=f"{found} of {len(names)} {title}", title_justify="left", show_header=False)
            for name in names:
                table.add_row("yes" if name in places else "NO", name, places.get(name, ""))
            console.print(table)
