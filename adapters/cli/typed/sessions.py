"""Sessions: ``stepfold sessions list``, ``search``, ``rename``, ``delete``, ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_make
from stepfold.adapters.cli.typed.options import Json

app = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A session.")]


@app.callback()
def sessions(context: typer.Context) -> int:
    """List, search, rename, delete and export sessions; without a command, list them."""
    return list_() if context.invoked_subcommand is None else 0


@app.command("list")
def list_(json: Json = False) -> int:
    """Print every session, the one that was touched last first."""
    from stepfold.adapters.cli.commands.sessions import list_command

    return list_command(json=json)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="All of them must be said.")],
    json: Json = False,
) -> int:
    """Print what was said: prompts, answers, calls and results. Exit code 1 where nothing is found."""
    from stepfold.adapters.cli.commands.sessions import search_command

    return search_command(" ".join(words), json=json)


@app.command()
def rename(name: Name, to: Annotated[str, typer.Argument(metavar="TO", help="Its new name.")]) -> int:
    """Keep a session under another name."""
    from stepfold.adapters.cli.commands.sessions import rename_command

    return rename_command(name, to)


@app.command()
def delete(name: Name) -> int:
    """Remove a session."""
    from stepfold.adapters.cli.commands.sessions import delete_command

    return delete_command(name)


@app.command()
def export(
    name: Name,
    record: Annotated[
        Path, typer.Option(parser=to_make, metavar="FILE", help="Write its recording to this new file.")
    ],
) -> int:
    """Write a session as a recording."""
    from stepfold.adapters.cli.commands.sessions import export_command

    return export_command(name, record)
