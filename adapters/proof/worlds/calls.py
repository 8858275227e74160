"""
The scheduler's batch, apart from the ladders.
"""

from __future__ import annotations

from typing import Any, Final

from stepfold.adapters.proof.environment import World, failed
from stepfold.adapters.proof.explore import Slice
from stepfold.adapters.proof.worlds.facts import (
    CALLS,
    CUT,
    SAFE,
    small,
)
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    HookStop,
    Interrupt,
    PermissionAnswered,
    ToolEnded,
    Verdict,
)
from stepfold.engine.failures import FailureKind

KINDS: Final = (
    SAFE,
    CallFacts(safe=True, verdict=Verdict.ASK),
    CallFacts(verdict=Verdict.ASK, interrupt=Interrupt.CANCEL),
    CallFacts(known=False),
    CallFacts(safe=True, shell=True, interrupt=Interrupt.CANCEL),
    CallFacts(idempotent=True),
)
MORE_KINDS: Final = (
    CallFacts(),
    CallFacts(safe=True, verdict=Verdict.DENY),
    CallFacts(safe=True, idempotent=True),
    CallFacts(shell=True),
    CallFacts(valid=False, safe=True),
)


def batch(kinds: tuple[CallFacts, ...] = KINDS, calls: int = 3, **values: Any) -> Slice:
    """Return the exploration of the scheduler: *calls* calls of these kinds, two at once, in one turn."""
    stop = HookStop("h")
    return Slice(
        name="batch",
        about=f"the scheduler: {calls} calls of {len(kinds)} kinds, two at once",
        config=small(max_turns=1, max_answer_blocks=10, **values),
        world=World(
            calls=kinds,
            max_calls=calls,
            closes=(CALLS, CUT),
            fails=failed(FailureKind.INVALID),
            tools=(ToolEnded(0), ToolEnded(0, status=CallStatus.FAILED), ToolEnded(0, stop=stop)),
            permissions=(
                PermissionAnswered(0, allowed=True),
                PermissionAnswered(0, allowed=False),
                PermissionAnswered(0, allowed=True, stop=stop),
            ),
        ),
        counters=frozenset(),
    )
