"""The command line: ``stepfold run``, ``demo``, ``replay``, ``check``, ``prove``, ``graph``."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command line and return its exit code (docs/cli.md); nothing is ever raised.

    Args:
        arguments: Without the program's name; None: those of the process, whose signals and standard
            streams are then this program's to its end.
    """
    try:  # nothing is imported before: Ctrl+C may come at once
        from stepfold.adapters.cli.program import main as program

        return program(arguments)
    except KeyboardInterrupt:
        return 130
