"""
What only this file catches: a death of the process that loses work, does it twice, or is forgiven for ever.

The specification, section 8, last point.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepfold.engine.effects import (
    AskPermission,
    CallModel,
    Compact,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
    Tombstone,
    Wait,
)
from stepfold.engine.events import AbortKind, CallFacts, CallStatus, HookVerdict, Stop, Verdict
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import ToolResult
from stepfold.engine.phases import PhaseKind
from tests.engine.driven.answers import ONE_HOOK, TWO_HOOKS
from tests.engine.driven.company import COMPANY
from tests.engine.driven.context import full
from tests.engine.driven.drive import UNSAFE, Drive
from tests.engine.driven.friendly import complete
from tests.engine.driven.judge import Judge, valid_history
from tests.engine.driven.walks import WALKS

BESIDE: tuple[type[Prefetch | Summarise | StageCollapse], ...] = (Prefetch, Summarise, StageCollapse)


def begun(**config: object) -> Drive:
    drive = Drive(**config)  # type: ignore[arg-type]
    drive.begin()
    return drive


def test_an_open_call_is_made_again_and_what_was_shown_is_withdrawn() -> None:
    drive = begun()
    drive.text("half")
    effects = drive.resume()

    assert Tombstone(1) in effects
    (first, second) = drive.all(CallModel)
    assert (first.messages, first.model) == (second.messages, second.model)
    assert first.id != second.id
    assert 1 == drive.state.control.attempts.retries


def test_nothing_is_withdrawn_where_nothing_was_shown() -> None:
    drive = begun()
    drive.resume()

    assert 0 == drive.stones


def test_the_answer_to_the_call_of_the_dead_process_is_late() -> None:
    drive = begun()
    (first,) = drive.all(CallModel)
    drive.resume()
    before = drive.state
    from stepfold.engine.events import StreamClosed

    assert () == drive.do(StreamClosed(first.id, Stop.END_TURN))
    assert before == drive.state


@pytest.mark.parametrize("spent", [0, 1, 3])
def test_a_supervisor_that_restarts_for_ever_meets_the_limit_of_retries(spent: int) -> None:
    drive = begun(max_retries=3)
    for _ in range(spent):
        drive.fail(FailureKind.SERVER)
        drive.waited()
    deaths = 0
    while drive.state.end is None:
        drive.text()
        drive.resume()
        deaths += 1

    assert 3 - spent + 1 == deaths
    assert "model_error" == drive.end.reason
    assert [FailureKind.CRASHED] == [error.kind for error in drive.errors]
    assert drive.end.retryable


def test_a_wait_is_waited_again_and_spends_a_retry() -> None:
    drive = begun()
    drive.fail(FailureKind.SERVER)
    (wait,) = drive.all(Wait)
    effects = drive.resume()

    assert wait in effects
    assert 2 == drive.state.control.attempts.retries
    drive.waited()
    assert drive.finish().ok


# ---------------------------------------------------------------- calls


def test_a_tool_that_had_started_is_unknown_and_not_run_again() -> None:
    drive = begun()
    drive.call("ran")
    drive.close(Stop.TOOL_USE)
    drive.resume()

    assert 1 == len(drive.all(RunTool))
    assert {"ran": CallStatus.UNKNOWN} == drive.statuses
    (result,) = [block for m in drive.messages for block in m.content if isinstance(block, ToolResult)]
    assert result.is_error
    assert ["next_turn"] == drive.continued


def test_an_idempotent_tool_is_run_again_once() -> None:
    drive = begun()
    drive.call("again", facts=CallFacts(safe=True, idempotent=True))
    drive.close(Stop.TOOL_USE)
    drive.resume()
    first, second = drive.all(RunTool)
    alive = drive.state.end is None and not drive.statuses
    drive.resume()

    assert first == second
    assert alive
    assert 2 == len(drive.all(RunTool))
    assert {"again": CallStatus.UNKNOWN} == drive.statuses


def test_calls_that_had_not_begun_run_and_those_that_had_ended_stay() -> None:
    drive = begun()
    drive.call("done")
    drive.tool("done", "kept result")
    drive.call("ran")
    drive.call("later", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    drive.resume()
    drive.tool("later")

    assert {
        "done": CallStatus.COMPLETED,
        "ran": CallStatus.UNKNOWN,
        "later": CallStatus.COMPLETED,
    } == drive.statuses
    assert "kept result" in str(drive.messages)


def test_a_permission_is_asked_again() -> None:
    drive = begun()
    drive.call("a", facts=CallFacts(verdict=Verdict.ASK))
    drive.close(Stop.TOOL_USE)
    drive.resume()
    first, second = drive.all(AskPermission)
    drive.permit("a")
    drive.tool("a")

    assert first == second
    assert {"a": CallStatus.COMPLETED} == drive.statuses


def test_a_second_crash_at_the_same_prompt_denies_the_call() -> None:
    drive = begun()
    drive.call("a", facts=CallFacts(verdict=Verdict.ASK))
    drive.call("b", facts=CallFacts(verdict=Verdict.ASK))
    drive.close(Stop.TOOL_USE)
    drive.resume()
    drive.resume()

    assert {"a": CallStatus.DENIED} == drive.statuses
    assert "process died twice while permission" in str(drive.effects)

    drive.permit("b")
    drive.tool("b")

    assert {"a": CallStatus.DENIED, "b": CallStatus.COMPLETED} == drive.statuses


def test_a_supervisor_that_restarts_for_ever_comes_past_every_prompt() -> None:
    drive = begun()
    drive.call("a", facts=CallFacts(verdict=Verdict.ASK))
    drive.close(Stop.TOOL_USE)
    for _ in range(20):
        drive.resume()

    assert {"a": CallStatus.DENIED} == drive.statuses
    assert 2 == len(drive.all(AskPermission))


def test_a_changed_input_outlives_the_process() -> None:
    drive = begun()
    drive.call("a", facts=CallFacts(verdict=Verdict.ASK, idempotent=True))
    drive.close(Stop.TOOL_USE)
    drive.permit("a", input='{"changed":1}')
    drive.resume()

    assert ['{"changed":1}'] * 2 == [order.input for order in drive.all(RunTool)]


def test_calls_of_an_open_answer_are_unknown_and_their_answer_is_made_again() -> None:
    drive = begun()
    drive.call("a", facts=CallFacts(safe=True, idempotent=True))
    drive.resume()

    assert {"a": CallStatus.UNKNOWN} == drive.statuses
    assert 1 == len(drive.all(RunTool))
    assert 2 == len(drive.all(CallModel))


# ---------------------------------------------------------------- hooks and compactions


def test_a_hook_is_asked_again_once_then_it_has_crashed() -> None:
    drive = begun(stop_hooks=ONE_HOOK)
    drive.text()
    drive.close()
    drive.resume()
    first, second = drive.all(RunHook)
    drive.resume()

    assert first == second
    assert 2 == len(drive.all(RunHook))
    assert "hook_crashed" in drive.notices
    assert drive.end.ok


def test_the_next_hook_has_a_first_crash_of_its_own() -> None:
    drive = begun(stop_hooks=TWO_HOOKS)
    drive.text()
    drive.close()
    drive.resume()
    drive.resume()
    drive.resume()
    drive.hook(HookVerdict.PASS)

    assert ["lint", "lint", "types", "types"] == [order.hook for order in drive.all(RunHook)]
    assert 1 == drive.notices.count("hook_crashed")


def test_a_compaction_is_begun_again_once_then_it_has_failed() -> None:
    drive = full()
    drive.resume()
    first, second = drive.all(Compact)
    failures = drive.state.control.compaction.failures
    drive.resume()

    assert first == second
    assert (0, 1) == (failures, drive.state.control.compaction.failures)
    assert 2 == len(drive.all(Compact))
    assert drive.finish().ok


def test_a_compaction_begun_again_is_counted_as_a_request() -> None:
    drive = full()
    before = drive.state.control.spending.model_calls
    drive.resume()

    assert before + 1 == drive.state.control.spending.model_calls


def test_a_second_crash_in_a_reaction_brings_out_the_error_and_counts_for_the_breaker() -> None:
    drive = WALKS["crash_in_reaction"]()

    assert "prompt_too_long" == drive.end.reason
    assert 1 == drive.state.control.compaction.failures


def test_a_retry_of_the_compactor_has_a_first_crash_of_its_own() -> None:
    drive = full()
    drive.resume()
    drive.not_compacted(FailureKind.PROMPT_TOO_LONG)
    drive.resume()

    assert drive.opened(Compact), "the second request was crashed in for the first time"


# ---------------------------------------------------------------- what runs beside


@pytest.mark.parametrize("deaths", [1, 2, 3])
@pytest.mark.parametrize("place", [place for place in COMPANY if place is not PhaseKind.ABORTING], ids=str)
def test_what_runs_beside_is_begun_again_by_every_new_process(place: PhaseKind, deaths: int) -> None:
    drive = COMPANY[place]()
    for _ in range(deaths):
        before = {order.id for kind in BESIDE for order in drive.opened(kind)}
        drive.resume()
        if drive.state.end is not None:
            break
        assert before <= {order.id for kind in BESIDE for order in drive.opened(kind)}


# ---------------------------------------------------------------- aborts


def test_an_abort_that_waits_ends_with_the_process() -> None:
    drive = begun()
    drive.call("a")
    drive.abort(AbortKind.SUBMIT)
    drive.resume()

    assert {"a": CallStatus.UNKNOWN} == drive.statuses
    assert "aborted_streaming" == drive.end.reason


def test_a_new_process_at_rest_changes_nothing() -> None:
    drive = Drive()
    assert () == drive.resume()
    drive.begin()
    drive.finish()
    before = drive.state

    assert () == drive.resume()
    assert before == drive.state


# ---------------------------------------------------------------- everywhere


EVERYWHERE: dict[str, Callable[[], Drive]] = WALKS | {str(place): make for place, make in COMPANY.items()}


@pytest.mark.parametrize("walk", EVERYWHERE.values(), ids=EVERYWHERE)
def test_a_death_after_every_event_of_every_walk_ends_well(walk: Callable[[], Drive]) -> None:
    drive = walk()
    for place in range(len(drive.events)):
        other = drive.upto(place)
        if other.state.end is not None or other.state.control.phase == "idle":
            continue
        other.resume()
        complete(other)
        valid_history(other.state)
        judged(other)


def judged(drive: Drive) -> None:
    """Hold a whole log against the invariants."""
    judge, state = Judge(drive.config), drive.first
    for event, after, effects in zip(drive.events, drive.states, drive.outputs, strict=True):
        judge.watch(state, event, effects, after)
        state = after
