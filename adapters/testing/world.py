"""
A hostile world as data: which faults it has, and everything that it may say.

Nothing here draws.  Whoever plays a world brings a ``Pick``, which chooses one
of several options: Hypothesis (``stepfold.testing``), or a seeded generator.
Every tuple of options begins with the mildest, so that a search that shrinks
towards the first option ends with a friendly world.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

import attrs

from stepfold.engine.events import (
    AbortKind,
    CallFacts,
    CallStatus,
    HookStop,
    HookVerdict,
    Interrupt,
    Stop,
    ToolSpec,
    Usage,
    Verdict,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Origin,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
    user_text,
)

T = TypeVar("T")
HIDDEN: Final[tuple[Block, ...]] = (
    Thinking("hm", "sig"),
    Thinking("", "sig"),
    Thinking("hm"),
    RedactedThinking("opaque"),
)


class Pick(Protocol):
    """Chooses one of *options* (never empty): ``random.Random(7).choice`` is one."""

    def __call__(self, options: Sequence[T], /) -> T: ...


class Fault(enum.StrEnum):
    """
    One kind of thing that a hostile world does.

    A search plays each run with a random subset (swarm testing): faults that
    hide each other get runs without each other.
    """

    FAILURES = "failures"  # calls that fail in a way that passes with time
    OVERLOADS = "overloads"  # 529, and waits that are too long
    FATAL_FAILURES = "fatal_failures"  # calls that fail for good
    TOO_LONG = "too_long"  # the prompt is too long, the window full
    MEDIA = "media"  # images and documents that are refused
    TRUNCATION = "truncation"  # answers cut at the output limit
    REFUSALS = "refusals"
    PAUSES = "pauses"
    ODD_STOPS = "odd_stops"  # any other stop reason
    USAGE = "usage"  # tokens near the thresholds
    ODD_TEXTS = "odd_texts"  # empty, blank, long, and lone surrogates
    THINKING = "thinking"
    SERVER_CALLS = "server_calls"  # calls of the server's own tools
    BAD_CALLS = "bad_calls"  # unknown tools, invalid inputs
    REUSED_IDS = "reused_ids"  # one id for several calls, or none
    UNSAFE_CALLS = "unsafe_calls"  # calls that must run alone; shells
    DENIALS = "denials"  # rules and users that say no
    TOOL_FAILURES = "tool_failures"
    TOOL_STOPS = "tool_stops"  # a tool's hook ends the run
    HOOK_BLOCKS = "hook_blocks"
    HOOK_PREVENTS = "hook_prevents"
    HOOK_CRASHES = "hook_crashes"  # crashes and time-outs
    COMPACTOR_FAILURES = "compactor_failures"
    COMPACTOR_USELESS = "compactor_useless"  # summaries that do not shrink, or are blank
    SIDE_FAILURES = "side_failures"  # batch summaries, memories, staged summaries
    ABORTS = "aborts"
    DEATHS = "deaths"  # the process dies and a new one takes up the log
    QUEUE = "queue"  # words beside the run
    TOOL_CHANGES = "tool_changes"
    IDLE_TIME = "idle_time"  # minutes pass
    STRAYS = "strays"  # answers that come late, twice, or to nobody
    MORE_RUNS = "more_runs"  # a run after the run, on one history


ALL_FAULTS: Final = frozenset(Fault)
NO_FAULTS: Final[frozenset[Fault]] = frozenset()
IMAGE: Final = Media(
    "image", '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}'
)
LONG: Final = "x" * 6_000
SURROGATE: Final = "lone \ud800 surrogate"
RUNS_MAX: Final = 6  # runs on one history, so that a search ends


@attrs.frozen
class Tool:
    """A tool of a world: what is offered, and what the border knows of every call of it."""

    spec: ToolSpec
    facts: CallFacts
    fault: Fault | None = None  # the tool is there only where this is


def _tool(name: str, fault: Fault | None = None, limit: int | None = 50_000, **facts: Any) -> Tool:
    return Tool(ToolSpec(name, max_result_chars=limit, clearable=name == "read"), CallFacts(**facts), fault)


CANCEL: Final = Interrupt.CANCEL
TOOLS: Final = (
    _tool("read", safe=True),
    _tool("free", safe=True, limit=None, interrupt=CANCEL),
    _tool("again", safe=True, idempotent=True),
    _tool("edit", Fault.UNSAFE_CALLS),
    _tool("bash", Fault.UNSAFE_CALLS, shell=True, interrupt=CANCEL),
    _tool("list", Fault.UNSAFE_CALLS, shell=True, safe=True),
    _tool("put", Fault.UNSAFE_CALLS, idempotent=True),
    _tool("fetch", Fault.DENIALS, safe=True, verdict=Verdict.ASK),
    _tool("write", Fault.DENIALS, verdict=Verdict.ASK, interrupt=CANCEL),
    _tool("drop", Fault.DENIALS, verdict=Verdict.DENY, problem="A rule denies drop."),
)
UNKNOWN: Final = CallFacts(known=False, valid=False, problem="There is no such tool.")
INVALID: Final = CallFacts(valid=False, problem="The input is no JSON object.")


@attrs.frozen(kw_only=True)
class Said:
    """What a model may say: texts, blocks, ends of an answer, calls."""

    texts: tuple[str, ...]
    blocks: tuple[Block, ...]
    stops: tuple[Stop, ...]
    open_texts: tuple[str, ...]  # of a block that an end cuts
    usages: tuple[Usage | None, ...]
    cleared_tokens: tuple[int, ...]
    failures: tuple[Failure, ...]
    call_ids: tuple[str, ...]  # empty: each call gets a new one
    call_inputs: tuple[tuple[str, str], ...]  # the JSON, and what was written where that is none
    call_names: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Done:
    """What tools, users, hooks and the compactor may answer."""

    results: tuple[tuple[Text | Media, ...], ...]
    statuses: tuple[CallStatus, ...]
    stops: tuple[HookStop | None, ...]
    extra: tuple[tuple[Message, ...], ...]
    allowed: tuple[bool, ...]
    inputs: tuple[str | None, ...]  # what a hook makes of a call's input
    verdicts: tuple[HookVerdict, ...]
    summaries: tuple[str, ...]
    summary_tokens: tuple[int, ...]
    compactor_failures: tuple[Failure, ...]  # empty: it never fails
    side: tuple[str | None, ...]  # summaries beside the loop; None: it failed


@attrs.frozen(kw_only=True)
class World:
    """
    Everything that a world with these *faults* may say.

    Args:
        faults: What is wrong with it; without any it is friendly.
        tools: The tools on offer at first.
        said: What the model says.
        done: What everybody else answers.
        other_tools: What the host may offer instead, from the next request on.
        aborts: How the user may stop a run.
        minutes: How much time may pass between two events.
    """

    faults: frozenset[Fault]
    tools: tuple[Tool, ...]
    said: Said
    done: Done
    other_tools: tuple[tuple[ToolSpec, ...], ...]
    aborts: tuple[AbortKind, ...]
    minutes: tuple[int, ...]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is offered them."""
        return tuple(tool.spec for tool in self.tools)

    def has(self, fault: Fault) -> bool:
        """Whether this world does that."""
        return fault in self.faults

    def facts(self, call: ToolUse) -> CallFacts:
        """Return what the border knows of *call*."""
        found = next((tool.facts for tool in self.tools if tool.spec.name == call.name), UNKNOWN)
        return INVALID if found.known and call.raw_input else found


