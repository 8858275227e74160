"""
What only this file catches: money and tokens that are counted wrongly, or a budget that is off by one.

The specification, section 5 (token and task budget) and section 2 (limits before a request).
"""

from __future__ import annotations

import pytest

from stepfold.engine.config import HookSpec, ModelSpec
from stepfold.engine.effects import CallModel, Compact, TaskBudget
from stepfold.engine.events import HookVerdict, Stop, Usage
from stepfold.engine.failures import FailureKind
from stepfold.engine.terminals import BlockingLimit, Completed, Limit
from tests.engine.driven.drive import Drive, talk

GO_ON = "token_budget_continuation"


def begun(**config: object) -> Drive:
    drive = Drive(**config)  # type: ignore[arg-type]
    drive.begin()
    return drive


def says(drive: Drive, output: int) -> None:
    drive.text()
    drive.close(output=output)


# ---------------------------------------------------------------- token budget


@pytest.mark.parametrize(("output", "goes_on"), [(0, True), (8_999, True), (9_000, False), (9_001, False)])
def test_it_goes_on_strictly_under_ninety_percent(output: int, goes_on: bool) -> None:
    drive = begun(token_budget_tokens=10_000)
    says(drive, output)

    assert ([GO_ON] if goes_on else []) == drive.continued
    assert goes_on is (drive.state.end is None)


def test_ninety_percent_is_counted_without_floats() -> None:
    drive = begun(token_budget_tokens=10_001)
    says(drive, 9_000)  # 90,000 < 90,009

    assert [GO_ON] == drive.continued


def test_input_is_not_counted() -> None:
    drive = begun(token_budget_tokens=10_000)
    drive.text()
    drive.close(output=100, prompt=50_000)

    assert [GO_ON] == drive.continued


@pytest.mark.parametrize(
    ("deltas", "continued"),
    [
        ([499] * 9, 3),  # three are free; then both the last two are small
        ([500] * 3 + [499] * 9, 4),  # the fourth has one small delta before it, the fifth two
        ([499] * 2 + [500, 499, 499, 499], 4),
        ([499, 499, 500, 500, 499, 499], 5),
        ([500] * 8, 8),
    ],
)
def test_it_stops_when_both_the_last_two_deltas_are_small(deltas: list[int], continued: int) -> None:
    drive = begun(token_budget_tokens=1_000_000)
    for delta in deltas:
        says(drive, delta)
        if drive.state.end is not None:
            break

    assert continued == len(drive.continued)
    assert (drive.state.end is not None) is (continued < len(deltas))


def test_a_delta_is_counted_since_the_last_continuation_and_not_since_the_last_answer() -> None:
    drive = begun(token_budget_tokens=1_000_000)
    for _ in range(3):
        says(drive, 10)
    drive.call("t")
    drive.close(Stop.TOOL_USE, output=495)
    drive.tool("t")
    says(drive, 10)  # 505 since the last continuation

    assert 4 == drive.continued.count(GO_ON)


def test_sub_agents_stop_always() -> None:
    drive = begun(token_budget_tokens=10_000, source="agent")
    says(drive, 10)

    assert drive.end.ok


def test_a_budget_that_is_spent_is_not_cut_short() -> None:
    drive = begun(token_budget_tokens=10_000)
    says(drive, 9_500)

    assert isinstance(drive.end, Completed)
    assert not drive.end.budget_cut_short


def test_the_hooks_come_before_the_budget() -> None:
    drive = begun(token_budget_tokens=10_000, stop_hooks=(HookSpec("lint"),))
    says(drive, 10)
    before = list(drive.continued)
    drive.hook(HookVerdict.PASS)

    assert ([], [GO_ON]) == (before, drive.continued)


# ---------------------------------------------------------------- task budget


def sent(drive: Drive) -> list[TaskBudget | None]:
    """Return the task budget of each request."""
    return [order.task_budget for order in drive.all(CallModel)]


def test_nothing_remains_unset_before_the_first_compaction() -> None:
    drive = begun(task_budget_tokens=50_000)
    drive.turn("a")

    assert [TaskBudget(50_000, None)] * 2 == sent(drive)


def test_without_a_budget_none_is_sent() -> None:
    assert [None] == sent(begun())


