"""What holds of a whole history, and where a search shall climb to."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import target

from stepfold.adapters.testing import answers
from stepfold.adapters.testing.machine.bare import BareStage
from stepfold.adapters.testing.machine.judge import hold, valid_history
from stepfold.adapters.testing.machine.live import LiveStage
from stepfold.adapters.testing.record import Record
from stepfold.effects import trace
from stepfold.engine.events import RunStarted

PATIENCE = 2_000  # events after which a run counts as one that never ends


def climb(record: Record) -> None:
    """Tell Hypothesis what is worth more: requests, tokens, and being near to a limit."""
    target(float(record.requests), label="requests of a run")
    target(float(record.tokens), label="tokens of a run")
    target(nearness(record), label="nearness to a limit")


def nearness(record: Record) -> float:
    """Return how much of the limit that is nearest has been used: 1 at the limit, 0 far from all."""
    control, config = record.state.control, record.config
    spent = control.spending
    used = (
        (control.turn, config.max_turns),
        (spent.model_calls, config.max_model_calls),
        (record.tokens, config.max_run_tokens),
        (spent.cost, config.max_cost),
        (control.attempts.retries, config.max_retries),
        (control.attempts.resends, config.max_resends),
        (control.compaction.failures, config.max_compaction_failures),
        (control.recovery.output_recoveries, config.max_output_recoveries),
        (sum(record.state.data.book.hook_blocks), sum(hook.max_blocks for hook in config.stop_hooks)),
    )
    return max((min(1.0, count / limit) for count, limit in used if limit), default=0.0)


def judge_bare(record: Record) -> None:
    """Hold a history of the bare engine against what holds of every whole one."""
    replayed(record)
    last = len(record.steps) - 1
    resumed_anywhere(record, sorted({last // 2, last} if last >= 0 else ()))


def judge_live(stage: LiveStage) -> None:
    """Hold a history of the interpreter against what holds of every whole one."""
    replayed(stage.record)
    if stage.result is not None:
        same = any(one.state == stage.result.state for one in stage.record.steps)
        hold(same, "the state that the run returned is none of the recorded ones")


def replayed(record: Record) -> None:
    """The same events give the same states and orders."""
    again = trace(record.events, record.first, record.config)
    for number, (one, (event, state, effects)) in enumerate(zip(record.steps, again, strict=True), 1):
        same = (state, effects) == (one.state, one.effects)
        hold(same, f"replay: event {number} ({type(event).__name__}) gives something else than it did")


def resumed_anywhere(record: Record, places: Iterable[int]) -> None:
    """A process that dies after one of these events is taken up and comes to a valid end."""
    for place in places:
        stage = BareStage(record.begun)
        for one in record.steps[: place + 1]:
            stage.now_ms = one.event.at_ms
            stage.take(one.event)
        begun = any(isinstance(one.event, RunStarted) for one in stage.record.steps)
        if begun and stage.state.end is None:
            stage.die()
            complete(stage)
            valid_history(stage.state)


def complete(stage: BareStage) -> None:
    """Answer well until the run is over; raises ``Violation`` where it waits for nothing or never ends."""
    left = PATIENCE
    while stage.state.end is None:
        hold(stage.owed, "the run is not over and waits for nothing")
        order = list(stage.owed.values())[-1]
        for event in answers.friendly(order, cancelling=order.id in stage.cancelling):
            stage.take(event)
            left -= 1
        hold(left > 0, "the run does not end")