def world_of(faults: Iterable[Fault], tools: Iterable[Tool] = TOOLS) -> World:
    """Return the world with these faults; those of *tools* that go with them are on offer."""
    has = frozenset(faults)
    kept = tuple(tool for tool in tools if tool.fault is None or tool.fault in has)
    specs = tuple(tool.spec for tool in kept)
    short = tuple(attrs.evolve(spec, max_result_chars=10) for spec in specs[:1])
    return World(
        faults=has,
        tools=kept,
        said=_said(has, tuple(spec.name for spec in specs)),
        done=_done(has),
        other_tools=(specs, (), short) if Fault.TOOL_CHANGES in has else (specs,),
        aborts=(AbortKind.HARD, AbortKind.SUBMIT),
        minutes=(0, 9) if Fault.IDLE_TIME in has else (0,),
    )


def _when(has: frozenset[Fault], fault: Fault, *options: T) -> tuple[T, ...]:
    return options if fault in has else ()


def _texts(has: frozenset[Fault]) -> tuple[str, ...]:
    return ("yes", *_when(has, Fault.ODD_TEXTS, "", " ", LONG, SURROGATE))


def _said(has: frozenset[Fault], names: tuple[str, ...]) -> Said:
    texts = _texts(has)
    stops = (Stop.END_TURN, Stop.TOOL_USE)
    cut = _when(has, Fault.TRUNCATION, Stop.MAX_TOKENS, Stop.MAX_TOKENS)
    full = _when(has, Fault.TOO_LONG, Stop.WINDOW_EXCEEDED)
    other = _when(has, Fault.ODD_STOPS, Stop.STOP_SEQUENCE, Stop.COMPACTION, Stop.OTHER)
    refused, paused = _when(has, Fault.REFUSALS, Stop.REFUSAL), _when(has, Fault.PAUSES, Stop.PAUSE_TURN)
    tokens = tuple(Usage(a, b) for a in (18_500, 19_500, 30_000, 100, 0) for b in (10, 600, 0))
    return Said(
        texts=texts,
        blocks=(*map(Text, texts), *_when(has, Fault.THINKING, *HIDDEN)),
        stops=(*stops, *refused, *paused, *full, *cut, *other),
        open_texts=("", *texts),
        usages=(None, Usage(100, 10), *_when(has, Fault.USAGE, *tokens)),
        cleared_tokens=(0, *_when(has, Fault.USAGE, 900)),
        failures=_failures(has),
        call_ids=_when(has, Fault.REUSED_IDS, "a", "b", "c", "", "call_7"),
        call_inputs=(("{}", ""), ('{"path":"x"}', ""), *_when(has, Fault.BAD_CALLS, ("{}", "[1]"))),
        call_names=(*names, *_when(has, Fault.BAD_CALLS, "nothing")) or ("nothing",),
    )


