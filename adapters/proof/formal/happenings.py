"""
What the model's world may say, and the real events that say it.

A ``Saying`` is one event of the model with its payload; ``spoken`` makes the
real event of a state.  Payloads that the model cannot tell apart (eight kinds
of failure that pass with time, say) are all spoken, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final, TypeAlias

import attrs

from stepfold.adapters.proof.formal.constants import Constants, tla
from stepfold.engine.config import Config
from stepfold.engine.effects import CallModel, Compact, RunHook, Wait
from stepfold.engine.events import (
    AbortKind,
    AbortRequested,
    BlockCompleted,
    CallFacts,
    CallStatus,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookStop,
    HookVerdict,
    Interrupt,
    PermissionAnswered,
    Resumed,
    RunStarted,
    Stop,
    StreamCancelled,
    StreamClosed,
    StreamFailed,
    ToolEnded,
    Usage,
    Verdict,
    WaitElapsed,
)
from stepfold.engine.failures import RETRYABLE, TOO_LONG, Failure, FailureKind
from stepfold.engine.messages import Text, ToolUse
from stepfold.engine.phases import Aborting, CallState, Running, Sampling
from stepfold.engine.state import State

Payload: TypeAlias = tuple[Any, ...]
NOBODY: Final = 10**9  # an id that is never issued
HUGE: Final = 10**6  # tokens over every limit of tokens or money
WORD: Final = Text("x")
STOP: Final = HookStop("h", "stop")
FEWER: Final = 500
SPARE: Final = 100  # tokens above a threshold
ROOM: Final = 3_000  # tokens between a threshold and a view in the middle of its class

FACTS: Final[dict[str, tuple[CallFacts, ...]]] = {
    "safe": (CallFacts(safe=True),),
    "unsafe": (CallFacts(), CallFacts(interrupt=Interrupt.WAIT, problem="p")),
    "safe_asks": (CallFacts(safe=True, verdict=Verdict.ASK),),
    "asks": (CallFacts(verdict=Verdict.ASK, interrupt=Interrupt.CANCEL),),
    "safe_denied": (CallFacts(safe=True, verdict=Verdict.DENY),),
    "unknown": (CallFacts(known=False), CallFacts(valid=False, safe=True), CallFacts(known=False, safe=True)),
    "shell": (CallFacts(shell=True),),
    "safe_shell": (CallFacts(safe=True, shell=True, interrupt=Interrupt.CANCEL),),
    "idempotent": (CallFacts(idempotent=True),),
    "safe_idempotent": (CallFacts(safe=True, idempotent=True),),
}
PASSING: Final = tuple(
    Failure(kind) for kind in FailureKind if kind in RETRYABLE and kind is not FailureKind.OVERLOADED
)
LASTING: Final = tuple(
    Failure(kind)
    for kind in FailureKind
    if kind not in RETRYABLE and kind not in TOO_LONG and kind is not FailureKind.MEDIA_TOO_LARGE
)
FAILURES: Final[dict[str, tuple[Failure, ...]]] = {
    "prompt_too_long": (Failure(FailureKind.PROMPT_TOO_LONG), Failure(FailureKind.WINDOW_EXCEEDED)),
    "request_too_large": (Failure(FailureKind.REQUEST_TOO_LARGE),),
    "media_too_large": (Failure(FailureKind.MEDIA_TOO_LARGE),),
    "overloaded": (Failure(FailureKind.OVERLOADED), Failure(FailureKind.OVERLOADED, retry_after_ms=1)),
    "transport": (*PASSING, Failure(FailureKind.RATE_LIMITED, retry_after_ms=300_000)),
    "wait_too_long": (
        Failure(FailureKind.RATE_LIMITED, retry_after_ms=300_001),
        Failure(FailureKind.SERVER, retry_after_ms=HUGE),
    ),
    "invalid": LASTING,
}
COMPACTOR: Final[dict[str, tuple[Failure, ...]]] = {
    "too_long": tuple(Failure(kind) for kind in FailureKind if kind in TOO_LONG),
    "other": (*LASTING, *PASSING, Failure(FailureKind.OVERLOADED), Failure(FailureKind.MEDIA_TOO_LARGE)),
}
VIEWS: Final = ("low", "full", "over")


@attrs.frozen
class Saying:
    """One event of the model: its name and payload."""

    event: str
    payload: Payload = ()

    def written(self) -> str:
        """Return it as a formula of the model."""
        if not self.payload:
            return self.event
        return f"{self.event}({', '.join(map(tla, self.payload))})"


def sayings(c: Constants) -> Iterator[Saying]:
    """Yield everything that the world of these constants may say, as ``Next`` of the model has it."""
    yield Saying("RunStarted")
    yield from (Saying("BlockCompleted", (kind,)) for kind in ("text", *c["Kinds"]))
    for stop, report, tokens in product(c["Stops"], (*c["Reports"], "none"), c["Outputs"]):
        shown = c["Shown"] if stop == "max_tokens" else (False,)
        bills = c["Bills"] if report == "none" else (False,)
        for more in product(shown, bills):
            yield Saying("StreamClosed", (stop, report, tokens, *more))
    yield from (Saying("StreamFailed", p) for p in product(c["Failures"], c["Shown"], c["Bills"]))
    yield Saying("StreamCancelled")
    calls = range(1, c["MaxCalls"] + 1)
    yield from (Saying("ToolEnded", p) for p in product(calls, c["Endings"]))
    yield from (Saying("PermissionAnswered", p) for p in product(calls, ("allowed", "denied", "stop")))
    yield Saying("WaitElapsed")
    yield from (Saying("Compacted", p) for p in product(c["Compactions"], (True, False), c["Bills"]))
    causes = ("too_long", "other")
    yield from (Saying("CompactionFailed", p) for p in product(causes, (True, False), c["Bills"]))
    yield from (Saying("HookAnswered", (verdict,)) for verdict in c["Verdicts"])
    yield from (Saying("AbortRequested", (kind,)) for kind in c["Aborts"])
    if c["Crashes"]:
        yield Saying("Resumed")


class Speaker:
    """Makes real events of sayings, against one config; each time another one that says the same."""

    def __init__(self, config: Config, calls: int) -> None:
        self.config = config
        self.calls = calls  # that one answer may hold
        self._turn = 0

    def spoken(self, saying: Saying, state: State) -> Event | None:
        """
        Return a real event that says *saying* in *state*; None where nobody could say it there.

        An answer to an order that is not open goes to an id that was never issued.
        """
        self._turn += 1
        p = saying.payload
        match saying.event:
            case "RunStarted":
                return RunStarted((WORD,))
            case "BlockCompleted":
                return self._block(p[0], state)
            case "StreamClosed":
                return self._closed(p, state)
            case "StreamFailed":
                failure = self._one(FAILURES[p[0]])
                return StreamFailed(_owed(state, CallModel), failure, _bill(p[2]), shown=p[1])
            case "StreamCancelled":
                return StreamCancelled(_owed(state, CallModel), open_text=self._one(("", "x")))
            case "ToolEnded":
                return self._ended(p, state)
            case "PermissionAnswered":
                stop = STOP if p[1] == "stop" else None
                return PermissionAnswered(_call(state, p[0]), p[1] != "denied", stop=stop)
            case "WaitElapsed":
                return WaitElapsed(_owed(state, Wait))
            case "Compacted":
                return self._compacted(p, state)
            case "CompactionFailed":
                failure = self._one(COMPACTOR[p[0]])
                failure = attrs.evolve(failure, excess_tokens=HUGE if p[1] else 0)
                return CompactionFailed(_owed(state, Compact), failure, _bill(p[2]))
            case "HookAnswered":
                return HookAnswered(_owed(state, RunHook), HookVerdict(p[0]))
            case "AbortRequested":
                return AbortRequested(AbortKind(p[0]))
            case _:
                return Resumed()

    def _one(self, ways: tuple[Any, ...]) -> Any:
        return ways[self._turn % len(ways)]

    def _block(self, kind: str, state: State) -> Event | None:
        call = _owed(state, CallModel)
        if kind == "text":
            return BlockCompleted(call, WORD)
        count = len(_schedule(state))
        if count >= self.calls:
            return None
        return BlockCompleted(call, ToolUse(f"c{count}", "t"), self._one(FACTS[kind]))

    def _closed(self, p: Payload, state: State) -> Event:
        stop, report, tokens, shown, bill = p
        usage = _bill(bill)
        if report != "none":
            usage = Usage(self.tokens_of(report), tokens)
        elif tokens:
            usage = Usage(0, tokens)
        return StreamClosed(_owed(state, CallModel), Stop(stop), usage=usage, shown=shown)

    def _ended(self, p: Payload, state: State) -> Event:
        status = CallStatus.FAILED if p[1] == "failed" else CallStatus.COMPLETED
        return ToolEnded(_call(state, p[0]), status=status, stop=STOP if p[1] == "stop" else None)

    def tokens_of(self, view: str) -> int:
        """Return how many tokens a view in the middle of class *view* has."""
        limits = self.config.thresholds[0]
        if view == "over":
            return limits.blocking + ROOM
        return limits.autocompact + ROOM if view == "full" else limits.autocompact // 4

    def class_of(self, tokens: int) -> str:
        """Return the class of a view of *tokens*."""
        limits = self.config.thresholds[0]
        return "over" if tokens >= limits.blocking else "full" if tokens >= limits.autocompact else "low"

    def _compacted(self, p: Payload, state: State) -> Event | None:
        """A view of class p[0], smaller than before or not; at the threshold of its class where it can be."""
        view, smaller, bill = p
        order, usage = _owed(state, Compact), _bill(bill)
        if view == "empty":
            return Compacted(order, self._one(("", " ")), FEWER, usage=usage) if smaller else None
        before = state.control.fill.tokens
        there = VIEWS.index(view) - VIEWS.index(self.class_of(before))
        if there and smaller != (there < 0):
            return None
        limits = self.config.thresholds[0]
        least = {"low": FEWER, "full": limits.autocompact, "over": limits.blocking}[view]
        tokens = self._one((least, least + SPARE)) if there else before - 1 if smaller else before
        if self.class_of(tokens) != view:
            return None  # the view was the least of its class already
        return Compacted(order, "s", tokens, usage=usage)


def _bill(bill: bool) -> Usage | None:
    return Usage(0, HUGE) if bill else None


def _owed(state: State, kind: type) -> int:
    return next((order.id for order in state.data.ledger.owed if type(order) is kind), NOBODY)


def _schedule(state: State) -> tuple[Any, ...]:
    phase = state.phase
    return phase.reply.schedule.calls if isinstance(phase, Sampling | Running | Aborting) else ()


def _call(state: State, place: int) -> int:
    """Return the effect of the call at *place* (from 1), if it is open."""
    calls = _schedule(state)
    if place > len(calls) or calls[place - 1].state not in (CallState.ACTIVE, CallState.ASKING):
        return NOBODY
    found: int = calls[place - 1].effect_id
    return found
