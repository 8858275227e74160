"""
How a session is played: the public ``run``, the real SDK, a server on the loopback.

Every request is checked by the server as the API checks it, and every session
is recorded, read back from its file, and folded to the same state.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from stepfold.adapters.anthropic_api.models import spec
from stepfold.adapters.codec import digest
from stepfold.adapters.ids import FixedIds
from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.recording import read_recording
from stepfold.adapters.tools import Toolbox, function_tools, tool
from stepfold.effects import Handle, Result, fold, run
from stepfold.engine import Config, Continue, State, Terminal
from stepfold.engine.effects import Notice, NoticeKind, Tombstone
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Message, Origin, Role, Text, ToolResult, ToolUse, user_text
from stepfold.engine.terminals import ModelError
from tests.adapters.anthropic_api.asking import MODEL, answer, begun, ended, piece, port, text_events
from tests.adapters.anthropic_api.loopback import Json, Loopback, Reply, stream

OTHER = "claude-opus-5"
SPECS = tuple(each for each in (spec(MODEL), spec(OTHER)) if each is not None)
CONFIG = Config(model=MODEL, models=SPECS, model_timeout_ms=6_000_000)
FAST = 200  # the clock of these sessions runs so many times faster, so that nobody waits for a back-off


class FastClock:
    """Real time, only faster; remembers how long was slept."""

    def __init__(self) -> None:
        self.slept_ms: list[int] = []

    def now_ms(self) -> int:
        """Return ms since 1970, more or less."""
        return time.monotonic_ns() // 1_000_000 * FAST

    async def sleep(self, ms: int) -> None:
        """Sleep a fraction of *ms*."""
        self.slept_ms.append(ms)
        await asyncio.sleep(ms / 1_000 / FAST)


# ---------------------------------------------------------------- tools of the sessions


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(read_only=True, safe=True, clearable=True)
async def read(path: str) -> str:
    """Read a file."""
    await asyncio.sleep(0.02 if path == "slow" else 0)
    return f"content of {path} " * 20


def both() -> Toolbox:
    """Return the tools."""
    return function_tools([add, read])


# ---------------------------------------------------------------- one session


@attrs.frozen
class Session:
    """What a session left behind."""

    result: Result
    api: Loopback
    items: list[Any]
    clock: FastClock

    @property
    def bodies(self) -> list[Json]:
        """The requests, without the marks of the prompt cache."""
        return [json.loads(json.dumps(body), object_hook=without_mark) for body in self.api.bodies]

    def notices(self, kind: NoticeKind) -> list[Notice]:
        """Return the notices of one kind."""
        return [item for item in self.items if isinstance(item, Notice) and item.kind is kind]

    @property
    def withdrawn(self) -> int:
        """How often something that was shown was taken back."""
        return sum(isinstance(item, Tombstone) for item in self.items)


def without_mark(wire: Json) -> Json:
    """Return *wire* without a cache mark."""
    wire.pop("cache_control", None)
    return wire


class Play:
    """Plays sessions; each is recorded, and its file folded again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0

    def __call__(
        self,
        *script: Reply,
        prompt: str = "go",
        config: Config = CONFIG,
        client: dict[str, Any] | None = None,
        during: Callable[[Loopback, Handle], Any] | None = None,
        **options: Any,
    ) -> Session:
        """Run one session over *script* to its end, then replay its recording."""
        return asyncio.run(self._play(script, prompt, config, client, during, options))

    async def _play(
        self,
        script: tuple[Reply, ...],
        prompt: str,
        config: Config,
        client: dict[str, Any] | None,
        during: Callable[[Loopback, Handle], Any] | None,
        options: dict[str, Any],
    ) -> Session:
        self._number += 1
        path = self._folder / f"session-{self._number}.jsonl"
        log, clock, handle = JsonlLog(path, fsync=False), FastClock(), Handle()
        items: list[Any] = []
        asked: dict[str, Any] = {"tools": both(), "can_use_tool": lambda name, input: True, **options}
        async with Loopback(script) as api, port(api, client=client, system="be good") as model:
            told = asyncio.ensure_future(during(api, handle)) if during is not None else None
            result = await run(
                prompt,
                model=model,
                config=config,
                log=log,
                clock=clock,
                ids=FixedIds(),
                on_item=items.append,
                handle=handle,
                **asked,
            )
            await log.close()
            if told is not None:
                await told
        assert [] == api.refused, "the server found no fault with any request"
        assert len(script) == len(api.requests), "the script was played to its end"
        assert digest(result.state) == digest(replayed(path)), "the recording folds to the same state"
        return Session(result, api, items, clock)


def replayed(path: Path) -> State:
    """Return the state that the recording in *path* folds to."""
    recording = read_recording(path)
    return fold(recording.events, recording.state(), recording.begun.config)


def call(id: str, name: str, input: Json | str, index: int = 0) -> list[Json]:
    """Return the events of one call."""
    text = input if isinstance(input, str) else json.dumps(input)
    deltas = [
        piece({"type": "input_json_delta", "partial_json": text[at : at + 4]}, index)
        for at in range(0, len(text), 4)
    ]
    return [begun({"type": "tool_use", "id": id, "name": name, "input": {}}, index), *deltas, ended(index)]


def calling(*calls: list[Json]) -> Reply:
    """Return an answer that ends with *calls*."""
    return stream(answer(*calls, reason="tool_use"))


def saying(text: str, reason: str = "end_turn") -> Reply:
    """Return an answer of text."""
    return stream(answer(text_events(text), reason=reason))


def result_of(id: str, text: str, **fields: Any) -> Json:
    """Return a result as it goes out."""
    return {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}], **fields}


DONE = saying("done")


def reasons(session: Session) -> list[Continue]:
    """Return why the loop went round, in order."""
    return [transition.reason for transition in session.result.transitions]


def failure_of(session: Session) -> tuple[Terminal, FailureKind]:
    """Return the terminal and the failure that it carries."""
    end = session.result.end
    assert isinstance(end, ModelError), end
    return session.result.terminal, end.failure.kind


def long_history() -> list[Message]:
    """Return some rounds of work, large enough to be worth a summary."""
    messages = [user_text("find it", Origin.PROMPT)]
    for number in range(8):
        use = ToolUse(f"h{number}", "read", '{"path":"x"}')
        messages.append(Message(Role.ASSISTANT, (Text("next"), use), Origin.ANSWER, MODEL))
        content = (Text("line of a file\n" * 1_500),)
        messages.append(Message(Role.USER, (ToolResult(use.id, content),), Origin.RESULTS))
    messages.append(Message(Role.ASSISTANT, (Text("found"),), Origin.ANSWER, MODEL))
    return messages
