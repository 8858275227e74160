"""Contracts of Running and Aborting: calls end, are permitted, are aborted; a turn is over."""

from __future__ import annotations

from typing import Final

from stepfold.adapters.proof.symbolic.given import (
    CALL,
    PLAIN,
    Given,
    config,
    control,
    data,
    falls,
    reply,
    small,
    sound,
)
from stepfold.engine.effects import AskPermission, RunTool
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallStatus,
    Event,
    HookStop,
    PermissionAnswered,
    Resumed,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    ToolEnded,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse
from stepfold.engine.phases import Aborting, CallState, PhaseKind, Running, Sampling
from stepfold.engine.state import Batch

ONE: Final = ToolUse("c2", "t")
TWO: Final = ToolUse("c3", "t")
RUN_ONE: Final = RunTool(2, ONE, "{}")
RUN_TWO: Final = RunTool(3, TWO, "{}")
ASK: Final = AskPermission(2, ONE)
LAST: Final = reply(CallState.ACTIVE)
ASKING: Final = reply(CallState.ASKING)
BOTH: Final = reply(CallState.ACTIVE, CallState.ACTIVE)
ONE_OPEN: Final = Batch(total=1, open=1, active=1, complete=True)
TWO_OPEN: Final = Batch(total=2, open=2, active=2, complete=True)
STREAM_OPEN: Final = Batch(streaming=True)


def _last(g: Given, event: Event) -> bool:
    c = control(g, PhaseKind.RUNNING, ONE_OPEN)
    return falls(c, event, Running(LAST), data(RUN_ONE), config(g, PLAIN))


def _aborting(g: Given, event: Event, still: bool = False) -> bool:
    c = control(g, PhaseKind.ABORTING, STREAM_OPEN, abort=AbortKind.SUBMIT)
    return falls(c, event, Aborting(reply()), data(CALL), config(g, PLAIN), still)


def running_last_call_ended(g: Given) -> None:
    """The turn is over: the next one, or the end."""
    assert sound(g) & small(g)
    assert _last(g, ToolEnded(2))


def running_last_call_stopped(g: Given) -> None:
    """A hook of the tool wants the end."""
    assert sound(g)
    assert _last(g, ToolEnded(2, stop=HookStop("h")))


def running_call_ended(g: Given) -> None:
    """Another call is still open."""
    assert sound(g)
    c = control(g, PhaseKind.RUNNING, TWO_OPEN)
    event = ToolEnded(2, status=CallStatus.FAILED)
    assert falls(c, event, Running(BOTH), data(RUN_ONE, RUN_TWO), config(g, PLAIN))


def running_permitted(g: Given) -> None:
    """The call runs: nothing is spent."""
    assert sound(g)
    c = control(g, PhaseKind.RUNNING, ONE_OPEN)
    event = PermissionAnswered(2, allowed=True)
    assert falls(c, event, Running(ASKING), data(ASK), config(g, PLAIN), still=True)


def running_denied(g: Given) -> None:
    """The call does not run, another is still open."""
    assert sound(g)
    c = control(g, PhaseKind.RUNNING, TWO_OPEN)
    event = PermissionAnswered(2, allowed=False)
    asked = reply(CallState.ASKING, CallState.ACTIVE)
    assert falls(c, event, Running(asked), data(ASK, RUN_TWO), config(g, PLAIN))


def running_aborted(g: Given) -> None:
    """The calls are cancelled or waited for."""
    assert sound(g)
    assert _last(g, AbortRequested(AbortKind.SUBMIT))


def running_resumed(g: Given) -> None:
    """Two calls ran when the process died: one is unknown, the permission is asked again."""
    assert sound(g)
    c = control(g, PhaseKind.RUNNING, TWO_OPEN)
    asked = reply(CallState.ASKING, CallState.ACTIVE)
    assert falls(c, Resumed(), Running(asked), data(ASK, RUN_TWO), config(g, PLAIN))


def aborting_aborted(g: Given) -> None:
    """A harder abort: nothing is spent."""
    assert sound(g)
    assert _aborting(g, AbortRequested(AbortKind.HARD), still=True)


def aborting_block(g: Given) -> None:
    """A block that crossed the abort is kept: nothing is spent."""
    assert sound(g)
    assert _aborting(g, BlockCompleted(1, Text("x")), still=True)


def aborting_cancelled(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _aborting(g, StreamCancelled(1))


def aborting_closed(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _aborting(g, StreamClosed(1, Stop.END_TURN))


def aborting_failed(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _aborting(g, StreamFailed(1, Failure(FailureKind.CUT)))


def aborting_tool_ended(g: Given) -> None:
    """One of two calls that are waited for ends."""
    assert sound(g)
    c = control(g, PhaseKind.ABORTING, TWO_OPEN, abort=AbortKind.SUBMIT)
    assert falls(c, ToolEnded(2), Aborting(BOTH), data(RUN_ONE, RUN_TWO), config(g, PLAIN))


def aborting_resumed(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _aborting(g, Resumed())


def sampling_permitted_beside_the_stream(g: Given) -> None:
    """A call is permitted while the answer streams: nothing is spent."""
    assert sound(g)
    batch = Batch(total=1, open=1, active=1, streaming=True)
    c = control(g, PhaseKind.SAMPLING, batch)
    event = PermissionAnswered(2, allowed=True)
    assert falls(c, event, Sampling(ASKING), data(CALL, ASK), config(g, PLAIN), still=True)
