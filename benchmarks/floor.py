"""
The floor: a bare frozen reducer over a list of messages, and how CPU time is taken.

It does what any reducer must (an immutable state and a tuple of effects for
each event, a history with cheap append) and nothing else.  All figures are
read against it, in the same run: machines differ, ratios less.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import attrs

from stepfold.engine.history import History

# A turn of this reducer where the targets were set: a Python 3.11 built with profile-guided optimisation
# that builds a frozen class of seven fields in 0.6 us.  Without it, the same machine takes 8 us.
FLOOR_ON_REFERENCE_US = 5.6
ATTRS_ON_REFERENCE_MS = 26  # what ``import attrs`` takes there


@attrs.frozen
class _Said:
    text: str


@attrs.frozen
class _Called:
    id: str
    name: str


@attrs.frozen
class _Closed:
    tokens: int


@attrs.frozen
class _Ended:
    id: str
    text: str


@attrs.frozen
class _Order:
    id: int
    what: str


@attrs.frozen
class _State:
    messages: History[object] = History()
    turn: int = 1
    open: int = 0
    tokens: int = 0


def _step(state: _State, event: object) -> tuple[_State, tuple[_Order, ...]]:
    match event:
        case _Said():
            return _State(state.messages, state.turn, state.open, state.tokens), ()
        case _Called():
            return _State(state.messages, state.turn, state.open + 1, state.tokens), (_Order(1, "tool"),)
        case _Closed(tokens):
            return _State(state.messages.append(event), state.turn, state.open, state.tokens + tokens), ()
        case _:
            view = state.messages.append(event)
            return _State(view, state.turn + 1, state.open - 1, state.tokens), (_Order(2, "model"),)


def floor_turns(count: int) -> None:
    """Run *count* turns of one tool call through the bare reducer."""
    state = _State()
    for number in range(count):
        for event in (
            _Said("look"),
            _Called(f"t{number}", "read"),
            _Closed(120),
            _Ended(f"t{number}", "x" * 200),
        ):
            state, _ = _step(state, event)


def cpu_us(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the least CPU time of *work* over some rounds, in us."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best * 1e6


def floor_us() -> float:
    """Return what a turn of the bare reducer costs here and now, in us of CPU."""
    count = 2_000
    return cpu_us(lambda: floor_turns(count)) / count
