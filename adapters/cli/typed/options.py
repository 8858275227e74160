"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepfold.adapters.cli.paths import to_read

Paths = Annotated[list[Path], typer.Argument(metavar="FILE", help="Recordings.", parser=to_read)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line, and nothing else.")]
