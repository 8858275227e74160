"""Recordings of all scenarios, played once and not judged: quicker than ``check --record``."""

from __future__ import annotations

from pathlib import Path

from stepfold.adapters.scenarios.keeping import keep
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import load

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def record_scenarios(folder: Path, within: str = ".") -> None:
    """Write the recordings below *folder*, as the scenarios lie below theirs."""
    for path in sorted((SCENARIOS / within).rglob("*.toml")):
        keep(play(load(path)), folder / path.relative_to(SCENARIOS).with_suffix(""))
