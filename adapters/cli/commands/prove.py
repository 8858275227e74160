"""``stepfold prove``: the nets that are cast over the engine, and the worst case of a config."""

from __future__ import annotations

import sys
from pathlib import Path


def prove_command(
    config: Path | None,
    *,
    json: bool,
    states: int | None,
    deep: bool = False,
    witness: Path | None = None,
) -> int:
    """Prove; 0 proved, 1 not, 2 what was given cannot be used, 3 a net that was asked for was skipped."""
    from stepfold.adapters.proof.command.prove import STATES_MAX, prove

    limit = STATES_MAX if states is None else states
    return prove(config, json=json, states=limit, deep=deep, witness=witness, out=sys.stdout, err=sys.stderr)
