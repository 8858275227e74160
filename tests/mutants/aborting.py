"""Faults of aborts, of the queue, of crashes, and of answers that cross on the wire."""

from __future__ import annotations

from typing import Any

import attrs

from stepfold.engine.config import Config
from stepfold.engine.events import AbortKind, Interrupt
from stepfold.engine.messages import Message, Origin, Role, Text, ToolResult
from stepfold.engine.phases import CallState
from stepfold.engine.state import Move
from tests.mutants.calling import with_calls, with_facts
from tests.mutants.planting import Function, Mutant, Planting, part, untold
from tests.mutants.probes import abort_at_rest, answers_twice, open_text_at_an_abort, words_in_order


def without_origin(old: Function, origin: Origin) -> Function:
    """Return a move that leaves no message of *origin* in the view."""

    def end(s: Any, e: Any, k: Any) -> Move:
        move: Move = old(s, e, k)
        kept = [message for message in move.data.messages if message.origin is not origin]
        view = type(move.data.messages)().extend(kept)
        return move._replace(data=attrs.evolve(move.data, messages=view))

    return end


# ---------------------------------------------------------------- aborts


def finished_result_dropped(p: Planting) -> None:
    def lost(call: Any) -> Any:
        if call.state is not CallState.ENDED:
            return call
        return attrs.evolve(call, result=ToolResult(call.use.id, (Text("[Interrupted.]"),), is_error=True))

    p.swap("abort_calls", lambda old: lambda s, e, k: old(with_calls(s, lost), e, k))


def orphan_results(p: Planting) -> None:
    p.swap("abort_tools", lambda old: without_origin(old, Origin.ANSWER))


def missing_results(p: Planting) -> None:
    p.swap("abort_tools", lambda old: without_origin(old, Origin.RESULTS))


def submit_cancels_all(p: Planting) -> None:
    def hasty(old: Function) -> Function:
        return lambda s, e, k: old(
            with_calls(s, lambda call: with_facts(call, interrupt=Interrupt.CANCEL)), e, k
        )

    p.swap("abort_calls", hasty)


def submit_interrupts(p: Planting) -> None:
    def loud(old: Function) -> Function:
        return lambda s, e, k: old(
            attrs.evolve(s, control=attrs.evolve(s.control, abort=AbortKind.HARD)), e, k
        )

    p.swap("abort_tools", loud)


def hard_is_silent(p: Planting) -> None:
    p.swap("abort_tools", lambda old: without_origin(old, Origin.INTERRUPTION))


def hard_cannot_harden(p: Planting) -> None:
    p.drop("Aborting", "AbortRequested", "harder")


def streamed_text_lost(p: Planting) -> None:
    p.swap("stream_in", lambda old: lambda s, e, k: old(s, attrs.evolve(e, open_text=""), k))


def trailing_thinking_kept(p: Planting) -> None:
    def whole(old: Function) -> Function:
        def partial(reply: Any, data: Any, model: str, k: Config) -> tuple[Message, ...]:
            kept = old(reply, data, model, k)
            return kept or (
                (Message(Role.ASSISTANT, reply.blocks, Origin.ANSWER, model),) if reply.blocks else ()
            )

        return partial

    p.swap("partial_answer", whole, "moves.reply")
    p.swap("_without_trailing_thinking", lambda old: lambda content: content, "context.request")


def back_off_cannot_be_left(p: Planting) -> None:
    p.drop("Waiting", "AbortRequested")


# ---------------------------------------------------------------- queue and company


def queue_of(old: Function, change: Any) -> Function:
    """Return a move before which the queue is changed."""

    def move(s: Any, e: Any, k: Any) -> Move:
        side = attrs.evolve(s.data.side, queue=change(s.data.side.queue))
        move: Move = old(attrs.evolve(s, data=attrs.evolve(s.data, side=side)), e, k)
        return move

    return move


def words_lost_at_max_turns(p: Planting) -> None:
    p.swap("spend_turns", lambda old: queue_of(old, lambda queue: ()))


def words_lost_at_the_end(p: Planting) -> None:
    p.swap("complete", lambda old: queue_of(old, lambda queue: ()))


def words_lost_at_an_abort(p: Planting) -> None:
    p.swap("abort_tools", lambda old: queue_of(old, lambda queue: ()))


def words_out_of_order(p: Planting) -> None:
    p.swap("next_turn", lambda old: queue_of(old, lambda queue: queue[::-1]))


def memories_lost(p: Planting) -> None:
    p.swap("take_prefetched", lambda old: lambda s, e, k: Move(s.control, s.phase, s.data))


# ---------------------------------------------------------------- crashes, late answers


def tool_run_again(p: Planting) -> None:
    def again(old: Function) -> Function:
        return lambda s, e, k: old(with_calls(s, lambda call: with_facts(call, idempotent=True)), e, k)

    p.swap("calls_after_crash", again)


