"""The command line: ``stepfold run``, ``demo``, ``replay``, ``check``, ``graph``."""

from stepfold.adapters.cli.main import main

__all__ = ["main"]
