"""Where run ids and seeds come from: the system's chance, or fixed ones for tests and recordings."""

from __future__ import annotations

from stepfold.effects.ready.system import SystemIds

__all__ = ["FixedIds", "SystemIds"]


class FixedIds:
    """Numbers the runs: ``run-1``, ``run-2``, with the seed that is given."""

    def __init__(self, prefix: str = "run", seed: int = 0) -> None:
        self._prefix = prefix
        self._seed = seed
        self._runs = 0

    def run_id(self) -> str:
        """Return the next id."""
        self._runs += 1
        return f"{self._prefix}-{self._runs}"

    def seed(self) -> int:
        """Return the seed."""
        return self._seed
