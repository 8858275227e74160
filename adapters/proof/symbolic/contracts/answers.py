"""Contracts of Sampling and Waiting: an answer streams in, ends, fails, is aborted, dies."""

from __future__ import annotations

from typing import Any, Final

from stepfold.adapters.proof.symbolic.given import (
    CALL,
    HOOKED,
    NESTED,
    PLAIN,
    SAFE,
    Given,
    budgeted,
    config,
    control,
    data,
    falls,
    hooks,
    reply,
    small,
    sound,
)
from stepfold.engine.config import Config
from stepfold.engine.effects import AskPermission, RunTool, Wait
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    Event,
    Resumed,
    Stop,
    StreamClosed,
    StreamFailed,
    ToolEnded,
    Usage,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse
from stepfold.engine.phases import (
    CallState,
    PhaseKind,
    Sampling,
    Waiting,
)
from stepfold.engine.state import Batch, Fill, Spending

FAILURE: Final = Failure(FailureKind.CUT)
TOO_LONG: Final = Failure(FailureKind.PROMPT_TOO_LONG)
STREAM: Final = Batch(streaming=True)
WAIT: Final = Wait(1, 0)
USE: Final = ToolUse("c2", "t")
RUN: Final = RunTool(2, USE, "{}")
ASK: Final = AskPermission(2, USE)
OPEN: Final = reply(CallState.ACTIVE)


def _sampling(g: Given, event: Event, still: bool = False, base: Config = PLAIN, **bits: Any) -> bool:
    """Nothing of the answer has come in."""
    c = control(g, PhaseKind.SAMPLING, STREAM, **bits)
    return falls(c, event, Sampling(reply()), data(CALL), config(g, base), still)


def _closed(g: Given, stop: Stop, **bits: Any) -> bool:
    return _sampling(g, StreamClosed(1, stop, usage=Usage(0, g.fact)), **bits)


def _failed(g: Given, failure: Failure, **bits: Any) -> bool:
    return _sampling(g, StreamFailed(1, failure), **bits)


def _with_a_call(g: Given, event: Event, still: bool = False) -> bool:
    """One call of the answer runs."""
    c = control(g, PhaseKind.SAMPLING, Batch(total=1, open=1, active=1, streaming=True))
    return falls(c, event, Sampling(OPEN), data(CALL, RUN), config(g, PLAIN), still)


def _budgeted(g: Given, continuations: int) -> bool:
    """The view is small, 3 continuations are free, a delta is small under 500 tokens."""
    spent = Spending(0, 0, g.output, 0, continuations, g.last_delta, g.last_total)
    c = control(g, PhaseKind.SAMPLING, STREAM, fill=Fill(), spending=spent)
    event = StreamClosed(1, Stop.END_TURN, usage=Usage(0, g.fact))
    return falls(c, event, Sampling(reply()), data(CALL), budgeted(g))


def _waiting(g: Given, event: Event) -> bool:
    return falls(control(g, PhaseKind.WAITING), event, Waiting(FAILURE), data(WAIT), config(g, PLAIN))


# ---------------------------------------------------------------- Sampling


def sampling_closed_clean(g: Given) -> None:
    """No hook is due, no budget set: the end."""
    assert sound(g)
    assert _closed(g, Stop.END_TURN)


def sampling_closed_on_budget(g: Given) -> None:
    """Under the budget, continuations are free: go on."""
    assert sound(g) & (10 * (g.output + g.fact) < 9 * g.budget)
    assert _budgeted(g, continuations=0)


def sampling_closed_on_budget_that_fades(g: Given) -> None:
    """Under the budget, the free continuations are made: go on, or the end."""
    assert sound(g) & (10 * (g.output + g.fact) < 9 * g.budget)
    assert _budgeted(g, continuations=3)


def sampling_closed_with_hooks(g: Given) -> None:
    """Stop hooks are asked."""
    assert sound(g)
    c = control(g, PhaseKind.SAMPLING, STREAM, hooks=hooks(g))
    event = StreamClosed(1, Stop.END_TURN)
    assert falls(c, event, Sampling(reply()), data(CALL, blocks=(0, 0)), config(g, HOOKED))


def sampling_closed_truncated(g: Given) -> None:
    """A higher limit, a resume, or the end."""
    assert sound(g) & small(g)
    assert _closed(g, Stop.MAX_TOKENS, raised=g.raised)


def sampling_closed_window(g: Given) -> None:
    """A drain, a reactive compaction, or the end."""
    assert sound(g) & small(g)
    assert _closed(g, Stop.WINDOW_EXCEEDED, drained=g.drained)


def sampling_closed_paused(g: Given) -> None:
    """Sent back, or the end."""
    assert sound(g)
    assert _closed(g, Stop.PAUSE_TURN)


def sampling_closed_refused(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _closed(g, Stop.REFUSAL)


def sampling_closed_with_calls(g: Given) -> None:
    """The calls that run are waited for."""
    assert sound(g)
    assert _with_a_call(g, StreamClosed(1, Stop.TOOL_USE))


def sampling_closed_nested(g: Given) -> None:
    """A nested run ends with its answer."""
    assert sound(g) & (g.turn == 1)
    assert _sampling(g, StreamClosed(1, Stop.END_TURN), base=NESTED)


def sampling_failed_for_now(g: Given) -> None:
    """A retry, or the end."""
    assert sound(g)
    assert _failed(g, FAILURE)


def sampling_failed_overloaded(g: Given) -> None:
    """The next model, a retry, or the end."""
    assert sound(g)
    assert _failed(g, Failure(FailureKind.OVERLOADED))


def sampling_failed_with_a_wait(g: Given) -> None:
    """The server names a wait: a retry, the next model, or the end."""
    assert sound(g)
    assert _failed(g, Failure(FailureKind.RATE_LIMITED, retry_after_ms=g.fact))


def sampling_failed_too_long(g: Given) -> None:
    """A drain, a reactive compaction, or the end."""
    assert sound(g) & small(g)
    assert _failed(g, TOO_LONG, drained=g.drained)


def sampling_failed_media(g: Given) -> None:
    """A reactive compaction, or the end."""
    assert sound(g)
    assert _failed(g, Failure(FailureKind.MEDIA_TOO_LARGE))


def sampling_failed_for_good(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _failed(g, Failure(FailureKind.INVALID))


def sampling_block(g: Given) -> None:
    """One more block: nothing is spent but its place."""
    assert sound(g)
    assert _sampling(g, BlockCompleted(1, Text("x")), still=True)


def sampling_call(g: Given) -> None:
    """One more call, which begins."""
    assert sound(g)
    assert _sampling(g, BlockCompleted(1, USE, SAFE), still=True)


def sampling_tool_ended(g: Given) -> None:
    """A call ends while the answer streams."""
    assert sound(g)
    assert _with_a_call(g, ToolEnded(2), still=True)


def sampling_aborted(g: Given) -> None:
    """The stream is closed."""
    assert sound(g)
    assert _sampling(g, AbortRequested(AbortKind.HARD))


def sampling_resumed(g: Given) -> None:
    """The call is made again, or the end."""
    assert sound(g)
    assert _sampling(g, Resumed())


# ---------------------------------------------------------------- Waiting


def waiting_elapsed(g: Given) -> None:
    """The call is made again, or a hard limit stands before it."""
    assert sound(g)
    assert _waiting(g, WaitElapsed(1))


def waiting_aborted(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _waiting(g, AbortRequested(AbortKind.SUBMIT))


def waiting_resumed(g: Given) -> None:
    """Waits again, or the end."""
    assert sound(g)
    assert _waiting(g, Resumed())
