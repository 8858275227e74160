"""
What always holds of one step (specification, section 9), read from outside.

``violations`` yields one line a property that a step breaks; ``NAMES`` are
the properties, so that a reader sees what was checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import attrs

from stepfold.adapters.proof.walk import Taken
from stepfold.engine.config import Config
from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Effect,
    ErrorShown,
    Finish,
    RunHook,
    RunTool,
    Show,
    Wait,
)
from stepfold.engine.events import Event, HookAnswered, Resumed, RunStarted, Stop, StreamClosed
from stepfold.engine.measure import measure
from stepfold.engine.phases import CallState, Done, Idle, Running, Sampling
from stepfold.engine.state import Continue, Control, Head, State, Stay
from stepfold.engine.table import SAME
from stepfold.engine.terminals import Terminal

MOVING: Final = (CallModel, RunTool, AskPermission, Compact, RunHook, Wait)
REQUESTS: Final = (CallModel, Compact, Wait)
CLEAN: Final = (Stop.END_TURN, Stop.STOP_SEQUENCE, Stop.TOOL_USE, Stop.OTHER)
FALLS: Final = "always the measure never rises, and falls with every continue, request, retry and wait"
NAMES: Final = (
    "always one Finish, the last effect, exactly when the run ends",
    "always nothing is owed at the end",
    "always a run that is not over is owed an answer",
    "always a row leads where it says, and its reason is the one that is stamped",
    "always step and the table read by the letter agree",
    FALLS,
    "always limits hold",
    "always stop hooks run only after a clean answer without calls",
    "always an error that is shown is followed by the end alone",
    "always an unsafe call runs alone, and not before the answer is whole",
    "always what is late changes nothing",
)


@attrs.frozen
class Edge:
    """One step: the event, what came of it, and the rows that were taken."""

    before: State
    event: Event
    after: State
    effects: tuple[Effect, ...]
    rows: tuple[Taken, ...]
    measured: tuple[int, ...]  # the measure before


def violations(edge: Edge, config: Config) -> Iterator[str]:
    """Yield what *edge* breaks."""
    yield from _ending(edge)
    yield from _rows(edge)
    yield from _falling(edge, config)
    yield from _limits(edge, config)
    yield from _hooks(edge)
    yield from _errors(edge)
    yield from _calls(edge)


def _ending(edge: Edge) -> Iterator[str]:
    places = [place for place, effect in enumerate(edge.effects) if isinstance(effect, Finish)]
    over = isinstance(edge.after.phase, Done)
    ends = over and (not isinstance(edge.before.phase, Done) or isinstance(edge.event, RunStarted))
    if places != ([len(edge.effects) - 1] if ends else []):
        yield f"{NAMES[0]}: Finish at {places} of {len(edge.effects)} effects"
    owed = edge.after.data.ledger.owed
    if over and owed:
        yield f"{NAMES[1]}: {', '.join(type(each).__name__ for each in owed)}"
    if not isinstance(edge.after.phase, Idle | Done) and not any(isinstance(each, MOVING) for each in owed):
        yield f"{NAMES[2]}: {type(edge.after.phase).__name__} waits for nothing"


def _rows(edge: Edge) -> Iterator[str]:
    for taken in edge.rows:
        row = taken.row
        into = type(taken.before.phase) if row.enters is SAME else row.enters
        if type(taken.after.phase) is not into:
            yield f"{NAMES[3]}: {row.when.__name__} enters {type(taken.after.phase).__name__}"
        if isinstance(row.outcome, Terminal):
            end = edge.after.end
            if end is None or end.reason is not row.outcome:
                yield f"{NAMES[3]}: {row.outcome} ended as {end}"
        if row.outcome is Stay.LATE and edge.rows == (taken,):
            same = (edge.before.control, edge.before.phase, edge.before.data)
            if same != (edge.after.control, edge.after.phase, edge.after.data):
                yield f"{NAMES[10]}: {type(edge.event).__name__}"
    again = [taken.row.outcome for taken in edge.rows if isinstance(taken.row.outcome, Continue)]
    stamped = edge.after.control.transition
    if again and (stamped is None or stamped.reason is not again[-1]):
        yield f"{NAMES[3]}: {again[-1]} was stamped {stamped}"


def disagreement(edge: Edge) -> Iterator[str]:
    """Yield where ``step`` did something else than the rows say, one after the other."""
    walked = edge.rows[-1].after
    if (walked.control, walked.phase, walked.data) != (edge.after.control, edge.after.phase, edge.after.data):
        yield f"{NAMES[4]}: {type(edge.event).__name__}"


def _falling(edge: Edge, config: Config) -> Iterator[str]:
    if isinstance(edge.event, RunStarted) or isinstance(edge.before.phase, Idle | Done):
        return
    if config.max_turns is None and any(taken.row.outcome is Continue.NEXT_TURN for taken in edge.rows):
        return  # turns without end: between two of them it falls
    before, after = edge.measured, measure(edge.after.control, config)
    if min(after) < 0:
        yield f"{FALLS}: it fell under 0: {after}"
    if after > before:
        yield f"{FALLS}: it rose from {before} to {after}"
    spends = any(isinstance(taken.row.outcome, Continue) for taken in edge.rows)
    spends = spends or any(isinstance(effect, REQUESTS) for effect in edge.effects)
    if spends and after == before:
        yield f"{FALLS}: it stayed at {after}"


def _limits(edge: Edge, config: Config) -> Iterator[str]:
    for what, value, limit in counts(edge.after.control, config):
        if limit is not None and not 0 <= value <= limit:
            yield f"{NAMES[6]}: {what} is {value}, the limit {limit}"
    blocks = edge.after.data.book.hook_blocks
    for hook, spent in zip(config.stop_hooks, blocks, strict=False):
        if spent > hook.max_blocks:
            yield f"{NAMES[6]}: hook {hook.name} blocked {spent} times"
    starts = [taken.before for taken in edge.rows if taken.row.outcome is Stay.COMPACTING]
    if any(state.control.compaction.failures >= config.max_compaction_failures for state in starts):
        yield f"{NAMES[6]}: autocompact with the breaker open"
    calls = [
        taken.before.control.spending.model_calls for taken in edge.rows if taken.row.outcome is Stay.CALLED
    ]
    if config.max_model_calls is not None and any(count >= config.max_model_calls for count in calls):
        yield f"{NAMES[6]}: a request beyond max_model_calls"


def counts(control: Control, config: Config) -> tuple[tuple[str, int, int | None], ...]:
    """Return (what, how many, the most there may be)."""
    attempts, recovery, book = control.attempts, control.recovery, control.compaction
    turns = 1 if config.nested else config.max_turns
    return (
        ("turn", control.turn, turns),
        ("output_recoveries", recovery.output_recoveries, config.max_output_recoveries),
        ("fallbacks", attempts.fallbacks, len(config.all_models) - 1),
        ("retries", attempts.retries, config.max_retries),
        ("resends", attempts.resends, config.max_resends),
        ("compactor retries", book.retries, config.max_compactor_retries),
        ("reactive retries", book.reactive_retries, config.max_compactor_retries),
        ("hook blocks left", control.hooks.blocks_left, sum(hook.max_blocks for hook in config.stop_hooks)),
        ("parallel calls", control.batch.active, config.max_parallel_tools),
        ("queue", control.queued, config.max_queued_commands),
        ("blocks", control.blocks, config.max_answer_blocks),
    )


def _hooks(edge: Edge) -> Iterator[str]:
    if not any(isinstance(effect, RunHook) for effect in edge.effects):
        return
    event = edge.event
    clean = isinstance(event, StreamClosed) and event.stop in CLEAN and not edge.before.control.batch.total
    if not clean and not isinstance(event, HookAnswered | Resumed):
        yield f"{NAMES[7]}: {event}"


def _errors(edge: Edge) -> Iterator[str]:
    for one, following in pairwise((*edge.effects, None)):
        if isinstance(one, Show) and isinstance(one.item, ErrorShown) and not isinstance(following, Finish):
            yield f"{NAMES[8]}: {type(following).__name__} follows"


def _calls(edge: Edge) -> Iterator[str]:
    for taken in edge.rows:
        batch = taken.before.control.batch
        if taken.row.outcome is Stay.STARTED_CALL and batch.head is Head.UNSAFE:
            begins = taken.row.event.__name__ == "Entered"
            if begins and (batch.active or not batch.complete):
                yield f"{NAMES[9]}: {batch}"
    if isinstance(edge.after.phase, Sampling | Running):
        calls = edge.after.phase.reply.schedule.calls
        active = [call for call in calls if call.state in (CallState.ACTIVE, CallState.ASKING)]
        if len(active) > 1 and not all(call.facts.safe for call in active):
            yield f"{NAMES[9]}: {len(active)} calls are active"
        if len(active) != edge.after.control.batch.active:
            sums = edge.after.control.batch.active
            yield f"{NAMES[9]}: {len(active)} calls are active, the sums say {sums}"
