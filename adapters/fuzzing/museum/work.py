"""Faults of tools and their results: the scheduler, permission, what the model is told."""

from __future__ import annotations

from typing import Any, Final

import attrs

from stepfold.adapters.fuzzing.museum.planting import (
    Exhibit,
    Rows,
    afterwards,
    before,
    believing,
    data_of,
    guard,
    move,
    never,
    part,
    the_row,
)
from stepfold.adapters.testing.world import Fault
from stepfold.engine.effects import RunTool
from stepfold.engine.messages import Message, Origin, Text, ToolResult
from stepfold.engine.phases import CallState, Running, Scheduling
from stepfold.engine.state import Head


def with_calls(state: Any, change: Any) -> Any:
    """Return *state* with every call of the open answer changed."""
    reply = state.phase.reply
    calls = tuple(map(change, reply.schedule.calls))
    reply = attrs.evolve(reply, schedule=attrs.evolve(reply.schedule, calls=calls))
    return attrs.evolve(state, phase=attrs.evolve(state.phase, reply=reply))


def _batch(**changes: Any) -> Any:
    return believing(lambda c: attrs.evolve(c, batch=attrs.evolve(c.batch, **changes)))


def _unsafe_early(rows: Rows) -> Rows:
    return guard(rows, "head_starts", _batch(complete=True))


def _unsafe_in_company(rows: Rows) -> Rows:
    return guard(rows, "head_starts", _batch(active=0, alone=False))


def _any_number(rows: Rows) -> Rows:
    def wide(old: Any) -> Any:
        return lambda c, e, k: old(c, e, attrs.evolve(k, max_parallel_tools=1_000))

    return guard(rows, "head_starts", wide)


def _reversed(message: Message) -> Message:
    if message.origin is not Origin.RESULTS:
        return message
    return attrs.evolve(message, content=message.content[::-1])


def _completion_order(rows: Rows) -> Rows:
    def shuffled(made: Any, s: Any, e: Any, k: Any) -> Any:
        return data_of(made, messages=type(made.data.messages)().extend(map(_reversed, made.data.messages)))

    return move(rows, "next_turn", afterwards(shuffled))


def _denied_runs(rows: Rows) -> Rows:
    return guard(rows, "head_refused", never)


def _no_is_yes(rows: Rows) -> Rows:
    return guard(rows, "permitted", lambda old: lambda c, e, k: True)


def _calls_after_stop(rows: Rows) -> Rows:
    """The calls behind a stop are left where they are."""
    rows = guard(rows, "head_skipped", lambda old: lambda c, e, k: c.batch.broken and old(c, e, k))
    return before(
        rows,
        attrs.evolve(
            the_row(rows, "Scheduling", "Entered", "tool_hook_stopped"),
            when=lambda c, e, k: c.batch.stopped and not c.batch.streaming and c.batch.active == 0,
        ),
    )


def _pending_dropped(rows: Rows) -> Rows:
    row = the_row(rows, "Scheduling", "Entered", "turns_spent")

    def early(c: Any, e: Any, k: Any) -> bool:
        return row.when(c, e, k) and c.batch.complete and c.batch.head is not Head.NONE

    return before(rows, attrs.evolve(row, when=early))


def _words_for_a_result(rows: Rows) -> Rows:
    def taken(made: Any, s: Any, e: Any, k: Any) -> Any:
        view = tuple(made.data.messages)
        if not view or view[-1].origin is not Origin.COMMAND:
            return made
        kept = (m for m in view if m.origin is not Origin.RESULTS)
        return data_of(made, messages=type(made.data.messages)().extend(kept))

    return move(rows, "next_turn", afterwards(taken))


def _double_answer(rows: Rows) -> Rows:
    """A second result of a call is taken for the next call's."""
    ended = the_row(rows, "Running", "ToolEnded").by
    late = the_row(rows, "Running", "Late")

    def again(s: Any, e: Any, k: Any) -> Any:
        answer = e.event
        orders = [order for order in s.data.ledger.owed if isinstance(order, RunTool)]
        if type(answer).__name__ != "ToolEnded" or not orders:
            return late.by(s, e, k)
        ledger = attrs.evolve(
            s.data.ledger, owed=tuple(order for order in s.data.ledger.owed if order is not orders[0])
        )
        settled = attrs.evolve(s, data=attrs.evolve(s.data, ledger=ledger))
        return ended(settled, attrs.evolve(answer, effect_id=orders[0].id), k)

    return before(rows, attrs.evolve(late, phases=(Running,), enters=Scheduling, by=again))


