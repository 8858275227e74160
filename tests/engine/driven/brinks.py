"""A run right before each of the seven continues, every field as far from its default as the rules allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stepfold.engine import Continue, State
from stepfold.engine.config import HookSpec, ModelSpec
from stepfold.engine.effects import StageCollapse
from stepfold.engine.events import HookVerdict, Stop, ToolSpec
from stepfold.engine.failures import FailureKind
from tests.engine.driven.drive import Drive, talk

OLD, NEW = ToolSpec("old"), ToolSpec("new")
OPEN = "and an open"  # text of a block that never closed


# ---------------------------------------------------------------- the state before


def turned(*, active: bool = True, staged: bool = False) -> Drive:
    """
    Return a run right after a turn, with turns, compactions, budget and hook blocks behind it.

    Its fields: compacted two turns ago, one failure since; the summary of the last batch is pending; a
    stop hook has blocked (*active*); one budget continuation; a task budget that a compaction fixed.
    """
    drive = Drive(
        talk(8, 600),
        tools=(OLD,),
        models=(ModelSpec("main", 200_000, 32_000), ModelSpec("second", 200_000, 64_000)),
        fallback_models=("second",),
        stop_hooks=(HookSpec("lint", 5),),
        token_budget_tokens=100_000,
        task_budget_tokens=500_000,
        tool_summaries=True,
        collapse_staging=True,
        tail_min_tokens=0,
        tail_min_messages=0,
    )
    drive.begin()
    if active:
        drive.text("early answer")
        drive.close(output=1_000)
        drive.hook(HookVerdict.BLOCK, "early error")
    drive.text("second answer")
    drive.close(output=2_000)
    drive.hook(HookVerdict.PASS)
    for name, tokens in (("t1", 170_000), ("t2", 170_000), ("t3", 163_000)):
        drive.call(name)
        drive.close(Stop.TOOL_USE, output=100, prompt=tokens)
        drive.tool(name)
        if name == "t1":
            drive.compacted(30_000, "old summary")
        if name == "t2":
            drive.not_compacted()
    drive.staged("span summary" if staged else None)
    return drive


def climbed(drive: Drive, *, reactive: bool, override: bool, staged: bool = False) -> Drive:
    """Go on to one resume spent; with *reactive*, its guard is spent; with *override*, escalated."""
    if reactive:
        drive.fail(FailureKind.PROMPT_TOO_LONG)
        drive.compacted(30_000, "reactive summary")
    drive.text("part one")
    drive.close(Stop.MAX_TOKENS, output=100, prompt=163_000)
    if drive.opened(StageCollapse):
        drive.staged(None)
    replaced(drive)
    if override:
        drive.text("too long")
        drive.close(Stop.MAX_TOKENS, output=100, prompt=163_000)
    if drive.opened(StageCollapse):
        drive.staged("span summary" if staged else None)
    return drive


def replaced(drive: Drive) -> None:
    """Go on with the second model, which can put out 64,000 tokens."""
    for _ in range(2):
        drive.fail(FailureKind.OVERLOADED)
        drive.waited()
    drive.fail(FailureKind.OVERLOADED)


# ---------------------------------------------------------------- the seven, each by real events


def drain(drive: Drive) -> None:
    drive.fail(FailureKind.PROMPT_TOO_LONG)


def react(drive: Drive) -> None:
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.compacted(40_000, "the new summary")


def escalate(drive: Drive) -> None:
    drive.text("cut")
    drive.close(Stop.MAX_TOKENS, output=100)


def recover(drive: Drive) -> None:
    drive.text("partial")
    drive.close(Stop.MAX_TOKENS, output=100, open_text=OPEN)


def block(drive: Drive) -> None:
    drive.text("the answer")
    drive.close(output=700)
    drive.hook(HookVerdict.BLOCK, "lint is red")


def nudge(drive: Drive) -> None:
    drive.text("the answer")
    drive.close(output=700)
    drive.hook(HookVerdict.PASS)


def turn(drive: Drive) -> None:
    drive.call("t9", "read")
    drive.close(Stop.TOOL_USE, output=700)
    drive.tool("t9", "contents")


TAKE: Final[dict[Continue, Callable[[Drive], None]]] = {
    Continue.COLLAPSE_DRAIN_RETRY: drain,
    Continue.REACTIVE_COMPACT_RETRY: react,
    Continue.MAX_OUTPUT_TOKENS_ESCALATE: escalate,
    Continue.MAX_OUTPUT_TOKENS_RECOVERY: recover,
    Continue.STOP_HOOK_BLOCKING: block,
    Continue.TOKEN_BUDGET_CONTINUATION: nudge,
    Continue.NEXT_TURN: turn,
}


def brink(reason: Continue, field: str, *, active: bool = True) -> Drive:
    """Return a run right before *reason*, in which *field* is what it can be at most."""
    staged = reason is Continue.COLLAPSE_DRAIN_RETRY
    fresh = field == "pending_tool_summary"  # every continue clears it: only a turn may stand before
    drive = turned(active=active, staged=staged and fresh)
    if fresh:
        if reason is Continue.MAX_OUTPUT_TOKENS_ESCALATE:
            replaced(drive)
        return drive
    reactive = reason is not Continue.REACTIVE_COMPACT_RETRY and field != "compaction"
    override = reason is not Continue.MAX_OUTPUT_TOKENS_ESCALATE
    drive = climbed(drive, reactive=reactive, override=override, staged=staged)
    drive.tools(NEW)
    return drive


def taken(reason: Continue, field: str, *, active: bool = True) -> tuple[Drive, State, State]:
    """Take *reason* and return the run and the states before and after."""
    drive = brink(reason, field, active=active)
    before, count = drive.state, len(drive.continued)
    TAKE[reason](drive)
    assert [reason] == drive.continued[count:], "the run did not take the continue that is tested"
    return drive, before, drive.state
