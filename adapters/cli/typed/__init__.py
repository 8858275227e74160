"""
What can be typed.

Each command is typed in a module beside this one and has its file in
``commands/``; that is imported when it is used, so that help and completion
stay quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from stepfold.adapters.cli.typed import agents, checks, fuzzing, recordings, sessions, transcripts, travel

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as version_of

        print(f"stepfold {version_of('stepfold')}")
        raise typer.Exit


@app.callback()
def stepfold(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """An agent loop as an explicit state machine: run it, record it, replay it, check it."""


app.command()(agents.run)
app.command(short_help="Show every transition, without network or key.")(agents.demo)
app.command()(recordings.replay)
app.command()(travel.show)
app.command(short_help="Begin a new recording with the first entries of another.")(travel.fork)
app.command(short_help="Print where two recordings part, and where they meet again.")(travel.diff)
app.add_typer(sessions.app, name="sessions")
app.command("import", short_help="Turn transcripts of other agents into recordings.")(transcripts.import_)
app.command(short_help="Find what went wrong in recordings and transcripts.")(transcripts.lint)
app.command(short_help="Play scenario files and compare.")(checks.check)
app.command(short_help="Prove that every run ends, and more, by trying everything.")(checks.prove)
app.command(short_help="Play runs against a hostile world until something breaks.")(fuzzing.fuzz)
app.command(short_help="Show faults of real loops, and how the fuzzer finds each.")(fuzzing.museum)
app.command()(checks.graph)


@app.command()
def version() -> int:
    """Print the version."""
    _print_version(True)
    return 0
