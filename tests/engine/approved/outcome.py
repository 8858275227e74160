"""
What a scenario comes to: each order in a line, in words where they are for people.

``python -m tests.engine.approved.outcome`` writes ``outcomes.json`` anew; the
difference to the one before is there to be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stepfold.adapters.codec import digest
from stepfold.adapters.scenarios.playing.play import play
from stepfold.adapters.scenarios.reading.load import load
from stepfold.engine import State
from stepfold.engine.effects import Effect, ErrorShown, MessageShown, Notice, Show, SummaryShown
from stepfold.engine.messages import texts

SCENARIOS: Final = Path(__file__).parents[2] / "scenarios"
KEPT: Final = Path(__file__).parent / "outcomes.json"
FILES: Final = sorted(str(path.relative_to(SCENARIOS)) for path in SCENARIOS.rglob("*.toml"))


def outcome(name: str) -> list[str]:
    """Return the orders of each step, what a reader can see of them first, then the digest of all."""
    return [
        f"{type(step.event).__name__}: {'; '.join(_seen(step.effects))} {_digest(step.state, step.effects)}"
        for take in play(load(SCENARIOS / name)).takes
        for step in take.tape.steps
    ]


def _digest(state: State, effects: tuple[Effect, ...]) -> str:
    """Return a short digest: of the orders of a step, and of the state's decision and view after it."""
    return digest((effects, state.control, state.data.messages))[:10]


def _seen(effects: tuple[Effect, ...]) -> Iterator[str]:
    for effect in effects:
        match effect:
            case Show(item=Notice(kind, words, count)):
                yield f"{kind.value} {words!r} {count}"
            case Show(item=ErrorShown(failure)):
                yield f"ErrorShown {failure.message!r}"
            case Show(item=MessageShown(message)):
                yield f"MessageShown {texts(message.content)!r}"
            case Show(item=SummaryShown() as item):
                yield f"SummaryShown {item.text!r}"
            case Show(item=item):
                yield type(item).__name__
            case _:
                yield type(effect).__name__


def kept() -> dict[str, list[str]]:
    """Return what was written."""
    read: dict[str, list[str]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return read


if __name__ == "__main__":
    KEPT.write_text(json.dumps({name: outcome(name) for name in FILES}, indent=0, ensure_ascii=False) + "\n")
