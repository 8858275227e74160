"""How far a command is that goes through many files: a bar on the terminal, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

FEW: Final = 8  # files that are done before anybody could look at a bar


@contextmanager
def progress(doing: str, files: int, *, json: bool) -> Iterator[Callable[[], None]]:
    """
    Show a bar on stderr while the block runs, where that is a terminal; it is gone afterwards.

    Args:
        doing: What is done to the files, as ``importing``.
        files: How many there are; up to eight get no bar.
        json: Whether JSON is printed; then there is none either.

    Yields:
        What is to be called when a file is done.
    """
    if json or files <= FEW or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # What is printed meanwhile stands above the bar. That way leads to stderr: only for what is seen there.
    seen = sys.stdout.isatty()
    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=seen) as bar:
        task = bar.add_task(doing, total=files)
        yield lambda: bar.advance(task)