def test_remaining_is_fixed_at_each_compaction_until_the_next() -> None:
    drive = Drive(talk(8), task_budget_tokens=400_000)
    drive.begin()
    for name, prompt in (("a", 170_000), ("b", 100_000), ("c", 170_000)):
        drive.call(name)
        drive.close(Stop.TOOL_USE, output=0, prompt=prompt)
        drive.tool(name)
        if drive.opened(Compact):
            drive.compacted(20_000)

    spent = 170_002  # the view left behind, with the result of its last call
    assert [None, 400_000 - spent, 400_000 - spent, 400_000 - 2 * spent] == [
        budget.remaining for budget in sent(drive) if budget is not None
    ]


def test_remaining_never_falls_below_zero() -> None:
    drive = Drive(talk(8), task_budget_tokens=20_000)
    drive.begin()
    drive.call("a")
    drive.close(Stop.TOOL_USE, output=0, prompt=170_000)
    drive.tool("a")
    drive.compacted(20_000)

    assert TaskBudget(20_000, 0) == sent(drive)[-1]


# ---------------------------------------------------------------- what is counted


def test_usage_of_the_run_adds_up_answers_failures_and_compactions() -> None:
    drive = begun()
    drive.fail(FailureKind.SERVER, usage=Usage(1, 2, 3, 4))
    drive.waited()
    drive.fail(FailureKind.PROMPT_TOO_LONG, usage=Usage(10, 20, 30, 40))
    drive.compacted(10, usage=Usage(100, 200, 300, 400))
    drive.text()
    from stepfold.engine.events import StreamClosed

    drive.do(StreamClosed(drive.open(CallModel).id, Stop.END_TURN, usage=Usage(1_000, 2_000, 3_000, 4_000)))

    assert Usage(1_111, 2_222, 3_333, 4_444) == drive.state.data.book.usage


@pytest.mark.parametrize("reaction", [True, False])
def test_usage_of_a_compaction_that_is_barred_is_counted(reaction: bool) -> None:
    drive = Drive(talk(8), max_model_calls=2)
    drive.begin()
    if reaction:
        drive.fail(FailureKind.PROMPT_TOO_LONG)
    else:
        drive.call("a")
        drive.close(Stop.TOOL_USE, prompt=170_000, output=0)
        drive.tool("a")
    before = drive.state.data.book.usage
    drive.not_compacted(FailureKind.PROMPT_TOO_LONG, usage=Usage(5, 6))

    assert isinstance(drive.end, BlockingLimit)
    after = drive.state.data.book.usage
    assert (5, 6) == (after.input_tokens - before.input_tokens, after.output_tokens - before.output_tokens)


def test_every_request_counts_as_a_model_call() -> None:
    drive = Drive(talk(8), fallback_models=("second",), max_retries=9)
    drive.begin()
    drive.fail(FailureKind.SERVER)  # a retry
    drive.waited()
    drive.text()
    drive.close(Stop.PAUSE_TURN)  # a re-send
    for _ in range(2):
        drive.fail(FailureKind.OVERLOADED)
        drive.waited()
    drive.fail(FailureKind.OVERLOADED)  # a fallback
    drive.fail(FailureKind.PROMPT_TOO_LONG)  # a compaction
    drive.not_compacted(FailureKind.PROMPT_TOO_LONG)  # another
    drive.compacted(10)

    made = len(drive.all(CallModel)) + len(drive.all(Compact))
    assert 9 == made == drive.state.control.spending.model_calls


@pytest.mark.parametrize("limit", range(9))
def test_no_request_leaves_over_the_limit_of_model_calls(limit: int) -> None:
    drive = Drive(talk(8), max_model_calls=limit)
    drive.begin()
    steps = [
        lambda: (drive.fail(FailureKind.SERVER), drive.waited()),
        lambda: drive.close(Stop.PAUSE_TURN),
        lambda: drive.close(Stop.MAX_TOKENS),
        lambda: drive.close(Stop.MAX_TOKENS),
        lambda: drive.fail(FailureKind.PROMPT_TOO_LONG),
        lambda: drive.not_compacted(FailureKind.PROMPT_TOO_LONG),
        lambda: drive.compacted(10),
        lambda: drive.turn("t"),
    ]
    for take in steps:
        if drive.state.end is None:
            take()

    assert BlockingLimit(Limit.MODEL_CALLS, limit, limit) == drive.end
    assert limit == len(drive.all(CallModel)) + len(drive.all(Compact))


# ---------------------------------------------------------------- limits that an answer itself brings

PRICED = (ModelSpec("main", 200_000, 64_000, 1_000_000, 1_000_000),)


