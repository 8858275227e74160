"""
One run through the public ``run``, with everything that went over its ports.

The model port keeps the loop's own requests apart from those of the nested
runs that write summaries (these may call no tool), and answers each kind from
a script of its own, the last answer of the summaries again and again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeAlias, TypeVar

import attrs

from stepfold.adapters.anthropic_api.request import Settings, request_of
from stepfold.adapters.anthropic_api.wire import Rendered
from stepfold.adapters.clock import ManualClock
from stepfold.adapters.ids import FixedIds
from stepfold.adapters.memory_log import MemoryLog
from stepfold.effects import Handle, Result, run
from stepfold.effects.ports import ModelPart, TextDelta
from stepfold.engine import Config
from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallModel, Notice, RunTool
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    Event,
    Stop,
    StreamClosed,
    StreamFailed,
    ToolEnded,
    ToolSpec,
    Usage,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Block, Text, ToolResult, ToolUse

Part: TypeAlias = ModelPart | Callable[[], Awaitable[object]]
Script: TypeAlias = list[Part]
T = TypeVar("T")

TOO_LONG = Failure(FailureKind.PROMPT_TOO_LONG, "prompt is too long: 210000 tokens > 200000 maximum", 400)
MEDIA = Failure(FailureKind.MEDIA_TOO_LARGE, "image exceeds 5 MB maximum", 400)
OVERLOADED = Failure(FailureKind.OVERLOADED, "Overloaded", 529)


def says(
    words: str, *, stop: Stop = Stop.END_TURN, tokens: int = 0, cleared: int = 0, out: int = 10
) -> Script:
    """Return an answer of one text; *tokens* of prompt are reported where there are any."""
    usage = Usage(tokens, out) if tokens or out != 10 else None
    end = StreamClosed(0, stop, stop.value, usage, cleared_tokens=cleared)
    return [TextDelta(words), Text(words), end]


def uses(*calls: str, tokens: int = 0, cleared: int = 0, **input: Any) -> Script:
    """Return an answer that makes calls, each given as ``"id name"``, all with the same input."""
    blocks = [ToolUse(call.split()[0], call.split()[1], json.dumps(input)) for call in calls]
    usage = Usage(tokens, 10) if tokens else None
    end = StreamClosed(0, Stop.TOOL_USE, "tool_use", usage, cleared_tokens=cleared)
    return [*blocks, end]


def fails(failure: Failure) -> Script:
    """Return a call that fails at once."""
    return [StreamFailed(0, failure)]


class Model:
    """The model port."""

    def __init__(self, answers: Iterable[Script], summaries: Iterable[Script] = ()) -> None:
        self.answers = list(answers)
        self.summaries = list(summaries) or [says("What was before, in short.")]
        self.orders: list[CallModel] = []
        self.nested: list[CallModel] = []

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Play the next answer; what can be called is awaited."""
        seen, script = (
            (self.nested, self.summaries) if order.tool_choice_none else (self.orders, self.answers)
        )
        seen.append(order)
        place = len(seen) - 1
        for part in script[min(place, len(script) - 1)] if seen is self.nested else script[place]:
            if callable(part):
                await part()
            elif isinstance(part, StreamClosed | StreamFailed):
                yield attrs.evolve(part, effect_id=order.id)
            else:
                yield part


@attrs.define
class Tools:
    """Tools from functions of the call; all are safe."""

    offered: dict[ToolSpec, Callable[[ToolUse], Any]]
    runs: list[str] = attrs.field(factory=list)

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(self.offered)

    def facts(self, call: ToolUse) -> CallFacts:
        known = any(spec.name == call.name for spec in self.offered)
        return CallFacts(known=known, valid=known, safe=True, problem="" if known else "No such tool.")

    def filled(self, call: ToolUse) -> ToolUse:
        return call

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        self.runs.append(order.call.id)
        made = next(work for spec, work in self.offered.items() if spec.name == order.call.name)(order.call)
        content = await made if asyncio.iscoroutine(made) else made
        blocks = (Text(content),) if isinstance(content, str) else content
        return ToolEnded(order.id, blocks, CallStatus.COMPLETED)

    async def close(self) -> None:
        return


def gives(chars: int, letter: str = "x", **traits: Any) -> Tools:
    """Return a port of one tool, ``read``, with so long a result."""
    return Tools({ToolSpec("read", **traits): lambda call: letter * chars})


@attrs.frozen
class Session:
    """What came of one run."""

    result: Result
    model: Model
    items: list[Any]
    marks: list[tuple[str, str]]
    log: MemoryLog

    @property
    def requests(self) -> list[CallModel]:
        """The loop's own requests."""
        return self.model.orders

    def shown(self, kind: type[T]) -> list[T]:
        """Return what the consumer was shown of one kind, in order."""
        return [item for item in self.items if isinstance(item, kind)]

    def notices(self, kind: str) -> list[Notice]:
        """Return the notices of one kind."""
        return [notice for notice in self.shown(Notice) if notice.kind == kind]


async def played(
    answers: Iterable[Script],
    config: Config | None = None,
    *,
    summaries: Iterable[Script] = (),
    prompt: str | Iterable[Block] = "go",
    handle: Handle | None = None,
    log: MemoryLog | None = None,
    **options: Any,
) -> Session:
    """Run once, in virtual time that stands still unless a clock is given."""
    model = Model(answers, summaries)
    items: list[Any] = []
    marks: list[tuple[str, str]] = []
    kept = log or MemoryLog()
    options.setdefault("clock", ManualClock())
    options.setdefault("ids", FixedIds())
    result = await run(
        prompt,
        model=model,
        config=config or Config(),
        handle=handle,
        log=kept,
        on_item=items.append,
        on_command=lambda id, mark: marks.append((id, str(mark))),
        **options,
    )
    return Session(result, model, items, marks, kept)


def inside(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own; one that hangs is a failed test."""

    async def within_limit() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(within_limit())


def play(answers: Iterable[Script], config: Config | None = None, **options: Any) -> Session:
    """Do what ``played`` does, outside an event loop."""
    return inside(played(answers, config, **options))


async def logged(log: MemoryLog, kind: type[Event], count: int = 1) -> None:
    """Return when *log* holds so many events of one kind."""
    while sum(isinstance(event, kind) for event in log.events) < count:
        await asyncio.sleep(0)


# ---------------------------------------------------------------- what is on the wire


def body(order: CallModel) -> dict[str, Any]:
    """Return the JSON of a request to the Messages API, no caching asked for."""
    made: dict[str, Any] = request_of(order, Settings(cache=None), Rendered()).body
    return made


def words(order: CallModel) -> list[str]:
    """Return every text of a request's messages, those in tool results too, in order."""
    found: list[str] = []
    for message in request_messages(order):
        for block in message.content:
            parts = block.content if isinstance(block, ToolResult) else (block,)
            found += [part.text for part in parts if isinstance(part, Text)]
    return found


def results(order: CallModel) -> dict[str, str]:
    """Return the texts of a request's tool results by the call that they answer."""
    return {
        block.use_id: "".join(part.text for part in block.content if isinstance(part, Text))
        for message in request_messages(order)
        for block in message.content
        if isinstance(block, ToolResult)
    }
