"""
What a scenario file says, as frozen classes (docs/scenarios.md has the words).

Times are virtual milliseconds.  Everything here is plain data; ``load.py``
makes it from TOML and refuses what the format does not know.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

import attrs

from stepfold.adapters.scripted import Answer
from stepfold.engine.config import Config
from stepfold.engine.events import AbortKind, CallStatus, HookVerdict, Interrupt
from stepfold.engine.messages import Message, ResultBlock
from stepfold.engine.terminals import Terminal

FORMAT: Final = 1
NO_TERMINAL: Final = "none"  # the consumer went away
TERMINALS: Final = (*(terminal.value for terminal in Terminal), NO_TERMINAL)
FOREVER: Final = None


@attrs.frozen
class Entry:
    """A ``[[model]]`` table: an answer and how often it is given (None: for ever)."""

    answer: Answer
    times: int | None = 1


@attrs.frozen
class Gives:
    """A tool call that completes with this content."""

    content: tuple[ResultBlock, ...]


@attrs.frozen
class Raises:
    """A tool call that fails with these words."""

    words: str


ToolOutcome: TypeAlias = Gives | Raises


class Rule(enum.Enum):
    """What the permission rules, and where they ask the user, say of a tool."""

    ALLOW = "allow"
    DENY = "deny"
    ASK_ALLOW = "ask, then allow"
    ASK_DENY = "ask, then deny"


@attrs.frozen
class Timing:
    """When a call of a tool answers."""

    takes_ms: int = 0
    never: bool = False
    interrupt: Interrupt = Interrupt.WAIT


@attrs.frozen
class Tool:
    """A ``[[tool]]`` table; ``outcomes`` are for its calls in order, the last one repeats."""

    name: str
    outcomes: tuple[ToolOutcome, ...]
    safe: bool = False
    timing: Timing = Timing()
    rule: Rule = Rule.ALLOW
    max_result_chars: int | None = 50_000
    stop: bool = False
    shell: bool = False


@attrs.frozen
class HookReply:
    """One answer of a stop hook."""

    verdict: HookVerdict
    words: str = ""


@attrs.frozen
class Hook:
    """A ``[[hook]]`` table; the last answer repeats."""

    name: str
    replies: tuple[HookReply, ...]
    max_blocks: int = 1


@attrs.frozen
class Summary:
    """A compactor request that works; ``tokens`` None lets the estimate stand."""

    text: str
    tokens: int | None = None


@attrs.frozen
class NoSummary:
    """A compactor request that fails."""

    error: str


Compaction: TypeAlias = Summary | NoSummary


@attrs.frozen
class Staged:
    """A collapse that is staged before the run: ``through`` first messages become ``summary``."""

    through: int
    summary: str


class Moment(enum.Enum):
    """At which kind of point of the run something happens from outside."""

    CALL_OPENED = "call opened"
    CALL_BLOCK = "call block"
    CALL_CLOSED = "call closed"
    TOOL_STARTED = "tool started"
    TOOL_ENDED = "tool ended"
    HOOK_STARTED = "hook started"
    COMPACTION_STARTED = "compaction started"
    RETRY_WAITING = "retry waiting"


@attrs.frozen
class Point:
    """A point of the run: which call, block, compaction or retry, or the name of a tool call or hook."""

    moment: Moment
    number: int = 0
    block: int = 0
    name: str = ""


@attrs.frozen
class Abort:
    """The user stops the run."""

    kind: AbortKind


@attrs.frozen
class Queue:
    """The user says something while the run goes on."""

    text: str


@attrs.frozen
class Crash:
    """The process dies here and resumes from its log."""


@attrs.frozen
class Close:
    """The consumer goes away."""


Deed: TypeAlias = Abort | Queue | Crash | Close


@attrs.frozen
class Act:
    """An ``[[act]]`` table: what happens, and where; ``place`` is for complaints about it."""

    at: Point
    do: Deed
    place: str = attrs.field(default="", eq=False)


@attrs.frozen
class RequestShape:
    """The messages of call ``call`` (-1: the last), one string each."""

    call: int
    shape: tuple[str, ...]


@attrs.frozen
class Contains:
    """Some text of the request of call ``call`` holds ``text``."""

    call: int
    text: str


@attrs.frozen
class AtMost:
    """A number that may be anything up to ``max``."""

    max: int


@attrs.frozen
class EndExpected:
    """What is said of the ends of the runs."""

    terminal: str | None = None
    terminals: tuple[str, ...] | None = None
    ok: bool | None = None
    ending: str | None = None
    transitions: tuple[str, ...] | None = None


@attrs.frozen
class CallsExpected:
    """What is said of the requests to the model and the compactor."""

    model_calls: int | AtMost | None = None
    compactions: int | None = None
    models: tuple[str, ...] | None = None
    waits_ms: tuple[int, ...] | None = None
    request: RequestShape | None = None
    contains: Contains | None = None


@attrs.frozen
class ToolsExpected:
    """What is said of tools and hooks."""

    tools: tuple[tuple[str, CallStatus], ...] = ()
    overlap: tuple[tuple[str, str], ...] = ()
    no_overlap: tuple[tuple[str, str], ...] = ()
    hooks_run: tuple[tuple[str, int], ...] = ()


@attrs.frozen
class ShownExpected:
    """What is said of the consumer's view."""

    shown_errors: int | None = None
    tombstones: int | None = None


@attrs.frozen
class Expect:
    """The ``[expect]`` table; what is not named is not compared."""

    ends: EndExpected = EndExpected()
    calls: CallsExpected = CallsExpected()
    tools: ToolsExpected = ToolsExpected()
    shown: ShownExpected = ShownExpected()


@attrs.frozen
class World:
    """Everything the outside does."""

    entries: tuple[Entry, ...] = ()
    tools: tuple[Tool, ...] = ()
    hooks: tuple[Hook, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    acts: tuple[Act, ...] = ()


@attrs.frozen
class Scenario:
    """One file."""

    title: str
    about: str
    config: Config
    prompts: tuple[str, ...]
    history: tuple[Message, ...] = ()
    staged: tuple[Staged, ...] = ()
    world: World = World()
    expect: Expect = Expect()
