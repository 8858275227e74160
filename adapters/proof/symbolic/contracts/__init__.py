"""
The contracts that CrossHair confirms: one step of the shipped engine for each phase and event.

Each says: from any numbers, under any limits, the measure falls and is
nowhere negative, or the run is over.  Where an event decides by a name (how a
stream ended), there is one contract for each way.  ``small`` marks those whose
view stays under every threshold: the rows that compact or block are confirmed
with a view of any size where a run begins and after a compaction.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from stepfold.adapters.proof.symbolic.contracts import answers, calls, compacting, others

__all__ = ["every"]


def every() -> dict[str, Callable[..., Any]]:
    """Return the contracts by name, in order: the public functions of the modules here."""
    found: dict[str, Callable[..., Any]] = {}
    for module in (answers, compacting, calls, others):
        made = inspect.getmembers(module, inspect.isfunction)
        ours = [(name, f) for name, f in made if f.__module__ == module.__name__ and name[0] != "_"]
        found.update(sorted(ours, key=lambda each: int(each[1].__code__.co_firstlineno)))
    return found
