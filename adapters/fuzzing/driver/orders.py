"""Which orders there are, what answers them, and whether the open ones are those that the world owes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from stepfold.adapters.fuzzing.driver.rules import Broken, Rule
from stepfold.adapters.testing.answers import ANSWERS as FITTING
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
    Wait,
)
from stepfold.engine.events import BlockCompleted

ANSWERS: Final = frozenset(kind for kinds in FITTING.values() for kind in kinds)
STREAM_ENDS: Final = frozenset(FITTING[CallModel]) - {BlockCompleted}
MOVING: Final = frozenset({CallModel, RunTool, AskPermission, Compact, RunHook, Wait})
TRIES: Final = frozenset({CallModel, Compact, Wait})
ORDERS: Final = MOVING | {StageCollapse, Summarise, Prefetch}


def moves(owed: tuple[Any, ...], book: Mapping[int, Any]) -> bool:
    """
    Return whether one of the orders in *owed*, which the run waits for, takes the run further.

    Raises:
        Broken: They are not those of *book*, which the world owes.
    """
    moving = False
    same = len(owed) == len(book)
    for order in owed:
        moving = moving or type(order) in MOVING
        same = same and order.id in book
    if not same:
        raise Broken(Rule.OWED, f"the run waits for {_named(owed)}, the world owes {_named(book.values())}")
    return moving


def _named(orders: Iterable[Any]) -> str:
    return ", ".join(f"{type(order).__name__} {order.id}" for order in orders) or "nothing"
