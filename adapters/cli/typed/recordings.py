"""What can be done with recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_read
from stepfold.adapters.cli.typed.options import Json

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE_OR_FOLDER", help="Recordings, and folders that hold some.", parser=to_read),
]


def replay(
    files: Files,
    same: Annotated[
        bool, typer.Option("--same", help="Also compare each recording with the first, event by event.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            parser=to_read, metavar="FILE", help="Also say what would have happened under these settings."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="GIT_REV", help="Compare this code with that of another revision."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=256, help="Processes; left out: all cores.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only what is not the same.")] = False,
    json: Json = False,
) -> int:
    """Fold recordings again with today's code, and say where they part from what they tell."""
    from stepfold.adapters.cli.commands.replay import ReplayWishes, replay_command

    return replay_command(
        ReplayWishes(
            files=files,
            same=same,
            config=config,
            against=against,
            workers=workers,
            quiet=quiet,
            json=json,
        )
    )
