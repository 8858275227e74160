"""Faults around the loop: stop hooks, aborts, the queue, crashes."""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.adapters.fuzzing.museum.planting import (
    Exhibit,
    Rows,
    afterwards,
    before,
    data_of,
    guard,
    instead,
    keeps,
    move,
    part,
    the_row,
    untold,
    without,
)
from stepfold.adapters.fuzzing.museum.work import with_calls
from stepfold.adapters.testing.world import Fault
from stepfold.engine.events import Interrupt
from stepfold.engine.messages import Origin
from stepfold.engine.moves.hooks import check
from stepfold.engine.phases import Checking
from stepfold.engine.state import Stay


def _hooks_after_errors(rows: Rows) -> Rows:
    last = the_row(rows, "Sampling", "StreamFailed")
    asked = attrs.evolve(
        last, when=lambda c, e, k: c.hooks.due > 0, outcome=Stay.CHECKING, enters=Checking, by=check
    )
    return before(rows, asked, last)


def _blocks_given_back(rows: Rows) -> Rows:
    def fresh(made: Any, s: Any, e: Any, k: Any) -> Any:
        book = attrs.evolve(made.data.book, hook_blocks=(0,) * len(k.stop_hooks))
        blocks = sum(hook.max_blocks for hook in k.stop_hooks)
        return part(data_of(made, book=book), "hooks", due=len(k.stop_hooks), blocks_left=blocks)

    return move(rows, "next_turn", afterwards(fresh))


def _hook_blocks_uncounted(rows: Rows) -> Rows:
    def free(made: Any, s: Any, e: Any, k: Any) -> Any:
        book = attrs.evolve(made.data.book, hook_blocks=s.data.book.hook_blocks)
        made = data_of(made, book=book)
        return part(made, "hooks", due=s.control.hooks.due, blocks_left=s.control.hooks.blocks_left)

    return move(rows, "stop_hook_blocking", afterwards(free))


def _crashed_hook_blocks(rows: Rows) -> Rows:
    def harsh(old: Any) -> Any:
        return lambda c, e, k: old(c, e, k) or getattr(e, "verdict", "") in ("crash", "timeout")

    return guard(rows, "blocked", harsh)


def _block_wins(rows: Rows) -> Rows:
    return before(rows, the_row(rows, "Checking", "HookAnswered", "blocked"))


def _view_without(origin: Origin) -> Any:
    def end(made: Any, s: Any, e: Any, k: Any) -> Any:
        kept = [message for message in made.data.messages if message.origin is not origin]
        return data_of(made, messages=type(made.data.messages)().extend(kept))

    return afterwards(end)


def _orphan_results(rows: Rows) -> Rows:
    return move(rows, "abort_tools", _view_without(Origin.ANSWER))


def _missing_results(rows: Rows) -> Rows:
    return move(rows, "abort_tools", _view_without(Origin.RESULTS))


def _submit_cancels(rows: Rows) -> Rows:
    def hasty(call: Any) -> Any:
        return attrs.evolve(call, facts=attrs.evolve(call.facts, interrupt=Interrupt.CANCEL))

    return move(rows, "abort_calls", lambda old: lambda s, e, k: old(with_calls(s, hasty), e, k))


def _hard_is_silent(rows: Rows) -> Rows:
    return move(rows, "abort_tools", _view_without(Origin.INTERRUPTION))


def _queue_emptied(rows: Rows) -> Rows:
    def forgetful(old: Any) -> Any:
        def end(s: Any, e: Any, k: Any) -> Any:
            side = attrs.evolve(s.data.side, queue=())
            made = old(attrs.evolve(s, data=attrs.evolve(s.data, side=side)), e, k)
            return made._replace(control=attrs.evolve(made.control, queued=0))

        return end

    return move(rows, "complete", forgetful)


def _tool_run_again(rows: Rows) -> Rows:
    def idempotent(call: Any) -> Any:
        return attrs.evolve(call, facts=attrs.evolve(call.facts, idempotent=True))

    return move(rows, "calls_after_crash", lambda old: lambda s, e, k: old(with_calls(s, idempotent), e, k))


def _crash_free(rows: Rows) -> Rows:
    return move(rows, "call_after_crash", keeps("attempts", "retries"))


