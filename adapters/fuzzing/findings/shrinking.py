"""
Shrinking: from the choices of a run that breaks a rule to the fewest events that break it still.

Genes are taken out, first in large pieces, then one by one; then dials, faults
and bytes are set to what is plainest.  Whatever still breaks the same rule, in
no more events, is kept, until nothing gets smaller (delta debugging).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import attrs

TRIES_MAX: Final = 6_000  # plays that one shrinking may cost
BYTES_TRIED: Final = (0, 1, 2, 3)
Tape: TypeAlias = bytes


class Unbroken(ValueError):
    """Choices that were to be shrunk break no rule."""


@attrs.frozen
class Shape:
    """
    How choices are laid out.

    Args:
        header: Bytes before the first gene.
        frozen: Bytes at the beginning that say which faults there are, one bit each.
        gene: Bytes of a gene.
    """

    header: int
    frozen: int
    gene: int


@attrs.frozen
class Shrunk:
    """The smallest run that was found, how many events it takes, and how many plays that cost."""

    tape: Tape
    events: int
    plays: int


def shrink(
    tape: Tape, shape: Shape, events_of: Callable[[Tape], int | None], tries: int = TRIES_MAX
) -> Shrunk:
    """
    Return the smallest choices that still break the rule.

    Args:
        tape: Choices that break it.
        shape: How they are laid out.
        events_of: Plays choices; how many events broke the rule, or None where it holds.
        tries: Plays after which the best so far is returned.

    Raises:
        Unbroken: *tape* breaks no rule.
    """
    events = events_of(tape)
    if events is None:
        raise Unbroken("these choices break no rule: there is nothing to shrink")
    best = Best(tape, events, events_of, tries)
    before = None
    while best.left > 0 and before != best.tape:
        before = best.tape
        _fewer_genes(best, shape)
        _plainer_setup(best, shape)
        _plainer_genes(best, shape)
    return Shrunk(best.tape, best.events, tries - best.left + 1)


@attrs.define
class Best:
    """The smallest run so far, and how many plays may still be spent."""

    tape: Tape
    events: int
    events_of: Callable[[Tape], int | None]
    left: int

    def better(self, tape: Tape) -> bool:
        """Play *tape* if it is smaller; keep it, and return True, where it breaks the rule too."""
        if self.left <= 0 or (len(tape), sum(tape)) >= (len(self.tape), sum(self.tape)):
            return False
        self.left -= 1
        count = self.events_of(tape)
        if count is None or count > self.events:
            return False
        self.tape, self.events = tape, count
        return True


def _fewer_genes(best: Best, shape: Shape) -> None:
    size = (len(best.tape) - shape.header) // shape.gene
    while size:
        place = (len(best.tape) - shape.header) // shape.gene - size
        while place >= 0:
            begin = shape.header + place * shape.gene
            best.better(best.tape[:begin] + best.tape[begin + size * shape.gene :])
            place -= size
        size //= 2


def _plainer_setup(best: Best, shape: Shape) -> None:
    best.better(best.tape[: shape.frozen] + bytes(shape.header - shape.frozen) + best.tape[shape.header :])
    for place in range(shape.frozen, shape.header):
        _lower(best, place)
    for place in range(shape.frozen):
        for bit in range(8):
            if best.tape[place] >> bit & 1:
                best.better(_with(best.tape, place, best.tape[place] & ~(1 << bit)))


def _plainer_genes(best: Best, shape: Shape) -> None:
    for begin in range(shape.header, len(best.tape), shape.gene):
        best.better(best.tape[:begin] + bytes(shape.gene) + best.tape[begin + shape.gene :])
    for place in range(shape.header, len(best.tape)):
        _lower(best, place)


def _lower(best: Best, place: int) -> None:
    for value in _below(best.tape[place]):
        if best.better(_with(best.tape, place, value)):
            return


def _below(byte: int) -> Iterator[int]:
    yield from (value for value in (*BYTES_TRIED, byte // 2, byte - 1) if 0 <= value < byte)


def _with(tape: Tape, place: int, value: int) -> Tape:
    return tape[:place] + bytes((value,)) + tape[place + 1 :]
