"""
What a fuzzed run costs: ``python -m benchmarks.fuzz [--json] [--tiny]``.

A run is read as a multiple of a turn of the bare reducer, timed in the same
process: 3,000 runs a second where that turn costs 5.6 us are 60 floors.  The
middle one of five rounds is told, each with its own floor.  All figures but
the last are CPU time; the last is of the clock, with two processes beside each
other.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from benchmarks.floor import FLOOR_ON_REFERENCE_US, cpu_us, floor_us
from stepfold.adapters.fuzzing.driver.machine import machine_of
from stepfold.adapters.fuzzing.driver.runs import Driver
from stepfold.adapters.fuzzing.driver.search import Search
from stepfold.adapters.fuzzing.session import Wanted, search_slice

RUNS_A_SECOND = 3_000
ALLOWED_FLOORS = 1e6 / RUNS_A_SECOND / FLOOR_ON_REFERENCE_US


def one_search(runs: int) -> Search:
    """Return a search that has played so many runs."""
    search = Search(Driver(machine_of()), seed=1)
    while search.tally.runs < runs:
        search.one()
    return search


def _round(runs: int) -> tuple[float, float]:
    """Return what a run takes, and the floor just before and after it, in us: machines change their pace."""
    before = floor_us()
    run_us = cpu_us(lambda: one_search(runs), rounds=1) / runs
    return run_us, (before + floor_us()) / 2


def scaling(seconds: float) -> float:
    """Return how many times the runs of one process two processes play in the same time."""
    wanted = Wanted(seconds=seconds)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(time.sleep, (0.01, 0.01)))
        alone = pool.submit(search_slice, wanted, 1, (), seconds).result().runs
        both = [pool.submit(search_slice, wanted, seed, (), seconds) for seed in (1, 2)]
        return sum(part.result().runs for part in both) / max(1, alone)


def figures(runs: int, seconds: float) -> dict[str, float]:
    """Measure; a few runs only show that it works."""
    search = one_search(runs)
    rounds = sorted((_round(runs) for _ in range(5)), key=lambda each: each[0] / each[1])
    run_us, floor = rounds[len(rounds) // 2]
    return {
        "floor_us": round(floor, 2),
        "run_us": round(run_us, 1),
        "floors": round(run_us / floor, 1),
        "allowed_floors": round(ALLOWED_FLOORS, 1),
        "runs_a_second": round(1e6 / run_us),
        "runs_a_second_on_reference": round(1e6 / (run_us / floor * FLOOR_ON_REFERENCE_US)),
        "events_a_run": round(search.tally.steps / runs, 1),
        "two_processes": round(scaling(seconds), 2),
    }


def main(arguments: list[str]) -> int:
    """Print the figures; 2 for a word that is not known."""
    unknown = set(arguments) - {"--json", "--tiny"}
    if unknown:
        print(
            f"benchmarks.fuzz: {', '.join(sorted(unknown))} is not known; allowed: --json, --tiny",
            file=sys.stderr,
        )
        return 2
    tiny = "--tiny" in arguments
    seen = figures(50 if tiny else 4_000, 0.2 if tiny else 5.0)
    if "--json" in arguments:
        print(json.dumps(seen))
        return 0
    for name, value in seen.items():
        print(f"{name.replace('_', ' '):28} {value:>10,}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
