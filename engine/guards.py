"""
Named conditions for rows: read each after "when".

A guard reads control, the event's facts and the config; never messages.
"""

from __future__ import annotations

from stepfold.engine.config import Config, ModelSpec, autocompact_threshold, blocking_limit
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookVerdict,
    PermissionAnswered,
    Resumed,
    Stop,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.failures import RETRYABLE, TOO_LONG, FailureKind
from stepfold.engine.state import Continue, Control, Entered, Head, Late, Tried, Withheld

AnyEvent = Event | Entered | Late


def always(c: Control, e: AnyEvent, k: Config) -> bool:
    """The last row of a cell."""
    return True


def current_model(c: Control, k: Config) -> ModelSpec:
    """Return the model that the next request goes to."""
    return k.all_models[c.attempts.fallbacks]


# --- does the view fit? ---------------------------------------------------------------------------


def staged_at_threshold(c: Control, e: AnyEvent, k: Config) -> bool:
    """Collapses are staged and the view is at autocompact's threshold."""
    return (
        c.recovery.staged > 0
        and k.collapse
        and not k.nested
        and c.fill.tokens >= autocompact_threshold(current_model(c, k))
    )


def compaction_due(c: Control, e: AnyEvent, k: Config) -> bool:
    """Autocompact fires: at its threshold, not tried in this iteration, breaker closed, a floor below it."""
    threshold = autocompact_threshold(current_model(c, k))
    return (
        c.fill.tokens >= threshold
        and k.autocompact
        and not k.nested
        and c.compaction.tried is Tried.NOT
        and c.compaction.failures < k.max_compaction_failures
        and c.fill.floor < threshold
    )


def compaction_barred(c: Control, e: AnyEvent, k: Config) -> bool:
    """Autocompact would fire, but no request may leave."""
    return compaction_due(c, e, k) and requests_spent(c, e, k)


def context_full(c: Control, e: AnyEvent, k: Config) -> bool:
    """The view is at the blocking limit, and nothing that could still shrink it is unspent."""
    limit = blocking_limit(current_model(c, k))
    if k.nested:
        return False
    if c.fill.floor >= limit:
        return True
    return (
        c.fill.tokens >= limit
        and c.compaction.tried is not Tried.WORKED
        and not (k.reactive_compact and not c.recovery.reactive_compacted)
        and not (k.collapse and c.recovery.staged > 0)
    )


def requests_spent(c: Control, e: AnyEvent, k: Config) -> bool:
    """A hard limit of the run stands before any further request."""
    spent = c.spending
    return (
        (k.max_model_calls is not None and spent.model_calls >= k.max_model_calls)
        or (k.max_run_tokens is not None and spent.input_tokens + spent.output_tokens >= k.max_run_tokens)
        or (k.max_cost is not None and spent.cost >= k.max_cost)
    )


# --- an answer streams ----------------------------------------------------------------------------


def answer_overflows(c: Control, e: BlockCompleted, k: Config) -> bool:
    """The answer has as many blocks as one may have."""
    return c.blocks >= k.max_answer_blocks


def a_call(c: Control, e: BlockCompleted, k: Config) -> bool:
    """The block is a client tool call."""
    return e.facts is not None


# --- an answer ended ------------------------------------------------------------------------------


def drainable(c: Control, e: AnyEvent, k: Config) -> bool:
    """Collapses are staged, and the previous continue was not a drain."""
    return (
        k.collapse
        and not k.nested
        and c.recovery.staged > 0
        and (c.transition is None or c.transition.reason is not Continue.COLLAPSE_DRAIN_RETRY)
    )


def reactable(c: Control, e: AnyEvent, k: Config) -> bool:
    """Reactive compaction is on and unspent."""
    return k.reactive_compact and not k.nested and not c.recovery.reactive_compacted


def window_exceeded(c: Control, e: StreamClosed, k: Config) -> bool:
    """The answer filled the context window."""
    return e.stop is Stop.WINDOW_EXCEEDED


