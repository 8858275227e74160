"""The ten ends: one function a terminal, each with its payload."""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.effects import Effect, ErrorShown, Notice, NoticeKind, Show
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    Compacted,
    CompactionFailed,
    HookAnswered,
    Resumed,
    Stop,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.frozen import evolve
from stepfold.engine.guards import fading, under_budget
from stepfold.engine.guards.spending import spend
from stepfold.engine.messages import Origin, user_text
from stepfold.engine.moves.compaction import withheld
from stepfold.engine.moves.hooks import checked, spent_hooks
from stepfold.engine.moves.ledger import finish, joined, spec_of, total
from stepfold.engine.moves.reply import (
    CANCELLED_CUT,
    CANCELLED_FAILED,
    NOT_RUN_CUT,
    cut_answer,
    partial_answer,
    results,
    stream_ended,
    whole_answer,
    withdraw,
)
from stepfold.engine.moves.turn import kept, turn_joined
from stepfold.engine.phases import (
    Calling,
    Checking,
    Compacting,
    Fitting,
    Reacting,
    Sampling,
    Scheduling,
    Settling,
    Unwinding,
    Waiting,
)
from stepfold.engine.state import Control, Data, Entered, Move, State
from stepfold.engine.terminals import (
    AbortedStreaming,
    AbortedTools,
    BlockingLimit,
    Completed,
    Ending,
    HookStopped,
    ImageError,
    Limit,
    MaxTurns,
    ModelError,
    PromptTooLong,
    StopHookPrevented,
)

INTERRUPTED = "[Interrupted by the user.]"
INTERRUPTED_TOOLS = "[Interrupted by the user while tools were running.]"
ENDINGS = {
    Stop.END_TURN: Ending.END_TURN,
    Stop.STOP_SEQUENCE: Ending.STOP_SEQUENCE,
    Stop.TOOL_USE: Ending.MISSING_CALL,
    Stop.REFUSAL: Ending.REFUSAL,
    Stop.MAX_TOKENS: Ending.TRUNCATED,
    Stop.WINDOW_EXCEEDED: Ending.TRUNCATED,
    Stop.PAUSE_TURN: Ending.PAUSED,
    Stop.COMPACTION: Ending.PAUSED,
    Stop.OTHER: Ending.OTHER,
}


def complete(s: State, e: Entered, k: Config) -> Move:
    """A clean answer, the hooks let it go, the budget too."""
    assert isinstance(s.phase, Settling)
    c, reply = s.control, s.phase.reply
    data, fill = kept(s.data, c.fill, whole_answer(reply, spec_of(c, k).name), reply.closing.tokens)
    ending = ENDINGS[reply.closing.stop]
    details = reply.closing.details if ending in (Ending.OTHER, Ending.REFUSAL) else ""
    short = under_budget(c, k) and fading(c, k)
    end = Completed(ending, details, spent_hooks(data, k), short)
    return finish(evolve(c, fill=fill), data, end)


def complete_cut(s: State, e: StreamClosed, k: Config) -> Move:
    """
    Truncated with the ladder spent, refused, or paused with the re-sends spent.

    None of its calls runs; the partial answer stays, without stop hooks.
    """
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, reply, effects = cut_answer(data, reply, CANCELLED_CUT, NOT_RUN_CUT)
    data, fill = kept(data, c.fill, partial_answer(reply, data, spec_of(c, k).name, k), reply.closing.tokens)
    ending = ENDINGS[e.stop]
    details = reply.closing.details if ending is Ending.REFUSAL else ""
    effects = (*shown, *effects, *stop_failure(k, ending))
    if ending is Ending.TRUNCATED:
        words = "the answer hit the output limit and the recoveries are spent"
        effects = (*effects, Show(ErrorShown(Failure(FailureKind.TRUNCATED, words))))
    end = Completed(ending, details, spent_hooks(data, k))
    return finish(evolve(c, fill=fill), data, end, *effects)


def stop_failure(k: Config, why: str) -> tuple[Effect, ...]:
    """Tell hosts with stop hooks that the run ends without asking them."""
    if not k.stop_hooks or k.nested:
        return ()
    return (Show(Notice(NoticeKind.STOP_FAILURE, f"the run ends without its stop hooks: {why}")),)


def block(s: State, e: Entered, k: Config) -> Move:
    """A hard limit stands before the request."""
    assert isinstance(s.phase, Fitting | Calling)
    return finish(s.control, s.data, limit_reached(s.control, k))


