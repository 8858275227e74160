"""
What can be typed.

Each command has its file in ``commands/``; it is imported when it is used, so
that help and completion stay quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_make, to_read

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Paths = Annotated[list[Path], typer.Argument(metavar="FILE", help="Recordings.", parser=to_read)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line, and nothing else.")]


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


@app.command()
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
            allow_all=allow_all,
            quiet=quiet,
            explain=explain,
            json=json,
        )
    )


@app.command(short_help="Show every transition, without network or key.")
def demo(
    keep: Annotated[
        Path | None, typer.Option(parser=to_make, metavar="DIR", help="Keep the recordings in this folder.")
    ] = None,
) -> int:
    """Show a whole session and every transition, without network or key."""
    from stepfold.adapters.cli.commands.demo import demo_command

    return demo_command(keep)


@app.command()
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


@app.command(short_help="Play scenario files and compare.")
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


@app.command(short_help="Prove that every run ends, and more, by trying everything.")
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


@app.command(short_help="Play runs against a hostile world until something breaks.")
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


@app.command(short_help="Show faults of real loops, and how the fuzzer finds each.")
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
    from stepfold.adapters.cli.commands.museum import museum_command

    return museum_command(names or [], seconds=seconds, seed=seed, listed=listed, json=json)


@app.command()
def graph(
    full: Annotated[bool, typer.Option("--full", help="Draw every row of the table.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON instead.")] = False,
) -> int:
    """Print the machine as a Mermaid diagram."""
    from stepfold.adapters.cli.commands.graph import graph_command

    return graph_command(full=full, json=json)


@app.command()
def version() -> int:
    """Print the version."""
    _print_version(True)
    return 0