def _crash_stays_shown(rows: Rows) -> Rows:
    return move(rows, "call_after_crash", untold("Tombstone"))


def _every_crash_first(rows: Rows) -> Rows:
    forgotten = afterwards(lambda made, s, e, k: part(made, "attempts", crashed=False))
    return move(move(rows, "ask_again", forgotten), "compact_again", forgotten)


def _late_illegal(rows: Rows) -> Rows:
    for phase in ("Sampling", "Running", "Done"):
        rows = without(rows, phase, "Late")
    return rows


def _wrong_reason(rows: Rows) -> Rows:
    from stepfold.engine.state import Continue

    old = the_row(rows, "Sampling", "StreamClosed", "resumable")
    return instead(rows, old, outcome=Continue.MAX_OUTPUT_TOKENS_ESCALATE)


EXHIBITS: Final = (
    Exhibit(
        "stop-hooks-after-api-errors",
        "The call had failed for good; the hook saw an unfinished task, blocked, and the next call "
        "failed, too.",
        "a call that failed asks the stop hooks",
        _hooks_after_errors,
    ),
    Exhibit(
        "hook-cap-reset-by-a-tool-turn",
        "A hook may block once. Each tool turn in between forgot that it had.",
        "next_turn gives the blocks back",
        _blocks_given_back,
        (Fault.HOOK_BLOCKS,),
    ),
    Exhibit(
        "hook-blocks-not-counted",
        "A hook did not look at the flag that says it has blocked already: 51 blocks in a row.",
        "a block is not counted",
        _hook_blocks_uncounted,
    ),
    Exhibit(
        "crashed-hook-blocks",
        "The hook's interpreter was not installed. Its crash was read as a no, at every stop.",
        "a crash counts as a block",
        _crashed_hook_blocks,
    ),
    Exhibit(
        "block-wins-over-prevent",
        "One hook said to stop at once, another to go on, and the loop went on.",
        "blocked stands before prevented",
        _block_wins,
    ),
    Exhibit(
        "orphan-results-after-an-abort",
        "An abort in the middle of a batch kept the results and dropped the answer that had asked for them.",
        "abort_tools drops the answer",
        _orphan_results,
    ),
    Exhibit(
        "missing-results-after-an-abort",
        "An abort in the middle of a batch left calls without results; every later request was refused.",
        "abort_tools drops the results",
        _missing_results,
    ),
    Exhibit(
        "submit-cancels-everything",
        "The user only said something more; the build that had run for ten minutes was killed for it.",
        "a submit abort cancels tools that say wait",
        _submit_cancels,
    ),
    Exhibit(
        "abort-untold",
        "Nothing told the model that it had been interrupted, and it did the same again.",
        "a hard abort leaves no message",
        _hard_is_silent,
    ),
    Exhibit(
        "queued-words-lost",
        "Words typed during the last answer were gone when it ended.",
        "the end of a run empties the queue",
        _queue_emptied,
    ),
    Exhibit(
        "crash-runs-a-tool-again",
        "The process died while a payment ran; after the restart it was made a second time.",
        "every call counts as idempotent after a crash",
        _tool_run_again,
    ),
    Exhibit(
        "crash-costs-nothing",
        "The request made the process die; a supervisor restarted it, and the request was made again, "
        "all night.",
        "a resume spends no retry",
        _crash_free,
    ),
    Exhibit(
        "crash-leaves-half-an-answer",
        "After a restart the reader saw the half answer and then the whole one.",
        "a resume withdraws nothing",
        _crash_stays_shown,
    ),
    Exhibit(
        "every-crash-is-the-first",
        "A hook that kills the process is asked again after the restart, and kills it again.",
        "the first crash in a hook or compaction is not remembered",
        _every_crash_first,
    ),
    Exhibit(
        "late-answer-is-a-bug",
        "Two messages crossed on the wire, and the run died of an answer that nobody waited for any more.",
        "there is no row for late answers",
        _late_illegal,
    ),
    Exhibit(
        "wrong-reason",
        "The log named another reason than the one taken, and whoever read it looked in the wrong place.",
        "a resume is stamped as an escalation",
        _wrong_reason,
    ),
)