def window_drainable(c: Control, e: StreamClosed, k: Config) -> bool:
    """The window is full and a drain may help."""
    return window_exceeded(c, e, k) and drainable(c, e, k)


def window_barred(c: Control, e: StreamClosed, k: Config) -> bool:
    """The window is full, a compaction may help, but no request may leave."""
    return window_reactable(c, e, k) and requests_spent(c, e, k)


def window_reactable(c: Control, e: StreamClosed, k: Config) -> bool:
    """The window is full and reactive compaction may help."""
    return window_exceeded(c, e, k) and reactable(c, e, k)


def truncated(c: Control, e: StreamClosed, k: Config) -> bool:
    """The answer hit its output limit."""
    return e.stop is Stop.MAX_TOKENS


def escalatable(c: Control, e: StreamClosed, k: Config) -> bool:
    """Truncated under the default cap, which the model and the user let us raise once."""
    return (
        truncated(c, e, k)
        and not k.nested
        and k.max_output_tokens is None
        and c.recovery.output_limit_override is None
        and current_model(c, k).max_output_tokens >= k.escalated_output_tokens
    )


def resumable(c: Control, e: StreamClosed, k: Config) -> bool:
    """Truncated, with a resume message left."""
    return truncated(c, e, k) and not k.nested and c.recovery.output_recoveries < k.max_output_recoveries


def refused(c: Control, e: StreamClosed, k: Config) -> bool:
    """The model refused."""
    return e.stop is Stop.REFUSAL


def paused(c: Control, e: StreamClosed, k: Config) -> bool:
    """The server paused the turn and no client call is open."""
    return e.stop in (Stop.PAUSE_TURN, Stop.COMPACTION) and c.batch.total == 0


def resendable(c: Control, e: StreamClosed, k: Config) -> bool:
    """Paused, with a re-send left."""
    return paused(c, e, k) and not k.nested and c.attempts.resends < k.max_resends


def has_calls(c: Control, e: StreamClosed, k: Config) -> bool:
    """The answer holds whole client calls."""
    return c.batch.total > 0


def hooks_due(c: Control, e: StreamClosed, k: Config) -> bool:
    """A stop hook is registered that has not spent its blocks."""
    return c.hooks.due > 0 and not k.nested


# --- a call failed --------------------------------------------------------------------------------


def too_long(c: Control, e: StreamFailed, k: Config) -> bool:
    """The prompt is too long, as 400 or 413."""
    return e.failure.kind in TOO_LONG


def too_long_drainable(c: Control, e: StreamFailed, k: Config) -> bool:
    """Too long, and a drain may help."""
    return too_long(c, e, k) and drainable(c, e, k)


def too_long_reactable(c: Control, e: StreamFailed, k: Config) -> bool:
    """Too long, and reactive compaction may help."""
    return too_long(c, e, k) and reactable(c, e, k)


def too_long_barred(c: Control, e: StreamFailed, k: Config) -> bool:
    """Too long, a compaction may help, but no request may leave."""
    return too_long_reactable(c, e, k) and requests_spent(c, e, k)


def media_too_large(c: Control, e: StreamFailed, k: Config) -> bool:
    """An image or document exceeds a maximum."""
    return e.failure.kind is FailureKind.MEDIA_TOO_LARGE


def media_reactable(c: Control, e: StreamFailed, k: Config) -> bool:
    """Media too large, and reactive compaction (which strips media) may help."""
    return media_too_large(c, e, k) and reactable(c, e, k)


def media_barred(c: Control, e: StreamFailed, k: Config) -> bool:
    """Media too large, a compaction may help, but no request may leave."""
    return media_reactable(c, e, k) and requests_spent(c, e, k)


def _fallback_left(c: Control, k: Config) -> bool:
    return not k.nested and c.attempts.fallbacks + 1 < len(k.all_models)


