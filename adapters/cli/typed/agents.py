"""Agents that run: ``run`` and ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_make, to_read
from stepfold.adapters.cli.typed.options import Json

Session = Annotated[
    str | None, typer.Option(metavar="NAME", help="Keep the run in this session, or go on with it.")
]
Deltas = Annotated[bool, typer.Option("--deltas", help="Keep the pieces of streams in the recording, too.")]
Redact = Annotated[
    bool, typer.Option("--redact", help="Keep no keys, mail addresses and home folders in the recording.")
]


def run(
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT", help="What to do; - reads it from the input. With --resume it may be left out."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model to ask.")] = None,
    tools: Annotated[
        Path | None,
        typer.Option(
            parser=to_make, metavar="DIR", help="Offer bash, read, write, edit, glob and grep in this folder."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(parser=to_read, metavar="FILE", help="Settings, as TOML (docs/cli.md).")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(parser=to_make, metavar="FILE", help="Keep a recording in this new file.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(parser=to_read, metavar="FILE", help="Go on with this recording.")
    ] = None,
    session: Session = None,
    deltas: Deltas = False,
    redact: Redact = False,
    allow_all: Annotated[
        bool, typer.Option("--allow-all", help="Run every tool without asking, but those that a rule denies.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the run can cost at most, and make no call.")
    ] = False,
    json: Json = False,
) -> int:
    """Run an agent from a prompt to its end. The exit code tells how it ended."""
    from stepfold.adapters.cli.commands.run import Wishes, run_command

    return run_command(
        Wishes(
            prompt=prompt,
            model=model,
            folder=tools,
            config=config,
            record=record,
            resume=resume,
            session=session,
            deltas=deltas,
            redact=redact,
            allow_all=allow_all,
            quiet=quiet,
            explain=explain,
            json=json,
        )
    )


def demo(
    keep: Annotated[
        Path | None, typer.Option(parser=to_make, metavar="DIR", help="Keep the recordings in this folder.")
    ] = None,
) -> int:
    """Show a whole session and every transition, without network or key."""
    from stepfold.adapters.cli.commands.demo import demo_command

    return demo_command(keep)
