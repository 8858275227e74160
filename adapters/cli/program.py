"""
The program around the commands: streams, signals, and what becomes of what goes wrong.

Every end is an exit code and at most one line on the error output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TypeAlias

from stepfold.adapters.cli import signals
from stepfold.adapters.cli.exits import BUG, INTERRUPTED, OUTPUT_LOST, PIPE_CLOSED, USAGE, Problem
from stepfold.adapters.cli.streams import OutputLost, Streams

End: TypeAlias = tuple[int, str]  # exit code, and what is told of it


def main(arguments: Sequence[str] | None) -> int:
    """Run the command line; see ``stepfold.adapters.cli.main``."""
    before = signals.take()
    streams = Streams.taken()
    try:
        return _ended(list(sys.argv[1:] if arguments is None else arguments), streams)
    finally:
        if arguments is not None:
            streams.give_back()
            signals.give_back(before)


def _ended(arguments: list[str], streams: Streams) -> int:
    code, words = (0, "") if streams.lost else _run(arguments)
    unflushed = _flushed()
    if (lost := streams.lost or unflushed) is not None:
        code, words = _told_of(lost)
    if words:
        print(words if code == USAGE and not arguments else f"stepfold: {words}", file=sys.stderr, flush=True)
    return code


def _run(arguments: list[str]) -> End:
    try:
        import typer

        from stepfold.adapters.cli.typed import app

        try:
            command = typer.main.get_command(app)
            with command.make_context("stepfold", [*arguments]) as context:
                return int(command.invoke(context) or 0), ""
        except typer.Exit as leaving:
            return leaving.exit_code, ""
        except typer.TyperException as error:
            words = error.format_message()  # without arguments it is the help
            return USAGE, " ".join(words.split()) if arguments else words
    except Problem as problem:
        return problem.code, str(problem)
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    except OutputLost:
        return OUTPUT_LOST, ""  # told by the stream
    except Exception as error:
        if os.environ.get("STEPFOLD_TRACEBACK"):
            raise
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return BUG, f"this is a bug: {words} (STEPFOLD_TRACEBACK=1 shows where)"


def _flushed() -> OSError | None:
    """Write what is still held back; return why that cannot be done."""
    try:
        sys.stdout.flush()
    except OutputLost:
        return None  # the stream knows
    except OSError as problem:  # a stream of the caller's
        return problem
    return None


def _told_of(lost: OSError) -> End:
    """Return what becomes of an output that cannot be written; a reader that has enough is no error."""
    if isinstance(lost, BrokenPipeError | ConnectionResetError):
        return PIPE_CLOSED, ""
    return OUTPUT_LOST, f"the output cannot be written: {lost.strerror or lost}"
