"""Only this catches an invariant that nothing can violate: each is broken here once, by hand."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from stepfold.adapters.scenarios.judging import crashes
from stepfold.adapters.scenarios.judging.crashes import crash_violations, deaths
from stepfold.adapters.scenarios.judging.invariants import (
    history_violations,
    replay_violations,
    request_violations,
    run_violations,
    tape_violations,
    tool_violations,
    violations,
)
from stepfold.adapters.scenarios.judging.observe import Journal, Request, RunSeen, Span
from stepfold.adapters.scenarios.judging.thinking import thinking_violations
from stepfold.adapters.scenarios.playing.play import Played, Take, play, resume
from stepfold.adapters.scenarios.playing.tape import Step, Tape, state_before
from stepfold.adapters.scenarios.reading.load import loads
from stepfold.engine.effects import (
    BlockShown,
    CallModel,
    CallShown,
    Compact,
    CompactReason,
    Continued,
    Effect,
    ErrorShown,
    Finish,
    Notice,
    NoticeKind,
    RunHook,
    RunTool,
    Show,
)
from stepfold.engine.events import CallStatus, CompactionFailed, Stop, StreamClosed, StreamFailed
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Origin, Role, Text, ToolResult, ToolUse, user_text
from stepfold.engine.state import Continue
from stepfold.engine.terminals import Completed, Ending

SCRIPT = """
format = 1
title = "t"
[config]
max_turns = 5
[[user]]
text = "go"
[[model]]
blocks = [
  { text = "I look." },
  { tool_use = { id = "t1", name = "read", input = {} } },
  { tool_use = { id = "t2", name = "write", input = {} } },
]
[[model]]
error = { status = 500, type = "api_error", message = "no" }
[[model]]
blocks = [{ text = "done" }]
[[tool]]
name = "read"
safe = true
takes = 10
[[tool]]
name = "write"
takes = 10
[[hook]]
name = "lint"
answers = ["pass"]
"""
FAILURE = Failure(FailureKind.SERVER, "no")


@pytest.fixture(scope="module")
def played() -> Played:
    return play(loads(SCRIPT))


def with_effects(played: Played, wanted: Callable[[Step], bool], *more: Effect, first: bool = True) -> Tape:
    """Return the tape with *more* orders on the first (or last) step that is *wanted*."""
    tape = played.takes[0].tape
    steps = list(tape.steps)
    places = [place for place, one in enumerate(steps) if wanted(one)]
    place = places[0] if first else places[-1]
    steps[place] = attrs.evolve(steps[place], effects=(*steps[place].effects, *more))
    return Tape(tape.begun, steps)


def orders(kind: type) -> Callable[[Step], bool]:
    return lambda one: any(isinstance(effect, kind) for effect in one.effects)


def ended(one: Step) -> bool:
    return one.state.end is not None


def complaint(tape: Tape) -> str:
    return "\n".join(tape_violations(tape))


def test_nothing_is_wrong_with_a_run_that_is_right(played: Played) -> None:
    assert [] == violations(played)
    assert [] == list(crash_violations(played))


def test_an_error_that_is_not_last(played: Played) -> None:
    notice = Notice(NoticeKind.RETRYING, "again")

    assert [] == list(run_violations(RunSeen((notice, ErrorShown(FAILURE)), None)))
    assert list(run_violations(RunSeen((ErrorShown(FAILURE), notice), None)))


def test_a_second_terminal_and_an_order_after_it(played: Played) -> None:
    again = Finish(Completed(Ending.END_TURN))

    assert "2 terminals" in complaint(
        Tape(played.takes[0].tape.begun, [*with_effects(played, ended).steps, last_with(played, again)])
    )
    assert "goes on after its terminal: RunHook" in complaint(
        with_effects(played, ended, RunHook(99, "lint", False, History()))
    )


def last_with(played: Played, *effects: Effect) -> Step:
    return attrs.evolve(played.takes[0].tape.steps[-1], effects=effects)


def test_a_hook_after_a_failed_answer(played: Played) -> None:
    hook = RunHook(99, "lint", False, History())
    tape = with_effects(played, lambda one: isinstance(one.event, StreamFailed), hook)

    assert "the stop hook lint ran after an answer that had failed" in complaint(tape)


def test_a_call_that_ends_twice_or_never(played: Played) -> None:
    end = Show(CallShown("t1", CallStatus.COMPLETED))
    start = RunTool(99, ToolUse("t9", "read"), "{}")

    assert "the call t1 ended 2 times" in complaint(with_effects(played, orders(RunTool), end))
    assert "t9 was started and never ended" in complaint(with_effects(played, orders(RunTool), start))


def test_an_unsafe_call_in_an_open_answer(played: Played) -> None:
    start = RunTool(99, ToolUse("t2", "write"), "{}")
    tape = with_effects(
        played,
        lambda one: any(
            isinstance(e, Show) and isinstance(e.item, BlockShown) and getattr(e.item.block, "id", "") == "t2"
            for e in one.effects
        ),
        start,
    )

    assert "the unsafe call t2 started before its answer was complete" in complaint(tape)


def test_a_transition_that_the_state_does_not_name(played: Played) -> None:
    other = Show(Continued(Continue.STOP_HOOK_BLOCKING))

    assert "the consumer saw stop_hook_blocking" in complaint(with_effects(played, orders(RunTool), other))


def test_a_block_that_is_in_no_log(played: Played) -> None:
    block = Show(BlockShown(1, Text("from nowhere")))

    assert "from nowhere" in complaint(with_effects(played, orders(RunTool), block))


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ([Continue.MAX_OUTPUT_TOKENS_ESCALATE] * 2, "max_output_tokens_escalate was taken more than 1 times"),
        ([Continue.MAX_OUTPUT_TOKENS_RECOVERY] * 4, "max_output_tokens_recovery was taken more than 3 times"),
        ([Continue.REACTIVE_COMPACT_RETRY] * 2, "reactive_compact_retry was taken more than 1 times"),
        (
            [Continue.REACTIVE_COMPACT_RETRY, Continue.STOP_HOOK_BLOCKING, Continue.REACTIVE_COMPACT_RETRY],
            "reactive_compact_retry was taken more than 1 times",
        ),
        ([Continue.COLLAPSE_DRAIN_RETRY] * 2, "collapse_drain_retry was taken twice in a row"),
        ([Continue.STOP_HOOK_BLOCKING] * 2, "stop hooks blocked more than 1 times"),
        ([Continue.NEXT_TURN] * 4, "turns, 5 allowed"),
    ],
)
def test_a_continue_too_many(played: Played, reasons: list[Continue], words: str) -> None:
    shown = [Show(Continued(reason)) for reason in reasons]

    assert words in complaint(with_effects(played, orders(RunTool), *shown))


def test_a_request_too_many(played: Played) -> None:
    tape = played.takes[0].tape
    config = attrs.evolve(tape.begun.config, max_model_calls=2)

    assert "3 requests, 2 allowed" in complaint(Tape(attrs.evolve(tape.begun, config=config), tape.steps))


def test_a_compaction_after_the_breaker(played: Played) -> None:
    tape = played.takes[0].tape
    state = tape.steps[0].state
    steps = [tape.steps[0]]
    for number in range(4):
        order = Compact(number, CompactReason.AUTO, (), (), "main")
        steps.append(Step(StreamClosed(1, Stop.TOOL_USE), state, (order,)))
        steps.append(Step(CompactionFailed(number, FAILURE), state, ()))

    assert "autocompact was tried after 3 failures in a row" in complaint(Tape(tape.begun, steps))


def test_a_measure_that_does_not_fall(played: Played) -> None:
    tape = played.takes[0].tape
    calls = [one for one in tape.steps if orders(CallModel)(one)]

    assert "the measure rose" in complaint(Tape(tape.begun, [calls[-1], calls[1]]))
    assert "the measure did not fall" in complaint(Tape(tape.begun, [calls[1], calls[1]]))


def test_unsafe_calls_side_by_side(played: Played) -> None:
    tools = played.scenario.world.tools
    beside = Journal(spans=[Span("t1", "read", 0, 10), Span("t2", "write", 5, 15)])
    behind = Journal(spans=[Span("t1", "read", 0, 10), Span("t2", "write", 10, 20)])

    assert ["the unsafe call t2 ran beside t1"] == list(tool_violations(beside, tools))
    assert [] == list(tool_violations(behind, tools))


def test_a_request_that_the_api_would_refuse() -> None:
    view = History[Message]().extend(
        (user_text("go", Origin.PROMPT), Message(Role.ASSISTANT, (ToolUse("t1", "read"),), Origin.ANSWER))
    )

    found = list(request_violations([Request(3, CallModel(1, view, "main", 10))]))

    assert any(violation.startswith("request of call 3: no results follow for t1") for violation in found)


def test_thinking_for_another_model() -> None:
    head = SCRIPT.replace('{ text = "I look." }', '{ thinking = "hm", signature = "s" }')
    right = play(loads(head))
    (first, *rest) = right.observed.journal.requests
    unbound = (attrs.evolve(message, model="") for message in rest[0].order.messages)
    order = attrs.evolve(rest[0].order, model="other", messages=History[Message]().extend(unbound))

    assert [] == list(thinking_violations(right, [first, *rest]))
    assert ["request of call 2: thinking that other did not write"] == list(
        thinking_violations(right, [first, Request(2, order)])
    )


def test_a_history_that_no_prompt_can_follow(played: Played) -> None:
    state = played.takes[0].tape.state
    orphan = Message(Role.USER, (ToolResult("nobody", (Text("lost"),)),), Origin.RESULTS)
    broken = attrs.evolve(state, data=attrs.evolve(state.data, messages=state.data.messages.append(orphan)))

    assert [] == list(history_violations(state))
    assert list(history_violations(broken))


def test_a_replay_that_differs(played: Played) -> None:
    tape = played.takes[0].tape
    other = attrs.evolve(tape.steps[3], state=tape.steps[2].state)

    (violation,) = replay_violations(Tape(tape.begun, [*tape.steps[:3], other, *tape.steps[4:]]))

    assert violation.startswith("replay: event 4 ")


def test_a_result_that_no_log_holds(played: Played) -> None:
    before = state_before(played.takes[0].tape.begun)
    other = attrs.evolve(played, results=(attrs.evolve(played.results[0], state=before),))

    assert ["replay: the state that the run returned is none of the recorded ones"] == violations(other)


def test_a_log_that_cannot_be_folded(played: Played) -> None:
    tape = played.takes[0].tape

    (violation,) = replay_violations(Tape(tape.begun, tape.steps[1:]))

    assert violation.startswith("replay: BlockCompleted answers effect 1")


# ---------------------------------------------------------------- deaths


def test_the_process_dies_after_every_event_of_a_short_run(played: Played) -> None:
    assert list(range(1, len(played.takes[0].tape.steps) + 1)) == deaths(played.takes[0])


def test_a_long_run_is_sampled_at_both_ends(played: Played) -> None:
    tape = played.takes[0].tape
    long = Tape(tape.begun, [*tape.steps, *[tape.steps[-1]] * 1000])

    chosen = deaths(Take(long, played.takes[0].began))

    assert len(chosen) < 100
    assert {1, 2, len(long.steps)} <= set(chosen)


def test_what_had_not_answered_answers_the_same_again(played: Played) -> None:
    take = played.takes[0]
    opened = next(n for n, one in enumerate(take.tape.steps, 1) if orders(CallModel)(one))

    seen, journal, tape = resume(played, take, opened)

    assert "completed" == seen.terminal
    assert 3 == len(journal.requests)
    texts = [item.block for item in seen.items if isinstance(item, BlockShown)]
    assert [Text("I look."), Text("done")] == [block for block in texts if isinstance(block, Text)]
    assert take.tape.steps[:opened] == tape.steps[:opened]


def test_what_has_answered_is_not_asked_again(played: Played) -> None:
    take = played.takes[0]
    last_call = [n for n, one in enumerate(take.tape.steps, 1) if orders(CallModel)(one)][-1]

    _, journal, _ = resume(played, take, last_call)

    assert 1 == len(journal.requests)
    assert [] == journal.spans


def test_a_resumed_run_that_goes_wrong_is_told(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(played: Played, take: Take, events: int) -> tuple[RunSeen, Journal, Tape]:
        if events == 2:
            raise RuntimeError("it broke")
        seen, journal, tape = resume(played, take, events)
        return (attrs.evolve(seen, end=None) if events == 4 else seen), journal, tape

    monkeypatch.setattr(crashes, "resume", broken)

    assert [
        "crash after event 2 (BlockCompleted): RuntimeError: it broke",
        "crash after event 4 (BlockCompleted): the resumed run has no terminal",
    ] == list(crash_violations(played))
