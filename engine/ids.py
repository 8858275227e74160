"""A set of call ids with cheap versions: no step copies it."""

from __future__ import annotations

from stepfold.engine.frozen import frozen

LEVEL = 64


@frozen(slots=True)
class Ids:
    """
    Every id ever used, for finding a second use.

    ``fresh`` holds the last few; ``levels`` are frozen sets of falling size,
    merged when two are alike: adding and asking cost O(log n), amortised.
    """

    levels: tuple[frozenset[str], ...] = ()
    fresh: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        if name in self.fresh:
            return True
        for level in self.levels:  # noqa: SIM110  (a generator costs more than the few levels)
            if name in level:
                return True
        return False

    def add(self, name: str) -> Ids:
        """Return a set that holds *name* too."""
        if len(self.fresh) < LEVEL:
            return Ids(self.levels, (*self.fresh, name))
        merged = frozenset((*self.fresh, name))
        levels = list(self.levels)
        while levels and len(levels[-1]) <= len(merged):
            merged |= levels.pop()
        return Ids((*levels, merged), ())
