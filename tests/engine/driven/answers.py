"""Driven runs of answers, tools, hooks, budgets and aborts; each is named after what it goes through."""

from __future__ import annotations

from typing import Final

from stepfold.engine.config import HookSpec, ModelSpec
from stepfold.engine.events import AbortKind, CallFacts, CallStatus, HookStop, HookVerdict, Stop, Verdict
from stepfold.engine.failures import FailureKind
from stepfold.engine.messages import Text
from tests.engine.driven.drive import UNSAFE, Drive

ONE_HOOK: Final = (HookSpec("lint"),)
TWO_HOOKS: Final = (HookSpec("lint"), HookSpec("types"))


def plain() -> Drive:
    """One answer of one text."""
    drive = Drive()
    drive.begin()
    drive.finish()
    return drive


def tools() -> Drive:
    """Calls of every kind in one answer: refused, denied, asked, safe, unsafe, a failing one."""
    drive = Drive()
    drive.begin()
    drive.call("safe", facts=CallFacts(safe=True))
    drive.call("asked", facts=CallFacts(safe=True, verdict=Verdict.ASK))
    drive.call("refused", facts=CallFacts(safe=True, verdict=Verdict.ASK))
    drive.call("denied", facts=CallFacts(verdict=Verdict.DENY))
    drive.call("unknown", facts=CallFacts(known=False))
    drive.call("unsafe", facts=UNSAFE)
    drive.permit("asked")
    drive.tool("safe")
    drive.close(Stop.TOOL_USE)
    drive.permit("refused", allowed=False)
    drive.tool("asked", "no such file", CallStatus.FAILED)
    drive.tool("unsafe")
    drive.finish()
    return drive


def permissions() -> Drive:
    """Permissions answered while the answer streams, and after it."""
    drive = Drive()
    drive.begin()
    asked = CallFacts(safe=True, verdict=Verdict.ASK)
    for name in ("yes", "no", "yes later", "no later"):
        drive.call(name, facts=asked)
    drive.permit("yes", input='{"changed": 1}')
    drive.permit("no", allowed=False, words="not that one")
    drive.close(Stop.TOOL_USE)
    drive.permit("yes later")
    drive.permit("no later", allowed=False)
    drive.tool("yes later")
    drive.tool("yes")
    drive.finish()
    return drive


