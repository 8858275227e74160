"""
The seven continues, side by side: each builds the whole next state by keyword.

``step`` stamps ``phase`` and ``transition`` from the row, so that neither is
written here.  What each does to each field: specification, section 3.
"""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import Config
from stepfold.engine.effects import MessageShown, Notice, NoticeKind, Show
from stepfold.engine.events import Compacted, HookAnswered, Resumed, StreamClosed, StreamFailed
from stepfold.engine.frozen import evolve
from stepfold.engine.messages import Origin, user_text
from stepfold.engine.moves.compaction import compacted_data
from stepfold.engine.moves.hooks import checked, errors_of
from stepfold.engine.moves.iteration import drained
from stepfold.engine.moves.ledger import joined, spec_of
from stepfold.engine.moves.reply import (
    CANCELLED_CUT,
    CANCELLED_RAISED,
    NOT_RUN_CUT,
    cut_answer,
    partial_answer,
    stream_ended,
    whole_answer,
    withdraw,
)
from stepfold.engine.moves.turn import kept, summarised, turn_joined, unsummarised, window_partial
from stepfold.engine.phases import PREPARING, Reacting, Sampling, Scheduling, Settling
from stepfold.engine.state import (
    Attempts,
    Batch,
    Compaction,
    Control,
    Entered,
    Hooks,
    Move,
    Recovery,
    Spending,
    State,
    Tried,
    Withheld,
)

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
NOT: Final = Tried.NOT

RESUME = (
    "Your answer hit the output limit. Continue exactly where it stopped, mid-thought if need be: "
    "no apology, no recap. Break what remains into smaller pieces."
)


NO_ATTEMPTS = Attempts()
NO_BATCH = Batch()


def _fresh(c: Control) -> Compaction:
    """This iteration's book of autocompact, ready for the next."""
    book = c.compaction
    if book.tried is NOT and not book.retries and not book.reactive_retries:
        return book
    return Compaction(compacted=book.compacted, turns_since=book.turns_since, failures=book.failures)


def _a_turn_older(book: Compaction) -> Compaction:
    return evolve(book, turns_since=book.turns_since + 1) if book.compacted else book


def _same_model(c: Control) -> Attempts:
    return Attempts(fallbacks=c.attempts.fallbacks) if c.attempts.fallbacks else NO_ATTEMPTS


def _no_hooks_asked(c: Control) -> Hooks:
    if c.hooks.blocking or c.hooks.prevented or c.hooks.left:
        return Hooks(due=c.hooks.due, blocks_left=c.hooks.blocks_left)
    return c.hooks


def collapse_drain_retry(s: State, e: StreamClosed | StreamFailed, k: Config) -> Move:
    """Commit every staged collapse and try again; a window filled by the answer keeps its part."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, partial, effects = window_partial(data, reply, e, spec_of(c, k).name, k)
    c, data, drains, count = drained(c, data)
    data, fill = joined(data, c.fill, partial)
    control = Control(
        turn=c.turn,
        stop=c.stop,
        abort=c.abort,
        compaction=_fresh(c),
        recovery=Recovery(
            output_recoveries=c.recovery.output_recoveries,
            reactive_compacted=c.recovery.reactive_compacted,
            output_limit_override=c.recovery.output_limit_override,
            stop_hook_active=c.recovery.stop_hook_active,
            staged=0,
        ),
        attempts=_same_model(c),
        spending=c.spending,
        fill=fill,
        batch=NO_BATCH,
        hooks=_no_hooks_asked(c),
        queued=c.queued,
        resending=c.resending and not partial,
    )
    data = unsummarised(data)
    return Move(control, PREPARING, data, (*shown, *effects, *drains), count)


def reactive_compact_retry(s: State, e: Compacted, k: Config) -> Move:
    """Take the compacted view, media stripped, and try again; the failure count stays."""
    assert isinstance(s.phase, Reacting)
    c = s.control
    data, fill, effects, spending = compacted_data(c, s.data, s.phase.compact, e, k)
    data, fill = joined(data, fill, s.phase.partial)
    control = Control(
        turn=c.turn,
        stop=c.stop,
        abort=c.abort,
        compaction=Compaction(compacted=False, turns_since=0, failures=c.compaction.failures),
        recovery=Recovery(
            output_recoveries=c.recovery.output_recoveries,
            reactive_compacted=True,
            output_limit_override=c.recovery.output_limit_override,
            stop_hook_active=c.recovery.stop_hook_active,
            withheld=Withheld.NOTHING,
            staged=0,
        ),
        attempts=_same_model(c),
        spending=spending,
        fill=fill,
        batch=NO_BATCH,
        hooks=_no_hooks_asked(c),
        queued=c.queued,
        resending=c.resending and not s.phase.partial,
    )
    data = unsummarised(data)
    return Move(control, PREPARING, data, effects)


def max_output_tokens_escalate(s: State, e: StreamClosed, k: Config) -> Move:
    """Withdraw the truncated answer and send the same request with the higher limit; silent."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, effects = withdraw(data, reply, e.shown, CANCELLED_RAISED)
    control = Control(
        turn=c.turn,
        stop=c.stop,
        abort=c.abort,
        compaction=_fresh(c),
        recovery=Recovery(
            output_recoveries=c.recovery.output_recoveries,
            reactive_compacted=c.recovery.reactive_compacted,
            output_limit_override=k.escalated_output_tokens,
            stop_hook_active=c.recovery.stop_hook_active,
            staged=c.recovery.staged,
        ),
        attempts=_same_model(c),
        spending=c.spending,
        fill=c.fill,
        batch=NO_BATCH,
        hooks=_no_hooks_asked(c),
        queued=c.queued,
        resending=c.resending,
    )
    data = unsummarised(data)
    return Move(control, PREPARING, data, (*shown, *effects))


