"""
What a caller calls: ``run``, ``run_sync``, ``stream``.

One log may hold several runs, one after the other.  A log whose last run never
came to its end is gone on with: by no prompt, or by the prompt of that run.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Final, TypeAlias, Unpack

import attrs

from stepfold.effects.flow.channel import Channel, Closed
from stepfold.effects.fold import LogMismatch, TakenUp, take_up
from stepfold.effects.handle import Handle
from stepfold.effects.interpreter import Happening, Interpreter, Item
from stepfold.effects.options import FUNCTION, Words, instance, user_words
from stepfold.effects.ports import Held, Ids
from stepfold.effects.result import CommandMark, Result
from stepfold.effects.setup import OnItem, Options, Plan, Setup
from stepfold.engine.events import Resumed, RunStarted, ToolsChanged, ToolSpec
from stepfold.engine.messages import Block, texts

Prompt: TypeAlias = str | Iterable[Block] | None
HANDLE: Final = instance(Handle, "a Handle of stepfold.effects")
Left: TypeAlias = frozenset[asyncio.Task[None]]  # background work that goes on


async def run(
    prompt: Prompt,
    *,
    on_item: OnItem | None = None,
    handle: Handle | None = None,
    **options: Unpack[Options],
) -> Result:
    """
    Run from *prompt* to a terminal.

    Args:
        prompt: A text or blocks; None goes on with what the log holds.
        on_item: Gets everything shown, deltas too; may be async, and the loop waits for it.
        handle: Where the user aborts and queues words while the run goes on.
        options: See ``Options``.

    Returns:
        The result; limits and failures are results too (``Result.unwrap`` raises).

    Raises:
        LogMismatch: The log holds something else than what is wanted.
        RuntimeError: Another run is writing the log, or *handle* belongs to another run.
        TypeError, ValueError: An option cannot be what it is; it is named.
    """
    order = _ordered("run", prompt, options, on_item, handle)
    result, _ = await _drive(order, _giver(on_item), None)
    return result


def run_sync(
    prompt: Prompt,
    *,
    on_item: OnItem | None = None,
    handle: Handle | None = None,
    **options: Unpack[Options],
) -> Result:
    """
    Do what ``run`` does, in an event loop of its own; background work is waited for.

    Raises ``RuntimeError`` inside a running event loop: ``await run(...)`` there.
    """
    order = _ordered("run_sync", prompt, options, on_item, handle)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("run_sync cannot be used inside an event loop: await run(...) there")

    async def main() -> Result:
        result, left = await _drive(order, _giver(on_item), None)
        if left:
            await asyncio.wait(left)
        return result

    return asyncio.run(main())


def stream(prompt: Prompt, *, handle: Handle | None = None, **options: Unpack[Options]) -> Stream:
    """
    Return the run as an async iterator; nothing happens before the first item is asked for.

    What the caller got wrong is raised here and now, as ``run`` raises it.
    """
    return Stream(_ordered("stream", prompt, options, None, handle))


@attrs.frozen
class _Order:
    """A run as it was asked for, checked."""

    words: Words | None
    setup: Setup
    plan: Plan
    handle: Handle


def _ordered(
    where: str, prompt: Prompt, options: Options, on_item: OnItem | None, handle: Handle | None
) -> _Order:
    """Check everything that *where* was given; raises ``TypeError`` or ``ValueError`` that names it."""
    more = ("handle",) if where == "stream" else ("handle", "on_item")
    setup = Setup.of(where, options, more)
    HANDLE.check(where, "handle", handle)
    FUNCTION.check(where, "on_item", on_item)
    words = None if prompt is None else user_words(where, "prompt", prompt)
    return _Order(words, setup, setup.plan(where), handle or Handle())


def _giver(on_item: OnItem | None) -> Callable[[Item], Awaitable[None]] | None:
    if on_item is None:
        return None
    tell = on_item

    async def give(item: Item) -> None:
        said = tell(item)
        if inspect.isawaitable(said):
            await said

    return give


# ------------------------------------------------------------------ one run


async def _drive(
    order: _Order, give: Callable[[Item], Awaitable[None]] | None, channel: Channel[Item] | None
) -> tuple[Result, Left]:
    log: object = order.plan.world.log
    if not isinstance(log, Held):
        return await _on_log(order, give, channel)
    log.hold()
    try:
        return await _on_log(order, give, channel)
    finally:
        log.release()


async def _on_log(
    order: _Order, give: Callable[[Item], Awaitable[None]] | None, channel: Channel[Item] | None
) -> tuple[Result, Left]:
    words, setup, plan, handle = order.words, order.setup, order.plan, order.handle
    world = plan.world
    specs = world.tools.specs()
    wanted = setup.start(plan.config, specs, "" if words is None else texts(words))
    taken = await take_up(world.log, wanted, plan.config_given)
    happenings = _beginning(words, taken, specs, plan.ids)
    if not happenings:
        assert taken.state.end is not None
        result = taken.tally.result(taken.state.end, taken.state)
        _confirm(setup, taken.tally.started)
        return result, frozenset()
    tally = taken.tally if taken.unfinished else type(taken.tally)()
    loop = Interpreter(
        world, taken.config, taken.state, tally, give=give, channel=channel, on_command=setup.on_command
    )
    handle.bind(loop, world.tools.specs, taken.events)
    try:
        result = await loop.drive((*happenings, *handle.early()))
    finally:
        handle.unbind()
    _confirm(setup, tally.started)
    return result, loop.background


def _beginning(
    words: Words | None, taken: TakenUp, specs: tuple[ToolSpec, ...], ids: Ids
) -> tuple[Happening, ...]:
    """Return what happens first: nothing where the log is finished and nothing is wanted."""
    data = taken.state.data
    known = data.side.tools_changed if data.side.tools_changed is not None else data.tool_context.tools
    changed: tuple[Happening, ...] = () if specs == known else (lambda now: ToolsChanged(specs, now),)
    if taken.run is not None and taken.unfinished:
        if words is not None and words != taken.run.prompt:
            raise LogMismatch("prompt: the log holds an unfinished run of another one; finish that with None")
        return (Resumed, *changed)
    if words is None:
        if taken.run is None:
            raise LogMismatch("prompt: there is nothing to go on with: no log, or an empty one")
        return ()
    prompt, run_id, seed = words, ids.run_id(), ids.seed()
    _sound_ids(run_id, seed)
    return (*changed, lambda now: RunStarted(prompt, run_id, seed, now))


def _sound_ids(run_id: Any, seed: Any) -> None:
    if not isinstance(run_id, str) or type(seed) is not int or seed < 0:
        raise TypeError(f"ids: it gave {run_id!r} and {seed!r}; wanted a text and a whole number >= 0")


def _confirm(setup: Setup, started: Iterable[str]) -> None:
    if setup.on_command is not None:
        for command_id in started:
            setup.on_command(command_id, CommandMark.COMPLETED)


# ------------------------------------------------------------------- stream


class Stream:
    """
    A run that goes on while its items are asked for, and no further.

    Yields deltas, everything shown and ``Tombstone``, in order.  Left by
    ``break`` or closed by ``aclose``, the run ends with everything cancelled,
    without a terminal and with no queued words confirmed; its log can be gone
    on with.  After the last item ``result`` holds the result.
    """

    def __init__(self, order: _Order) -> None:
        self.handle: Final = order.handle
        self._order = order
        self._channel: Channel[Item] | None = None
        self._task: asyncio.Task[tuple[Result, Left]] | None = None
        self._closing = False
        self._told = False  # a bug that ended the run was raised already

    @property
    def result(self) -> Result:
        """The result; raises ``RuntimeError`` before the run has come to its end."""
        task = self._task
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            raise RuntimeError("the run has no result: it has not come to its end")
        return task.result()[0]

    def __aiter__(self) -> AsyncIterator[Item]:
        return self._items()

    async def __anext__(self) -> Item:
        item = await self._next()
        if isinstance(item, Closed):
            raise StopAsyncIteration
        return item

    async def _items(self) -> AsyncIterator[Item]:
        """Yield the items; as a generator, so that leaving it by ``break`` closes the run."""
        try:
            while not isinstance(item := await self._next(), Closed):
                yield item
        finally:
            await self.aclose()

    async def _next(self) -> Item | Closed:
        if self._closing:
            return Closed()
        if self._channel is None:
            channel = self._channel = Channel()
            work = _drive(self._order, channel.give, channel)
            self._task = asyncio.create_task(work)
            self._task.add_done_callback(lambda _: channel.close())
        item = await self._channel.take()
        if isinstance(item, Closed) and not self._closing and self._task is not None:
            self._told = True
            await self._task  # raises what ended the run, if it was a bug
        return item

    async def aclose(self) -> None:
        """End the run now; does nothing where it has ended."""
        self._closing = True
        task = self._task
        if task is None or self._told:
            return
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._told = True
            raise problem

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
