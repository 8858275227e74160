"""
What only this file catches: a row that is missing, that nothing can reach, or that lies about where it leads.

Other tests see runs; here the table itself is read, and every row is taken by a driven run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import get_args

import pytest

from stepfold.engine import Continue, Terminal, UnexpectedEvent, step
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    Command,
    CommandQueued,
    Event,
    Prefetched,
    Resumed,
    RunStarted,
    SummaryReady,
    ToolsChanged,
    ToolSpec,
    WaitElapsed,
)
from stepfold.engine.guards import always
from stepfold.engine.messages import Text
from stepfold.engine.phases import Done, Idle, Phase, PhaseKind
from stepfold.engine.state import Entered, Late, Stay
from stepfold.engine.table import ALIVE, ANY, AT_REST, JUNCTIONS, SAME, TABLE, Row
from tests.engine.driven.company import COMPANY
from tests.engine.driven.drive import Drive
from tests.engine.driven.walker import Taken, walk
from tests.engine.driven.walks import WALKS

NEVER = (Late, Idle)  # before a first run nothing was ordered, so no answer can be late


def crossing(drive: Drive) -> list[Event]:
    """Return events that may come at any time: of the user, the host, a crash, an answer that comes twice."""
    events: list[Event] = [
        AbortRequested(AbortKind.HARD),
        AbortRequested(AbortKind.SUBMIT),
        Resumed(),
        ToolsChanged((ToolSpec("new"),)),
        CommandQueued(Command("c", (Text("words"),))),
        RunStarted((Text("again"),)),
    ]
    answered = [event for event in drive.events if hasattr(event, "effect_id")]
    return events + answered[-1:]


def rows_of(drive: Drive) -> list[Taken]:
    """Return the rows that a driven run took, and hold the slow walk against the engine's step."""
    found: list[Taken] = []
    state = drive.first
    for event, after, effects in zip(drive.events, drive.states, drive.outputs, strict=True):
        walked, told, rows = walk(state, event, drive.config)
        assert (after, effects) == (walked, told)
        found += rows
        state = after
    return found


def rows_across(drive: Drive) -> list[Taken]:
    """Return the rows that events take which may come at any time, at every state of a driven run."""
    found: list[Taken] = []
    for state in (drive.first, *drive.states):
        for event in crossing(drive):
            with suppress(UnexpectedEvent):
                walked, told, rows = walk(state, event, drive.config)
                assert (walked, told) == step(state, event, drive.config)
                found += rows
    return found


def rows_beside(make: Callable[[], Drive]) -> list[Taken]:
    """Return the rows of work beside the loop that arrives in one phase of a run, and of a crowded queue."""
    memories, summary, span = make(), make(), make()
    memories.fetched("a memory")
    summary.summarised()
    span.staged()
    return [*rows_of(memories), *rows_of(summary), *rows_of(span), *rows_of(crowd(make()))]


def crowd(drive: Drive) -> Drive:
    """Queue one command more than there is room for."""
    for number in range(drive.config.max_queued_commands + 1):
        drive.queue(f"c{number}")
    return drive


@pytest.fixture(scope="module")
def taken() -> list[Taken]:
    """Every row taken by the driven runs, and by what crosses them at each of their states."""
    found: list[Taken] = []
    for walked in (*WALKS.values(), *COMPANY.values()):
        found += [*rows_of(walked()), *rows_across(walked())]
    for make in COMPANY.values():
        found += rows_beside(make)
    for drive in (Drive(max_queued_commands=1), WALKS["plain"]()):
        found += rows_of(crowd(drive))
    return found


def cells() -> dict[tuple[type, type], list[Row]]:
    """Return the rows of each (phase, event), in order."""
    found: dict[tuple[type, type], list[Row]] = {}
    for row in TABLE:
        for phase in row.phases:
            found.setdefault((phase, row.event), []).append(row)
    return found


def name(row: Row) -> str:
    """Return a row as one short line."""
    phases = "|".join(phase.__name__ for phase in row.phases)
    return f"{phases} {row.event.__name__} {row.when.__name__} -> {row.outcome}"


# ---------------------------------------------------------------- the catalogue


def test_there_are_seven_continues_by_these_names() -> None:
    assert {reason.value for reason in Continue} == {
        "collapse_drain_retry",
        "reactive_compact_retry",
        "max_output_tokens_escalate",
        "max_output_tokens_recovery",
        "stop_hook_blocking",
        "token_budget_continuation",
        "next_turn",
    }


def test_there_are_ten_terminals_by_these_names() -> None:
    assert {reason.value for reason in Terminal} == {
        "completed",
        "blocking_limit",
        "prompt_too_long",
        "image_error",
        "model_error",
        "aborted_streaming",
        "aborted_tools",
        "stop_hook_prevented",
        "hook_stopped",
        "max_turns",
    }


