"""
The only loop: one event in, the orders out, answers back as events.

Contract.  An event is in the log before any effect it caused begins, and safe
on disk if one of these effects reaches the outside.  Every effect that is owed
an answer gets one: from its port, from the port's exception, or from its
deadline.  Nothing here decides: the reducer does; the interpreter looks at the
class of an effect, never at what an event says.

What is cancelled is asked to stop, and a run ends when all of it has: a tool
that swallows its cancellation holds the end up (a plain function in a thread
does not: it is left behind).  What such a tool still answers is logged.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeAlias

import attrs

from stepfold.effects.border import WrongAnswer
from stepfold.effects.duties import DUTIES, Duty
from stepfold.effects.flow.channel import Channel
from stepfold.effects.flow.deadlines import Deadlines
from stepfold.effects.flow.inbox import Inbox
from stepfold.effects.flow.threads import called
from stepfold.effects.model_call import ModelCall, hearer, words_of
from stepfold.effects.ports import Delta, OutcomeLog, PortFault, ToolProgress
from stepfold.effects.result import Result, Tally
from stepfold.effects.world import World
from stepfold.engine import Config, State, step
from stepfold.engine.effects import (
    AskPermission,
    Background,
    CallModel,
    Cancel,
    CancelModel,
    CancelTool,
    Compact,
    Finish,
    MarkCommand,
    Owed,
    Prefetch,
    RunHook,
    RunTool,
    Show,
    Shown,
    StageCollapse,
    Summarise,
    Tombstone,
)
from stepfold.engine.events import Event
from stepfold.engine.failures import FailureKind

logger = logging.getLogger(__name__)

Item: TypeAlias = Shown | Tombstone | Delta | ToolProgress
Happening: TypeAlias = Callable[[int], Event]  # an event that still lacks its time in ms

REACHES_OUT: Final = frozenset(
    {
        CallModel,
        RunTool,
        AskPermission,
        Compact,
        StageCollapse,
        RunHook,
        Summarise,
        Prefetch,
        Background,
        MarkCommand,
        Finish,
    }
)
MAX_PROGRESS: Final = 1_000  # pieces of progress that may wait for the consumer


@attrs.define(slots=True)
class Open:
    """An effect that nothing has answered yet."""

    order: Owed
    duty: Duty | None  # None: a model call
    call: ModelCall | None
    limit_ms: int | None
    task: asyncio.Task[None] | None = None


class Interpreter:
    """
    Carries out one run.

    Args:
        world: The ports.
        config: Of the run.
        state: Where it begins.
        tally: What is known of the run so far.
        give: Hands an item to the consumer and waits until it was taken; None: nobody listens.
        channel: Tells whether the consumer holds the loop back; None: it cannot.
        on_command: Told of queued words, by id: started, refused.
    """

    def __init__(
        self,
        world: World,
        config: Config,
        state: State,
        tally: Tally,
        *,
        give: Callable[[Item], Awaitable[None]] | None = None,
        channel: Channel[Item] | None = None,
        on_command: Callable[[str, str], None] | None = None,
    ) -> None:
        self.state = state
        self.taken = 0  # events that were taken up
        self._world = world
        self._outcomes = world.log if isinstance(world.log, OutcomeLog) else None
        self._config = config
        self._tally = tally
        self._give = give
        self._channel = channel
        self._on_command = on_command
        self._inbox: Inbox[Event | ToolProgress] = Inbox()
        self._open: dict[int, Open] = {}
        self._last_ms = state.now_ms
        self._progress_waiting = 0
        self._background: set[asyncio.Task[None]] = set()
        self._finished = False
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._tasks = asyncio.TaskGroup()
        self._deadlines = Deadlines(world.clock, self._tasks.create_task, self._expire)
        self._orders: dict[type, Callable[[Any], None]] = {
            **dict.fromkeys(DUTIES, self._ask),
            CallModel: self._call_model,
            CancelModel: self._cancel,
            CancelTool: self._cancel,
            Cancel: self._cancel,
            Background: self._start_background,
            MarkCommand: self._mark,
            Finish: self._finish,
        }

    # ------------------------------------------------------------------ the loop

    async def drive(self, happenings: Iterable[Happening]) -> Result:
        """
        Let *happenings* happen, then go on until the run is over.

        Cancelled or broken by a bug, it leaves nothing running; what it was
        doing can be taken up again from the log.
        """
        for happening in happenings:
            self.happen(happening)
        try:
            async with self._tasks:
                try:
                    await self._turn_over()
                finally:
                    self._stop_all()
            await self._close_tools()
            await self._late_answers()
        except BaseException as problem:
            self._stop_background()
            await self._close_tools()
            if isinstance(problem, BaseExceptionGroup):
                raise _single(problem) from None
            raise
        end = self.state.end
        if end is None:
            raise RuntimeError("the run finished without an end")
        return self._tally.result(end, self.state)

    async def _close_tools(self) -> None:
        """Let the tools give back what they hold; the run is over, and its result stands either way."""
        try:
            await self._world.tools.close()
        except Exception:
            logger.warning("closing the tools failed", exc_info=True)

    async def _turn_over(self) -> None:
        inbox = self._inbox
        items = inbox.items
        while not self._finished:
            item = items.popleft() if items else await inbox.next()
            if type(item) is ToolProgress:
                self._progress_waiting -= 1
                await self._tell(item)
            else:
                await self._take(item)  # type: ignore[arg-type]
            inbox.settle()

    async def _take(self, event: Event) -> None:
        """Fold one event: log it, then carry out what it caused."""
        state, effects = step(self.state, event, self._config)
        log, outcomes = self._world.log, self._outcomes
        if log is not None:
            durable = not REACHES_OUT.isdisjoint(map(type, effects))
            written: Any = (
                log.append(event, durable=durable)
                if outcomes is None
                else outcomes.append_outcome(event, self.state, state, effects, durable=durable)
            )
            if written is None:
                raise WrongAnswer("Log.append returned None, which cannot be awaited: make it async")
            await written
        self.state = state
        self.taken += 1
        orders = self._orders
        for effect in effects:
            kind = type(effect)
            if kind is Show:
                item = effect.item  # type: ignore[union-attr]
                self._tally.note_item(item)
                if self._give is not None:
                    await self._give(item)
            elif kind is Tombstone:
                await self._tell(effect)  # type: ignore[arg-type]
            else:
                orders[kind](effect)

    async def _late_answers(self) -> None:
        """Fold what came in while the run ended: nothing that happened is lost."""
        items = self._inbox.items
        while items:
            item = items.popleft()
            if type(item) is not ToolProgress:
                await self._take(item)  # type: ignore[arg-type]

    async def _tell(self, item: Item) -> None:
        if self._give is not None:
            await self._give(item)

    # ------------------------------------------------------------- from outside

    def happen(self, happening: Happening) -> None:
        """Let the user or the host say something, in the loop's own thread."""
        self._inbox.post(happening(self._now()))

    def _now(self) -> int:
        now = self._world.clock.now_ms()
        if now > self._last_ms:
            self._last_ms = now
        return self._last_ms

    # ------------------------------------------------------------ owed an answer

    def _ask(self, order: Any) -> None:
        duty = DUTIES[type(order)]
        self._start(Open(order, duty, None, duty.deadline_ms(self._config)), self._answer(order, duty))

    def _call_model(self, order: CallModel) -> None:
        world, now = self._world, self._now
        call = ModelCall(order, world, self._inbox, now, hearer(order.id, world.log, self._give, now))
        self._start(Open(order, None, call, self._config.model_timeout_ms), self._read(call))

    def _start(self, opened: Open, work: Coroutine[Any, Any, None]) -> None:
        id = opened.order.id
        self._open[id] = opened
        if opened.limit_ms is not None:
            self._deadlines.set(id, self._world.clock.now_ms() + opened.limit_ms)
        opened.task = self._tasks.create_task(work)

    async def _answer(self, order: Any, duty: Duty) -> None:
        id = order.id
        try:
            answer = await duty.ask(self._world, order, partial(self._progress, order))
            event = duty.stamp(answer, id, self._now())
        except asyncio.CancelledError:
            self._abandoned(id)
            raise
        except PortFault:
            raise
        except (Exception, SystemExit) as problem:  # a hook that calls exit() has crashed, no more
            event = duty.failed(id, words_of(problem), self._now())
            if duty.mute:
                logger.warning("%s %d failed", type(order).__name__, id, exc_info=problem)
        self._close(id)
        self._inbox.post(event)

    async def _read(self, call: ModelCall) -> None:
        id = call.order.id
        try:
            end = await call.read()
        except asyncio.CancelledError:
            self._abandoned(id)
            raise
        if end is not None:
            self._close(id)
            self._inbox.post(end)

    def _progress(self, order: RunTool, text: str) -> None:
        """Pass on how far a tool is; from any thread, and never more than the consumer can take in."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._progress, order, text)
        elif self._give is not None and not self._finished and self._progress_waiting < MAX_PROGRESS:
            self._progress_waiting += 1
            self._inbox.post(ToolProgress(order.call.id, text))

    def _close(self, id: int) -> Open | None:
        self._deadlines.drop(id)
        return self._open.pop(id, None)

    def _cancel(self, order: CancelModel | CancelTool | Cancel) -> None:
        opened = self._close(order.id)
        if opened is None:
            return  # its answer waits in the inbox already
        if opened.task is not None:
            opened.task.cancel()
        if opened.call is not None:
            self._inbox.post(opened.call.cancelled())

    def _expire(self, id: int) -> None:
        """Answer for an effect whose deadline has passed; one that waits for the consumer gets it anew."""
        opened = self._open[id]
        limit = opened.limit_ms or 0
        if opened.call is not None and self._channel is not None and self._channel.blocked:
            self._deadlines.set(id, self._world.clock.now_ms() + limit)
            return
        self._close(id)
        if opened.task is not None:
            opened.task.cancel()
        self._inbox.post(self._instead(opened, FailureKind.TIMEOUT, f"no answer within {limit} ms"))

    def _abandoned(self, id: int) -> None:
        """Answer for an effect whose task was cancelled, though neither the loop nor its owner wanted it."""
        opened = self._close(id)
        if opened is not None and not self._finished:
            self._inbox.post(self._instead(opened, FailureKind.OTHER, "it was cancelled from within"))

    def _instead(self, opened: Open, kind: FailureKind, words: str) -> Event:
        if opened.call is not None:
            return opened.call.failed(kind, words)
        duty = DUTIES[type(opened.order)]
        make = duty.expired if kind is FailureKind.TIMEOUT else duty.failed
        return make(opened.order.id, words, self._now())

    # -------------------------------------------------------- told and forgotten

    def _mark(self, order: MarkCommand) -> None:
        self._tally.note_all((order,))
        if self._on_command is not None:
            self._on_command(order.command_id, order.mark)

    def _finish(self, order: Finish) -> None:
        self._finished = True

    def _start_background(self, order: Background) -> None:
        """Begin work that nobody waits for: it may outlive the run, up to its deadline."""
        if self._world.background is not None:
            task = self._loop.create_task(self._in_background(called(self._world.background, order)))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _in_background(self, work: Awaitable[None]) -> None:
        asked = asyncio.ensure_future(work)
        limit = asyncio.ensure_future(self._world.clock.sleep(self._config.side_timeout_ms))
        try:
            await asyncio.wait({asked, limit}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and not asked.cancelled() and asked.exception() is not None:
                logger.warning("background work failed", exc_info=asked.exception())
        finally:
            limit.cancel()
            asked.cancel()

    @property
    def background(self) -> frozenset[asyncio.Task[None]]:
        """Work that goes on though the run is over."""
        return frozenset(self._background)

    def _stop_background(self) -> None:
        for task in self._background:
            task.cancel()

    def _stop_all(self) -> None:
        """Cancel what is still owed, and the sleeper of the deadlines."""
        self._finished = True
        for opened in self._open.values():
            if opened.task is not None:
                opened.task.cancel()
        self._open.clear()
        self._deadlines.stop()


def _single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one exception of *group*, or the group where there are more."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner
