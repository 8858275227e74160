"""
What must hold in every run (specification, section 9), checked step by step from outside.

``Judge`` counts again what the run may do, from events and effects; of the
state it reads only the end, the control that the measure is made of, and what
a next request would be.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from stepfold.adapters.scenarios.border import wire_messages
from stepfold.adapters.scenarios.judging.observe import shape_of
from stepfold.adapters.scenarios.judging.protocol import complaints
from stepfold.engine import Config, Continue, State
from stepfold.engine.effects import (
    AskPermission,
    BlockShown,
    CallModel,
    CallShown,
    Cancel,
    CancelModel,
    CancelTool,
    Compact,
    CompactReason,
    Continued,
    Effect,
    ErrorShown,
    Finish,
    RunHook,
    RunTool,
    Show,
    Tombstone,
    Wait,
)
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    Compacted,
    CompactionFailed,
    Event,
    Resumed,
    RunStarted,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.measure import measure
from stepfold.engine.messages import Origin, ToolUse, user_text

CLEAN: Final = frozenset({Stop.END_TURN, Stop.STOP_SEQUENCE, Stop.TOOL_USE, Stop.OTHER})
RESETS: Final = {
    # a continue, and those after which it may come anew
    Continue.MAX_OUTPUT_TOKENS_ESCALATE: (
        Continue.NEXT_TURN,
        Continue.TOKEN_BUDGET_CONTINUATION,
        Continue.STOP_HOOK_BLOCKING,
    ),
    Continue.MAX_OUTPUT_TOKENS_RECOVERY: (
        Continue.NEXT_TURN,
        Continue.TOKEN_BUDGET_CONTINUATION,
        Continue.STOP_HOOK_BLOCKING,
    ),
    Continue.REACTIVE_COMPACT_RETRY: (Continue.NEXT_TURN, Continue.TOKEN_BUDGET_CONTINUATION),
}


class Violation(AssertionError):
    """An invariant of the loop does not hold."""


def hold(condition: object, words: str) -> None:
    """Raise ``Violation`` with *words* unless *condition* is true."""
    if not condition:
        raise Violation(words)


def valid(order: CallModel) -> None:
    """Raise ``Violation`` where the API would refuse the form of a request."""
    messages = wire_messages(order)
    found = complaints(messages, resend=order.resend)
    if found:
        raise Violation(f"an invalid request: {'; '.join(found)}: {list(shape_of(messages))}")


def valid_history(state: State) -> None:
    """Raise ``Violation`` where a next prompt on this view would make an invalid request."""
    view = state.data.messages.append(user_text("and now?", Origin.PROMPT))
    valid(CallModel(0, view, state.data.tool_context.model, 1))


class Judge:
    """
    Watches one log, step by step.

    Args:
        config: Of the runs of the log.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._new_run()
        self.owed: dict[int, Effect] = {}
        self.resumed = False

    def _new_run(self) -> None:
        self.finished = False
        self.measured: tuple[int, ...] | None = None  # at the last step
        self.ordered: tuple[int, ...] | None = None  # at the last request, wait or continue
        self.taken: list[Continue] = []
        self.failures = 0
        self.compaction: Compact | None = None
        self.requests = 0
        self.started: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.facts: dict[str, CallFacts] = {}
        self.running: dict[int, str] = {}
        self.asking: set[int] = set()
        self.streaming = False
        self.clean = False
        self.calls = 0
        self.shown: set[int] = set()
        self.withdrawn: set[int] = set()

    def watch(self, before: State, event: Event, effects: tuple[Effect, ...], after: State) -> None:
        """Judge one step; raises ``Violation`` where something does not hold."""
        number = getattr(event, "effect_id", None)
        if number is not None and number not in self.owed:
            hold(not effects, "a late answer causes something")
            return
        if isinstance(event, RunStarted):
            self._new_run()
        self.resumed = isinstance(event, Resumed)  # what the dead process had open may be cancelled
        self._withdrawals(before, event, effects)
        self._ends(effects, after)
        self._errors(effects)
        self._settle(event)
        self._facts(event, effects)
        for effect in effects:
            self._effect(effect)
        self._hooks_and_limits(event, effects, after)
        self._measure(event, effects, after)
        hold(after.now_ms >= before.now_ms, "the time of the run fell")
        waits = {order.id for order in after.data.ledger.owed}
        hold(waits == set(self.owed), "what the run waits for is not what the world owes")
        if after.end is None and after.control.phase != "idle":
            moving = (CallModel, RunTool, AskPermission, Compact, RunHook, Wait)
            hold(any(isinstance(order, moving) for order in self.owed.values()), "a deadlock")

    # ------------------------------------------------------------ the end

    def _ends(self, effects: tuple[Effect, ...], after: State) -> None:
        places = [place for place, effect in enumerate(effects) if isinstance(effect, Finish)]
        if self.finished:
            told = [e for e in effects if not isinstance(e, Show) and type(e).__name__ != "MarkCommand"]
            hold(not told, "the run goes on after its end")
        if places:
            hold(not self.finished, "the run ended twice")
            hold(places == [len(effects) - 1], "Finish is not last, or there are two")
            finish = effects[-1]
            assert isinstance(finish, Finish)
            hold(finish.end is after.end is not None, "Finish does not tell the end of the state")
            hold(finish.end.why, "an end that says nothing")
            hold("\n" not in finish.end.why, "an end that says more than one line")
            self.finished = True
            valid_history(after)
        hold((after.end is not None) >= self.finished, "the run has ended, and its state has no end")

    def _errors(self, effects: tuple[Effect, ...]) -> None:
        for place, effect in enumerate(effects):
            if isinstance(effect, Show) and isinstance(effect.item, ErrorShown):
                rest = [type(e) for e in effects[place + 1 :]]
                hold(rest == [Finish], f"an error was shown, and then came {rest}")

    def _withdrawals(self, before: State, event: Event, effects: tuple[Effect, ...]) -> None:
        """Of an attempt that failed, what was shown is withdrawn; once, and nothing else is."""
        stones = [effect.call_id for effect in effects if isinstance(effect, Tombstone)]
        hold(len(stones) <= 1, "one event withdrew twice")
        hold(not set(stones) & self.withdrawn, "withdrawn twice")
        self.withdrawn |= set(stones)
        if (
            isinstance(event, StreamFailed)
            and event.effect_id in self.owed
            and before.control.abort == "none"
        ):
            seen = event.shown or event.effect_id in self.shown
            hold(stones == [event.effect_id] * seen, "an attempt that had shown something stays shown")

    # ------------------------------------------------------------ what is open

    def _settle(self, event: Event) -> None:
        if isinstance(event, Resumed):
            self.owed.clear()
            self.running.clear()
            self.asking.clear()
            self.streaming = False
        elif not isinstance(event, BlockCompleted):
            number = getattr(event, "effect_id", 0)
            self._gone(number)
            if isinstance(event, StreamClosed | StreamFailed | StreamCancelled):
                self.streaming = False
                self.clean = isinstance(event, StreamClosed) and event.stop in CLEAN and not self.calls

    def _gone(self, number: int) -> None:
        self.owed.pop(number, None)
        self.running.pop(number, None)
        self.asking.discard(number)

    def _facts(self, event: Event, effects: tuple[Effect, ...]) -> None:
        if isinstance(event, BlockCompleted) and event.facts is not None:
            for effect in effects:
                if isinstance(effect, Show) and isinstance(effect.item, BlockShown):
                    assert isinstance(effect.item.block, ToolUse)
                    self.facts[effect.item.block.id] = event.facts
                    self.calls += 1

    def _effect(self, effect: Effect) -> None:
        match effect:
            case CallModel(id):
                valid(effect)
                self._new_answer()
                self.requests += 1
            case Compact():
                self.requests += 1
                hold(effect.head, "nothing to summarise")
            case RunTool(id, call):
                self._starts(id, call.id)
            case AskPermission(id):
                self.asking.add(id)
            case Show(CallShown(use_id)):
                self.ended[use_id] += 1
                hold(self.ended[use_id] == 1, f"{use_id} ended twice")
            case Show(BlockShown(call_id)):
                self.shown.add(call_id)
            case CancelTool(id) | Cancel(id):
                hold(id in self.owed or self.resumed, "what is not open is cancelled")
                self._gone(id)
            case CancelModel(id):
                hold(id in self.owed or self.resumed, "a stream that is not open is cancelled")
            case Finish():
                left = [o for o in self.owed.values() if not isinstance(o, CallModel)]
                hold(not left, f"outstanding at the end: {left}")
                self.owed.clear()
                hold(self.started.keys() <= self.ended.keys(), "a call was started and never ended")
            case _:
                pass
        if hasattr(effect, "id") and not isinstance(effect, CancelTool | Cancel | CancelModel):
            self.owed[effect.id] = effect

    def _new_answer(self) -> None:
        hold(not self.streaming, "two streams at once")
        hold(self.started.keys() <= self.ended.keys(), "a request leaves with a call open")
        self.streaming, self.clean, self.calls = True, False, 0
        self.started, self.ended, self.facts = Counter(), Counter(), {}

    def _starts(self, effect_id: int, use_id: str) -> None:
        facts = self.facts[use_id]
        others = [self.facts[name] for number, name in self.running.items() if number != effect_id]
        hold(facts.known, "an unknown tool ran")
        hold(facts.valid, "an invalid input ran")
        hold(not self.ended[use_id], "a call ran after its end")
        if not facts.safe:
            hold(not self.streaming, "an unsafe call began before the response was complete")
            hold(not others, "an unsafe call began beside another")
        hold(all(other.safe for other in others), "a call began beside an unsafe one")
        if self.streaming:
            hold(self.config.streaming_tools, "a call began in a stream, though streaming_tools is off")
        hold(len(others) < self.config.max_parallel_tools, "more calls at once than max_parallel_tools")
        hold(not self.config.nested, "a nested run ran a tool")
        hold(self.started[use_id] == 0 or facts.idempotent, "a call ran twice")
        self.started[use_id] += 1
        hold(self.started[use_id] <= 2, "a call ran more than twice")
        self.running[effect_id] = use_id

    # ------------------------------------------------------------ limits

    def _hooks_and_limits(self, event: Event, effects: tuple[Effect, ...], after: State) -> None:
        config = self.config
        if any(isinstance(effect, RunHook) for effect in effects):
            hold(self.clean, "a stop hook ran after an answer that had failed")
        continued = [e.item for e in effects if isinstance(e, Show) and isinstance(e.item, Continued)]
        hold(len(continued) <= 1, "one event continued twice")
        for item in continued:
            kept = after.control.transition
            named = None if kept is None else (kept.reason, kept.count)
            hold(named == (item.reason, item.count), "the state names another transition than was shown")
            self._take(Continue(item.reason))
        self._breaker(event, effects)
        if config.max_model_calls is not None:
            hold(self.requests <= config.max_model_calls, "more requests than max_model_calls")

    def _take(self, reason: Continue) -> None:
        config = self.config
        self.taken.append(reason)
        drain = Continue.COLLAPSE_DRAIN_RETRY
        hold(self.taken[-2:] != [drain, drain], "two drains in a row")
        for limited, resets in RESETS.items():
            count = 0
            for one in self.taken:
                count = 0 if one in resets else count + (one is limited)
            allowed = config.max_output_recoveries if limited is Continue.MAX_OUTPUT_TOKENS_RECOVERY else 1
            hold(count <= allowed, f"{limited} more than {allowed} times")
        blocks = sum(hook.max_blocks for hook in config.stop_hooks)
        blocked = self.taken.count(Continue.STOP_HOOK_BLOCKING)
        hold(blocked <= blocks, "stop hooks blocked more often than they may")
        if config.max_turns is not None:
            hold(self.taken.count(Continue.NEXT_TURN) < config.max_turns, "more turns than max_turns")
        if config.nested:
            raise Violation("a nested run went round")

    def _breaker(self, event: Event, effects: tuple[Effect, ...]) -> None:
        order = self.compaction
        orders = [effect for effect in effects if isinstance(effect, Compact)]
        again = any(o.attempt > 0 for o in orders)
        if order is not None and isinstance(event, Compacted | CompactionFailed):
            self.compaction = None
            threshold = next(
                t.autocompact
                for t, m in zip(self.config.thresholds, self.config.all_models, strict=True)
                if m.name == order.model
            )
            worked = isinstance(event, Compacted) and event.summary.strip() and event.tokens < threshold
            if order.reason is CompactReason.AUTO:
                self.failures = 0 if worked else self.failures + (not again)
        for one in orders:
            hold(not self.config.nested, "a nested run compacts")
            if one.reason is CompactReason.AUTO and one.attempt == 0 and not isinstance(event, Resumed):
                hold(self.failures < self.config.max_compaction_failures, "the breaker is open")
            self.compaction = one

    def _measure(self, event: Event, effects: tuple[Effect, ...], after: State) -> None:
        now = measure(after.control, self.config)
        hold(min(now) >= 0, f"the measure fell under 0: {now}")
        if self.measured is not None and not self.finished:
            hold(now <= self.measured, f"the measure rose: {self.measured}, {now}")
        tries = [
            e
            for e in effects
            if isinstance(e, CallModel | Compact | Wait)
            or (isinstance(e, Show) and isinstance(e.item, Continued))
        ]
        if tries and not isinstance(event, RunStarted):
            hold(self.ordered is None or now < self.ordered, f"no fall: {self.ordered}, {now}")
        if tries:
            self.ordered = now
        self.measured = None if self.finished else now
