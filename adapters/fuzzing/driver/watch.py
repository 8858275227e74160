"""
What must hold in every run, checked step by step, from outside and cheaply.

``Watch`` counts again what the run may do, from events and effects alone; of
the state it reads the end, the control that the measure is made of, and what
the run says that it waits for.  The first thing wrong is raised as ``Broken``.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.adapters.fuzzing.driver.ends import counted, ended_by_the_user
from stepfold.adapters.fuzzing.driver.ladders import Ladders
from stepfold.adapters.fuzzing.driver.open_answer import OpenAnswer
from stepfold.adapters.fuzzing.driver.orders import ANSWERS, MOVING, ORDERS, STREAM_ENDS, TRIES, moves
from stepfold.adapters.fuzzing.driver.requests import pairing_problem, request_problem
from stepfold.adapters.fuzzing.driver.rules import Broken, Rule
from stepfold.engine.config import Config
from stepfold.engine.effects import (
    BlockShown,
    CallModel,
    CallShown,
    Cancel,
    CancelModel,
    CancelTool,
    Compact,
    Continued,
    Effect,
    ErrorShown,
    Finish,
    Mark,
    MarkCommand,
    Notice,
    NoticeKind,
    RunHook,
    RunTool,
    Show,
    Tombstone,
    Wait,
)
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallStatus,
    CommandQueued,
    Event,
    Interrupt,
    PermissionAnswered,
    Resumed,
    RunStarted,
    Stop,
    StreamClosed,
    StreamFailed,
    ToolEnded,
)
from stepfold.engine.failures import FailureKind
from stepfold.engine.measure import measure
from stepfold.engine.messages import Origin, ToolUse, user_text
from stepfold.engine.phases import PhaseKind
from stepfold.engine.state import State

CLEAN: Final = frozenset({Stop.END_TURN, Stop.STOP_SEQUENCE, Stop.TOOL_USE, Stop.OTHER})
AT_REST: Final = (PhaseKind.IDLE, PhaseKind.DONE)
NEXT: Final = user_text("and now?", Origin.PROMPT)


@attrs.define
class Watch:
    """
    Watches one log.

    Args:
        config: What the runs of the log may do.
    """

    config: Config
    owed: dict[int, Any] = attrs.field(factory=dict)  # effect id -> order, in the order of issue
    gone: list[int] = attrs.field(factory=list)  # answered or cancelled: whatever comes is late
    cancelling: set[int] = attrs.field(factory=set)  # calls to the model that are being cancelled
    queue: list[str] = attrs.field(factory=list)
    ladders: Ladders = attrs.field(
        default=attrs.Factory(lambda watch: Ladders(watch.config), takes_self=True)
    )
    thorough: bool = True  # read every request as it goes out
    answer: OpenAnswer = attrs.field(factory=OpenAnswer)
    failed: dict[str, bool] = attrs.field(factory=dict)  # call -> whether its tool failed
    ended: bool = False
    aborted: AbortKind = AbortKind.NONE
    after_stream: bool = True  # the abort came when the response was whole
    withdrawn: set[int] = attrs.field(factory=set)
    stones: int = 0
    tries: bool = False
    snipped: bool = False
    cause: Event | None = None
    measured: tuple[int, ...] | None = None
    ordered: tuple[int, ...] | None = None

    def saw(self, before: State, event: Event, effects: tuple[Effect, ...], after: State) -> None:
        """Judge one step; raises ``Broken``."""
        kind = type(event)
        order = None
        if kind in ANSWERS:
            order = self.owed.get(event.effect_id)  # type: ignore[union-attr]
            if order is None:
                self._late(event, before, effects, after)
                return
        self.cause, self.stones, self.tries = event, 0, False
        seen = self._shown(event) if kind is StreamFailed or kind is Resumed else False
        self._came(kind, event, order, before)
        told = False
        for effect in effects:
            if told and type(effect) is not Finish:
                raise Broken(Rule.ERROR, f"after the error came {type(effect).__name__}")
            handler = _ON_EFFECT.get(type(effect))
            if handler is not None:
                told = handler(self, effect, after) or told
        if told and not self.ended:
            raise Broken(Rule.ERROR, "after the error came no end")
        if seen and not self.stones and self.aborted is AbortKind.NONE:
            raise Broken(
                Rule.WITHDRAWN, f"an attempt that had shown something stays shown at {kind.__name__}"
            )
        if self.snipped:
            self.snipped = False
            counted(before, after, self.config.fixed_prompt_tokens)
        self._stands(before, after, kind)

    # ------------------------------------------------------------ what came in

    def _late(self, event: Event, before: State, effects: tuple[Effect, ...], after: State) -> None:
        same = before.control == after.control and before.phase == after.phase and before.data == after.data
        if effects or not same:
            raise Broken(Rule.LATE, f"a late {type(event).__name__} changed the run")

    def _shown(self, event: Any) -> bool:
        if type(event) is StreamFailed:
            return event.shown or self.answer.shown
        return self.answer.shown and self.answer.streaming

    def _came(self, kind: type, event: Any, order: Any, before: State) -> None:
        if kind is BlockCompleted:
            return
        if order is not None:
            self._gone(order.id)
            if kind in STREAM_ENDS:
                self.answer.streaming = False
                self.answer.stop = event.stop if kind is StreamClosed else None
            elif kind is ToolEnded:
                self._tool_ended(event)
            elif kind is PermissionAnswered and not (event.allowed and event.stop is None):
                self.answer.refused.add(order.call.id)
        elif kind is RunStarted:
            self._new_run()
        elif kind is Resumed:
            if self.answer.streaming:
                self.ladders.problem = FailureKind.CRASHED
            self.owed.clear()
            self.gone.clear()
            self.cancelling.clear()
            self.answer.running.clear()
            self.answer.streaming = False
        elif kind is CommandQueued:
            if len(self.queue) < self.config.max_queued_commands:
                self.queue.append(event.command.id)
        elif kind is AbortRequested and before.control.phase not in AT_REST:
            if self.aborted is AbortKind.NONE:
                self.after_stream = not self.answer.streaming
            if self.aborted is not AbortKind.HARD:
                self.aborted = event.kind
        self.ladders.came(kind, event, order)

    def _new_run(self) -> None:
        self.ended, self.aborted, self.after_stream = False, AbortKind.NONE, True
        self.measured = self.ordered = None
        if self.ladders.requests:
            self.answer = OpenAnswer()
            self.ladders = Ladders(self.config)

    def fork(self) -> Watch:
        """Return a watch of its own that has seen the same."""
        return Watch(
            self.config,
            dict(self.owed),
            list(self.gone),
            set(self.cancelling),
            list(self.queue),
            self.ladders.fork(),
            self.thorough,
            self.answer.fork(),
            dict(self.failed),
            self.ended,
            self.aborted,
            self.after_stream,
            set(self.withdrawn),
            self.stones,
            self.tries,
            self.snipped,
            self.cause,
            self.measured,
            self.ordered,
        )

    def _tool_ended(self, event: ToolEnded) -> None:
        use_id = self.answer.running.pop(event.effect_id, None)
        if use_id is not None:
            self.failed[use_id] = event.status is not CallStatus.COMPLETED

    def _gone(self, number: int) -> None:
        self.owed.pop(number, None)
        self.gone.append(number)

    # ------------------------------------------------------------ what went out

    def _request(self, effect: CallModel, after: State) -> bool:
        answer = self.answer
        if answer.streaming:
            raise Broken(Rule.REQUEST, "a second stream was opened beside the first")
        if len(answer.ended) < len(answer.started):
            raise Broken(Rule.CALLS, "a request left with a call open")
        changed = effect.resend or effect.model != self.config.model
        ask = request_problem if self.thorough or changed else pairing_problem
        problem = ask(effect, self.failed)
        if problem:
            raise Broken(Rule.REQUEST, problem)
        if self.cause is not None and answer.stop is Stop.REFUSAL and type(self.cause) is StreamClosed:
            raise Broken(Rule.CUT, "a refused answer was asked for again")
        self.answer = OpenAnswer(streaming=True)
        self.ladders.request(effect)
        return self._order(effect, after)

    def _order(self, effect: Any, after: State) -> bool:
        kind = type(effect)
        if kind in MOVING and self.aborted is not AbortKind.NONE:
            raise Broken(Rule.ABORT, f"{kind.__name__} was ordered after it")
        self.owed[effect.id] = effect
        if kind in TRIES:
            self.tries = True
            if kind is Wait:
                self.ladders.waited(effect)
        elif kind is RunHook:
            answer = self.answer
            if answer.stop not in CLEAN or answer.facts:
                raise Broken(Rule.HOOKS, f"{effect.hook} was asked after an answer that had failed")
            self.ladders.asked(effect)
        return False

    def _compact(self, effect: Compact, after: State) -> bool:
        if not effect.head:
            raise Broken(Rule.REQUEST, "there is nothing to summarise")
        self.ladders.compaction(effect, type(self.cause) is Resumed)
        return self._order(effect, after)

    def _run_tool(self, effect: RunTool, after: State) -> bool:
        self.answer.starts(effect, self.config)
        return self._order(effect, after)

    def _cancel(self, effect: CancelTool | Cancel, after: State) -> bool:
        number = effect.id
        dead = type(self.cause) is Resumed
        if number not in self.owed and not dead:
            raise Broken(Rule.OWED, f"{number} was cancelled, which is not open")
        use_id = self.answer.running.pop(number, None)
        gently = type(self.cause) is AbortRequested and self.aborted is AbortKind.SUBMIT
        if use_id is not None and gently and self.answer.facts[use_id].interrupt is Interrupt.WAIT:
            raise Broken(Rule.ABORT, f"{use_id!r}, which is to be waited for, was cancelled")
        self._gone(number)
        return False

    def _cancel_model(self, effect: CancelModel, after: State) -> bool:
        self.cancelling.add(effect.id)
        return False

    def _tombstone(self, effect: Tombstone, after: State) -> bool:
        self.stones += 1
        if effect.call_id in self.withdrawn:
            raise Broken(Rule.WITHDRAWN, f"call {effect.call_id} was withdrawn twice")
        self.withdrawn.add(effect.call_id)
        return False

    def _show(self, effect: Show, after: State) -> bool:
        item = effect.item
        kind = type(item)
        if kind is BlockShown:
            self.answer.shown = True
            cause: Any = self.cause
            block = item.block  # type: ignore[union-attr]
            if type(block) is ToolUse and type(cause) is BlockCompleted and cause.facts is not None:
                self.answer.facts[block.id] = cause.facts
                self.failed.pop(block.id, None)
        elif kind is CallShown:
            use_id: str = item.use_id  # type: ignore[union-attr]
            if use_id in self.answer.ended:
                raise Broken(Rule.CALLS, f"{use_id!r} ended twice")
            self.answer.ended.add(use_id)
            if self.failed.get(use_id) is False and item.status is not CallStatus.COMPLETED:  # type: ignore[union-attr]
                raise Broken(Rule.RESULT, f"{use_id!r} had completed and was shown as {item.status}")  # type: ignore[union-attr]
        elif kind is Continued:
            self._continued(item, after)
        elif kind is Notice and item.kind is NoticeKind.SNIPPED:  # type: ignore[union-attr]
            self.snipped = True
        return kind is ErrorShown

    def _continued(self, item: Any, after: State) -> None:
        stamped = after.control.transition
        if stamped is None or stamped.reason != item.reason or stamped.count != item.count:
            raise Broken(Rule.REASON, f"{item.reason} was shown, {stamped} is what the state says")
        if self.ended or self.aborted is not AbortKind.NONE:
            raise Broken(Rule.ABORT, f"{item.reason} came after the end or an abort")
        self.tries = True
        self.ladders.took(stamped.reason, self.stones, self.answer.shown)

    def _mark(self, effect: MarkCommand, after: State) -> bool:
        if effect.mark is Mark.STARTED:
            if effect.command_id not in self.queue:
                raise Broken(Rule.QUEUE, f"{effect.command_id} joined, which was not queued")
            self.queue.remove(effect.command_id)
        return False

    def _finish(self, effect: Finish, after: State) -> bool:
        answer = self.answer
        if self.ended or after.end is not effect.end:
            raise Broken(
                Rule.ONE_END, f"a second end, or one that the state does not know: {effect.end.reason}"
            )
        self.ended = True
        left = [order for order in self.owed.values() if order.id not in self.cancelling]
        if left:
            raise Broken(Rule.OWED, f"{type(left[0]).__name__} {left[0].id} was left open at the end")
        self.gone += self.owed
        self.owed.clear()
        if not answer.started.keys() <= answer.ended:
            raise Broken(Rule.CALLS, f"{sorted(answer.started.keys() - answer.ended)} never ended")
        self._ended_rightly(effect, after)
        view = after.data.messages.append(NEXT)
        ask = request_problem if self.thorough else pairing_problem
        problem = ask(CallModel(0, view, after.data.tool_context.model, 1), self.failed)
        if problem:
            raise Broken(Rule.HISTORY, problem)
        return False

    def _ended_rightly(self, effect: Finish, after: State) -> None:
        ended_by_the_user(effect.end, after, self.aborted, self.after_stream)
        self.ladders.finished(effect.end, after.control, type(self.cause))

    # ------------------------------------------------------------ what stands after it

    def _stands(self, before: State, after: State, kind: type) -> None:
        control = after.control
        moving = moves(after.data.ledger.owed, self.owed)
        if after.now_ms < before.now_ms:
            raise Broken(Rule.TIME, f"{before.now_ms} ms, then {after.now_ms} ms")
        if control.queued != len(self.queue) or len(after.data.side.queue) != control.queued:
            raise Broken(Rule.QUEUE, f"{len(self.queue)} are unsaid, the run knows of {control.queued}")
        if control.phase in AT_REST:
            if not self.ended and control.phase is PhaseKind.DONE:
                raise Broken(Rule.ONE_END, "the run is over without a terminal")
            self.measured = None
            return
        if not moving:
            raise Broken(Rule.DEADLOCK, f"in {control.phase}")
        now = measure(control, self.config)
        if min(now) < 0 or (self.measured is not None and now > self.measured):
            raise Broken(Rule.ENDS, f"it rose from {self.measured} to {now} at {kind.__name__}")
        if self.tries:
            if self.ordered is not None and now >= self.ordered:
                raise Broken(Rule.ENDS, f"it was {self.ordered}, and is {now} at the next try")
            self.ordered = now
        self.measured = now


_ON_EFFECT: Final[dict[type, Any]] = {
    CallModel: Watch._request,
    Compact: Watch._compact,
    RunTool: Watch._run_tool,
    CancelTool: Watch._cancel,
    Cancel: Watch._cancel,
    CancelModel: Watch._cancel_model,
    Tombstone: Watch._tombstone,
    Show: Watch._show,
    MarkCommand: Watch._mark,
    Finish: Watch._finish,
    **dict.fromkeys(ORDERS - {CallModel, Compact, RunTool}, Watch._order),
}
