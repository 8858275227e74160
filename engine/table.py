"""
Every transition of the machine, one line each.

A run is one walk through this table.  Rows are tried from top to bottom; the
first whose phase, event and condition hold is taken.  A (phase, event) pair
without a row is illegal: ``UnexpectedEvent``, and the old state is still good.

* The reason a run continued or ended is the row's ``outcome`` and nothing
  else: ``step`` stamps it, a move cannot choose it.
* ``Entered`` is no fact from the world: a junction (Preparing, Fitting,
  Calling, Scheduling, Settling, Unwinding) is left in the same step in which
  it is entered.
* ``Late`` is an answer whose effect is no longer outstanding.
* ``SAME`` enters the phase it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from stepfold.engine import guards as g
from stepfold.engine.config import Config
from stepfold.engine.events import (
    AbortRequested,
    BlockCompleted,
    CollapseStaged,
    CommandQueued,
    Compacted,
    CompactionFailed,
    HookAnswered,
    PermissionAnswered,
    Prefetched,
    Resumed,
    RunStarted,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    SummaryReady,
    ToolEnded,
    ToolsChanged,
    WaitElapsed,
)
from stepfold.engine.frozen import frozen
from stepfold.engine.moves import (
    compaction,
    continues,
    ends,
    hooks,
    iteration,
    notes,
    resuming,
    sampling,
    tools,
    unwinding,
)
from stepfold.engine.phases import (
    Aborting,
    Calling,
    Checking,
    Compacting,
    Done,
    Fitting,
    Idle,
    Preparing,
    Reacting,
    Running,
    Sampling,
    Scheduling,
    Settling,
    Unwinding,
    Waiting,
)
from stepfold.engine.state import Continue, Control, Entered, Late, Move, Outcome, State, Stay
from stepfold.engine.terminals import Terminal

E = TypeVar("E")


class SAME:
    """The phase that the row is taken in."""


@frozen
class Row:
    """One transition.  Build it with ``row``, which checks the types."""

    phases: tuple[type[Any], ...]
    event: type[Any]
    when: Callable[..., bool]
    outcome: Outcome
    enters: type[Any]
    by: Callable[..., Move]


def row(
    phases: type[Any] | tuple[type[Any], ...],
    event: type[E],
    when: Callable[[Control, E, Config], bool],
    outcome: Outcome,
    enters: type[Any],
    by: Callable[[State, E, Config], Move],
) -> Row:
    """Return one row; the event binds what its condition and its move may read."""
    return Row(phases if isinstance(phases, tuple) else (phases,), event, when, outcome, enters, by)


AT_REST: Final = (Idle, Done)
ALIVE: Final = (Sampling, Waiting, Compacting, Reacting, Running, Checking, Aborting)
NOT_SAMPLING: Final = (Waiting, Compacting, Reacting, Running, Checking, Aborting)
ANY: Final = (*AT_REST, *ALIVE)
JUNCTIONS: Final = (Preparing, Fitting, Calling, Scheduling, Settling, Unwinding)

# fmt: off
# ruff: noqa: E501
TABLE: Final[tuple[Row, ...]] = (
    #   in phase     on event            when                         outcome                              enters       by
    # A run begins; an iteration is prepared; the view fits or is made to; a request leaves.
    row(AT_REST,     RunStarted,         g.always,                    Stay.STARTED,                        Preparing,   iteration.begin),
    row(Preparing,   Entered,            g.always,                    Stay.PREPARED,                       Fitting,     iteration.prepare),
    row(Fitting,     Entered,            g.staged_at_threshold,       Stay.DRAINED,                        Fitting,     iteration.drain_staged),
    row(Fitting,     Entered,            g.compaction_barred,         Terminal.BLOCKING_LIMIT,             Done,        ends.block),
    row(Fitting,     Entered,            g.compaction_due,            Stay.COMPACTING,                     Compacting,  compaction.start_compaction),
    row(Fitting,     Entered,            g.context_full,              Terminal.BLOCKING_LIMIT,             Done,        ends.block_context),
    row(Fitting,     Entered,            g.always,                    Stay.FITS,                           Calling,     iteration.fits),
    row(Calling,     Entered,            g.requests_spent,            Terminal.BLOCKING_LIMIT,             Done,        ends.block),
    row(Calling,     Entered,            g.always,                    Stay.CALLED,                         Sampling,    iteration.call_model),

    # The answer streams in.
    row(Sampling,    BlockCompleted,     g.answer_overflows,          Stay.LATE,                           Sampling,    notes.ignore),
    row(Sampling,    BlockCompleted,     g.a_call,                    Stay.STREAMING,                      Scheduling,  sampling.take_call),
    row(Sampling,    BlockCompleted,     g.always,                    Stay.STREAMING,                      Sampling,    sampling.take_block),

    # The answer ended.
    row(Sampling,    StreamClosed,       g.window_drainable,          Continue.COLLAPSE_DRAIN_RETRY,       Preparing,   continues.collapse_drain_retry),
    row(Sampling,    StreamClosed,       g.window_barred,             Terminal.BLOCKING_LIMIT,             Done,        ends.block_reaction),
    row(Sampling,    StreamClosed,       g.window_reactable,          Stay.REACTING,                       Reacting,    compaction.react),
    row(Sampling,    StreamClosed,       g.window_exceeded,           Terminal.PROMPT_TOO_LONG,            Done,        ends.surface_too_long),
    row(Sampling,    StreamClosed,       g.escalatable,               Continue.MAX_OUTPUT_TOKENS_ESCALATE, Preparing,   continues.max_output_tokens_escalate),
    row(Sampling,    StreamClosed,       g.resumable,                 Continue.MAX_OUTPUT_TOKENS_RECOVERY, Preparing,   continues.max_output_tokens_recovery),
    row(Sampling,    StreamClosed,       g.truncated,                 Terminal.COMPLETED,                  Done,        ends.complete_cut),
    row(Sampling,    StreamClosed,       g.refused,                   Terminal.COMPLETED,                  Done,        ends.complete_cut),
    row(Sampling,    StreamClosed,       g.resendable,                Stay.RESENDING,                      Calling,     sampling.resend),
    row(Sampling,    StreamClosed,       g.paused,                    Terminal.COMPLETED,                  Done,        ends.complete_cut),
    row(Sampling,    StreamClosed,       g.has_calls,                 Stay.ANSWERED,                       Scheduling,  sampling.take_answer),
    row(Sampling,    StreamClosed,       g.hooks_due,                 Stay.CHECKING,                       Checking,    hooks.check),
    row(Sampling,    StreamClosed,       g.always,                    Stay.SETTLING,                       Settling,    hooks.settle),

    # The call failed.
    row(Sampling,    StreamFailed,       g.too_long_drainable,        Continue.COLLAPSE_DRAIN_RETRY,       Preparing,   continues.collapse_drain_retry),
    row(Sampling,    StreamFailed,       g.too_long_barred,           Terminal.BLOCKING_LIMIT,             Done,        ends.block_reaction),
    row(Sampling,    StreamFailed,       g.too_long_reactable,        Stay.REACTING,                       Reacting,    compaction.react),
    row(Sampling,    StreamFailed,       g.too_long,                  Terminal.PROMPT_TOO_LONG,            Done,        ends.surface_too_long),
    row(Sampling,    StreamFailed,       g.media_barred,              Terminal.BLOCKING_LIMIT,             Done,        ends.block_reaction),
    row(Sampling,    StreamFailed,       g.media_reactable,           Stay.REACTING,                       Reacting,    compaction.react),
    row(Sampling,    StreamFailed,       g.media_too_large,           Terminal.IMAGE_ERROR,                Done,        ends.surface_media),
    row(Sampling,    StreamFailed,       g.overloaded_thrice,         Stay.FALLBACK,                       Calling,     sampling.fall_back),
    row(Sampling,    StreamFailed,       g.wait_too_long_replaceable, Stay.FALLBACK,                       Calling,     sampling.fall_back),
    row(Sampling,    StreamFailed,       g.wait_too_long,             Terminal.MODEL_ERROR,                Done,        ends.surface_failure),
    row(Sampling,    StreamFailed,       g.retryable,                 Stay.RETRYING,                       Waiting,     sampling.wait),
    row(Sampling,    StreamFailed,       g.always,                    Terminal.MODEL_ERROR,                Done,        ends.surface_failure),
    row(Waiting,     WaitElapsed,        g.always,                    Stay.RETRYING,                       Calling,     sampling.call_again),

    # Autocompact, in the pipeline; reactive compaction, with a failure withheld.
    row(Compacting,  Compacted,          g.under_threshold,           Stay.COMPACTED,                      Fitting,     compaction.take_compaction),
    row(Compacting,  Compacted,          g.always,                    Stay.COMPACTED_SHORT,                Fitting,     compaction.take_short_compaction),
    row(Compacting,  CompactionFailed,   g.summary_barred,            Terminal.BLOCKING_LIMIT,             Done,        ends.block_retry),
    row(Compacting,  CompactionFailed,   g.summary_too_long,          Stay.COMPACTOR_RETRY,                Compacting,  compaction.retry_compaction),
    row(Compacting,  CompactionFailed,   g.always,                    Stay.COMPACTION_FAILED,              Fitting,     compaction.fail_compaction),
    row(Reacting,    Compacted,          g.worked,                    Continue.REACTIVE_COMPACT_RETRY,     Preparing,   continues.reactive_compact_retry),
    row(Reacting,    Compacted,          g.media_withheld,            Terminal.IMAGE_ERROR,                Done,        ends.surface_media_after_reaction),
    row(Reacting,    Compacted,          g.always,                    Terminal.PROMPT_TOO_LONG,            Done,        ends.surface_after_reaction),
    row(Reacting,    CompactionFailed,   g.reaction_barred,           Terminal.BLOCKING_LIMIT,             Done,        ends.block_retry),
    row(Reacting,    CompactionFailed,   g.reaction_too_long,         Stay.COMPACTOR_RETRY,                Reacting,    compaction.retry_reaction),
    row(Reacting,    CompactionFailed,   g.media_withheld,            Terminal.IMAGE_ERROR,                Done,        ends.surface_media_after_reaction),
    row(Reacting,    CompactionFailed,   g.always,                    Terminal.PROMPT_TOO_LONG,            Done,        ends.surface_after_reaction),

    # The scheduler: calls begin in order, safe ones beside each other, and end once; then the turn is over.
    row(Scheduling,  Entered,            g.head_skipped,              Stay.SKIPPED_CALL,                   Scheduling,  tools.skip_call),
    row(Scheduling,  Entered,            g.head_refused,              Stay.REFUSED_CALL,                   Scheduling,  tools.refuse_call),
    row(Scheduling,  Entered,            g.head_asks,                 Stay.ASKED,                          Scheduling,  tools.ask_permission),
    row(Scheduling,  Entered,            g.head_starts,               Stay.STARTED_CALL,                   Scheduling,  tools.start_call),
    row(Scheduling,  Entered,            g.stream_open,               Stay.STREAMING,                      Sampling,    tools.back_to_stream),
    row(Scheduling,  Entered,            g.calls_open,                Stay.RUNNING,                        Running,     tools.await_calls),
    row(Scheduling,  Entered,            g.tool_hook_stopped,         Terminal.HOOK_STOPPED,               Done,        ends.stop_by_hook),
    row(Scheduling,  Entered,            g.turns_spent,               Terminal.MAX_TURNS,                  Done,        ends.spend_turns),
    row(Scheduling,  Entered,            g.always,                    Continue.NEXT_TURN,                  Preparing,   continues.next_turn),
    row((Sampling, Running), ToolEnded,  g.always,                    Stay.ENDED_CALL,                     Scheduling,  tools.end_call),
    row((Sampling, Running), PermissionAnswered, g.permitted,         Stay.STARTED_CALL,                   Scheduling,  tools.run_permitted),
    row((Sampling, Running), PermissionAnswered, g.always,            Stay.REFUSED_CALL,                   Scheduling,  tools.deny_call),

    # Stop hooks, then the token budget, then the end.
    row(Checking,    HookAnswered,       g.more_hooks,                Stay.CHECKING,                       Checking,    hooks.ask_next),
    row(Checking,    HookAnswered,       g.prevented,                 Terminal.STOP_HOOK_PREVENTED,        Done,        ends.prevent),
    row(Checking,    HookAnswered,       g.blocked,                   Continue.STOP_HOOK_BLOCKING,         Preparing,   continues.stop_hook_blocking),
    row(Checking,    HookAnswered,       g.always,                    Stay.SETTLING,                       Settling,    hooks.pass_hooks),
    row(Settling,    Entered,            g.budget_left,               Continue.TOKEN_BUDGET_CONTINUATION,  Preparing,   continues.token_budget_continuation),
    row(Settling,    Entered,            g.always,                    Terminal.COMPLETED,                  Done,        ends.complete),

    # Abort: at once where nothing is to come in, else when it has.
    row(Sampling,    AbortRequested,     g.always,                    Stay.ABORTING,                       Unwinding,   unwinding.abort_stream),
    row(Running,     AbortRequested,     g.always,                    Stay.ABORTING,                       Unwinding,   unwinding.abort_calls),
    row((Waiting, Compacting, Reacting, Checking), AbortRequested, g.always, Terminal.ABORTED_STREAMING,   Done,        ends.abort),
    row(Aborting,    AbortRequested,     g.harder,                    Stay.ABORTING,                       Unwinding,   unwinding.harden),
    row(Aborting,    AbortRequested,     g.always,                    Stay.LATE,                           Aborting,    notes.ignore),
    row(Aborting,    BlockCompleted,     g.answer_overflows,          Stay.LATE,                           Aborting,    notes.ignore),
    row(Aborting,    BlockCompleted,     g.always,                    Stay.STREAMING,                      Unwinding,   unwinding.keep_block),
    row(Aborting,    StreamCancelled,    g.always,                    Stay.ABORTING,                       Unwinding,   unwinding.stream_in),
    row(Aborting,    StreamClosed,       g.always,                    Stay.ABORTING,                       Unwinding,   unwinding.stream_in),
    row(Aborting,    StreamFailed,       g.always,                    Stay.ABORTING,                       Unwinding,   unwinding.stream_in),
    row(Aborting,    ToolEnded,          g.always,                    Stay.ENDED_CALL,                     Unwinding,   unwinding.end_waited_call),
    row(Unwinding,   Entered,            g.still_open,                Stay.ABORTING,                       Aborting,    unwinding.keep_waiting),
    row(Unwinding,   Entered,            g.response_complete,         Terminal.ABORTED_TOOLS,              Done,        ends.abort_tools),
    row(Unwinding,   Entered,            g.always,                    Terminal.ABORTED_STREAMING,          Done,        ends.abort_streaming),
    row(AT_REST,     AbortRequested,     g.always,                    Stay.LATE,                           SAME,        notes.ignore),

    # A new process takes up the log.
    row(Sampling,    Resumed,            g.retries_left,              Stay.RESUMED,                        Calling,     resuming.call_after_crash),
    row(Sampling,    Resumed,            g.always,                    Terminal.MODEL_ERROR,                Done,        resuming.give_up_after_crash),
    row(Waiting,     Resumed,            g.retries_left,              Stay.RESUMED,                        Waiting,     resuming.wait_after_crash),
    row(Waiting,     Resumed,            g.always,                    Terminal.MODEL_ERROR,                Done,        resuming.give_up_after_crash),
    row(Compacting,  Resumed,            g.crash_barred,              Terminal.BLOCKING_LIMIT,             Done,        ends.block_again),
    row(Compacting,  Resumed,            g.first_crash,               Stay.RESUMED,                        Compacting,  resuming.compact_again),
    row(Compacting,  Resumed,            g.always,                    Stay.COMPACTION_FAILED,              Fitting,     compaction.fail_compaction),
    row(Reacting,    Resumed,            g.crash_barred,              Terminal.BLOCKING_LIMIT,             Done,        ends.block_again),
    row(Reacting,    Resumed,            g.first_crash,               Stay.RESUMED,                        Reacting,    resuming.compact_again),
    row(Reacting,    Resumed,            g.media_withheld,            Terminal.IMAGE_ERROR,                Done,        ends.surface_media_after_reaction),
    row(Reacting,    Resumed,            g.always,                    Terminal.PROMPT_TOO_LONG,            Done,        ends.surface_after_reaction),
    row(Running,     Resumed,            g.always,                    Stay.RESUMED,                        Scheduling,  resuming.calls_after_crash),
    row(Checking,    Resumed,            g.first_crash,               Stay.RESUMED,                        Checking,    resuming.ask_again),
    row(Checking,    Resumed,            g.more_hooks,                Stay.CHECKING,                       Checking,    hooks.ask_next),
    row(Checking,    Resumed,            g.prevented,                 Terminal.STOP_HOOK_PREVENTED,        Done,        ends.prevent),
    row(Checking,    Resumed,            g.blocked,                   Continue.STOP_HOOK_BLOCKING,         Preparing,   continues.stop_hook_blocking),
    row(Checking,    Resumed,            g.always,                    Stay.SETTLING,                       Settling,    hooks.pass_hooks),
    row(Aborting,    Resumed,            g.always,                    Stay.RESUMED,                        Unwinding,   resuming.unwind_after_crash),
    row(AT_REST,     Resumed,            g.always,                    Stay.LATE,                           SAME,        notes.ignore),

    # What crosses the loop at any time and decides nothing.
    row(Sampling,    SummaryReady,       g.always,                    Stay.NOTED,                          Sampling,    notes.hold_summary),
    row(NOT_SAMPLING, SummaryReady,      g.always,                    Stay.NOTED,                          SAME,        notes.show_summary),
    row(ALIVE,       Prefetched,         g.always,                    Stay.NOTED,                          SAME,        notes.take_prefetched),
    row(ALIVE,       CollapseStaged,     g.always,                    Stay.NOTED,                          SAME,        notes.take_staged),
    row(ANY,         ToolsChanged,       g.always,                    Stay.NOTED,                          SAME,        notes.change_tools),
    row(ANY,         CommandQueued,      g.queue_full,                Stay.LATE,                           SAME,        notes.refuse_command),
    row(ANY,         CommandQueued,      g.always,                    Stay.NOTED,                          SAME,        notes.queue_command),
    row(ANY,         Late,               g.always,                    Stay.LATE,                           SAME,        notes.ignore),
)
# fmt: on
