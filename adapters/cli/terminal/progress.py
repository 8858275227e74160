"""How far a long piece of work is, at the bottom of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int, *, hidden: bool = False) -> Iterator[Callable[[str], None]]:
    """
    Show how far it is, on a terminal; it is gone when the work is done.

    Args:
        what: The work, in a word: "replaying".
        total: How many pieces it has; with one, the line only shows that it goes on.
        hidden: Show nothing.

    Yields:
        What is called with the name of a piece when it begins.
    """
    if hidden or not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # else what is printed would go to the terminal, not to its file
    ) as bar:
        task = bar.add_task(what, total=total if total > 1 else None)
        begun = 0

        def begin(name: str) -> None:
            nonlocal begun
            bar.update(task, description=f"{what} {name[-40:]}", completed=begun)
            begun += 1

        yield begin
