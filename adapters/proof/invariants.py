"""
What always holds of one step (specification, section 9), read from outside.

``violations`` yields one line a property that a step breaks; ``NAMES`` are
the properties, so that a reader sees what was checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import Final, NamedTuple

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

MOVING: Final = frozenset({CallModel, RunTool, AskPermission, Compact, RunHook, Wait})
REQUESTS: Final = frozenset({CallModel, Compact, Wait})
# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
NEXT_TURN: Final = Continue.NEXT_TURN
COMPACTING: Final = Stay.COMPACTING
CALLED: Final = Stay.CALLED
LATE: Final = Stay.LATE
STARTED_CALL: Final = Stay.STARTED_CALL
UNSAFE: Final = Head.UNSAFE
ACTIVE: Final = (CallState.ACTIVE, CallState.ASKING)
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


class Edge(NamedTuple):
    """One step: the event, what came of it, and the rows that were taken; it lives for one step only."""

    before: State
    event: Event
    after: State
    effects: tuple[Effect, ...]
    rows: tuple[Taken, ...]
    measured: tuple[int, ...]  # the measure before


def violations(edge: Edge, config: Config) -> Iterator[str]:
    """Yield what *edge* breaks."""
    kinds = {type(effect) for effect in edge.effects}
    yield from _ending(edge, kinds)
    yield from _rows(edge)
    yield from _falling(edge, kinds, config)
    if edge.after.control is not edge.before.control:
        yield from _limits(edge, config)
    if RunHook in kinds:
        yield from _hooks(edge)
    if Show in kinds:
        yield from _errors(edge)
    yield from _calls(edge)


def _ending(edge: Edge, kinds: Set[type]) -> Iterator[str]:
    phase, owed = type(edge.after.phase), edge.after.data.ledger.owed
    over = phase is Done
    ends = over and (not isinstance(edge.before.phase, Done) or isinstance(edge.event, RunStarted))
    if ends or Finish in kinds:
        places = [place for place, effect in enumerate(edge.effects) if isinstance(effect, Finish)]
        if places != ([len(edge.effects) - 1] if ends else []):
            yield f"{NAMES[0]}: Finish at {places} of {len(edge.effects)} effects"
    if over and owed:
        yield f"{NAMES[1]}: {', '.join(type(each).__name__ for each in owed)}"
    if not over and phase is not Idle and MOVING.isdisjoint([type(each) for each in owed]):
        yield f"{NAMES[2]}: {phase.__name__} waits for nothing"


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
        if row.outcome is LATE and edge.rows == (taken,):
            same = (edge.before.control, edge.before.phase, edge.before.data)
            if same != (edge.after.control, edge.after.phase, edge.after.data):
                yield f"{NAMES[10]}: {type(edge.event).__name__}"
    again = [taken.row.outcome for taken in edge.rows if isinstance(taken.row.outcome, Continue)]
    stamped = edge.after.control.transition
    if again and (stamped is None or stamped.reason is not again[-1]):
        yield f"{NAMES[3]}: {again[-1]} was stamped {stamped}"


def disagreement(edge: Edge, rows: Sequence[Taken] | None) -> Iterator[str]:
    """Yield where ``step`` did something else than *rows* say, one after the other."""
    walked = edge.before if rows is None else rows[-1].after
    if (walked.control, walked.phase, walked.data) != (edge.after.control, edge.after.phase, edge.after.data):
        yield f"{NAMES[4]}: {type(edge.event).__name__}"


def _falling(edge: Edge, kinds: Set[type], config: Config) -> Iterator[str]:
    if isinstance(edge.event, RunStarted) or isinstance(edge.before.phase, Idle | Done):
        return
    outcomes = [taken.row.outcome for taken in edge.rows]
    if config.max_turns is None and NEXT_TURN in outcomes:
        return  # turns without end: between two of them it falls
    before = edge.measured
    after = before if edge.after.control is edge.before.control else measure(edge.after.control, config)
    if min(after) < 0:
        yield f"{FALLS}: it fell under 0: {after}"
    if after > before:
        yield f"{FALLS}: it rose from {before} to {after}"
    if after == before and (not REQUESTS.isdisjoint(kinds) or any(isinstance(o, Continue) for o in outcomes)):
        yield f"{FALLS}: it stayed at {after}"


def _limits(edge: Edge, config: Config) -> Iterator[str]:
    for what, value, limit in counts(edge.after.control, config):
        if limit is not None and not 0 <= value <= limit:
            yield f"{NAMES[6]}: {what} is {value}, the limit {limit}"
    if config.stop_hooks:
        for hook, spent in zip(config.stop_hooks, edge.after.data.book.hook_blocks, strict=False):
            if spent > hook.max_blocks:
                yield f"{NAMES[6]}: hook {hook.name} blocked {spent} times"
    for taken in edge.rows:
        control, outcome = taken.before.control, taken.row.outcome
        if outcome is COMPACTING and control.compaction.failures >= config.max_compaction_failures:
            yield f"{NAMES[6]}: autocompact with the breaker open"
        most = config.max_model_calls
        if outcome is CALLED and most is not None and control.spending.model_calls >= most:
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
        if taken.row.outcome is STARTED_CALL and batch.head is UNSAFE:
            begins = taken.row.event.__name__ == "Entered"
            if begins and (batch.active or not batch.complete):
                yield f"{NAMES[9]}: {batch}"
    if isinstance(edge.after.phase, Sampling | Running):
        calls = edge.after.phase.reply.schedule.calls
        active = [call for call in calls if call.state in ACTIVE]
        if len(active) > 1 and not all(call.facts.safe for call in active):
            yield f"{NAMES[9]}: {len(active)} calls are active"
        if len(active) != edge.after.control.batch.active:
            sums = edge.after.control.batch.active
            yield f"{NAMES[9]}: {len(active)} calls are active, the sums say {sums}"
