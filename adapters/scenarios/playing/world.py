"""
The simulated world: one scripted port each for model, compactor, tools, permission and hooks.

Everything that one order brings gets its places in the order of time when the
order comes in: of two things due at the same moment, the one whose cause is
older happens first.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final

import attrs

from stepfold.adapters.scenarios import format as f
from stepfold.adapters.scenarios.border import failure_of
from stepfold.adapters.scenarios.judging.observe import Journal, Request, Span
from stepfold.adapters.scenarios.playing.virtual_time import VirtualClock
from stepfold.adapters.scripted import Answer, fails, play_answer
from stepfold.effects.ports import ModelPart
from stepfold.engine.context.tokens import CHARS_HIGH, estimate_messages
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
)
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    HookAnswered,
    HookStop,
    HookVerdict,
    Interrupt,
    PermissionAnswered,
    Prefetched,
    SummaryReady,
    ToolEnded,
    ToolSpec,
    Verdict,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse

CLEARABLE: Final = frozenset(
    {"read", "edit", "write", "shell", "bash", "grep", "glob", "web_search", "web_fetch"}
)
VERDICTS: Final = {
    f.Rule.ALLOW: Verdict.ALLOW,
    f.Rule.DENY: Verdict.DENY,
    f.Rule.ASK_ALLOW: Verdict.ASK,
    f.Rule.ASK_DENY: Verdict.ASK,
}


@attrs.define
class Position:
    """How far the script has been used: the number of answers that each part of the world has given."""

    model: int = 0
    compactions: int = 0
    tools: Counter[str] = attrs.field(factory=Counter)
    hooks: Counter[str] = attrs.field(factory=Counter)

    def copy(self) -> Position:
        """Return a position of its own."""
        return Position(self.model, self.compactions, Counter(self.tools), Counter(self.hooks))


class HookCrash(Exception):
    """A stop hook of the script crashes."""


@attrs.frozen
class Scene:
    """
    What all ports share: the script, how far it is, the time, the journal.

    ``given`` says for each effect id which answer of its script it got.
    """

    script: f.World
    position: Position
    clock: VirtualClock
    journal: Journal
    given: dict[int, int]


def answer_at(entries: tuple[f.Entry, ...], place: int) -> Answer | None:
    """Return answer number *place* (from 0) of the script, or None past its end."""
    for entry in entries:
        if entry.times is None or place < entry.times:
            return entry.answer
        place -= entry.times
    return None


@attrs.frozen
class ScenarioModel:
    """The model port: one answer of the script a request."""

    scene: Scene

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        """Stream the next answer; past the end of the script, fail and note it."""
        journal, clock = self.scene.journal, self.scene.clock
        number = len(journal.requests) + 1
        journal.requests.append(Request(number, order))
        answer = self._next(number, order)
        moments = [clock.after(ms) for ms in answer.arrivals_ms]

        async def arrive(place: int) -> None:
            await moments[place]

        try:
            async for part in play_answer(answer, order, arrive):
                yield part
        finally:
            for moment in moments:
                moment.cancel()

    def _next(self, number: int, order: CallModel) -> Answer:
        place = self.scene.position.model
        self.scene.position.model += 1
        self.scene.given[order.id] = place
        answer = answer_at(self.scene.script.entries, place)
        if answer is None:
            self.scene.journal.problems.append(f"call {number}: the script has no answer left")
            return fails(Failure(FailureKind.INVALID, "the script has no answer left"))
        if answer.model and answer.model != order.model:
            self.scene.journal.problems.append(
                f"model of call {number}: expected {answer.model}, got {order.model}"
            )
        return answer


@attrs.frozen
class ScenarioCompactor:
    """The compactor port; the last answer of the script repeats."""

    scene: Scene

    async def compact(self, order: Compact) -> Compacted | CompactionFailed:
        """Answer one request to the compactor."""
        self.scene.journal.compactions += 1
        place = self.scene.position.compactions
        self.scene.position.compactions += 1
        self.scene.given[order.id] = place
        await self.scene.clock.after(0)
        answers = self.scene.script.compactions
        if not answers:
            nobody = Failure(FailureKind.OTHER, "the scenario has no [[compact]]")
            return CompactionFailed(order.id, nobody)
        match answers[min(place, len(answers) - 1)]:
            case f.NoSummary(error):
                return CompactionFailed(order.id, _compactor_failure(error))
            case f.Summary(text, tokens):
                return Compacted(order.id, text, _new_view_tokens(text, tokens, order))

    async def stage(self, order: StageCollapse) -> CollapseStaged:
        """Summarise a span in the background (only where the config asks for it)."""
        await self.scene.clock.after(0)
        return CollapseStaged(order.id, "Earlier rounds, in one line.")


def _new_view_tokens(summary: str, tokens: int | None, order: Compact) -> int:
    """
    Return the estimate of the whole new view.

    *tokens* of the script is that; where it is less than the fixed part, which
    no compaction removes, it is what stands beside the fixed part.
    """
    if tokens is None:
        return estimate_messages(order.tail) + -(-len(summary) // CHARS_HIGH) + order.floor
    return tokens if tokens >= order.floor else tokens + order.floor


def _compactor_failure(words: str) -> Failure:
    """Return a failure whose words say that the prompt is too long as that, any other as final."""
    failure = failure_of(status=400, error_type="invalid_request_error", message=words)
    too_long = failure.kind is FailureKind.PROMPT_TOO_LONG or "too long" in words.lower()
    return attrs.evolve(failure, kind=FailureKind.PROMPT_TOO_LONG if too_long else FailureKind.OTHER)


def tool_specs(tools: tuple[f.Tool, ...]) -> tuple[ToolSpec, ...]:
    """Return *tools* as the model is offered them."""
    return tuple(
        ToolSpec(
            tool.name,
            f"The tool {tool.name} of the scenario.",
            max_result_chars=tool.max_result_chars,
            clearable=tool.name.lower() in CLEARABLE,
        )
        for tool in tools
    )


@attrs.frozen
class ScenarioTools:
    """The tools port, and the user who is asked about a call."""

    scene: Scene

    def _named(self, name: str) -> f.Tool | None:
        return next((tool for tool in self.scene.script.tools if tool.name == name), None)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools on offer."""
        return tool_specs(self.scene.script.tools)

    def facts(self, call: ToolUse) -> CallFacts:
        """Look a call up."""
        tool = self._named(call.name)
        if tool is None:
            return CallFacts(known=False, valid=False, problem=f"There is no tool named {call.name}.")
        if call.raw_input:
            return CallFacts(valid=False, problem=f"The input of {call.name} is no JSON object.")
        denied = tool.rule is f.Rule.DENY
        timing = tool.timing
        return CallFacts(
            safe=tool.safe,
            verdict=VERDICTS[tool.rule],
            interrupt=Interrupt.CANCEL if timing.never else timing.interrupt,
            shell=tool.shell,
            problem=f"A rule denies {call.name}." if denied else "",
        )

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the call as it is: scripted tools have no defaults."""
        return call

    async def ask(self, order: AskPermission) -> PermissionAnswered:
        """Answer for the user, as the tool's table says."""
        await self.scene.clock.after(0)
        denying = {tool.name for tool in self.scene.script.tools if tool.rule is f.Rule.ASK_DENY}
        allowed = order.call.name not in denying
        return PermissionAnswered(order.id, allowed, "" if allowed else "The user said no.")

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Execute one call."""
        tool = self._named(order.call.name)
        if tool is None:
            raise LookupError(f"no tool named {order.call.name} was on offer")
        clock = self.scene.clock
        place = self.scene.position.tools[tool.name]
        self.scene.position.tools[tool.name] += 1
        self.scene.given[order.id] = place
        span = Span(order.call.id, tool.name, clock.now)
        self.scene.journal.spans.append(span)
        try:
            if tool.timing.never:
                await asyncio.get_running_loop().create_future()
            await clock.after(tool.timing.takes_ms)
        finally:
            span.ended_ms = clock.now
        stop = HookStop(tool.name, f"the hook of {tool.name} asked to stop") if tool.stop else None
        match tool.outcomes[min(place, len(tool.outcomes) - 1)]:
            case f.Gives(content):
                return ToolEnded(order.id, content, CallStatus.COMPLETED, stop)
            case f.Raises(words):
                return ToolEnded(order.id, (Text(words),), CallStatus.FAILED, stop)

    async def close(self) -> None:
        """Nothing is held."""


@attrs.frozen
class ScenarioHooks:
    """The stop hooks; the last answer of each repeats."""

    scene: Scene

    async def ask(self, order: RunHook) -> HookAnswered:
        """Answer, crash, or never answer, as the script says."""
        self.scene.journal.hooks[order.hook] = self.scene.journal.hooks.get(order.hook, 0) + 1
        place = self.scene.position.hooks[order.hook]
        self.scene.position.hooks[order.hook] += 1
        self.scene.given[order.id] = place
        await self.scene.clock.after(0)
        replies = next(hook.replies for hook in self.scene.script.hooks if hook.name == order.hook)
        reply = replies[min(place, len(replies) - 1)]
        if reply.verdict is HookVerdict.CRASH:
            raise HookCrash(f"{order.hook} crashed")
        if reply.verdict is HookVerdict.TIMEOUT:
            await asyncio.get_running_loop().create_future()
        return HookAnswered(order.id, reply.verdict, reply.words)


@attrs.frozen
class ScenarioSides:
    """Summaries of tool batches, memories and skills: only where the config asks for them."""

    scene: Scene

    async def summarise(self, order: Summarise) -> SummaryReady:
        """Name the tools of the batch."""
        await self.scene.clock.after(0)
        return SummaryReady(order.id, "Used " + ", ".join(call.name for call in order.calls) + ".")

    async def prefetch(self, order: Prefetch) -> Prefetched:
        """Find one text."""
        await self.scene.clock.after(0)
        return Prefetched(order.id, (f"What the {order.kind} say.",))


@attrs.define
class ScenarioIds:
    """Run ids that count up; the jitter seed is 0."""

    _numbers: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    def run_id(self) -> str:
        """Return the next run id."""
        return f"run-{next(self._numbers)}"

    def seed(self) -> int:
        """Return 0: what is random in life is fixed here."""
        return 0
