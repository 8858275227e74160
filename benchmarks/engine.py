"""What the engine costs: a step by kind of event, at any length of history; what is kept a turn."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections import defaultdict
from statistics import median

from stepfold.engine import Config, State, start, step
from stepfold.engine.effects import CallModel, Effect, RunTool
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    Event,
    RunStarted,
    Stop,
    StreamClosed,
    ToolEnded,
    Usage,
)
from stepfold.engine.messages import Message, Origin, Role, Text, ToolUse, user_text

CONFIG = Config(max_turns=None, max_model_calls=None, context_window_tokens=10**9)
SAFE = CallFacts(safe=True)


def history(messages: int) -> list[Message]:
    """Return a history of so many messages, questions and answers in turn."""
    answer = Message(Role.ASSISTANT, (Text("an answer"),), Origin.ANSWER, "main")
    pair = (user_text("a question", Origin.PROMPT), answer)
    return [pair[place % 2] for place in range(messages)]


def begun(messages: int = 0) -> tuple[State, int]:
    """Return a run that has begun on a history, and the id of its first call."""
    state, effects = step(start(history(messages)), RunStarted((Text("go"),)), CONFIG)
    return state, _id(effects, CallModel)


def _id(effects: tuple[Effect, ...], kind: type[CallModel] | type[RunTool]) -> int:
    return next(effect.id for effect in effects if isinstance(effect, kind))


def turn_events(
    state: State, call: int, number: int, kinds: dict[str, list[float]] | None
) -> tuple[State, int]:
    """Take one turn of one tool call: four steps; note each one's us by kind where asked."""

    def take(event: Event, name: str) -> tuple[Effect, ...]:
        nonlocal state
        if kinds is None:
            state, effects = step(state, event, CONFIG)
            return effects
        begin = time.perf_counter()
        state, effects = step(state, event, CONFIG)
        kinds[name].append((time.perf_counter() - begin) * 1e6)
        return effects

    take(BlockCompleted(call, Text("let me look")), "text block")
    use = ToolUse(f"t{number}", "read", f'{{"line":{number}}}')
    tool = _id(take(BlockCompleted(call, use, SAFE), "tool block"), RunTool)
    take(StreamClosed(call, Stop.TOOL_USE, usage=Usage(100 + number, 20)), "end of the stream")
    call = _id(take(ToolEnded(tool, (Text("x" * 200),)), "result, next request"), CallModel)
    return state, call


def step_us(messages: int, turns: int) -> dict[str, float]:
    """Return the median us of a step by kind of event, on a history of so many messages."""
    kinds: dict[str, list[float]] = defaultdict(list)
    state, call = begun(messages)
    for number in range(turns):
        state, call = turn_events(state, call, number, kinds)
    return {name: median(times) for name, times in kinds.items()}


def tenths(turns: int) -> float:
    """Return what the last tenth of a run's turns costs against the first."""
    state, call = begun()
    marks = [time.process_time()]
    for number in range(turns):
        state, call = turn_events(state, call, number, None)
        if (number + 1) % (turns // 10) == 0:
            marks.append(time.process_time())
    return (marks[-1] - marks[-2]) / (marks[1] - marks[0])


def kept_bytes(turns: int) -> float:
    """Return what a state keeps a turn, in bytes."""
    state, call = begun()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(turns):
        state, call = turn_events(state, call, number, None)
    kept = (tracemalloc.get_traced_memory()[0] - before) / turns
    tracemalloc.stop()
    return kept


def import_ms() -> tuple[float, float]:
    """Return CPU ms of importing attrs, and of importing the engine, attrs included; bytecode is cached."""
    code = (
        "import time; a = time.process_time(); import attrs; b = time.process_time()\n"
        "import stepfold.engine; c = time.process_time(); print((b - a) * 1e3, (c - a) * 1e3)"
    )
    figures = []
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(5):
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
            )
            before, after = done.stdout.split()
            figures.append((float(before), float(after)))
    return min(figures, key=lambda pair: pair[1])
