"""The fixture ``recording``: a run with a real model is kept, or answered from what was kept."""

from __future__ import annotations

import asyncio
import enum
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.memory_log import MemoryLog
from stepfold.adapters.recording import Recording, RecordingError, read_recording
from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.testing.record import Record
from stepfold.adapters.testing.writing.transcript import steps_of
from stepfold.effects import trace
from stepfold.effects.ports import ModelPart, PortFault, TextDelta
from stepfold.effects.setup import Options
from stepfold.engine.effects import CallModel, Compact, StageCollapse
from stepfold.engine.events import (
    BlockCompleted,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Event,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.messages import Text


class Mode(enum.Enum):
    """What the fixture does."""

    PLAIN = "plain"
    RECORD = "record"
    REPLAY = "replay"


class NotAsRecorded(PortFault):
    """The run asks something else than was recorded, or has no recording."""


def recordings_of(nodeid: str, config: pytest.Config, tmp_path: Path) -> Recordings:
    """Return the fixture for one test, as the options of the session say."""
    name = re.sub(r"[^\w.-]+", "-", nodeid.replace("/", ".").replace("::", ".")).strip("-.") + ".jsonl"
    record, replay = config.getoption("stepfold_record"), config.getoption("stepfold_replay")
    if record is not None:
        return Recordings(Path(record) / name, Mode.RECORD)
    if replay is not None:
        return Recordings(Path(replay) / name, Mode.REPLAY)
    return Recordings(tmp_path / name, Mode.PLAIN)


class Recordings:
    """
    The recording of one test.

    Args:
        path: Where it lies, or will.
        mode: Whether it is made or used.
    """

    def __init__(self, path: Path, mode: Mode) -> None:
        self.path = path
        self.mode = mode
        self._half = path.with_name(path.name + ".new")
        self._log: JsonlLog | None = None
        self._replay: _Replay | None = None
        self._whole = False

    def of(self, model: Any, *, match: bool = True) -> Options:
        """
        Return ``model`` and ``log`` for ``run``, and whatever else is answered from the recording.

        Args:
            model: The ``Model`` port, or a function that makes it and is called only where it is needed.
            match: False: a request that differs from the recorded one is answered all the same.

        Raises:
            NotAsRecorded: There is no recording to replay, or it is damaged.
        """
        if self.mode is Mode.REPLAY:
            self._replay = _Replay(self._read(), match)
            return {"model": self._replay, "compactor": self._replay, "log": MemoryLog()}
        file = self._half if self.mode is Mode.RECORD else self.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        self._log = JsonlLog(file, fsync=False)
        return {"model": model if hasattr(model, "call") else model(), "log": self._log}

    def _read(self) -> Recording:
        try:
            return read_recording(self.path)
        except RecordingError as problem:
            raise NotAsRecorded(f"{problem}; record it with --stepfold-record") from problem

    def stepfold_account(self) -> None:
        """Raise ``NotAsRecorded`` where recorded answers were not asked for; the test has passed."""
        if self._replay is not None:
            self._replay.check()
        self._whole = True

    def stepfold_heard(self) -> list[object]:
        """Return what the report of a failed test tells."""
        if self._log is None:
            return [f"recording:   {self.path}"]
        try:
            kept = read_recording(self._log.path)
        except RecordingError as problem:
            return [f"recording:   {problem}"]
        return [Record(kept.begun, steps_of(kept.begun, kept.events))]

    def close(self) -> None:
        """Put a new recording into its place, if its test has passed."""
        if self._log is not None:
            asyncio.run(self._log.close())
            if self.mode is Mode.RECORD and self._whole:
                self._half.replace(self.path)


@attrs.frozen
class _Recorded:
    """One request as it was recorded."""

    order: CallModel
    blocks: tuple[BlockCompleted, ...]
    end: StreamClosed | StreamFailed | None


def _orders(recording: Recording) -> Iterator[tuple[Any, list[Event]]]:
    """Yield every order that was owed an answer, with its answers."""
    found: dict[int, tuple[Any, list[Event]]] = {}
    for event, _, effects in trace(recording.events, recording.state(), recording.begun.config):
        answered = found.get(getattr(event, "effect_id", 0))
        if answered is not None:
            answered[1].append(event)
        found |= {e.id: (e, []) for e in effects if isinstance(e, CallModel | Compact | StageCollapse)}
    yield from found.values()


class _Replay:
    """Model and compactor ports that answer from a recording, in its order."""

    def __init__(self, recording: Recording, match: bool) -> None:
        self._match = match
        self._calls: list[_Recorded] = []
        self._compactions: list[Event] = []
        self._stages: list[Event] = []
        self._used = 0
        for order, answers in _orders(recording):
            match order:
                case CallModel():
                    ends = [a for a in answers if isinstance(a, StreamClosed | StreamFailed)]
                    blocks = tuple(a for a in answers if isinstance(a, BlockCompleted))
                    self._calls.append(_Recorded(order, blocks, ends[0] if ends else None))
                case Compact():
                    self._compactions += answers[:1]
                case StageCollapse():
                    self._stages += answers[:1]

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Stream the recorded answer to the next request."""
        number = self._used
        self._used += 1
        if number >= len(self._calls):
            raise NotAsRecorded(f"call {number + 1} was not recorded: there are {len(self._calls)}")
        recorded = self._calls[number]
        if self._match and (problem := _difference(recorded.order, order)):
            raise NotAsRecorded(f"call {number + 1} asks something else than was recorded: {problem}")
        for event in recorded.blocks:
            if isinstance(event.block, Text) and event.block.text:
                yield TextDelta(event.block.text)
            yield event.block
        if recorded.end is None:
            await asyncio.get_running_loop().create_future()  # it was stopped: so it will be
        else:
            yield attrs.evolve(recorded.end, effect_id=order.id)

    async def compact(self, order: Compact) -> Compacted | CompactionFailed:
        """Answer as the compactor did."""
        answer: Compacted | CompactionFailed = _next(self._compactions, order.id, "compaction")
        return answer

    async def stage(self, order: StageCollapse) -> CollapseStaged:
        """Answer as the compactor did."""
        answer: CollapseStaged = _next(self._stages, order.id, "staged summary")
        return answer

    def check(self) -> None:
        """Raise ``NotAsRecorded`` where recorded answers were not asked for."""
        left = len(self._calls) - self._used
        if left > 0:
            raise NotAsRecorded(f"{left} of {len(self._calls)} recorded answers were not asked for")


def _next(events: list[Event], id: int, what: str) -> Any:
    if not events:
        raise NotAsRecorded(f"no {what} is left in the recording")
    answer: Any = events.pop(0)
    return attrs.evolve(answer, effect_id=id)


def _difference(recorded: CallModel, order: CallModel) -> str:
    """Return the first difference of two requests, or ""."""
    if recorded.model != order.model:
        return f"the model is {order.model!r}, recorded was {recorded.model!r}"
    before, now = wire_messages(recorded), wire_messages(order)
    for number, (one, other) in enumerate(zip(before, now, strict=False), 1):
        if one != other:
            return f"message {number} is {_short(other)}, recorded was {_short(one)}"
    return "" if len(before) == len(now) else f"{len(now)} messages, recorded were {len(before)}"


def _short(message: Any) -> str:
    text = repr(message)
    return text if len(text) <= 300 else f"{text[:300]}..."
