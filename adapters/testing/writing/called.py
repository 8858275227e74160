"""What the model answered, call by call: the ``[[model]]`` tables of a recorded run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.playing.tape import Step
from stepfold.adapters.scripted import Answer, Breaks, Closes, Fails
from stepfold.engine.effects import CallModel
from stepfold.engine.events import (
    BlockCompleted,
    Event,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Block, Text, ToolUse


def entries_of(steps: Sequence[Step], block_ms: int) -> tuple[f.Entry, ...]:
    """
    Return one answer for each request of the run, in order.

    Args:
        steps: The run.
        block_ms: How long each block takes.
    """
    entries: list[f.Entry] = []
    for answer in answers_of(steps):
        calls = any(isinstance(block, ToolUse) for block in answer.blocks)
        if block_ms and calls and answer.open is None:
            answer = attrs.evolve(answer, open=Text(""))  # between the last block and the end, tools may end
        parts = len(answer.blocks) + (answer.open is not None)
        timed = attrs.evolve(answer, takes_ms=block_ms * max(1, parts))
        if entries and entries[-1].answer == timed and entries[-1].times is not None:
            entries[-1] = f.Entry(timed, entries[-1].times + 1)
        else:
            entries.append(f.Entry(timed))
    return tuple(entries)


def answers_of(steps: Sequence[Step]) -> Iterator[Answer]:
    """Yield what each request got; one that no end came for ends well."""
    blocks: dict[int, list[Block]] = {}
    ends: dict[int, Event] = {}
    for one in steps:
        match one.event:
            case BlockCompleted(id, block) if id in blocks and id not in ends:
                blocks[id].append(block)
            case StreamClosed(id) | StreamFailed(id) | StreamCancelled(id) if id not in ends:
                ends[id] = one.event
        blocks |= {effect.id: [] for effect in one.effects if isinstance(effect, CallModel)}
    for id, received in blocks.items():
        yield _answer(tuple(received), ends.get(id))


def _answer(blocks: tuple[Block, ...], end: Event | None) -> Answer:
    match end:
        case StreamClosed(_, stop, reason, usage, open_text):
            raw = reason or stop.value
            known = raw in list(Stop) and raw != Stop.OTHER
            closes = Closes(Stop(raw) if known else Stop.OTHER, raw)
            return Answer(blocks, closes, usage, open=_open(open_text))
        case StreamFailed(_, failure, usage, open_text):
            cut = failure.kind is FailureKind.CUT
            return Answer(blocks, Breaks() if cut else Fails(failure), usage, open=_open(open_text))
        case StreamCancelled(_, usage, open_text):
            return Answer(blocks, Closes(), usage, open=Text(open_text))
    return Answer(blocks, Closes(), open=Text(""))  # more was to come: the end is not due with the last block


def _open(text: str) -> Text | None:
    return Text(text) if text else None
