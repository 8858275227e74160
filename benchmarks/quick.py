"""
The figures in under a minute: ``python -m benchmarks.quick [--json] [--tiny]``.

Each line is a figure, as a multiple of the floor of the same run, what the
target allows, and a verdict.  A target was set in us for a machine where a
turn of the bare reducer costs 5.6 us; it is scaled by what that costs here.
Everything is CPU time, the least of some rounds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator

import attrs

from benchmarks import imports, loop, records, steps
from benchmarks.floor import ATTRS_ON_REFERENCE_MS, FLOOR_ON_REFERENCE_US, cpu_us, floor_us
from stepfold.adapters.memory_log import MemoryLog


@attrs.frozen
class Figure:
    """One line: a target of None is shown only; it grows with the floor, or by ``scale``."""

    name: str
    unit: str
    value: float
    target: float | None = None
    scale: float | None = None

    def allowed(self, floor: float) -> float | None:
        """Return the target on this machine."""
        if self.target is None:
            return None
        return self.target * (floor / FLOOR_ON_REFERENCE_US if self.scale is None else self.scale)

    def plain(self, floor: float) -> dict[str, object]:
        """Return the line for programs."""
        allowed = self.allowed(floor)
        return {
            "name": self.name,
            "unit": self.unit,
            "value": round(self.value, 2),
            "floors": round(self.value / floor, 2) if self.unit == "us" else None,
            "target": self.target,
            "allowed": None if allowed is None else round(allowed, 2),
            "ok": None if allowed is None else self.value <= allowed,
        }


def figures(size: int) -> Iterator[Figure]:
    """Measure; *size* 100 is the real thing, 1 only shows that it runs."""
    for messages in (10, 1_000, 1_000 * size):
        mean, kinds = steps.step_us(messages, max(6, size))
        yield Figure(f"step, average, {messages:,} messages", "us", mean, 8)
        dearest = max(kinds, key=lambda kind: kinds[kind])
        yield Figure(f"step, dearest ({dearest}), {messages:,} messages", "us", kinds[dearest], 15)
    mean, kinds = records.records_us(10, max(6, size // 4))
    yield Figure("of it the new records, built alone, average", "us", mean)
    yield Figure(f"the same of the dearest ({dearest})", "us", kinds[dearest])
    yield from _runs(size)
    yield from _recordings(size)
    attrs_ms, engine_ms = imports.import_ms()
    yield Figure("import of attrs", "ms", attrs_ms)
    yield Figure("import of stepfold.engine", "ms", engine_ms, 80, scale=attrs_ms / ATTRS_ON_REFERENCE_MS)


def _runs(size: int) -> Iterator[Figure]:
    count = 5 * size
    yield Figure("turn with one tool", "us", cpu_us(lambda: loop.turns(count, log=MemoryLog())) / count, 120)
    yield Figure("last tenth over first tenth of the turns", "x", loop.tenths(50 * size), 1.2, scale=1)
    yield Figure("kept in memory a turn", "bytes", loop.kept_bytes(10 * size), 2_000, scale=1)
    logged = loop.kept_bytes(10 * size, MemoryLog())
    yield Figure("the same with its events", "bytes", logged, 2_000, scale=1)
    batches = max(1, size // 10)
    parallel = cpu_us(lambda: loop.turns(batches, 100, MemoryLog())) / (batches * 100)
    yield Figure("call, 100 side by side", "us", parallel, 50)
    for pieces in (50 * size, 200 * size):
        one = cpu_us(lambda: asyncio.run(loop.deltas(1)))
        many = cpu_us(lambda pieces=pieces: asyncio.run(loop.deltas(pieces)))  # type: ignore[misc]
        yield Figure(f"streamed delta, of {pieces:,}", "us", max(0.0, many - one) / pieces, 5)


def _recordings(size: int) -> Iterator[Figure]:
    short, long = loop.journal_bytes(size), loop.journal_bytes(10 * size)
    yield Figure(f"recording, a turn of {10 * size:,}", "bytes", long)
    yield Figure(f"the same against one of {size:,}", "x", long / short, 1.05, scale=1)
    log = loop.recorded(5 * size)
    yield Figure("replay, an event", "us", cpu_us(lambda: loop.replay(log)) / len(log.events), 8)
    yield Figure("scenario, checked with all its crashes", "us", cpu_us(loop.check_scenario))


def main(arguments: list[str]) -> int:
    """Print the figures; 2 for a word that is not known."""
    unknown = set(arguments) - {"--json", "--tiny"}
    if unknown:
        print(
            f"benchmarks.quick: {', '.join(sorted(unknown))} is not known; allowed: --json, --tiny",
            file=sys.stderr,
        )
        return 2
    size = 1 if "--tiny" in arguments else 100
    floor = floor_us()
    taken = tuple(figures(size))
    floor = min(floor, floor_us())
    lines = [figure.plain(floor) for figure in taken]
    if "--json" in arguments:
        print(json.dumps({"floor_us": round(floor, 2), "figures": lines}))
        return 0
    scale = floor / FLOOR_ON_REFERENCE_US
    print(f"floor: a turn of a bare frozen reducer takes {floor:.1f} us of CPU, {scale:.2f} x the reference")
    width = max(len(str(line["name"])) for line in lines)
    print(f"{'':{width}} {'measured':>14} {'floors':>8} {'target':>8} {'here':>8}")
    for line in lines:
        floors, target, allowed = (
            "" if line[key] is None else f"{line[key]:,}" for key in ("floors", "target", "allowed")
        )
        verdict = {None: "", True: "ok", False: "OVER"}[line["ok"]]  # type: ignore[index]
        measured = f"{line['value']:,} {line['unit']}"
        print(f"{line['name']:{width}} {measured:>14} {floors:>8} {target:>8} {allowed:>8} {verdict}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
