"""Recordings looked into: ``show``, ``fork`` and ``diff``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_make, to_read
from stepfold.adapters.cli.typed.options import Json

One = Annotated[Path, typer.Argument(metavar="FILE", help="A recording.", parser=to_read)]


def show(
    file: One,
    at: Annotated[
        int | None, typer.Option("--at", metavar="N", help="How it stood after this entry; 0: before all.")
    ] = None,
    screen: Annotated[
        bool, typer.Option("--screen", help="The text as it was shown, from the kept pieces of streams.")
    ] = False,
    json: Json = False,
) -> int:
    """Print what happened in a recording, or how it stood after an entry."""
    from stepfold.adapters.cli.commands.travel import show_command

    return show_command(file, at=at, screen=screen, json=json)


def fork(
    file: One,
    at: Annotated[int, typer.Option("--at", metavar="N", help="How many of its entries are taken over.")],
    record: Annotated[
        Path, typer.Option(parser=to_make, metavar="FILE", help="Write the new recording there.")
    ],
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JSON_OR_FILE", help="An event that follows, or a file of some; may be repeated."
        ),
    ] = None,
) -> int:
    """Begin a new recording with the first entries of another. stepfold run --resume goes on with it."""
    from stepfold.adapters.cli.commands.travel import fork_command

    return fork_command(file, at=at, events=event or [], record=record)


def diff(
    left: Annotated[Path, typer.Argument(metavar="A", help="A recording.", parser=to_read)],
    right: Annotated[Path, typer.Argument(metavar="B", help="Another one.", parser=to_read)],
    json: Json = False,
) -> int:
    """Print where two recordings part, and where they meet again; times and ids do not count."""
    from stepfold.adapters.cli.commands.travel import diff_command

    return diff_command(left, right, json=json)
