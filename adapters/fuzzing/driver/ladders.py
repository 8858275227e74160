"""The limits of one run, counted again from what was ordered and answered (specification, section 5)."""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.adapters.fuzzing.driver.rules import Broken, Rule
from stepfold.engine.config import Config
from stepfold.engine.effects import CallModel, Compact, CompactReason, RunHook, Wait
from stepfold.engine.events import (
    Compacted,
    CompactionFailed,
    HookAnswered,
    HookVerdict,
    Stop,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.failures import TOO_LONG, FailureKind
from stepfold.engine.state import Continue, Control
from stepfold.engine.terminals import End, Limit, Terminal

PATIENT: Final = 125  # percent: back-off and its jitter
CLEAN_ENDINGS: Final = frozenset({"end_turn", "stop_sequence", "missing_call", "other"})
ABOVE_REACTIVE: Final = frozenset({Continue.NEXT_TURN, Continue.TOKEN_BUDGET_CONTINUATION})
ABOVE_RECOVERIES: Final = ABOVE_REACTIVE | {Continue.STOP_HOOK_BLOCKING}
ESCALATE: Final = Continue.MAX_OUTPUT_TOKENS_ESCALATE
RECOVERY: Final = Continue.MAX_OUTPUT_TOKENS_RECOVERY
REACTIVE: Final = Continue.REACTIVE_COMPACT_RETRY
DRAIN: Final = Continue.COLLAPSE_DRAIN_RETRY
BLOCKING: Final = Continue.STOP_HOOK_BLOCKING


@attrs.define
class Ladders:
    """
    What a run has spent.

    Args:
        config: What it may spend.
    """

    config: Config
    requests: int = 0
    tokens: int = 0
    turns: int = 0
    escalations: int = 0
    recoveries: int = 0
    reactions: int = 0
    last: Continue | None = None
    failures: int = 0  # compactions in a row
    open: Compact | None = None
    hooks: list[str] = attrs.field(factory=list)  # asked in this round
    spent: dict[str, int] = attrs.field(factory=dict)  # hook -> blocks
    told: dict[str, HookVerdict] = attrs.field(factory=dict)
    problem: FailureKind | None = None  # of the last call that failed

    def fork(self) -> Ladders:
        """Return a copy of its own."""
        return Ladders(
            self.config,
            self.requests,
            self.tokens,
            self.turns,
            self.escalations,
            self.recoveries,
            self.reactions,
            self.last,
            self.failures,
            self.open,
            list(self.hooks),
            dict(self.spent),
            dict(self.told),
            self.problem,
        )

    def came(self, kind: type, event: Any, order: Any) -> None:
        """Note an event; *order* is what it answers, or None."""
        usage = getattr(event, "usage", None)
        if usage is not None:
            self.tokens += usage.prompt_tokens + usage.output_tokens
        if kind is StreamClosed:
            self.hooks, self.told = [], {}
            self.problem = FailureKind.WINDOW_EXCEEDED if event.stop is Stop.WINDOW_EXCEEDED else None
        elif kind is StreamFailed:
            self.problem = event.failure.kind
        elif kind is HookAnswered:
            self.told[order.hook] = event.verdict
        elif kind is Compacted or kind is CompactionFailed:
            self._summarised(event)

    def _summarised(self, event: Any) -> None:
        order, self.open = self.open, None
        if order is None or order.reason is not CompactReason.AUTO:
            return
        limits = self.config.thresholds[self._place(order.model)]
        worked = type(event) is Compacted and event.summary.strip() and event.tokens < limits.autocompact
        self.failures = 0 if worked else self.failures + 1

    def _place(self, model: str) -> int:
        return next(place for place, spec in enumerate(self.config.all_models) if spec.name == model)

    # ------------------------------------------------------------ orders

    def request(self, order: CallModel) -> None:
        """A request leaves."""
        self._counted()
        self.problem = None

    def _counted(self) -> None:
        config = self.config
        if config.max_model_calls is not None and self.requests >= config.max_model_calls:
            raise Broken(Rule.REQUESTS, f"number {self.requests + 1} of {config.max_model_calls}")
        if config.max_run_tokens is not None and self.tokens >= config.max_run_tokens:
            raise Broken(Rule.REQUESTS, f"{self.tokens} tokens were used, {config.max_run_tokens} allowed")
        self.requests += 1

    def compaction(self, order: Compact, resumed: bool) -> None:
        """A request to the compactor leaves."""
        self._counted()
        if self.config.nested:
            raise Broken(Rule.BREAKER, "a nested run compacts")
        if order.reason is CompactReason.AUTO:
            if order.attempt:
                self.failures -= 1  # the failure before was inside this compaction
            elif self.failures >= self.config.max_compaction_failures and not resumed:
                raise Broken(Rule.BREAKER, f"after {self.failures} failures in a row")
        self.open = order

    def waited(self, order: Wait) -> None:
        """A back-off begins."""
        config = self.config
        most = max(config.max_retry_after_ms, config.backoff_max_ms * PATIENT // 100)
        if not 0 <= order.ms <= most:
            raise Broken(Rule.WAIT, f"{order.ms} ms, the longest is {most} ms")

    def asked(self, order: RunHook) -> None:
        """A stop hook is asked."""
        spec = next((hook for hook in self.config.stop_hooks if hook.name == order.hook), None)
        if spec is None or self.spent.get(order.hook, 0) >= spec.max_blocks:
            raise Broken(Rule.HOOKS, f"{order.hook} was asked, which has spent its blocks")
        self.hooks.append(order.hook)

    # ------------------------------------------------------------ going round, ending

    def took(self, reason: Continue, stones: int, shown: bool) -> None:
        """The loop goes round because of *reason*; *stones* were laid in this step."""
        config = self.config
        if config.nested:
            raise Broken(Rule.RECOVERIES, f"a nested run took {reason}")
        if reason is DRAIN and self.last is DRAIN:
            raise Broken(Rule.RECOVERIES, f"{reason} twice in a row")
        if reason in ABOVE_REACTIVE:
            self.reactions = 0
        if reason in ABOVE_RECOVERIES:
            self.escalations = self.recoveries = 0
        self.escalations += reason is ESCALATE
        self.recoveries += reason is RECOVERY
        self.reactions += reason is REACTIVE
        self.turns += reason is Continue.NEXT_TURN
        self.last = reason
        if self.escalations > 1 or self.reactions > 1 or self.recoveries > config.max_output_recoveries:
            raise Broken(Rule.RECOVERIES, f"{reason} once more than it may be taken")
        if config.max_turns is not None and self.turns >= config.max_turns:
            raise Broken(Rule.TURNS, f"{self.turns + 1} turns, {config.max_turns} allowed")
        if reason is ESCALATE and shown and not stones:
            raise Broken(Rule.WITHDRAWN, "the truncated answer stays shown")
        if reason is BLOCKING:
            self._blocked()
        elif reason is Continue.TOKEN_BUDGET_CONTINUATION:
            self._all_asked(reason)

    def _blocked(self) -> None:
        verdicts = self.told.values()
        if HookVerdict.BLOCK not in verdicts or HookVerdict.PREVENT in verdicts:
            raise Broken(Rule.HOOKS, f"they sent the model back and said {', '.join(verdicts)}")
        self._all_asked(BLOCKING)
        for name, verdict in self.told.items():
            self.spent[name] = self.spent.get(name, 0) + (verdict is HookVerdict.BLOCK)

    def _all_asked(self, reason: object) -> None:
        due = [h.name for h in self.config.stop_hooks if self.spent.get(h.name, 0) < h.max_blocks]
        if not self.config.nested and set(due) != set(self.hooks):
            raise Broken(Rule.HOOKS, f"{reason} came, {due} were due and {self.hooks} were asked")

    def finished(self, end: End, control: Control, cause: type) -> None:
        """The run ends like this, at an event of the class *cause*."""
        reason, config, problem = end.reason, self.config, self.problem
        if reason is Terminal.BLOCKING_LIMIT:
            self._stopped(end, control)
        elif reason is Terminal.MAX_TURNS:
            limit = 1 if config.nested else config.max_turns
            if limit is None or self.turns + 1 < limit:
                raise Broken(Rule.TURNS, f"ended after {self.turns + 1} of {limit} turns")
        elif (reason is Terminal.PROMPT_TOO_LONG and problem not in TOO_LONG) or (
            reason is Terminal.IMAGE_ERROR and problem is not FailureKind.MEDIA_TOO_LARGE
        ):
            raise Broken(Rule.TERMINAL, f"{reason}, after {problem}")
        elif reason is Terminal.MODEL_ERROR:
            if problem in TOO_LONG or problem is FailureKind.MEDIA_TOO_LARGE or problem is None:
                raise Broken(Rule.TERMINAL, f"{reason}, after {problem}")
        elif reason is Terminal.STOP_HOOK_PREVENTED and HookVerdict.PREVENT not in self.told.values():
            raise Broken(Rule.HOOKS, "the run ended as prevented, and no hook did")
        elif reason is Terminal.COMPLETED and end.ending in CLEAN_ENDINGS:  # type: ignore[union-attr]
            self._all_asked(reason)
            if HookVerdict.PREVENT in self.told.values():
                raise Broken(Rule.HOOKS, "a hook forbade to go on, and the run completed")

    def _stopped(self, end: Any, control: Control) -> None:
        config = self.config
        if end.which is Limit.MODEL_CALLS and self.requests < (config.max_model_calls or 0):
            raise Broken(Rule.BLOCKED, f"after {self.requests} of {config.max_model_calls} requests")
        if end.which is not Limit.CONTEXT:
            return
        if config.nested:
            raise Broken(Rule.BLOCKED, "a run that writes a summary, and has to run to shrink the context")
        limit = config.thresholds[control.attempts.fallbacks].blocking
        floor, tokens = control.fill.floor, control.fill.tokens
        if max(floor, tokens) < limit:
            raise Broken(Rule.BLOCKED, f"at {tokens} tokens of {limit}")
        if floor < limit and config.reactive_compact and not self.reactions:
            raise Broken(Rule.BLOCKED, "though a reactive compaction is left")
