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
from typing import Final, TypeAlias, Unpack

from stepfold.effects.duties import clean
from stepfold.effects.flow.channel import Channel, Closed
from stepfold.effects.fold import LogMismatch, TakenUp, take_up
from stepfold.effects.handle import Handle
from stepfold.effects.interpreter import Happening, Interpreter, Item
from stepfold.effects.ports import Ids
from stepfold.effects.result import CommandMark, Result
from stepfold.effects.setup import OnItem, Options, Setup
from stepfold.engine.context.repair import encodable
from stepfold.engine.events import Resumed, RunStarted, ToolsChanged, ToolSpec
from stepfold.engine.messages import Block, Text

Prompt: TypeAlias = str | Iterable[Block] | None
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
        TypeError, ValueError: An option cannot be what it is; it is named.
    """
    result, _ = await _drive(prompt, Setup(**options), _giver(on_item), None, handle or Handle())
    return result


def run_sync(
    prompt: Prompt,
    *,
    on_item: OnItem | None = None,
    handle: Handle | None = None,
    **options: Unpack[Options],
) -> Result:
    """Do what ``run`` does, in an event loop of its own; background work is waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("run_sync cannot be used inside an event loop: await run(...) there")

    async def main() -> Result:
        result, left = await _drive(prompt, Setup(**options), _giver(on_item), None, handle or Handle())
        if left:
            await asyncio.wait(left)
        return result

    return asyncio.run(main())


def stream(prompt: Prompt, *, handle: Handle | None = None, **options: Unpack[Options]) -> Stream:
    """Return the run as an async iterator; nothing happens before the first item is asked for."""
    return Stream(prompt, Setup(**options), handle or Handle())


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
    prompt: Prompt,
    setup: Setup,
    give: Callable[[Item], Awaitable[None]] | None,
    channel: Channel[Item] | None,
    handle: Handle,
) -> tuple[Result, Left]:
    plan = setup.plan()
    world = plan.world
    words = _blocks(prompt)
    specs = world.tools.specs()
    taken = await take_up(world.log, setup.start(plan.config, specs), plan.config_given)
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


def _blocks(prompt: Prompt) -> tuple[Block, ...] | None:
    if prompt is None:
        return None
    blocks: tuple[Block, ...]
    blocks = (Text(clean(prompt)),) if isinstance(prompt, str) else tuple(map(encodable, prompt))
    if not blocks or (len(blocks) == 1 and isinstance(blocks[0], Text) and not blocks[0].text.strip()):
        raise ValueError("prompt: it is empty; give a text, blocks, or None to go on with a log")
    return blocks


def _beginning(
    words: tuple[Block, ...] | None, taken: TakenUp, specs: tuple[ToolSpec, ...], ids: Ids
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
    return (*changed, lambda now: RunStarted(prompt, run_id, seed, now))


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

    def __init__(self, prompt: Prompt, setup: Setup, handle: Handle) -> None:
        self.handle: Final = handle
        self._prompt = prompt
        self._setup = setup
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
            work = _drive(self._prompt, self._setup, channel.give, channel, self.handle)
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