def overloaded_thrice(c: Control, e: StreamFailed, k: Config) -> bool:
    """The third overload in a row, and a fallback model is left."""
    return (
        e.failure.kind is FailureKind.OVERLOADED
        and c.attempts.overloads + 1 >= k.overloads_before_fallback
        and _fallback_left(c, k)
    )


def wait_too_long(c: Control, e: StreamFailed, k: Config) -> bool:
    """The server wants a longer wait than is allowed."""
    wait = e.failure.retry_after_ms
    return e.failure.kind in RETRYABLE and wait is not None and wait > k.max_retry_after_ms


def wait_too_long_replaceable(c: Control, e: StreamFailed, k: Config) -> bool:
    """The wait is too long, and a fallback model is left."""
    return wait_too_long(c, e, k) and _fallback_left(c, k)


def retries_left(c: Control, e: AnyEvent, k: Config) -> bool:
    """This iteration and model may try again."""
    return not k.nested and c.attempts.retries < k.max_retries


def retryable(c: Control, e: StreamFailed, k: Config) -> bool:
    """The failure passes with time, and a retry is left."""
    return e.failure.kind in RETRYABLE and retries_left(c, e, k)


# --- compactions ----------------------------------------------------------------------------------


def under_threshold(c: Control, e: Compacted, k: Config) -> bool:
    """Autocompact brought the view under its threshold."""
    return e.tokens < autocompact_threshold(current_model(c, k))


def worked(c: Control, e: Compacted, k: Config) -> bool:
    """
    Reactive compaction worked: under the blocking limit and smaller than before.

    After a prompt that was too long the view before counts as at least the
    whole window, whatever the estimate said.
    """
    spec = current_model(c, k)
    before = c.fill.tokens
    if c.recovery.withheld is Withheld.TOO_LONG:
        before = max(before, spec.context_window_tokens)
    return e.tokens < blocking_limit(spec) and e.tokens < before


def _summary_too_long(c: Control, e: CompactionFailed) -> bool:
    return e.failure.kind in TOO_LONG and not c.fill.last_round


def summary_too_long(c: Control, e: CompactionFailed, k: Config) -> bool:
    """Autocompact's own request was too long, and a round and a retry are left."""
    return _summary_too_long(c, e) and c.compaction.retries < k.max_compactor_retries


def summary_barred(c: Control, e: CompactionFailed, k: Config) -> bool:
    """As ``summary_too_long``, but no request may leave."""
    return summary_too_long(c, e, k) and requests_spent(c, e, k)


def reaction_too_long(c: Control, e: CompactionFailed, k: Config) -> bool:
    """Reactive compaction's own request was too long, and a round and a retry are left."""
    return _summary_too_long(c, e) and c.compaction.reactive_retries < k.max_compactor_retries


def reaction_barred(c: Control, e: CompactionFailed, k: Config) -> bool:
    """As ``reaction_too_long``, but no request may leave."""
    return reaction_too_long(c, e, k) and requests_spent(c, e, k)


def media_withheld(c: Control, e: AnyEvent, k: Config) -> bool:
    """The failure kept back is about media."""
    return c.recovery.withheld is Withheld.MEDIA


# --- tools ----------------------------------------------------------------------------------------


def head_skipped(c: Control, e: AnyEvent, k: Config) -> bool:
    """A call waits, but no further call of this answer may run."""
    return c.batch.head is not Head.NONE and (c.batch.stopped or c.batch.broken)


def _may_begin(c: Control, k: Config) -> bool:
    batch = c.batch
    if batch.head is Head.SAFE:
        early = batch.complete or k.streaming_tools
        return early and not batch.alone and batch.active < k.max_parallel_tools
    return batch.head is Head.UNSAFE and batch.complete and batch.active == 0


def head_refused(c: Control, e: AnyEvent, k: Config) -> bool:
    """The next call may begin, but is unknown, invalid or denied."""
    return c.batch.refused and _may_begin(c, k)


