"""``stepfold prove``: the nets that are cast over the engine, and what they say of a config."""

from __future__ import annotations

from pathlib import Path


def prove_command(config: Path | None, *, json: bool, states: int | None) -> int:
    """Prove; 0 all is proved, 1 a property fails or a bound was hit, 2 the config cannot be used."""
    from stepfold.adapters.proof.prove import STATES_MAX, prove

    return prove(config, json=json, states=STATES_MAX if states is None else states)