def _failures(has: frozenset[Fault]) -> tuple[Failure, ...]:
    kinds = FailureKind
    passing = (kinds.TRANSPORT, kinds.SERVER, kinds.TIMEOUT, kinds.CUT, kinds.CONFLICT, kinds.RATE_LIMITED)
    fatal = (kinds.INVALID, kinds.AUTHENTICATION, kinds.NOT_FOUND, kinds.SPEND_LIMIT, kinds.OTHER)
    long = (kinds.PROMPT_TOO_LONG, kinds.REQUEST_TOO_LARGE, kinds.WINDOW_EXCEEDED)
    named = (
        *_when(has, Fault.FAILURES, *passing),
        *_when(has, Fault.OVERLOADS, kinds.OVERLOADED),
        *_when(has, Fault.TOO_LONG, *long),
        *_when(has, Fault.MEDIA, kinds.MEDIA_TOO_LARGE),
        *_when(has, Fault.FATAL_FAILURES, *fatal),
    )
    waits = (
        *_when(has, Fault.FAILURES, Failure(kinds.RATE_LIMITED, "words", retry_after_ms=0)),
        *_when(has, Fault.OVERLOADS, Failure(kinds.RATE_LIMITED, "words", retry_after_ms=400_000)),
    )
    return (*(Failure(kind, "words") for kind in named), *waits)


def _done(has: frozenset[Fault]) -> Done:
    texts = _texts(has)
    crash = _when(has, Fault.HOOK_CRASHES, HookVerdict.CRASH, HookVerdict.TIMEOUT)
    too_long = Failure(FailureKind.PROMPT_TOO_LONG, "words")
    broken = (
        Failure(FailureKind.UNUSABLE, "words"),
        Failure(FailureKind.TIMEOUT, "words"),
        too_long,
        attrs.evolve(too_long, excess_tokens=2_000),
    )
    stop = HookStop("guard", "enough")
    return Done(
        results=(
            (Text("yes"),),
            (),
            *((Text(text),) for text in texts[1:]),
            *_when(has, Fault.MEDIA, (IMAGE,), (Text("yes"), IMAGE)),
        ),
        statuses=(
            CallStatus.COMPLETED,
            *_when(has, Fault.TOOL_FAILURES, CallStatus.FAILED, CallStatus.CANCELLED),
        ),
        stops=(None, None, None, stop) if Fault.TOOL_STOPS in has else (None,),
        extra=((), (user_text("from the tool", Origin.ATTACHMENT),)),
        allowed=(True, False) if Fault.DENIALS in has else (True,),
        inputs=(None, '{"other":1}'),
        verdicts=(
            HookVerdict.PASS,
            *_when(has, Fault.HOOK_BLOCKS, HookVerdict.BLOCK),
            *_when(has, Fault.HOOK_PREVENTS, HookVerdict.PREVENT),
            *crash,
        ),
        summaries=("summary", *_when(has, Fault.COMPACTOR_USELESS, " ")),
        summary_tokens=(100, *_when(has, Fault.COMPACTOR_USELESS, 18_000, 25_000, 50_000)),
        compactor_failures=_when(has, Fault.COMPACTOR_FAILURES, *broken),
        side=("did it", *_when(has, Fault.SIDE_FAILURES, None)),
    )
