"""Transcripts of other agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_make, to_read
from stepfold.adapters.cli.typed.options import Json

Transcripts = Annotated[
    list[Path],
    typer.Argument(metavar="FILE_OR_FOLDER", help="Transcripts, and folders that hold some.", parser=to_read),
]
Named = Annotated[
    str | None, typer.Option(metavar="NAME", help="The transcripts' format; left out: recognised.")
]


def import_(
    paths: Transcripts,
    out: Annotated[
        Path, typer.Option(parser=to_make, metavar="DIR", help="Where the recordings are written.")
    ] = Path("imported"),
    format: Named = None,
    json: Json = False,
) -> int:
    """Turn transcripts of other agents into recordings, or into histories where they can be no more."""
    from stepfold.adapters.cli.commands.transcripts import import_command

    return import_command(paths, out=out, format=format, json=json)


def lint(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE_OR_FOLDER",
            help="Recordings, transcripts, and folders that hold some.",
            parser=to_read,
        ),
    ],
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this rule (docs/lint.md); may be repeated."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(parser=to_read, metavar="FILE", help="Whose limits they are held against.")
    ] = None,
    format: Named = None,
    sarif: Annotated[
        Path | None, typer.Option(parser=to_make, metavar="FILE", help="Write the findings as SARIF there.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no notes.")] = False,
    json: Json = False,
) -> int:
    """Find what went wrong in recordings and in transcripts of other agents."""
    from stepfold.adapters.cli.commands.lint import LintWishes, lint_command

    return lint_command(
        LintWishes(
            paths=paths,
            rules=tuple(rule or ()),
            config=config,
            format=format,
            sarif=sarif,
            quiet=quiet,
            json=json,
        )
    )
