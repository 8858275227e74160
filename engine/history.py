"""An immutable sequence with cheap append and structural sharing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Generic, TypeVar

from stepfold.engine.frozen import frozen

T = TypeVar("T")
CHUNK = 64


@frozen(slots=True)
class History(Generic[T]):
    """
    Full chunks of exactly ``CHUNK`` items, then a shorter open tail.

    Appending copies the tail only; the full chunks are shared by every later
    version.  They are grouped once more (``groups`` holds tuples of ``CHUNK``
    chunks), so that closing a chunk is cheap at any length.  All edges depend
    on the count alone: equal contents give equal structures.
    """

    groups: tuple[tuple[tuple[T, ...], ...], ...] = ()
    chunks: tuple[tuple[T, ...], ...] = ()
    tail: tuple[T, ...] = ()

    def append(self, item: T) -> History[T]:
        """Return a new history that ends with *item*; O(1) amortised."""
        tail = (*self.tail, item)
        if len(tail) < CHUNK:
            return History(self.groups, self.chunks, tail)
        chunks = (*self.chunks, tail)
        if len(chunks) < CHUNK:
            return History(self.groups, chunks, ())
        return History((*self.groups, chunks), (), ())

    def extend(self, items: Iterable[T]) -> History[T]:
        """Return a new history with *items* at its end."""
        new = tuple(items)
        tail = (*self.tail, *new)
        if len(tail) < CHUNK:
            return History(self.groups, self.chunks, tail)
        history = self
        for item in new:
            history = history.append(item)
        return history

    def __iter__(self) -> Iterator[T]:
        chunks = chain(chain.from_iterable(self.groups), self.chunks)
        return chain(chain.from_iterable(chunks), self.tail)

    def __len__(self) -> int:
        return (len(self.groups) * CHUNK + len(self.chunks)) * CHUNK + len(self.tail)

    def __getitem__(self, index: int) -> T:
        """Return one item; negative indexes count from the end, as in a tuple."""
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        chunk, within = divmod(place, CHUNK)
        group, second = divmod(chunk, CHUNK)
        if group < len(self.groups):
            return self.groups[group][second][within]
        if second < len(self.chunks):
            return self.chunks[second][within]
        return self.tail[within]

    def since(self, start: int) -> tuple[T, ...]:
        """Return the items from index *start* on; costs what it returns."""
        return tuple(self[place] for place in range(start, len(self)))

    def first(self, count: int) -> tuple[T, ...]:
        """Return the first *count* items."""
        return tuple(islice(self, count))

    def until(self, count: int) -> History[T]:
        """Return the first *count* items as a history; full chunks are shared: it costs a chunk at most."""
        if count >= len(self):
            return self
        chunk, within = divmod(count, CHUNK)
        group, second = divmod(chunk, CHUNK)
        flat = self.chunks if group == len(self.groups) else self.groups[group]
        source = flat[second] if second < len(flat) else self.tail
        return History(self.groups[:group], flat[:second], source[:within])
