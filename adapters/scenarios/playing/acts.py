"""What happens from outside: the director waits for the points of the script and acts there."""

from __future__ import annotations

import asyncio
from functools import partial

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.judging.observe import Journal
from stepfold.adapters.scenarios.playing.virtual_time import VirtualClock
from stepfold.effects import Handle
from stepfold.engine.effects import (
    BlockShown,
    CallModel,
    CallShown,
    Compact,
    Effect,
    RunHook,
    RunTool,
    Show,
    Wait,
)
from stepfold.engine.events import BlockCompleted, Event, StreamCancelled, StreamClosed, StreamFailed
from stepfold.engine.messages import ToolUse


class ProcessDied(BaseException):
    """The process dies here: nothing gets to finish."""


@attrs.define
class Counts:
    """How many calls, compactions and waits there have been."""

    calls: int = 0
    compactions: int = 0
    waits: int = 0


@attrs.define
class Director:
    """
    Sees each event with its orders, and does what the script says at the points it has come to.

    A deed waits until the orders have been started and everything rests; then
    it happens before anything else does.
    """

    acts: tuple[f.Act, ...]
    clock: VirtualClock
    journal: Journal
    counts: Counts = attrs.field(factory=Counts)
    fired: dict[int, int] = attrs.field(factory=dict)  # act -> events recorded when its point came
    closed: bool = False
    _planned: list[int] = attrs.field(factory=list)  # acts whose point has come and that are not done
    _unheard: list[str] = attrs.field(factory=list)  # words for the next run
    _events: int = 0
    _numbers: dict[int, int] = attrs.field(factory=dict)  # effect id of a model call -> its number
    _blocks: dict[int, int] = attrs.field(factory=dict)  # effect id -> blocks so far
    _handle: Handle | None = None
    _consumer: asyncio.Task[object] | None = None

    def bind(self, handle: Handle, consumer: asyncio.Task[object] | None) -> None:
        """Act on this run from now on; it hears first what was said as the run before had just ended."""
        self._handle, self._consumer, self.closed = handle, consumer, False
        for index in self._planned:
            self._say(index)
        self._planned.clear()
        for text in self._unheard:
            handle.queue(text)
        self._unheard.clear()

    def _say(self, index: int) -> None:
        """Keep words for the next run; an abort or a death has nothing left to stop."""
        match self.acts[index].do:
            case f.Queue(text):
                self._unheard.append(text)

    def happened(self, event: Event, effects: tuple[Effect, ...]) -> None:
        """Note an event; plan what the script says for the points that it brings."""
        points = self.note(event, effects)
        for index, act in enumerate(self.acts):
            if index not in self.fired and act.at in points:
                self.fired[index] = self._events
                self._planned.append(index)
                self.clock.soon(partial(self._act, index))

    def died(self) -> None:
        """The process died: what it had not come to happens when its point comes again."""
        for index in self._planned:
            del self.fired[index]
        self._planned.clear()

    def missed(self) -> list[str]:
        """Return what is to be said of acts whose point never came."""
        return [
            f"{act.place}: this point never came"
            for index, act in enumerate(self.acts)
            if index not in self.fired
        ]

    def note(self, event: Event, effects: tuple[Effect, ...]) -> set[f.Point]:
        """Count an event; return the points that it brings."""
        self._events += 1
        points: set[f.Point] = set()
        match event:
            case BlockCompleted(effect_id, block):
                self._blocks[effect_id] = self._blocks.get(effect_id, 0) + 1
                number = self._numbers.get(effect_id, 0)
                points.add(f.Point(f.Moment.CALL_BLOCK, number, self._blocks[effect_id]))
                if isinstance(block, ToolUse):
                    self._note_id(block, effects)
            case StreamClosed(effect_id) | StreamFailed(effect_id) | StreamCancelled(effect_id):
                points.add(f.Point(f.Moment.CALL_CLOSED, self._numbers.get(effect_id, 0)))
        for effect in effects:
            point = self._point_of(effect)
            if point is not None:
                points.add(point)
        return points

    def _note_id(self, block: ToolUse, effects: tuple[Effect, ...]) -> None:
        """Remember under which id the loop goes on with a call."""
        for effect in effects:
            if isinstance(effect, Show) and isinstance(effect.item, BlockShown):
                shown = effect.item.block
                if isinstance(shown, ToolUse):
                    self.journal.originals[shown.id] = block.id

    def _point_of(self, effect: Effect) -> f.Point | None:
        names = self.journal.originals
        match effect:
            case CallModel(id):
                self.counts.calls += 1
                self._numbers[id] = self.counts.calls
                return f.Point(f.Moment.CALL_OPENED, self.counts.calls)
            case RunTool(_, call):
                return f.Point(f.Moment.TOOL_STARTED, name=names.get(call.id, call.id))
            case Show(CallShown(use_id)):
                return f.Point(f.Moment.TOOL_ENDED, name=names.get(use_id, use_id))
            case RunHook(_, hook):
                return f.Point(f.Moment.HOOK_STARTED, name=hook)
            case Compact():
                self.counts.compactions += 1
                return f.Point(f.Moment.COMPACTION_STARTED, self.counts.compactions)
            case Wait(_, ms, jitter_ms):
                self.counts.waits += 1
                self.journal.waits_ms.append(ms - jitter_ms)
                return f.Point(f.Moment.RETRY_WAITING, self.counts.waits)
        return None

    def _act(self, index: int) -> None:
        self._planned.remove(index)
        handle, deed = self._handle, self.acts[index].do
        if handle is None or handle.over:
            self._say(index)
            return
        match deed:
            case f.Abort(kind):
                handle.abort(kind)
            case f.Queue(text):
                handle.queue(text)
            case f.Close() if self._consumer is not None:
                self.closed = True
                self._consumer.cancel()
            case f.Crash():
                raise ProcessDied