def shell() -> Drive:
    """A failed shell call cancels its siblings, running and waiting."""
    drive = Drive()
    drive.begin()
    drive.call("shell", facts=CallFacts(safe=True, shell=True))
    drive.call("beside")
    drive.call("asked", facts=CallFacts(safe=True, verdict=Verdict.ASK))
    drive.call("later", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    drive.tool("shell", "exit 1", CallStatus.FAILED)
    drive.finish()
    return drive


def tool_hook() -> Drive:
    """A hook of a tool asks to stop."""
    drive = Drive()
    drive.begin()
    drive.call("a", facts=UNSAFE)
    drive.call("b", facts=UNSAFE)
    drive.close(Stop.TOOL_USE)
    drive.tool("a", stop=HookStop("guard", "enough"))
    return drive


def permission_stop() -> Drive:
    """A hook before a tool allows it and asks to stop."""
    drive = Drive()
    drive.begin()
    drive.call("a", facts=CallFacts(verdict=Verdict.ASK))
    drive.close(Stop.TOOL_USE)
    drive.permit("a", allowed=True, stop=HookStop("guard", "not today"))
    return drive


def turns() -> Drive:
    """No turn is left."""
    drive = Drive(max_turns=2)
    drive.begin()
    drive.turn("a")
    drive.turn("b")
    return drive


def truncated() -> Drive:
    """Escalation, three resumes, the surface."""
    drive = Drive(stop_hooks=ONE_HOOK)
    drive.begin()
    for _ in range(5):
        drive.text("part")
        drive.close(Stop.MAX_TOKENS, open_text="and")
    return drive


def refused() -> Drive:
    """The model refuses in the midst of a call."""
    drive = Drive()
    drive.begin()
    drive.call("a")
    drive.close(Stop.REFUSAL)
    return drive


def paused() -> Drive:
    """A pause is sent back, and the re-sends are spent."""
    drive = Drive(max_resends=1)
    drive.begin()
    drive.text("one")
    drive.close(Stop.PAUSE_TURN)
    drive.text("two")
    drive.close(Stop.PAUSE_TURN)
    return drive


def fallback() -> Drive:
    """Three overloads, the next model; there a wait that is too long, the third; there it is the end."""
    drive = Drive(fallback_models=("second", "third"))
    drive.begin()
    for _ in range(2):
        drive.fail(FailureKind.OVERLOADED)
        drive.waited()
    drive.text("half")
    drive.fail(FailureKind.OVERLOADED)
    drive.fail(FailureKind.RATE_LIMITED, retry_after_ms=400_000)
    drive.fail(FailureKind.RATE_LIMITED, retry_after_ms=400_000)
    return drive


def invalid() -> Drive:
    """A failure that does not pass with time."""
    drive = Drive(stop_hooks=ONE_HOOK)
    drive.begin()
    drive.fail(FailureKind.INVALID)
    return drive


def hooks() -> Drive:
    """Two stop hooks: one blocks, one crashes; then they pass; then one prevents."""
    drive = Drive(stop_hooks=TWO_HOOKS)
    drive.begin()
    drive.text()
    drive.close()
    drive.hook(HookVerdict.BLOCK, "lint is red")
    drive.hook(HookVerdict.CRASH, "boom")
    drive.text()
    drive.close()
    drive.hook(HookVerdict.PASS)
    return drive


def prevented() -> Drive:
    """Prevent wins over block."""
    drive = Drive(stop_hooks=TWO_HOOKS)
    drive.begin()
    drive.text()
    drive.close()
    drive.hook(HookVerdict.BLOCK, "lint is red")
    drive.hook(HookVerdict.PREVENT, "no")
    return drive


def budget() -> Drive:
    """The token budget sends the model on, until it fades."""
    drive = Drive(token_budget_tokens=100_000)
    drive.begin()
    for _ in range(5):
        drive.text()
        drive.close(output=100)
        if drive.state.end is not None:
            break
    return drive


def abort_stream() -> Drive:
    """An abort in the stream; a block and a late call cross it."""
    drive = Drive()
    drive.begin()
    drive.call("a")
    drive.abort(AbortKind.SUBMIT)
    drive.text("crossed")
    drive.call("b")
    drive.abort(AbortKind.SUBMIT)
    drive.cancelled(open_text="half a")
    drive.tool("a")
    return drive


def abort_crossed() -> Drive:
    """The end of the stream crosses the abort."""
    drive = Drive()
    drive.begin()
    drive.text()
    drive.abort()
    drive.close()
    return drive


def abort_failed() -> Drive:
    """The stream fails while it is aborted."""
    drive = Drive()
    drive.begin()
    drive.abort()
    drive.fail(FailureKind.TRANSPORT)
    return drive


def abort_tools() -> Drive:
    """A submit abort waits for calls; a hard one does not."""
    drive = Drive()
    drive.begin()
    drive.call("a")
    drive.call("b")
    drive.close(Stop.TOOL_USE)
    drive.abort(AbortKind.SUBMIT)
    drive.tool("a")
    drive.abort(AbortKind.HARD)
    return drive


def abort_waiting() -> Drive:
    """An abort in back-off."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.SERVER)
    drive.abort()
    return drive


def overflow() -> Drive:
    """An answer with too many blocks, also while it is aborted."""
    drive = Drive(max_answer_blocks=1)
    drive.begin()
    drive.text("one")
    drive.text("two")
    drive.abort()
    drive.text("three")
    drive.cancelled()
    return drive


def beside() -> Drive:
    """What runs beside the loop: memories, skills, summaries, queued words, other tools."""
    drive = Drive(prefetch_memories=True, prefetch_skills=True, tool_summaries=True, max_queued_commands=1)
    drive.begin()
    drive.fetched("a skill")
    drive.queue("c1")
    drive.queue("c2")
    drive.turn("a")
    drive.summarised()
    drive.turn("b")
    drive.close()
    return drive


def two_runs() -> Drive:
    """A second run on the history of a first, with another model behind it."""
    drive = Drive(
        models=(ModelSpec("main", 200_000, 64_000),), fallback_models=("second",), stop_hooks=ONE_HOOK
    )
    drive.begin()
    drive.turn("a")
    drive.block(Text("done"))
    drive.close()
    drive.hook(HookVerdict.PASS)
    drive.begin("again")
    drive.text("done again")
    drive.close()
    drive.hook(HookVerdict.PASS)
    return drive
