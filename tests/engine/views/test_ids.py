"""What only this file catches: a used call id that is forgotten, or an old version that learns."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from stepfold.engine.ids import LEVEL, Ids


def of(names: list[str]) -> Ids:
    """Return a set with *names*."""
    ids = Ids()
    for name in names:
        ids = ids.add(name)
    return ids


@settings(max_examples=60)
@given(st.lists(st.text(max_size=2)), st.text(max_size=2))
def test_it_holds_what_was_added_and_nothing_else(names: list[str], other: str) -> None:
    ids = of(names)

    assert all(name in ids for name in names)
    assert (other in names) is (other in ids)


def test_nothing_is_lost_over_many_levels() -> None:
    names = [f"call_{number}" for number in range(20 * LEVEL + 3)]
    ids = of(names)

    assert all(name in ids for name in names)
    assert "call_x" not in ids


def test_an_older_version_does_not_learn() -> None:
    versions = [Ids()]
    for number in range(3 * LEVEL):
        versions.append(versions[-1].add(str(number)))

    for number, ids in enumerate(versions):
        assert str(number) not in ids
        assert number == 0 or str(number - 1) in ids


def test_asking_stays_cheap_for_the_number_of_levels_grows_slowly() -> None:
    ids = of([str(number) for number in range(64 * LEVEL)])

    assert len(ids.levels) <= 8
    assert len(ids.fresh) <= LEVEL