def head_asks(c: Control, e: AnyEvent, k: Config) -> bool:
    """The next call may begin once it is permitted."""
    return c.batch.asks and _may_begin(c, k)


def head_starts(c: Control, e: AnyEvent, k: Config) -> bool:
    """The next call may begin."""
    return _may_begin(c, k)


def permitted(c: Control, e: PermissionAnswered, k: Config) -> bool:
    """The call may run, and no hook or failed shell call holds the batch."""
    return e.allowed and e.stop is None and not c.batch.stopped and not c.batch.broken


def stream_open(c: Control, e: AnyEvent, k: Config) -> bool:
    """The answer still streams."""
    return c.batch.streaming


def calls_open(c: Control, e: AnyEvent, k: Config) -> bool:
    """Calls of the answer are open."""
    return c.batch.open > 0


def tool_hook_stopped(c: Control, e: AnyEvent, k: Config) -> bool:
    """A hook before or after a tool asked to stop."""
    return c.batch.stopped


def turns_spent(c: Control, e: AnyEvent, k: Config) -> bool:
    """No turn is left."""
    limit = 1 if k.nested else k.max_turns
    return limit is not None and c.turn + 1 > limit


# --- stop hooks and the token budget --------------------------------------------------------------


def more_hooks(c: Control, e: AnyEvent, k: Config) -> bool:
    """Another stop hook is to be asked before the decision."""
    return c.hooks.left > 0


def prevented(c: Control, e: AnyEvent, k: Config) -> bool:
    """A stop hook forbids continuing; that wins over a block."""
    return c.hooks.prevented or (isinstance(e, HookAnswered) and e.verdict is HookVerdict.PREVENT)


def blocked(c: Control, e: AnyEvent, k: Config) -> bool:
    """A stop hook sends the model back."""
    return c.hooks.blocking > 0 or (isinstance(e, HookAnswered) and e.verdict is HookVerdict.BLOCK)


def budget_left(c: Control, e: AnyEvent, k: Config) -> bool:
    """The token budget says go on: under 90%, and not of falling worth."""
    return under_budget(c, k) and not fading(c, k)


def under_budget(c: Control, k: Config) -> bool:
    """Whether a budget is set, is ours to follow, and less than 90% of it is spent."""
    budget = k.token_budget_tokens
    return budget is not None and not k.sub_agent and 10 * c.spending.output_tokens < 9 * budget


def fading(c: Control, k: Config) -> bool:
    """Whether enough continuations were made and both the last two brought little."""
    spent = c.spending
    return (
        spent.continuations >= k.min_budget_continuations
        and spent.output_tokens - spent.last_total < k.budget_delta_tokens
        and spent.last_delta < k.budget_delta_tokens
    )


# --- abort, queue, crash --------------------------------------------------------------------------


def harder(c: Control, e: AbortRequested, k: Config) -> bool:
    """A hard abort while a submit abort is under way."""
    return e.kind is AbortKind.HARD and c.abort is AbortKind.SUBMIT


def still_open(c: Control, e: AnyEvent, k: Config) -> bool:
    """The stream or a call is still to come in."""
    return c.batch.streaming or c.batch.active > 0


def response_complete(c: Control, e: AnyEvent, k: Config) -> bool:
    """The response was complete when the user aborted."""
    return c.batch.complete


def crash_barred(c: Control, e: Resumed, k: Config) -> bool:
    """A compaction would be begun again, but no request may leave."""
    return first_crash(c, e, k) and requests_spent(c, e, k)


def first_crash(c: Control, e: Resumed, k: Config) -> bool:
    """The first crash in this hook or compaction."""
    return not c.attempts.crashed


def queue_full(c: Control, e: AnyEvent, k: Config) -> bool:
    """The queue holds as many commands as it may."""
    return c.queued >= k.max_queued_commands
