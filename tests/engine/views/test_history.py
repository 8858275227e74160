"""
What only this file catches: a history that forgets an item at a chunk's edge, or changes an older version.

``History`` is compared with a plain tuple; two chunk edges lie within reach.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stepfold.engine.history import CHUNK, History

EDGES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, CHUNK * CHUNK - 1, CHUNK * CHUNK, CHUNK * CHUNK + 65]
lengths = st.integers(0, 3 * CHUNK) | st.sampled_from(EDGES)


def of(count: int) -> History[int]:
    """Return a history of the numbers under *count*."""
    return History[int]().extend(range(count))


@pytest.mark.parametrize("count", EDGES)
def test_it_holds_what_was_appended(count: int) -> None:
    history = of(count)

    assert count == len(history)
    assert list(range(count)) == list(history)
    assert (count > 0) is bool(history)


@pytest.mark.parametrize("count", EDGES)
def test_one_more_at_every_edge(count: int) -> None:
    assert list(range(count + 1)) == list(of(count).append(count))


@given(lengths, st.data())
def test_items_by_index_as_in_a_tuple(count: int, data: st.DataObject) -> None:
    history, plain = of(count), tuple(range(count))
    place = data.draw(st.integers(-count - 2, count + 1))

    if -count <= place < count:
        assert plain[place] == history[place]
    else:
        with pytest.raises(IndexError):
            history[place]


@given(lengths, st.integers(0, 3 * CHUNK))
def test_parts(count: int, place: int) -> None:
    history, plain = of(count), tuple(range(count))

    assert plain[place:] == history.since(place)
    assert plain[:place] == history.first(place)
    assert plain[:place] == tuple(history.until(place))


@given(lengths, st.integers(0, 3 * CHUNK))
def test_equal_contents_are_equal_however_they_came_about(count: int, place: int) -> None:
    place = min(place, count)

    assert of(count) == of(place).extend(range(place, count))
    assert of(place) == of(count).until(place)
    assert hash(of(place)) == hash(of(count).until(place))


@settings(max_examples=50)
@given(lengths, st.lists(st.integers(), max_size=5), st.lists(st.integers(), max_size=5))
def test_versions_do_not_know_of_each_other(count: int, one: list[int], other: list[int]) -> None:
    root = of(count)
    left, right = root.extend(one), root.extend(other)

    assert [*range(count), *one] == list(left)
    assert [*range(count), *other] == list(right)
    assert list(range(count)) == list(root)


def test_full_chunks_are_shared_and_an_append_touches_one_chunk() -> None:
    history = of(10 * CHUNK)
    more = history.append(0)

    assert all(a is b for a, b in zip(history.chunks, more.chunks, strict=True))
    assert 1 == len(more.tail)
