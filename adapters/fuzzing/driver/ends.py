"""Two checks that few steps need: of an end that the user wanted, and of a view that got shorter."""

from __future__ import annotations

from typing import Final

from stepfold.adapters.fuzzing.driver.rules import Broken, Rule
from stepfold.engine.context.tokens import estimate_messages
from stepfold.engine.events import AbortKind
from stepfold.engine.messages import Origin
from stepfold.engine.phases import PhaseKind
from stepfold.engine.state import State
from stepfold.engine.terminals import End, Terminal

ABORTED: Final = (Terminal.ABORTED_STREAMING, Terminal.ABORTED_TOOLS)


def ended_by_the_user(end: End, after: State, aborted: AbortKind, after_stream: bool) -> None:
    """Raise ``Broken`` where an abort and the end of the run do not fit."""
    reason = end.reason
    if (aborted is not AbortKind.NONE) != (reason in ABORTED):
        raise Broken(Rule.TERMINAL, f"{reason}, with an abort of the kind {aborted}")
    if reason is Terminal.ABORTED_TOOLS and not after_stream:
        raise Broken(Rule.TERMINAL, f"{reason}, aborted while the answer streamed")
    hard = reason in ABORTED and aborted is AbortKind.HARD
    if hard and after.data.messages[-1].origin is not Origin.INTERRUPTION:
        raise Broken(Rule.ABORT, "the history does not say that the user interrupted")


def counted(before: State, after: State, fixed_tokens: int) -> None:
    """Raise ``Broken`` where what left the view of a first run, all of it estimated, is counted still."""
    if before.control.phase is not PhaseKind.IDLE:
        return
    old, new = estimate_messages(before.data.messages), estimate_messages(after.data.messages)
    known = after.control.fill.tokens - fixed_tokens
    if 2 * (known - new) > old - new > 0:  # estimates of what leaves lean low, by a quarter
        raise Broken(Rule.SIZE, f"the view is {new} tokens, {known} are counted, {old} were there before")
