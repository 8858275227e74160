"""
The figures in under a minute: ``python -m benchmarks.quick [--json] [--tiny]``.

Each line is a figure, as a multiple of the floor of the same run, what the
target allows, and a verdict.  A target was set in us for a machine where a
turn of the bare reducer costs 8 us; it is scaled by what that costs here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator

import attrs

from benchmarks import engine, loop
from benchmarks.floor import FLOOR_ON_REFERENCE_US, cpu_us, floor_us


@attrs.frozen
class Figure:
    """One line: a target of None is shown only; ``scaled`` targets grow with the floor."""

    name: str
    unit: str
    value: float
    target: float | None = None
    scaled: bool = True

    def allowed(self, floor: float) -> float | None:
        """Return the target on this machine."""
        if self.target is None:
            return None
        return self.target * floor / FLOOR_ON_REFERENCE_US if self.scaled else self.target

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
        kinds = engine.step_us(messages, 10 * size)
        yield Figure(f"step, average, {messages} messages", "us", sum(kinds.values()) / len(kinds), 8)
        worst = max(kinds, key=lambda name: kinds[name])
        yield Figure(f"step, dearest ({worst}), {messages} messages", "us", kinds[worst], 15)
    yield Figure("last tenth over first tenth of the turns", "x", engine.tenths(50 * size), 1.2, scaled=False)
    yield Figure("kept a turn by the state", "bytes", engine.kept_bytes(20 * size), 2_000, scaled=False)
    count = 5 * size
    log = loop.recorded(count)
    yield Figure("turn with one tool", "us", cpu_us(lambda: loop.turns(count)) / count, 120)
    one = cpu_us(lambda: asyncio.run(loop.deltas(1)))
    many = cpu_us(lambda: asyncio.run(loop.deltas(50 * size)))
    yield Figure("streamed delta", "us", max(0.0, many - one) / (50 * size), 5)
    batches = max(1, size // 10)
    yield Figure(
        "call, 100 side by side", "us", cpu_us(lambda: loop.turns(batches, 100)) / (batches * 100), 50
    )
    yield Figure("recording, a turn", "bytes", loop.journal_bytes(log, count))
    yield Figure("replay, an event", "us", cpu_us(lambda: loop.replay(log)) / len(log.events))
    attrs_ms, engine_ms = engine.import_ms()
    yield Figure("import of attrs", "ms", attrs_ms)
    yield Figure("import of stepfold.engine", "ms", engine_ms, 80 * attrs_ms / 26, scaled=False)


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
    lines = [figure.plain(floor) for figure in figures(size)]
    if "--json" in arguments:
        print(json.dumps({"floor_us": round(floor, 2), "figures": lines}))
        return 0
    print(f"floor: a turn of a bare frozen reducer takes {floor:.1f} us of CPU here")
    print(f"{'':46} {'measured':>12} {'floors':>8} {'allowed':>10}")
    for line in lines:
        floors = "" if line["floors"] is None else line["floors"]
        allowed = "" if line["allowed"] is None else line["allowed"]
        verdict = {None: "", True: "ok", False: "OVER"}[line["ok"]]  # type: ignore[index]
        print(f"{line['name']:46} {line['value']:>8} {line['unit']:<5}{floors:>7} {allowed:>10} {verdict}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
