"""
What a step costs, by kind of event, at any length of history.

``step`` is pure, so a recorded walk is taken again and again, event by event:
each is timed alone, many times, without the cost of a clock in the figure.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import fmean, median
from typing import TypeAlias

import attrs

from stepfold.engine import Config, State, start, step
from stepfold.engine.config import HookSpec
from stepfold.engine.effects import AskPermission, CallModel, Prefetch, RunHook, RunTool, Summarise, Wait
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    Command,
    CommandQueued,
    Event,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    RunStarted,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolsChanged,
    ToolSpec,
    Usage,
    Verdict,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Message, Origin, Role, Text, Thinking, ToolUse, user_text

AGAIN = 10  # how often a step is taken for one reading of the clock
ROUNDS = 3
CONFIG = Config(
    max_turns=None,
    max_model_calls=None,
    context_window_tokens=10**9,
    tool_summaries=True,
    prefetch_skills=True,
    stop_hooks=(HookSpec("lint", 10**6),),
)
SAFE = CallFacts(safe=True)
ASKED = CallFacts(safe=True, verdict=Verdict.ASK)
UNSAFE = CallFacts()
USAGE = Usage(100, 20)
RESULT = (Text("x" * 200),)


def history(messages: int) -> list[Message]:
    """Return a history of so many messages, questions and answers in turn."""
    answer = Message(Role.ASSISTANT, (Text("an answer"),), Origin.ANSWER, "main")
    pair = (user_text("a question", Origin.PROMPT), answer)
    return [pair[place % 2] for place in range(messages)]


@attrs.frozen
class Taken:
    """One step of a walk: where it began, and on what."""

    state: State
    event: Event

    @property
    def kind(self) -> str:
        """The name of the event, with the class of its block if it has one."""
        name = type(self.event).__name__
        return f"{name} {type(self.event.block).__name__}" if isinstance(self.event, BlockCompleted) else name


class Walk:
    """
    A run on a history of so many messages, played without an interpreter.

    Its steps are kept; the first one is not, since it repairs the history.
    """

    def __init__(self, messages: int) -> None:
        self.steps: list[Taken] = []
        self._state = start(history(messages), (ToolSpec("read"),))
        self._owed: defaultdict[type, list[int]] = defaultdict(list)
        self._used = 0
        self._take(RunStarted((Text("go"),)))
        self.steps.clear()

    def _take(self, event: Event) -> None:
        self.steps.append(Taken(self._state, event))
        self._state, effects = step(self._state, event, CONFIG)
        for effect in effects:
            if hasattr(effect, "id"):
                self._owed[type(effect)].append(effect.id)

    def _answer(self, kind: type, make: Callable[[int], Event]) -> None:
        """Answer all effects of one kind."""
        ids, self._owed[kind] = self._owed[kind], []
        for effect_id in ids:
            self._take(make(effect_id))

    @property
    def _call(self) -> int:
        return self._owed[CallModel][-1]

    def _use(self, facts: CallFacts) -> None:
        self._used += 1
        use = ToolUse(f"t{self._used}", "read", f'{{"line":{self._used}}}')
        self._take(BlockCompleted(self._call, use, facts))

    def turn(self, number: int) -> None:
        """Take one turn; six of them hold every kind of event that does not rewrite the view."""
        turns = (self._plain, self._asking, self._failing, self._beside, self._parallel, self._hooked)
        self._answer(Prefetch, lambda id: Prefetched(id, ("a memory",)))
        turns[number % len(turns)]()

    def _end(self, stop: Stop = Stop.TOOL_USE) -> None:
        self._answer(CallModel, lambda id: StreamClosed(id, stop, usage=USAGE))
        self._answer(Summarise, lambda id: SummaryReady(id, "read a file"))
        self._answer(RunTool, lambda id: ToolEnded(id, RESULT))
        self._answer(RunTool, lambda id: ToolEnded(id, RESULT))

    def _plain(self) -> None:
        self._take(BlockCompleted(self._call, Text("let me look")))
        self._use(SAFE)
        self._end()

    def _asking(self) -> None:
        self._take(BlockCompleted(self._call, Thinking("hm", "signature")))
        self._use(ASKED)
        self._answer(AskPermission, lambda id: PermissionAnswered(id, True))
        self._end()

    def _failing(self) -> None:
        failure = Failure(FailureKind.TRANSPORT, "connection reset")
        self._answer(CallModel, lambda id: StreamFailed(id, failure))
        self._answer(Wait, WaitElapsed)
        self._plain()

    def _beside(self) -> None:
        self._take(CommandQueued(Command(f"c{self._used}", (Text("and this"),))))
        self._take(ToolsChanged((ToolSpec("read"), ToolSpec(f"other{self._used}"))))
        self._plain()

    def _parallel(self) -> None:
        for facts in (SAFE, SAFE, UNSAFE):
            self._use(facts)
        self._end()

    def _hooked(self) -> None:
        self._take(BlockCompleted(self._call, Text("done")))
        self._end(Stop.END_TURN)
        self._answer(RunHook, lambda id: HookAnswered(id, HookVerdict.BLOCK, "the linter found errors"))

    def abort(self) -> None:
        """End it in the middle of an answer."""
        self._take(BlockCompleted(self._call, Text("let me look")))
        self._take(AbortRequested(AbortKind.HARD))
        self._answer(CallModel, lambda id: StreamCancelled(id))


Cost: TypeAlias = dict[str, float]


def walk(messages: int, turns: int) -> list[Taken]:
    """Return the steps of so many turns and an abort, on a history of so many messages."""
    walking = Walk(messages)
    for number in range(turns):
        walking.turn(number)
    walking.abort()
    return walking.steps


def best_us(work: Callable[[], object], again: int, rounds: int) -> float:
    """Return the least CPU us of *work*, taken *again* times a reading of the clock."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time_ns()
        for _ in range(again):
            work()
        best = min(best, (time.process_time_ns() - begun) / again)
    return best / 1_000


def one_us(taken: Taken) -> float:
    """Return the CPU us of one step."""
    state, event = taken.state, taken.event
    return best_us(lambda: step(state, event, CONFIG), AGAIN, ROUNDS)


def step_us(messages: int, turns: int) -> tuple[float, Cost]:
    """Return the mean us of a step over a walk, and the median by kind of event."""
    steps = walk(messages, turns)
    gc.collect()
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    for taken in steps:
        kinds[taken.kind].append(one_us(taken))
    mean = fmean(one for times in kinds.values() for one in times)
    return mean, {kind: median(times) for kind, times in kinds.items()}
