"""The adversary: ``fuzz`` and ``museum``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_make
from stepfold.adapters.cli.typed.options import Json


def fuzz(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="A config file, or module:name of an agent; left out: the engine itself."
        ),
    ] = "",
    seconds: Annotated[float, typer.Option(metavar="N", min=0.1, help="How long.")] = 60.0,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Where all choices come from.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Processes.")] = 1,
    invariant: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:FUNCTION", help="A check of your own, of every step; may be repeated."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="A fault of the world; may be repeated. Left out: all of them."),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(parser=to_make, metavar="DIR", help="Keep runs here, and play those first that are."),
    ] = None,
    findings: Annotated[
        Path, typer.Option(parser=to_make, metavar="DIR", help="Where scenario and recording are written.")
    ] = Path("findings"),
    html: Annotated[
        Path | None, typer.Option(parser=to_make, metavar="FILE", help="Write the summary as a page.")
    ] = None,
    json: Json = False,
) -> int:
    """Play runs against a hostile world until something breaks or the time is over (docs/fuzzing.md)."""
    from stepfold.adapters.cli.commands.fuzz import FuzzWishes, fuzz_command

    return fuzz_command(
        FuzzWishes(
            target=target,
            seconds=seconds,
            seed=seed,
            workers=workers,
            invariants=tuple(invariant or ()),
            faults=tuple(fault or ()),
            corpus=corpus,
            findings=findings,
            html=html,
            json=json,
        )
    )


def museum(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Exhibits; left out: all of them.")
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="N", min=0.1, help="CPU seconds for each.")] = 10.0,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Where all choices come from.")] = 1,
    listed: Annotated[bool, typer.Option("--list", help="Tell their stories, and fuzz nothing.")] = False,
    json: Json = False,
) -> int:
    """Plant faults of real loops, one at a time, and fuzz each until it is found (docs/fuzzing.md)."""
    from stepfold.adapters.cli.commands.fuzz import museum_command

    return museum_command(names or [], seconds=seconds, seed=seed, listed=listed, json=json)
