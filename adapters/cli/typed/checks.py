"""Checks and proofs: ``check``, ``prove``, ``graph``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_make, to_read
from stepfold.adapters.cli.typed.options import Json


def check(
    paths: Annotated[
        list[Path],
        typer.Argument(parser=to_read, metavar="FILE_OR_FOLDER", help="Scenarios (docs/scenarios.md)."),
    ],
    json: Json = False,
    record: Annotated[
        Path | None,
        typer.Option(parser=to_make, metavar="DIR", help="Keep each run's recording in this folder."),
    ] = None,
) -> int:
    """Play scenario files and compare what happens with what they expect."""
    from stepfold.adapters.cli.commands.check import check_command

    return check_command(paths, json=json, record=record)


def prove(
    config: Annotated[
        Path | None,
        typer.Option(
            parser=to_read, metavar="FILE", help="Settings, as TOML; their limits are explored, too."
        ),
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="States at which one exploration gives up: unknown, then."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also prove it for all limits, by z3, CrossHair and TLC.")
    ] = False,
    witness: Annotated[
        Path | None,
        typer.Option(parser=to_make, metavar="DIR", help="Write scenarios that reach the worst case there."),
    ] = None,
    json: Json = False,
) -> int:
    """Compare the engine with its second copy, explore every state, and say what a run can cost at most."""
    from stepfold.adapters.cli.commands.prove import prove_command

    return prove_command(config, json=json, states=states, deep=deep, witness=witness)


def graph(
    full: Annotated[bool, typer.Option("--full", help="Draw every row of the table.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON instead.")] = False,
) -> int:
    """Print the machine as a Mermaid diagram."""
    from stepfold.adapters.cli.commands.graph import graph_command

    return graph_command(full=full, json=json)
