"""
A search: run after run from one seed, towards what was not covered yet.

Half of the runs are made anew; the others are runs that covered something new,
or were the worst so far, with a few choices changed.  The same seed, faults
and corpus give the same runs, whatever the clock says.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import attrs

from stepfold.adapters.fuzzing.driver.machine import Machine
from stepfold.adapters.fuzzing.driver.rules import Broken, Rule
from stepfold.adapters.fuzzing.driver.runs import GENE, Played
from stepfold.adapters.fuzzing.driver.setups import (
    FAULT_BYTES,
    HEADER,
    bits_of,
    random_header,
)
from stepfold.adapters.testing.world import ALL_FAULTS, Fault
from stepfold.engine.state import Stay

POOL: Final = 60  # setups that are in use at a time
GENES: Final = (3, 9)
GENES_MAX: Final = 14
RENEWED: Final = 0.7  # how often one of them is replaced when a run is made anew
FUTURES: Final = 2  # runs that begin as one before them did, and go on in another way
STEM_LEAST: Final = 0.5  # the least part of its choices that they have in common
GENES_LATER: Final = 5  # below which a future has genes of its own
WAYS_MAX: Final = 20_000
DULL: Final = frozenset(
    {Stay.PREPARED, Stay.FITS, Stay.CALLED, Stay.STREAMING, Stay.ANSWERED, Stay.SETTLING, Stay.STARTED}
)
REPLAYED: Final = 64  # one run in so many is played twice


class Player(Protocol):
    """Whoever plays runs from choices."""

    machine: Machine

    def play(self, tape: bytes, *, keep: bool = False, stem: int = 0) -> Played:
        """
        Play the run that *tape* says.

        With *keep*, its events are kept; the next runs begin with its first *stem* bytes, too.
        """
        ...

    def useful(self, header: bytes) -> bool:
        """Whether a run with *header* does more than end with its prompt."""
        ...


@attrs.define
class Seen:
    """Choices whose run went some way, and how often runs have gone it since."""

    tape: bytes
    times: int = 1


@attrs.define
class Tally:
    """
    What a search has come to.

    Args:
        runs, steps: How many.
        rows: How often each row of the table was taken.
        ways: Three telling rows in a row -> the shortest choices that go that way.
        worst_calls, worst_cost: The most requests, and the most cost, of any run.
        broken: The choices of the first run of each rule that broke it.
    """

    runs: int = 0
    steps: int = 0
    rows: dict[int, int] = attrs.field(factory=dict)
    ways: dict[int, Seen] = attrs.field(factory=dict)
    worst_calls: int = 0
    worst_cost: int = 0
    broken: dict[Rule, bytes] = attrs.field(factory=dict)

    @property
    def corpus(self) -> tuple[bytes, ...]:
        """The choices worth keeping, each once."""
        return tuple(dict.fromkeys(seen.tape for seen in self.ways.values()))


class Search:
    """
    Plays runs and keeps the tally.

    Args:
        driver: Plays.
        seed: Where the choices come from.
        faults: What the world may do.
        corpus: Choices to begin with; they are played first.
    """

    def __init__(
        self,
        driver: Player,
        seed: int,
        faults: Iterable[Fault] = ALL_FAULTS,
        corpus: Iterable[bytes] = (),
    ) -> None:
        self.tally = Tally()
        self._driver = driver
        self._random = random.Random(seed)
        self._faults = frozenset(faults)
        self._allowed = bits_of(self._faults)
        self._first: Iterator[bytes] = iter([self._restricted(tape) for tape in corpus])
        self._pool: list[bytes] = []
        self._family: tuple[bytes, int] = b"", 0  # a run, and the bytes of it that others begin with
        self._futures = 0  # how many of those are to come
        self._ways: list[int] = []
        self._telling = [row.outcome not in DULL for row in driver.machine.table]

    def one(self) -> Played:
        """Play the next run; what it breaks stands in the tally, too."""
        tally = self.tally
        if self._futures:
            tape, stem = self._future(), self._family[1]
            self._futures -= 1
        else:
            tape = self._next()
            stem = self._stem(tape)
        played = self._driver.play(tape, stem=stem)
        if not played.stem or played.broken is not None:
            self._futures = 0
        tally.runs += 1
        tally.steps += played.steps
        self._cover(tape, played)
        if played.broken is None and tally.runs % REPLAYED == 0:
            self._again(tape, played)
        if played.broken is not None:
            tally.broken.setdefault(played.broken.rule, tape)
        return played

    def _again(self, tape: bytes, played: Played) -> None:
        """The same choices give the same run, to the last field."""
        second = self._driver.play(tape)
        if second.broken is not None or second.state != played.state:
            played.broken = Broken(Rule.REPLAY, "its end is another one")

    # ------------------------------------------------------------ what is covered

    def _cover(self, tape: bytes, played: Played) -> None:
        tally, telling = self.tally, self._telling
        rows, ways = tally.rows, tally.ways
        way = 0
        for row in self._driver.machine.trail:
            rows[row] = rows.get(row, 0) + 1
            if not telling[row]:
                continue
            way = (way * 1_000 + row) % 1_000_000_000
            seen = ways.get(way)
            if seen is None:
                if len(ways) < WAYS_MAX:
                    ways[way] = Seen(tape)
                    self._ways.append(way)
                continue
            seen.times += 1
            if len(tape) < len(seen.tape):
                seen.tape = tape
        spent = played.state.control.spending
        if spent.model_calls > tally.worst_calls:
            tally.worst_calls = spent.model_calls
        if spent.cost > tally.worst_cost:
            tally.worst_cost = spent.cost

    # ------------------------------------------------------------ what is played next

    def _next(self) -> bytes:
        first = next(self._first, None)
        if first is not None:
            return first
        source = self._random
        if self._ways and source.random() < 0.5:
            return self._changed(self._seldom())
        if len(self._pool) < POOL or source.random() < RENEWED:
            self._renew()
        header = self._pool[int(source.random() * len(self._pool))]
        count = source.randrange(*GENES)
        if source.random() < 0.3:
            return header + source.randbytes(GENE * count)
        # A world of habits: few things happen, again and again.
        habits = source.randrange(1, 4)
        said = [source.randbytes(GENE) for _ in range(habits)]
        return header + b"".join([said[int(source.random() * habits)] for _ in range(count)])

    def _stem(self, tape: bytes) -> int:
        """Choose how much of *tape* the next runs begin with."""
        genes = (len(tape) - HEADER) // GENE
        stem = HEADER + GENE * int(genes * (STEM_LEAST + self._random.random() * (1 - STEM_LEAST)))
        self._family, self._futures = (tape, stem), FUTURES if stem > HEADER else 0
        return stem

    def _future(self) -> bytes:
        """Return choices that begin as those of the family do, and go on in another way."""
        (tape, stem), source = self._family, self._random
        rest = tape[stem:]
        if rest and source.random() < 0.5:
            at = source.randrange(len(rest))
            rest = rest[:at] + source.randbytes(1) + rest[at + 1 :]
        else:
            rest = source.randbytes(GENE * source.randrange(1, GENES_LATER))
        return tape[:stem] + rest

    def _renew(self) -> None:
        """Put a setup into the pool, in another's place; one whose run ends with its prompt is of no use."""
        for _ in range(POOL):
            header = random_header(self._random, self._faults)
            if self._driver.useful(header):
                break
        if len(self._pool) < POOL:
            self._pool.append(header)
        else:
            self._pool[self._random.randrange(POOL)] = header

    def _seldom(self) -> bytes:
        """Return choices that go a way that was seldom gone."""
        ways, source = self.tally.ways, self._random
        count = len(self._ways)
        seen = [ways[self._ways[int(source.random() * count)]] for _ in range(3)]
        return min(seen, key=_times).tape

    def _changed(self, tape: bytes) -> bytes:
        """Return *tape* with one or two things about it changed; most often it goes on longer."""
        source = self._random
        for _ in range(source.randrange(1, 3)):
            count = (len(tape) - HEADER) // GENE
            place = HEADER + GENE * source.randrange(count + 1)
            match source.randrange(10):
                case 0 if place < len(tape):
                    tape = tape[:place] + source.randbytes(GENE) + tape[place + GENE :]
                case 1 if place < len(tape):
                    tape = tape[:place] + tape[place + GENE :]
                case 2 | 3:
                    at = source.randrange(FAULT_BYTES, len(tape))
                    tape = tape[:at] + source.randbytes(1) + tape[at + 1 :]
                case 4 if count:
                    again = HEADER + GENE * source.randrange(count)
                    tape = tape[:place] + tape[again : again + GENE * source.randrange(1, 4)] + tape[place:]
                case 5:
                    bit = 1 << source.randrange(8 * FAULT_BYTES)
                    faults = int.from_bytes(tape[:FAULT_BYTES], "little") ^ bit
                    tape = faults.to_bytes(FAULT_BYTES, "little") + tape[FAULT_BYTES:]
                case 6:
                    tape = tape[:place] + source.randbytes(GENE) + tape[place:]
                case 7 if count:
                    tape += self._seldom()[HEADER + GENE * source.randrange(count) :]
                case _:
                    tape += source.randbytes(GENE * source.randrange(1, 4))
        return self._restricted(tape[: HEADER + GENE * GENES_MAX])

    def _restricted(self, tape: bytes) -> bytes:
        """Return *tape* without the faults that are not wanted."""
        faults = int.from_bytes(tape[:FAULT_BYTES], "little") & self._allowed
        return faults.to_bytes(FAULT_BYTES, "little") + tape[FAULT_BYTES:]


def _times(seen: Seen) -> int:
    return seen.times