def max_output_tokens_recovery(s: State, e: StreamClosed, k: Config) -> Move:
    """Keep the partial answer and ask the model to go on where it stopped."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, reply, effects = cut_answer(data, reply, CANCELLED_CUT, NOT_RUN_CUT)
    data, fill = kept(data, c.fill, partial_answer(reply, data, spec_of(c, k).name, k), reply.closing.tokens)
    data, fill = joined(data, fill, (user_text(RESUME, Origin.RESUME),))
    attempt = c.recovery.output_recoveries + 1
    control = Control(
        turn=c.turn,
        stop=c.stop,
        abort=c.abort,
        compaction=_fresh(c),
        recovery=Recovery(
            output_recoveries=attempt,
            reactive_compacted=c.recovery.reactive_compacted,
            output_limit_override=c.recovery.output_limit_override,
            stop_hook_active=c.recovery.stop_hook_active,
            staged=c.recovery.staged,
        ),
        attempts=_same_model(c),
        spending=c.spending,
        fill=fill,
        batch=NO_BATCH,
        hooks=_no_hooks_asked(c),
        queued=c.queued,
    )
    data = unsummarised(data)
    return Move(control, PREPARING, data, (*shown, *effects), attempt)


def stop_hook_blocking(s: State, e: HookAnswered | Resumed, k: Config) -> Move:
    """Send the model back with the hooks' errors; the guard of reactive compaction is never reset here."""
    verdicts = checked(s, e, k)
    c, data, reply = verdicts.control, verdicts.data, verdicts.reply
    data, fill = kept(data, c.fill, whole_answer(reply, spec_of(c, k).name), reply.closing.tokens)
    errors = errors_of(verdicts)
    data, fill = joined(data, fill, errors)
    control = Control(
        turn=c.turn,
        stop=c.stop,
        abort=c.abort,
        compaction=_fresh(c),
        recovery=Recovery(
            output_recoveries=0,
            reactive_compacted=c.recovery.reactive_compacted,
            output_limit_override=None,
            stop_hook_active=True,
            staged=c.recovery.staged,
        ),
        attempts=_same_model(c),
        spending=c.spending,
        fill=fill,
        batch=NO_BATCH,
        hooks=Hooks(due=c.hooks.due, blocks_left=c.hooks.blocks_left - c.hooks.blocking),
        queued=c.queued,
    )
    data = unsummarised(data)
    shown = tuple(Show(MessageShown(message)) for message in errors)
    return Move(control, PREPARING, data, (*verdicts.effects, *shown), len(errors))


def token_budget_continuation(s: State, e: Entered, k: Config) -> Move:
    """Nudge the model on: percent reached, tokens used and left."""
    assert isinstance(s.phase, Settling)
    assert k.token_budget_tokens is not None
    c, data, reply = s.control, s.data, s.phase.reply
    used, budget = c.spending.output_tokens, k.token_budget_tokens
    nudge = (
        f"You have used {100 * used // budget}% of the token budget: {used} of {budget} tokens, "
        f"{budget - used} are left. Keep working on the task; do not summarise."
    )
    data, fill = kept(data, c.fill, whole_answer(reply, spec_of(c, k).name), reply.closing.tokens)
    data, fill = joined(data, fill, (user_text(nudge, Origin.NUDGE),))
    continuations = c.spending.continuations + 1
    control = Control(
        turn=c.turn,
        stop=c.stop,
        abort=c.abort,
        compaction=_fresh(c),
        recovery=Recovery(
            output_recoveries=0,
            reactive_compacted=False,
            output_limit_override=None,
            stop_hook_active=c.recovery.stop_hook_active,
            staged=c.recovery.staged,
        ),
        attempts=_same_model(c),
        spending=Spending(
            model_calls=c.spending.model_calls,
            input_tokens=c.spending.input_tokens,
            output_tokens=used,
            cost=c.spending.cost,
            continuations=continuations,
            last_delta=used - c.spending.last_total,
            last_total=used,
        ),
        fill=fill,
        batch=NO_BATCH,
        hooks=_no_hooks_asked(c),
        queued=c.queued,
    )
    data = unsummarised(data)
    return Move(control, PREPARING, data, (), continuations)


def next_turn(s: State, e: Entered, k: Config) -> Move:
    """Bring the results home, with what has queued up beside them; one turn is spent."""
    assert isinstance(s.phase, Scheduling)
    c = s.control
    turn = c.turn + 1
    data, fill, effects, found = turn_joined(s, k)
    data, summary = summarised(data, s.phase.reply, found, k)
    if turn == k.notice_turn:
        effects = (
            *effects,
            Show(Notice(NoticeKind.MANY_TURNS, f"turn {turn}: the run takes long", turn)),
        )
    control = Control(
        turn=turn,
        stop=c.stop,
        abort=c.abort,
        compaction=_a_turn_older(_fresh(c)),
        recovery=Recovery(
            output_recoveries=0,
            reactive_compacted=False,
            output_limit_override=None,
            stop_hook_active=c.recovery.stop_hook_active,
            staged=c.recovery.staged,
        ),
        attempts=_same_model(c),
        spending=c.spending,
        fill=fill,
        batch=NO_BATCH,
        hooks=_no_hooks_asked(c),
        queued=len(data.side.queue),
    )
    return Move(control, PREPARING, data, (*effects, *summary))