def limit_reached(c: Control, k: Config) -> BlockingLimit:
    """Return which hard limit was met; the counted ones first."""
    spent = c.spending
    tokens = spent.input_tokens + spent.output_tokens
    if k.max_model_calls is not None and spent.model_calls >= k.max_model_calls:
        return BlockingLimit(Limit.MODEL_CALLS, spent.model_calls, k.max_model_calls)
    if k.max_run_tokens is not None and tokens >= k.max_run_tokens:
        return BlockingLimit(Limit.RUN_TOKENS, tokens, k.max_run_tokens)
    if k.max_cost is not None and spent.cost >= k.max_cost:
        return BlockingLimit(Limit.COST, spent.cost, k.max_cost)
    limit = k.thresholds[c.attempts.fallbacks].blocking
    floor = c.fill.floor if c.fill.floor >= limit else 0
    return BlockingLimit(Limit.CONTEXT, c.fill.tokens, limit, floor)


def block_context(s: State, e: Entered, k: Config) -> Move:
    """The view does not fit, and nothing unspent could shrink it."""
    c = s.control
    limit = k.thresholds[c.attempts.fallbacks].blocking
    floor = c.fill.floor if c.fill.floor >= limit else 0
    return finish(c, s.data, BlockingLimit(Limit.CONTEXT, c.fill.tokens, limit, floor))


def block_reaction(s: State, e: StreamFailed | StreamClosed, k: Config) -> Move:
    """A compaction might help, but no request may leave."""
    control, data, effects = _given_up(s, e, k)
    return finish(control, data, limit_reached(control, k), *effects)


def block_retry(s: State, e: CompactionFailed, k: Config) -> Move:
    """A compaction would be asked again, but no request may leave."""
    c = evolve(s.control, spending=spend(s.control, e.usage, spec_of(s.control, k)))
    c, data = _with_partial(s, c)
    data = evolve(data, book=evolve(data.book, usage=total(data.book.usage, e.usage)))
    return finish(c, data, limit_reached(c, k))


def block_again(s: State, e: Resumed, k: Config) -> Move:
    """A compaction would be begun again after a crash, but no request may leave."""
    c, data = _with_partial(s, s.control)
    return finish(c, data, limit_reached(c, k))


