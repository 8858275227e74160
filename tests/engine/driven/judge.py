"""The judge of driven runs is the one that users get: see ``stepfold.adapters.testing.machine.judge``."""

from __future__ import annotations

from stepfold.adapters.testing.machine.judge import Judge, Violation, hold, valid, valid_history

__all__ = ["Judge", "Violation", "hold", "valid", "valid_history"]
