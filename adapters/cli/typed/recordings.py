"""What can be done with recordings."""

from __future__ import annotations

from typing import Annotated

import typer

from stepfold.adapters.cli.typed.options import Json, Paths


def replay(
    files: Paths,
    same: Annotated[
        bool, typer.Option("--same", help="Also compare each recording with the first, event by event.")
    ] = False,
    json: Json = False,
) -> int:
    """Fold recordings again and print their transitions and ends."""
    from stepfold.adapters.cli.commands.replay import replay_command

    return replay_command(files, same=same, json=json)