def _finished_rewritten(rows: Rows) -> Rows:
    def lost(call: Any) -> Any:
        if call.state is not CallState.ENDED:
            return call
        return attrs.evolve(call, result=ToolResult(call.use.id, (Text("[Interrupted.]"),), is_error=True))

    return move(rows, "abort_calls", lambda old: lambda s, e, k: old(with_calls(s, lost), e, k))


def _siblings_in_limbo(rows: Rows) -> Rows:
    """A failed shell call cancels its siblings in the schedule, but nobody tells their tools."""

    def quiet(made: Any, s: Any, e: Any, k: Any) -> Any:
        kept = tuple(one for one in made.effects if type(one).__name__ != "CancelTool")
        return made._replace(effects=kept)

    return move(rows, "end_call", afterwards(quiet))


def _head_forgotten(rows: Rows) -> Rows:
    """A call that is cancelled in a batch is never settled."""

    def lost(made: Any, s: Any, e: Any, k: Any) -> Any:
        if e.status.value != "cancelled":
            return made
        return part(made, "batch", open=s.control.batch.open, active=s.control.batch.active)

    return move(rows, "end_call", afterwards(lost))


EXHIBITS: Final = (
    Exhibit(
        "unsafe-tool-started-early",
        "A write ran while the answer streamed; the answer was then thrown away, the write was not.",
        "an unsafe call does not wait for the end of the answer",
        _unsafe_early,
    ),
    Exhibit(
        "unsafe-tool-in-company",
        "Two edits of one file ran side by side, and one was lost.",
        "an unsafe call does not wait for those that run",
        _unsafe_in_company,
    ),
    Exhibit(
        "any-number-of-calls-at-once",
        "One answer asked for two hundred fetches, and all of them began.",
        "max_parallel_tools is not looked at",
        _any_number,
    ),
    Exhibit(
        "results-in-completion-order",
        "Results were sent in the order in which the tools came to an end, not in that of the calls.",
        "the last call's result stands first",
        _completion_order,
    ),
    Exhibit(
        "denied-call-runs",
        "The rule that denied a tool was looked up after the tool had run.",
        "head_refused never holds",
        _denied_runs,
    ),
    Exhibit(
        "no-counts-as-yes",
        "The user was asked, and whatever was answered, the call ran.",
        "permitted always holds",
        _no_is_yes,
    ),
    Exhibit(
        "calls-dropped-at-a-stop",
        "A hook stopped the run between two calls; the second was never answered, and the session was dead.",
        "the calls behind a stop get no result",
        _calls_after_stop,
    ),
    Exhibit(
        "calls-dropped-at-the-turn-limit",
        "The last turn ended with calls that were neither run nor answered, and an empty answer.",
        "turns_spent stands before the calls",
        _pending_dropped,
    ),
    Exhibit(
        "words-in-place-of-a-result",
        "The user typed while a tool ran, and the words were sent where its result should have been.",
        "queued words take the place of the results",
        _words_for_a_result,
    ),
    Exhibit(
        "double-answer",
        "A tool answered twice; the second answer was taken for that of the next call.",
        "a late result is taken up",
        _double_answer,
        (Fault.STRAYS, Fault.UNSAFE_CALLS),
    ),
    Exhibit(
        "finished-result-rewritten",
        "An abort marked every call of the batch as interrupted, those that had finished, too.",
        "abort_calls overwrites the results of calls that have ended",
        _finished_rewritten,
        (Fault.ABORTS, Fault.UNSAFE_CALLS),
    ),
    Exhibit(
        "siblings-left-running",
        "The batch was given up, its tools were not: they went on writing after the run had moved on.",
        "calls that are given up are not cancelled",
        _siblings_in_limbo,
        (Fault.UNSAFE_CALLS, Fault.TOOL_FAILURES),
    ),
    Exhibit(
        "cancelled-call-never-settles",
        "One call of a batch was cancelled, and the batch waited for it for ever.",
        "a cancelled call still counts as open",
        _head_forgotten,
    ),
)
