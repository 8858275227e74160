"""
What folding a streamed answer costs, a delta at a time: CPU us, and as a ratio to parsing the delta's JSON.

    python -m benchmarks.anthropic_fold
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from stepfold.adapters.anthropic_api.fold import Fold

LENGTHS = (500, 4_000, 32_000)
ROUNDS = 5


def text_of(deltas: int) -> list[dict[str, Any]]:
    """Return the events of one text block in so many pieces."""
    begin = {"type": "text", "text": ""}
    return whole(begin, [{"type": "text_delta", "text": "a few words "}] * deltas)


def input_of(deltas: int) -> list[dict[str, Any]]:
    """Return the events of one call whose input is a list of objects, in so many pieces."""
    text = json.dumps({"items": [{"id": number, "name": "x"} for number in range(deltas)]})
    size = -(-len(text) // deltas)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    begin = {"type": "tool_use", "id": "t", "name": "n", "input": {}}
    return whole(begin, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces])


def whole(begin: dict[str, Any], deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a stream with one block."""
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": begin},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def fold(events: list[dict[str, Any]]) -> None:
    """Fold a stream."""
    folding = Fold(1)
    for event in events:
        folding.take(event)


def best(work: Callable[[], object]) -> float:
    """Return the least CPU time of some rounds, in us."""
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - begin)
    return min(times) / 1_000


def main() -> None:
    """Print one line a kind and length."""
    print(f"{'answer':>8} {'deltas':>8} {'us/delta':>9} {'x json':>7}")
    for name, make in (("text", text_of), ("input", input_of)):
        for length in LENGTHS:
            events = make(length)
            lines = [json.dumps(event) for event in events]
            floor = best(lambda lines=lines: [json.loads(line) for line in lines])  # type: ignore[misc]
            cost = best(lambda events=events: fold(events))  # type: ignore[misc]
            print(f"{name:>8} {length:>8} {cost / length:>9.2f} {cost / floor:>7.2f}")


if __name__ == "__main__":
    main()
