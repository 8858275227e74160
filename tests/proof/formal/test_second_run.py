"""What only this file catches: a run that begins as if the one before had just continued."""

from __future__ import annotations

from stepfold.engine import Config
from stepfold.engine.events import RunStarted, Stop, StreamClosed, StreamFailed
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Origin, Text, user_text
from stepfold.engine.state import Collapse, Continue
from stepfold.engine.step import start, step


def test_a_new_run_has_not_continued_yet() -> None:
    config, prompt = Config(), RunStarted((Text("x"),))
    state = start((user_text("x", Origin.PROMPT),), (), (Collapse(1, "s"),))
    state, _ = step(state, prompt, config)
    state, _ = step(state, StreamFailed(1, Failure(FailureKind.PROMPT_TOO_LONG)), config)
    assert state.control.transition is not None
    assert Continue.COLLAPSE_DRAIN_RETRY is state.control.transition.reason
    state, _ = step(state, StreamClosed(2, Stop.END_TURN), config)

    state, _ = step(state, prompt, config)

    assert None is state.control.transition
