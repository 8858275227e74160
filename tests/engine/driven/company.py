"""
One driven run for each phase of a living run, with everything beside it that can be outstanding.

Memories, a batch summary and a collapse are being worked on in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stepfold.engine.config import HookSpec
from stepfold.engine.events import AbortKind, Stop
from stepfold.engine.failures import FailureKind
from stepfold.engine.phases import PhaseKind
from tests.engine.driven.drive import Drive, talk


def sampling() -> Drive:
    """Return a run whose second request is open."""
    drive = Drive(
        talk(20, 3_000),
        prefetch_memories=True,
        tool_summaries=True,
        collapse_staging=True,
        tail_min_tokens=0,
        tail_min_messages=1,
        max_queued_commands=2,
        stop_hooks=(HookSpec("lint"), HookSpec("types")),
        fallback_models=("second",),
    )
    drive.begin()
    drive.call("t1")
    drive.close(Stop.TOOL_USE, output=0, prompt=165_000)
    drive.tool("t1")
    return drive


def waiting() -> Drive:
    """Return a run in back-off."""
    drive = sampling()
    drive.fail(FailureKind.SERVER)
    return drive


def compacting() -> Drive:
    """Return a run in autocompact."""
    drive = sampling()
    drive.call("t2")
    drive.close(Stop.TOOL_USE, output=0, prompt=170_000)
    drive.tool("t2")
    return drive


def reacting() -> Drive:
    """Return a run in reactive compaction."""
    drive = sampling()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    return drive


def running() -> Drive:
    """Return a run with calls open."""
    drive = sampling()
    drive.call("t2")
    drive.close(Stop.TOOL_USE)
    return drive


def checking() -> Drive:
    """Return a run in a stop hook."""
    drive = sampling()
    drive.text()
    drive.close()
    return drive


def aborting() -> Drive:
    """Return a run that waits for its stream and a call after an abort."""
    drive = sampling()
    drive.call("t2")
    drive.abort(AbortKind.SUBMIT)
    return drive


COMPANY: Final[dict[PhaseKind, Callable[[], Drive]]] = {
    PhaseKind.SAMPLING: sampling,
    PhaseKind.WAITING: waiting,
    PhaseKind.COMPACTING: compacting,
    PhaseKind.REACTING: reacting,
    PhaseKind.RUNNING: running,
    PhaseKind.CHECKING: checking,
    PhaseKind.ABORTING: aborting,
}
