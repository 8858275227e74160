"""From choices to strategies: what a ``Pick`` chooses, Hypothesis draws; it shrinks to the first option."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

import hypothesis.strategies as st

from stepfold.adapters.testing.config_space import SPACE
from stepfold.adapters.testing.world import ALL_FAULTS, Fault, Pick
from stepfold.engine.config import Config

T = TypeVar("T")
CHANGES_MAX: Final = 10


@st.composite
def chosen(draw: st.DrawFn, make: Callable[[Pick], T]) -> T:
    """Draw what *make* returns when Hypothesis does its choosing."""

    def pick(options: Any, /) -> Any:
        return options[0] if len(options) == 1 else draw(st.sampled_from(options))

    return make(pick)


def faults(of: Collection[Fault] = ALL_FAULTS) -> st.SearchStrategy[frozenset[Fault]]:
    """
    Return random subsets of *of*: the faults of one run (swarm testing).

    Each is there in about half of the runs; shrinking takes them away.
    """
    ordered = [fault for fault in Fault if fault in of]
    return chosen(lambda pick: frozenset(fault for fault in ordered if pick((False, True))))


def changes(space: Mapping[str, tuple[Any, ...]] = SPACE) -> st.SearchStrategy[dict[str, Any]]:
    """
    Return what one config has otherwise than the mildest: a few keys of *space* with other values.

    *space* is {key: the values to try, the mildest first}; shrinking takes the changes back.
    """
    others = [(key, value) for key, values in space.items() for value in values if value != values[0]]
    if not others:
        return st.just({})
    some = st.lists(st.sampled_from(others), unique_by=lambda change: change[0], max_size=CHANGES_MAX)
    return some.map(lambda drawn: dict(drawn))


def configs(space: Mapping[str, tuple[Any, ...]] = SPACE) -> st.SearchStrategy[Config]:
    """Return configs of *space*, {key: the values to try, the mildest first}; see ``changes``."""
    mildest = {key: values[0] for key, values in space.items()}
    return changes(space).map(lambda changed: Config(**{**mildest, **changed}))


def now(make: Callable[[Any], st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """Return the strategy that *make* makes of the state machine as it is when the rule runs."""
    return st.runner().flatmap(make)
