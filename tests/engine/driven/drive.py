"""
A world by hand: events go in one at a time, and all that came out is kept.

``Drive`` knows what the world owes the run from the effects alone: what was
ordered, less what was answered or cancelled.  After ``Resumed`` it is a new
process, which knows only what that step ordered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from stepfold.engine import Config, State, UnexpectedEvent, start, step
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    CallShown,
    Cancel,
    CancelTool,
    Compact,
    Continued,
    Effect,
    ErrorShown,
    Finish,
    Notice,
    Prefetch,
    RunHook,
    RunTool,
    Show,
    StageCollapse,
    Summarise,
    Tombstone,
    Wait,
)
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    CallStatus,
    CollapseStaged,
    Command,
    CommandQueued,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookStop,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    Resumed,
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
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Block, Message, Origin, Role, Text, ToolUse
from stepfold.engine.state import Collapse
from stepfold.engine.terminals import End

OWED = (
    CallModel,
    RunTool,
    AskPermission,
    Compact,
    StageCollapse,
    RunHook,
    Wait,
    Summarise,
    Prefetch,
)
SAFE = CallFacts(safe=True)
UNSAFE = CallFacts()
K = TypeVar("K")


def user(text: str) -> Message:
    """Return what a user said."""
    return Message(Role.USER, (Text(text),))


def answer(text: str) -> Message:
    """Return what a model said."""
    return Message(Role.ASSISTANT, (Text(text),), Origin.ANSWER, "main")


def talk(rounds: int, chars: int = 300) -> tuple[Message, ...]:
    """Return a history of so many questions and answers, each of so many characters."""
    pairs = ((user(f"q{n} ".ljust(chars, "q")), answer(f"a{n} ".ljust(chars, "a"))) for n in range(rounds))
    return tuple(message for pair in pairs for message in pair)


def failure(kind: FailureKind, **more: Any) -> Failure:
    """Return a failure of *kind* whose words name it."""
    return Failure(kind, f"words about {kind}", **more)


class Drive:
    """One log: its config, its states, every event with the effects it had."""

    def __init__(
        self,
        messages: Iterable[Message] = (),
        tools: Iterable[ToolSpec] = (),
        collapses: Iterable[Collapse] = (),
        **config: Any,
    ) -> None:
        self.config = Config(**config)
        self.first = self.state = start(messages, tools, collapses)
        self.events: list[Event] = []
        self.states: list[State] = []
        self.outputs: list[tuple[Effect, ...]] = []
        self.owed: dict[int, Any] = {}
        self.now_ms = 0

    # ------------------------------------------------------------ stepping

    def do(self, event: Event) -> tuple[Effect, ...]:
        """Take one step."""
        self.state, effects = step(self.state, event, self.config)
        self.events.append(event)
        self.states.append(self.state)
        self.outputs.append(effects)
        self._book(event, effects)
        return effects

    def upto(self, place: int) -> Drive:
        """Return the log as it was after event number *place* (from 0); open is what is open there."""
        other = Drive()
        other.config, other.first = self.config, self.first
        other.state, other.events = self.states[place], self.events[: place + 1]
        other.states, other.outputs = self.states[: place + 1], self.outputs[: place + 1]
        for event, effects in zip(other.events, other.outputs, strict=True):
            other._book(event, effects)
        return other

    def _book(self, event: Event, effects: tuple[Effect, ...]) -> None:
        if isinstance(event, Resumed):
            self.owed.clear()
        elif not isinstance(event, BlockCompleted):
            self.owed.pop(getattr(event, "effect_id", 0), None)
        for effect in effects:
            match effect:
                case CancelTool(id) | Cancel(id):
                    self.owed.pop(id, None)
                case Finish():
                    self.owed.clear()
                case _ if isinstance(effect, OWED):
                    self.owed[effect.id] = effect
                case _:
                    pass

    def refuses(self, event: Event) -> bool:
        """Return whether *event* is illegal now; whatever else it raises comes out."""
        try:
            step(self.state, event, self.config)
        except UnexpectedEvent:
            return True
        return False

    # ------------------------------------------------------------ looking

    @property
    def end(self) -> End:
        """How the run ended; fails where it did not."""
        assert self.state.end is not None
        return self.state.end

    @property
    def effects(self) -> list[Effect]:
        """All effects so far."""
        return [effect for effects in self.outputs for effect in effects]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The view."""
        return tuple(self.state.data.messages)

    @property
    def texts(self) -> list[str]:
        """The texts of the view, in order."""
        return [b.text for m in self.messages for b in m.content if isinstance(b, Text)]

    def all(self, kind: type[K]) -> list[K]:
        """Return every effect of *kind*, or everything shown of it."""
        shown = [effect.item for effect in self.effects if isinstance(effect, Show)]
        return [thing for thing in (*self.effects, *shown) if isinstance(thing, kind)]

    def last(self, kind: type[K]) -> K:
        """Return the last of ``all``."""
        return self.all(kind)[-1]

    def open(self, kind: type[K]) -> K:
        """Return the newest effect of *kind* that waits for an answer."""
        return self.opened(kind)[-1]

    def opened(self, kind: type[K]) -> list[K]:
        """Return the effects of *kind* that wait for an answer."""
        return [effect for effect in self.owed.values() if isinstance(effect, kind)]

    @property
    def continued(self) -> list[str]:
        """Why the loop went round, in order."""
        return [item.reason for item in self.all(Continued)]

    @property
    def notices(self) -> list[str]:
        """The kinds of all notices."""
        return [notice.kind for notice in self.all(Notice)]

    @property
    def statuses(self) -> dict[str, CallStatus]:
        """How each call ended; fails where one ended twice within one answer."""
        found: dict[str, CallStatus] = {}
        answer_of: dict[str, int] = {}
        current = 0
        for effect in self.effects:
            match effect:
                case CallModel(id):
                    current = id
                case Show(CallShown(use_id, status)):
                    assert answer_of.get(use_id) != current, f"{use_id} ended twice"
                    found[use_id], answer_of[use_id] = status, current
                case _:
                    pass
        return found

    @property
    def output_tokens(self) -> int:
        """The output that answers and failed calls have reported."""
        ended = [e for e in self.events if isinstance(e, StreamClosed | StreamFailed | StreamCancelled)]
        return sum(event.usage.output_tokens for event in ended if event.usage is not None)

    @property
    def stones(self) -> int:
        """How often something shown was withdrawn."""
        return len(self.all(Tombstone))

    @property
    def errors(self) -> list[Failure]:
        """The errors that were shown."""
        return [item.failure for item in self.all(ErrorShown)]

    # ------------------------------------------------------------ the world's answers

    def begin(self, prompt: str = "go", **more: Any) -> tuple[Effect, ...]:
        """Start a run."""
        return self.do(RunStarted((Text(prompt),), at_ms=self.now_ms, **more))

    def block(self, block: Block) -> tuple[Effect, ...]:
        """One whole block of the open answer."""
        return self.do(BlockCompleted(self.open(CallModel).id, block, at_ms=self.now_ms))

    def text(self, words: str = "answer") -> tuple[Effect, ...]:
        """One whole text of the open answer."""
        return self.block(Text(words))

    def call(self, id: str, name: str = "tool", input: str = "{}", facts: CallFacts = SAFE) -> Any:
        """One whole call of the open answer."""
        use = ToolUse(id, name, input)
        return self.do(BlockCompleted(self.open(CallModel).id, use, facts, self.now_ms))

    def close(self, stop: Stop = Stop.END_TURN, output: int | None = None, **more: Any) -> Any:
        """End the open answer; *output* is the reported output tokens."""
        if output is not None:
            more["usage"] = Usage(more.pop("prompt", 100), output)
        model = self.open(CallModel).id
        return self.do(StreamClosed(model, stop, stop.value, at_ms=self.now_ms, **more))

    def fail(self, kind: FailureKind, usage: Usage | None = None, shown: bool = False, **more: Any) -> Any:
        """Let the open call fail."""
        event = StreamFailed(
            self.open(CallModel).id, failure(kind, **more), usage, shown=shown, at_ms=self.now_ms
        )
        return self.do(event)

    def cancelled(self, **more: Any) -> tuple[Effect, ...]:
        """The stream was closed as ordered."""
        return self.do(StreamCancelled(self.open(CallModel).id, at_ms=self.now_ms, **more))

    def running(self, use_id: str) -> RunTool:
        """Return the open execution of one call."""
        return next(order for order in self.opened(RunTool) if order.call.id == use_id)

    def tool(
        self, use_id: str, words: str = "result", status: CallStatus = CallStatus.COMPLETED, **more: Any
    ) -> tuple[Effect, ...]:
        """One running call ends."""
        order = self.running(use_id)
        return self.do(ToolEnded(order.id, (Text(words),), status, at_ms=self.now_ms, **more))

    def permit(self, use_id: str, allowed: bool = True, **more: Any) -> tuple[Effect, ...]:
        """Somebody answers about one call."""
        order = next(order for order in self.opened(AskPermission) if order.call.id == use_id)
        return self.do(PermissionAnswered(order.id, allowed, at_ms=self.now_ms, **more))

    def compacted(self, tokens: int, summary: str = "summary", **more: Any) -> tuple[Effect, ...]:
        """The compactor made a summary."""
        return self.do(Compacted(self.open(Compact).id, summary, tokens, at_ms=self.now_ms, **more))

    def not_compacted(self, kind: FailureKind = FailureKind.OTHER, **more: Any) -> tuple[Effect, ...]:
        """The compactor gave nothing."""
        usage = more.pop("usage", None)
        event = CompactionFailed(self.open(Compact).id, failure(kind, **more), usage, self.now_ms)
        return self.do(event)

    def staged(self, summary: str | None = "span") -> tuple[Effect, ...]:
        """A span was summarised in the background."""
        return self.do(CollapseStaged(self.open(StageCollapse).id, summary, self.now_ms))

    def hook(self, verdict: HookVerdict, words: str = "") -> tuple[Effect, ...]:
        """The open stop hook answers."""
        return self.do(HookAnswered(self.open(RunHook).id, verdict, words, self.now_ms))

    def waited(self) -> tuple[Effect, ...]:
        """The back-off is over."""
        return self.do(WaitElapsed(self.open(Wait).id, self.now_ms))

    def summarised(self, summary: str | None = "did things") -> tuple[Effect, ...]:
        """The batch summary is there."""
        return self.do(SummaryReady(self.open(Summarise).id, summary, self.now_ms))

    def fetched(self, *texts: str) -> tuple[Effect, ...]:
        """Memories or skills are there."""
        return self.do(Prefetched(self.open(Prefetch).id, texts, self.now_ms))

    def tools(self, *tools: ToolSpec) -> tuple[Effect, ...]:
        """The host offers other tools."""
        return self.do(ToolsChanged(tools, self.now_ms))

    def queue(self, name: str, words: str = "queued words") -> tuple[Effect, ...]:
        """The user queues words."""
        return self.do(CommandQueued(Command(name, (Text(words),)), self.now_ms))

    def abort(self, kind: AbortKind = AbortKind.HARD) -> tuple[Effect, ...]:
        """The user stops the run."""
        return self.do(AbortRequested(kind, self.now_ms))

    def resume(self) -> tuple[Effect, ...]:
        """A new process takes up the log."""
        return self.do(Resumed(self.now_ms))

    # ------------------------------------------------------------ short ways

    def turn(self, *ids: str) -> None:
        """One turn whose calls all succeed."""
        for id in ids:
            self.call(id)
        self.close(Stop.TOOL_USE)
        for id in ids:
            self.tool(id)

    def finish(self, words: str = "done") -> End:
        """Let the open answer end the run."""
        self.text(words)
        self.close()
        return self.end


__all__ = ["SAFE", "UNSAFE", "Drive", "HookStop", "answer", "failure", "talk", "user"]