@pytest.mark.parametrize("reason", [*Continue, *Terminal], ids=str)
def test_each_reason_has_a_row(reason: Continue | Terminal) -> None:
    assert [row for row in TABLE if row.outcome is reason]


def test_a_row_ends_the_run_exactly_if_its_outcome_is_a_terminal() -> None:
    wrong = [name(row) for row in TABLE if isinstance(row.outcome, Terminal) != (row.enters is Done)]

    assert [] == wrong


def test_a_continue_always_begins_an_iteration() -> None:
    assert {"Preparing"} == {row.enters.__name__ for row in TABLE if isinstance(row.outcome, Continue)}


# ---------------------------------------------------------------- cells


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: f"{cell[0].__name__}-{cell[1].__name__}")
def test_the_last_row_of_a_cell_always_holds_and_no_other(cell: tuple[type, type]) -> None:
    rows = cells()[cell]

    assert rows[-1].when is always
    assert [] == [name(row) for row in rows[:-1] if row.when is always]


@pytest.mark.parametrize("phase", [*ALIVE, *AT_REST], ids=lambda phase: phase.__name__)
def test_a_late_answer_has_a_row_in_every_phase(phase: type) -> None:
    (row,) = cells()[phase, Late]

    assert (Stay.LATE, SAME) == (row.outcome, row.enters)


@pytest.mark.parametrize("phase", JUNCTIONS, ids=lambda phase: phase.__name__)
def test_a_junction_is_left_at_once_and_by_nothing_else(phase: type) -> None:
    assert [Entered] == [event for place, event in cells() if place is phase]


@pytest.mark.parametrize("phase", ALIVE, ids=lambda phase: phase.__name__)
@pytest.mark.parametrize(
    "event",
    [AbortRequested, Resumed, CommandQueued, ToolsChanged, Prefetched, SummaryReady],
    ids=lambda event: event.__name__,
)
def test_what_may_come_at_any_time_has_a_row_in_every_phase_of_a_run(phase: type, event: type) -> None:
    assert (phase, event) in cells()


def test_a_run_begins_only_at_rest() -> None:
    assert set(AT_REST) == {phase for phase, event in cells() if event is RunStarted}


def test_every_phase_is_named_once_and_stands_in_the_table() -> None:
    phases = get_args(Phase)

    assert list(PhaseKind) == [phase.kind for phase in phases]
    assert set(phases) == {*ANY, *JUNCTIONS} == {phase for phase, _ in cells()}


# ---------------------------------------------------------------- rows as they are taken


def test_every_row_is_taken_in_each_of_its_phases(taken: list[Taken]) -> None:
    seen = {(id(one.row), type(one.state.phase)) for one in taken}
    missing = [  # one line each, so that a failure lists them
        f"{name(row)} in {phase.__name__}"
        for row in TABLE
        for phase in row.phases
        if (id(row), phase) not in seen and (row.event, phase) != NEVER
    ]

    assert not missing, "\n".join(missing)


def test_every_move_enters_the_phase_of_its_row(taken: list[Taken]) -> None:
    wrong = Counter(
        f"{name(one.row)}: {type(one.phase).__name__}"
        for one in taken
        if type(one.phase) is not (type(one.state.phase) if one.row.enters is SAME else one.row.enters)
    )

    assert {} == wrong


@pytest.mark.parametrize("walked", WALKS)
def test_control_names_the_phase_that_the_state_is_in(walked: str) -> None:
    for state in WALKS[walked]().states:
        assert type(state.phase).kind is state.control.phase
        assert type(state.phase) not in JUNCTIONS


@pytest.mark.parametrize("walked", WALKS)
def test_the_end_has_the_reason_of_the_row_that_was_taken(walked: str) -> None:
    drive = WALKS[walked]()
    ends = [one.row.outcome for one in rows_of(drive) if one.row.enters is Done]

    assert [end.reason for end in (drive.state.end,) if end is not None] == ends[-1:]


@pytest.mark.parametrize("walked", WALKS)
def test_an_event_without_a_row_is_refused_and_the_state_stays_good(walked: str) -> None:
    drive = WALKS[walked]()
    for state in (drive.first, *drive.states):
        before = repr(state.control)
        for event in (RunStarted((Text("again"),)), WaitElapsed(9_999)):
            if isinstance(event, RunStarted) and type(state.phase) in AT_REST:
                continue
            with pytest.raises(UnexpectedEvent, match=r"RunStarted in phase|9999"):
                step(state, event, drive.config)
        assert before == repr(state.control)