def crash_costs_nothing(p: Planting) -> None:
    def free(old: Function) -> Function:
        return lambda s, e, k: part(old(s, e, k), "attempts", retries=s.control.attempts.retries)

    p.swap("call_after_crash", free)


def crash_withdraws_nothing(p: Planting) -> None:
    p.swap("call_after_crash", lambda old: untold(old, "Tombstone"))


def every_crash_is_the_first(p: Planting) -> None:
    p.swap("ask_again", lambda old: lambda s, e, k: part(old(s, e, k), "attempts", crashed=False))
    p.swap("compact_again", lambda old: lambda s, e, k: part(old(s, e, k), "attempts", crashed=False))


def late_row_deleted(p: Planting) -> None:
    for phase in ("Sampling", "Running", "Checking", "Done"):
        p.drop(phase, "Late")


def abort_after_the_end(p: Planting) -> None:
    p.drop("Done", "AbortRequested")


def answered_twice(p: Planting) -> None:
    """An answer does not settle what it answers, so that a second one is taken up as well."""

    def unsettled(old: Function) -> Function:
        return lambda data, event: (old(data, event)[0], data)

    p.swap("_received", unsettled, "step")


FAULTS = (
    Mutant(
        "an abort drops a finished result",
        "calls that had ended count as interrupted",
        finished_result_dropped,
        ("abort/hard-in-the-tools",),
    ),
    Mutant(
        "orphan results after an abort",
        "the answer is dropped, its results are kept",
        orphan_results,
        ("abort/hard-in-the-tools",),
    ),
    Mutant(
        "missing results after an abort",
        "the answer is kept, its results are dropped",
        missing_results,
        ("abort/hard-in-the-tools",),
    ),
    Mutant(
        "a submit abort cancels all",
        "what a tool says of interrupts is not looked at",
        submit_cancels_all,
        ("abort/submit-in-the-tools",),
    ),
    Mutant(
        "a submit abort says that it interrupts",
        "as a hard one",
        submit_interrupts,
        ("abort/submit-in-the-tools",),
    ),
    Mutant(
        "a hard abort says nothing",
        "no message tells the model",
        hard_is_silent,
        ("abort/hard-in-the-tools",),
    ),
    Mutant(
        "a hard abort does not harden a submit abort",
        "the row is gone",
        hard_cannot_harden,
        ("abort/hard-while-a-submit-waits",),
    ),
    Mutant(
        "the open text is lost by an abort",
        "only whole blocks are kept",
        streamed_text_lost,
        (open_text_at_an_abort,),
    ),
    Mutant(
        "thinking ends a kept answer",
        "trailing thinking of a partial answer stays",
        trailing_thinking_kept,
        ("output/thinking-for-ever",),
    ),
    Mutant(
        "the back-off cannot be aborted",
        "the row is gone",
        back_off_cannot_be_left,
        ("abort/in-the-back-off",),
    ),
    Mutant(
        "queued words are lost at max_turns",
        "the queue is emptied unsaid",
        words_lost_at_max_turns,
        ("queue/at-the-turn-limit",),
    ),
    Mutant(
        "queued words are lost at the end",
        "a completed run empties the queue",
        words_lost_at_the_end,
        ("queue/after-the-last-answer",),
    ),
    Mutant(
        "queued words are lost at an abort",
        "an aborted run empties the queue",
        words_lost_at_an_abort,
        ("queue/at-an-abort",),
    ),
    Mutant(
        "queued words join in the wrong order",
        "the last said stands first",
        words_out_of_order,
        (words_in_order,),
    ),
    Mutant(
        "memories are lost", "what was found is dropped", memories_lost, ("context/memories-and-summaries",)
    ),
    Mutant(
        "a crash runs a tool again",
        "every tool counts as idempotent",
        tool_run_again,
        ("crash/tool-was-running",),
    ),
    Mutant(
        "a crash costs no retry",
        "a supervisor may restart for ever",
        crash_costs_nothing,
        ("crash/again-and-again-in-one-call",),
    ),
    Mutant(
        "a crash withdraws nothing",
        "what the lost attempt showed stays",
        crash_withdraws_nothing,
        ("crash/answer-was-streaming",),
    ),
    Mutant(
        "every crash is the first",
        "the one in this hook or compaction is not remembered",
        every_crash_is_the_first,
        ("hooks/second-death-in-a-hook", "crash/two-deaths-in-one-compaction"),
    ),
    Mutant(
        "the row for late answers is gone", "a second answer is illegal", late_row_deleted, (answers_twice,)
    ),
    Mutant(
        "an answer is taken up twice", "what was answered stays outstanding", answered_twice, (answers_twice,)
    ),
    Mutant("an abort after the end is illegal", "the row is gone", abort_after_the_end, (abort_at_rest,)),
)
