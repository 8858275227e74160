"""
What no step can be without: the records that it hands back and that were not there before.

A step returns a state and effects, in frozen attrs classes.  What of them is
new has to be built, whatever decides it: that is built here alone, class by
class, and timed.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean, median
from typing import Any

import attrs

from benchmarks.steps import AGAIN, CONFIG, ROUNDS, Cost, Taken, best_us, walk
from stepfold.engine import step
from stepfold.engine.history import History
from stepfold.engine.ids import Ids

SHARED = (History, Ids)  # their own edges are not counted


def _records(root: object, seen: dict[int, object]) -> Iterator[Any]:
    """Yield the attrs instances below *root* that are not in *seen*, which takes them up."""
    left = [root]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        if isinstance(one, tuple):
            seen[id(one)] = one
            left += one
        elif attrs.has(type(one)):
            seen[id(one)] = one
            left += [getattr(one, field.name) for field in attrs.fields(type(one))]
            yield one


def new_records(taken: Taken) -> list[Any]:
    """Return what a step hands back that is reachable from neither the state nor the event before it."""
    seen: dict[int, object] = {}
    for _ in _records((taken.state, taken.event), seen):
        pass
    return list(_records(step(taken.state, taken.event, CONFIG), seen))


def _built_us(one: Any) -> float:
    """Return what a record costs that is built of the same values."""
    kind = type(one)
    given = [getattr(one, field.name) for field in attrs.fields(kind)]
    return best_us(lambda: kind(*given), AGAIN, ROUNDS) if given else 0.0


def records_us(messages: int, turns: int) -> tuple[float, Cost]:
    """Return the mean us that the new records of a step cost alone, and the median by kind of event."""
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    steps = walk(messages, turns)
    gc.collect()
    for taken in steps:
        new = [one for one in new_records(taken) if type(one) not in SHARED]
        kinds[taken.kind].append(sum(map(_built_us, new)))
    mean = fmean(one for costs in kinds.values() for one in costs)
    return mean, {kind: median(costs) for kind, costs in kinds.items()}