def _given_up(
    s: State, e: StreamFailed | StreamClosed, k: Config
) -> tuple[Control, Data, tuple[Effect, ...]]:
    """Book the stream's end; keep what an answer brought, withdraw what a failure showed."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    if isinstance(e, StreamFailed):
        data, effects = withdraw(data, reply, e.shown, CANCELLED_FAILED)
        return c, data, (*shown, *effects)
    data, reply, effects = cut_answer(data, reply, CANCELLED_CUT, NOT_RUN_CUT)
    data, fill = kept(data, c.fill, partial_answer(reply, data, spec_of(c, k).name, k), reply.closing.tokens)
    return evolve(c, fill=fill), data, (*shown, *effects)


def surface_too_long(s: State, e: StreamFailed | StreamClosed, k: Config) -> Move:
    """Drain and reactive compaction are spent: the withheld error comes out."""
    control, data, effects = _given_up(s, e, k)
    failure = withheld(e)
    shown = (*effects, *stop_failure(k, failure.kind), Show(ErrorShown(failure)))
    return finish(control, data, PromptTooLong(failure), *shown)


def surface_media(s: State, e: StreamFailed, k: Config) -> Move:
    """Media was rejected and reactive compaction is spent."""
    control, data, effects = _given_up(s, e, k)
    shown = (*effects, *stop_failure(k, e.failure.kind), Show(ErrorShown(e.failure)))
    return finish(control, data, ImageError(e.failure), *shown)


def surface_failure(s: State, e: StreamFailed, k: Config) -> Move:
    """Retries and fallbacks are spent, or the failure does not pass with time."""
    control, data, effects = _given_up(s, e, k)
    shown = (*effects, *stop_failure(k, e.failure.kind), Show(ErrorShown(e.failure)))
    return finish(control, data, ModelError(e.failure, control.attempts.retries + 1), *shown)


def _with_partial(s: State, c: Control) -> tuple[Control, Data]:
    """Return the view with the partial answer that waited behind a reactive compaction."""
    partial = s.phase.partial[:-1] if isinstance(s.phase, Reacting) and s.phase.partial else ()
    data, fill = joined(s.data, c.fill, partial)
    return evolve(c, fill=fill), data


def _reaction_failed(s: State, e: Compacted | CompactionFailed | Resumed, k: Config) -> tuple[Control, Data]:
    """Count a reactive compaction that gave no retry; the breaker counts it too."""
    usage = None if isinstance(e, Resumed) else e.usage
    book = evolve(s.control.compaction, failures=s.control.compaction.failures + 1)
    c = evolve(s.control, compaction=book, spending=spend(s.control, usage, spec_of(s.control, k)))
    c, data = _with_partial(s, c)
    return c, evolve(data, book=evolve(data.book, usage=total(data.book.usage, usage)))


def surface_after_reaction(s: State, e: Compacted | CompactionFailed | Resumed, k: Config) -> Move:
    """Reactive compaction did not work: the prompt stays too long."""
    assert isinstance(s.phase, Reacting)
    c, data = _reaction_failed(s, e, k)
    failure = s.phase.failure
    return finish(
        c, data, PromptTooLong(failure), *stop_failure(k, failure.kind), Show(ErrorShown(failure))
    )


def surface_media_after_reaction(s: State, e: Compacted | CompactionFailed | Resumed, k: Config) -> Move:
    """Reactive compaction did not work: the media stays too large."""
    assert isinstance(s.phase, Reacting)
    c, data = _reaction_failed(s, e, k)
    failure = s.phase.failure
    return finish(
        c, data, ImageError(failure), *stop_failure(k, failure.kind), Show(ErrorShown(failure))
    )


def prevent(s: State, e: HookAnswered | Resumed, k: Config) -> Move:
    """A stop hook forbids continuing."""
    now = checked(s, e, k)
    c = now.control
    data, fill = kept(now.data, c.fill, whole_answer(now.reply, spec_of(c, k).name), now.reply.closing.tokens)
    assert now.prevented is not None
    end = StopHookPrevented(now.prevented.hook, now.prevented.words)
    return finish(evolve(c, fill=fill), data, end, *now.effects)


def stop_by_hook(s: State, e: Entered, k: Config) -> Move:
    """A hook before or after a tool asked to stop; running calls have finished, the rest did not run."""
    assert isinstance(s.phase, Scheduling)
    c, reply = s.control, s.phase.reply
    stop = reply.schedule.stop
    assert stop is not None
    answer = (*whole_answer(reply, spec_of(c, k).name), *results(reply, s.data, k))
    data, fill = kept(s.data, c.fill, answer, reply.closing.tokens)
    data, fill = joined(data, fill, reply.schedule.extra)
    return finish(evolve(c, fill=fill), data, HookStopped(stop.hook, stop.words))


def spend_turns(s: State, e: Entered, k: Config) -> Move:
    """No turn is left; the tools of the last one did run."""
    data, fill, effects, _ = turn_joined(s, k)
    control = evolve(s.control, fill=fill, queued=len(data.side.queue))
    return finish(control, data, MaxTurns(s.control.turn + 1), *effects)


def abort(s: State, e: AbortRequested, k: Config) -> Move:
    """The user stopped the run in back-off, a compaction or a stop hook."""
    c, data = _with_partial(s, evolve(s.control, abort=e.kind))
    if isinstance(s.phase, Checking):
        reply = s.phase.reply
        data, fill = kept(data, c.fill, whole_answer(reply, spec_of(c, k).name), reply.closing.tokens)
        c = evolve(c, fill=fill)
    assert isinstance(s.phase, Waiting | Compacting | Reacting | Checking)
    data, c = _interruption(data, c, e.kind, INTERRUPTED)
    return finish(c, data, AbortedStreaming(e.kind))


def _interruption(data: Data, c: Control, kind: AbortKind, words: str) -> tuple[Data, Control]:
    """A hard abort says so to the model; after a submit abort the new message is the context."""
    if kind is not AbortKind.HARD:
        return data, c
    data, fill = joined(data, c.fill, (user_text(words, Origin.INTERRUPTION),))
    return data, evolve(c, fill=fill)


def abort_streaming(s: State, e: Entered, k: Config) -> Move:
    """All has come in after an abort in the stream: what was received is kept."""
    control, data = _unwound(s, k, INTERRUPTED)
    return finish(control, data, AbortedStreaming(control.abort))


def abort_tools(s: State, e: Entered, k: Config) -> Move:
    """All has come in after an abort while calls of a whole response were open."""
    control, data = _unwound(s, k, INTERRUPTED_TOOLS)
    return finish(control, data, AbortedTools(control.abort))


def _unwound(s: State, k: Config, words: str) -> tuple[Control, Data]:
    assert isinstance(s.phase, Unwinding)
    c, reply = s.control, s.phase.reply
    data, fill = kept(
        s.data, c.fill, partial_answer(reply, s.data, spec_of(c, k).name, k), reply.closing.tokens
    )
    data, fill = joined(data, fill, reply.schedule.extra)
    data, control = _interruption(data, evolve(c, fill=fill), c.abort, words)
    return control, data