@pytest.mark.parametrize(
    ("config", "which"),
    [
        ({"max_run_tokens": 100}, Limit.RUN_TOKENS),
        ({"max_cost": 100, "models": PRICED}, Limit.COST),
    ],
    ids=["run_tokens", "cost"],
)
@pytest.mark.parametrize(
    "ending",
    ["window", "too long", "media", "compaction", "reaction", "retry", "pause", "truncated", "turn"],
)
def test_the_usage_of_the_last_answer_counts_before_the_next_request(
    config: dict[str, object], which: Limit, ending: str
) -> None:
    drive = Drive(talk(8), **config)  # type: ignore[arg-type]
    drive.begin()
    if ending in ("compaction", "reaction"):
        drive = to_a_compaction(config, ending)
    before = len(drive.all(CallModel)) + len(drive.all(Compact))
    usage = Usage(90, 20)
    match ending:
        case "window":
            drive.close(Stop.WINDOW_EXCEEDED, usage=usage)
        case "too long":
            drive.fail(FailureKind.PROMPT_TOO_LONG, usage=usage)
        case "media":
            drive.fail(FailureKind.MEDIA_TOO_LARGE, usage=usage)
        case "compaction" | "reaction":
            drive.not_compacted(FailureKind.PROMPT_TOO_LONG, usage=usage)
        case "retry":
            drive.fail(FailureKind.SERVER, usage=usage)
            drive.waited()
        case "pause":
            drive.text()
            drive.close(Stop.PAUSE_TURN, usage=usage)
        case "truncated":
            drive.close(Stop.MAX_TOKENS, usage=usage)
        case "turn":
            drive.call("a")
            drive.close(Stop.TOOL_USE, usage=usage)
            drive.tool("a")

    assert before == len(drive.all(CallModel)) + len(drive.all(Compact)), "a request left over the limit"
    assert BlockingLimit(which, 110, 100) == drive.end


def to_a_compaction(config: dict[str, object], kind: str) -> Drive:
    """Return a run in a compaction of this kind, with nothing spent so far."""
    drive = Drive(talk(8), fixed_prompt_tokens=0, **config)  # type: ignore[arg-type]
    if kind == "compaction":
        drive = Drive(talk(8, 63_000), **config)  # type: ignore[arg-type]
        drive.begin()
    else:
        drive.begin()
        drive.fail(FailureKind.PROMPT_TOO_LONG)
    assert drive.opened(Compact)
    return drive


# ---------------------------------------------------------------- cost


def test_cost_is_rounded_up_and_by_the_model_that_answered() -> None:
    models = (ModelSpec("main", 200_000, 64_000, 3, 15), ModelSpec("second", 200_000, 64_000, 2_000_000, 0))
    drive = begun(models=models, fallback_models=("second",))
    drive.fail(FailureKind.OVERLOADED, usage=Usage(1, 0))  # 3 millionths: 1
    drive.waited()
    drive.fail(FailureKind.OVERLOADED)
    drive.waited()
    drive.fail(FailureKind.OVERLOADED, usage=Usage(500_000, 100_000))  # 1,500,000 + 1,500,000: 3
    drive.text()
    drive.close(prompt=7, output=9)  # 14

    assert 1 + 3 + 14 == drive.state.control.spending.cost


def test_cache_tokens_have_prices_of_their_own() -> None:
    spec = ModelSpec("main", 200_000, 64_000, 1_000_000, 0, 10_000_000, 100_000_000)
    drive = begun(models=(spec,))
    drive.text()
    drive.close(usage=Usage(1, 5, 2, 3))

    assert 1 + 20 + 300 == drive.state.control.spending.cost


def test_a_price_of_nothing_is_a_price() -> None:
    drive = begun(models=(ModelSpec("main", 200_000, 64_000, 1_000_000, 0, 0, 0),))
    drive.text()
    drive.close(usage=Usage(1, 5, 2, 3))

    assert 1 == drive.state.control.spending.cost


def test_cache_tokens_without_a_price_cost_like_input() -> None:
    drive = begun(models=(ModelSpec("main", 200_000, 64_000, 1_000_000, 0),))
    drive.text()
    drive.close(usage=Usage(1, 5, 2, 3))

    assert 6 == drive.state.control.spending.cost


def test_a_new_run_begins_with_nothing_spent() -> None:
    drive = begun(max_model_calls=1, max_run_tokens=200)
    says(drive, 50)
    drive.begin("again")

    assert drive.finish().ok
    assert 1 == drive.state.control.spending.model_calls
