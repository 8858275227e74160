"""``stepfold check``: play scenario files and compare."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from stepfold.adapters.cli.exits import Problem


def check_command(paths: Sequence[Path], *, json: bool, record: Path | None) -> int:
    """Play every scenario of *paths*; 0 all as expected, 1 any failed, 2 one is unusable."""
    from stepfold.adapters.scenarios.check import check_paths
    from stepfold.adapters.scenarios.keeping import KeepError

    try:
        return check_paths(paths, json=json, record_dir=record, out=sys.stdout)
    except KeepError as problem:
        raise Problem(f"--record: {problem}") from problem
