"""Driven runs of views that do not fit, and of limits before a request."""

from __future__ import annotations

from typing import Any, Final

from stepfold.engine.events import Stop
from stepfold.engine.failures import FailureKind
from stepfold.engine.state import Collapse
from tests.engine.driven.drive import Drive, talk

FULL = 170_000  # over autocompact's threshold of a window of 200,000 tokens, under the blocking limit
OVER = 178_000  # over the blocking limit
STAGED: Final = (Collapse(2, "first span"), Collapse(4, "second span"))


def full(tokens: int = FULL, **config: Any) -> Drive:
    """Return a run whose second iteration finds a view of so many tokens."""
    drive = Drive(talk(12), **config)
    drive.begin()
    drive.call("t1")
    drive.close(Stop.TOOL_USE, output=0, prompt=tokens)
    drive.tool("t1")
    return drive


def window_drained() -> Drive:
    """The answer fills the window: a drain, then a reactive compaction, then the surface."""
    drive = Drive(talk(6), collapses=STAGED)
    drive.begin()
    drive.text("part")
    drive.close(Stop.WINDOW_EXCEEDED)
    drive.text("more")
    drive.close(Stop.WINDOW_EXCEEDED)
    drive.compacted(5_000)
    drive.text("still")
    drive.close(Stop.WINDOW_EXCEEDED)
    return drive


def window_barred() -> Drive:
    """The answer fills the window, and no request is left."""
    drive = Drive(max_model_calls=1)
    drive.begin()
    drive.text("part")
    drive.close(Stop.WINDOW_EXCEEDED)
    return drive


def prompt_too_long() -> Drive:
    """A drain, a reactive compaction that drops rounds, the surface."""
    drive = Drive(talk(8), collapses=STAGED)
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.fail(FailureKind.REQUEST_TOO_LARGE)
    drive.not_compacted(FailureKind.PROMPT_TOO_LONG)
    drive.compacted(5_000)
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    return drive


def too_long_barred() -> Drive:
    """A compaction might help, but no request is left."""
    drive = Drive(max_model_calls=1)
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    return drive


def reaction_short() -> Drive:
    """A reactive compaction is not small enough."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.compacted(190_000)
    return drive


def reaction_failed() -> Drive:
    """A reactive compaction gives nothing."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.not_compacted()
    return drive


def reaction_barred() -> Drive:
    """A reactive compaction would be asked again, but no request is left."""
    drive = Drive(talk(8), max_model_calls=2)
    drive.begin()
    drive.fail(FailureKind.PROMPT_TOO_LONG)
    drive.not_compacted(FailureKind.PROMPT_TOO_LONG)
    return drive


def media() -> Drive:
    """Media too large, recovered once, then not."""
    drive = Drive()
    drive.begin("word " * 3_000)
    drive.fail(FailureKind.MEDIA_TOO_LARGE)
    drive.compacted(1_000)
    drive.fail(FailureKind.MEDIA_TOO_LARGE)
    return drive


def media_barred() -> Drive:
    """Media too large, and no request is left."""
    drive = Drive(max_model_calls=1)
    drive.begin()
    drive.fail(FailureKind.MEDIA_TOO_LARGE)
    return drive


def media_short() -> Drive:
    """Media too large; the compaction brings no gain."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.MEDIA_TOO_LARGE)
    drive.compacted(100_000)
    return drive


def media_failed() -> Drive:
    """Media too large; the compaction gives nothing."""
    drive = Drive()
    drive.begin()
    drive.fail(FailureKind.MEDIA_TOO_LARGE)
    drive.not_compacted()
    return drive


def autocompact() -> Drive:
    """Autocompact works."""
    drive = full()
    drive.compacted(20_000)
    drive.finish()
    return drive


def autocompact_short() -> Drive:
    """Autocompact is not under its threshold, but smaller: kept, and no second try in the iteration."""
    drive = full()
    drive.compacted(168_000)
    drive.finish()
    return drive


def autocompact_retried() -> Drive:
    """Autocompact's request is too long, then gives nothing."""
    drive = full()
    drive.not_compacted(FailureKind.PROMPT_TOO_LONG)
    drive.not_compacted()
    drive.finish()
    return drive


def autocompact_barred() -> Drive:
    """Autocompact would fire, but no request is left."""
    return full(max_model_calls=1)


def summary_barred() -> Drive:
    """Autocompact would ask again, but no request is left."""
    drive = full(max_model_calls=2)
    drive.not_compacted(FailureKind.PROMPT_TOO_LONG)
    return drive


def drained_first() -> Drive:
    """What is staged is committed before autocompact is tested."""
    drive = Drive(talk(12), collapses=STAGED, fixed_prompt_tokens=100_000)
    drive.begin()
    drive.call("t1")
    drive.close(Stop.TOOL_USE, output=0, prompt=167_001)
    drive.tool("t1")
    drive.finish()
    return drive


def context_full() -> Drive:
    """The view does not fit, and nothing could shrink it."""
    return full(OVER, autocompact=False, reactive_compact=False)


def calls_spent() -> Drive:
    """No request may leave."""
    drive = Drive(max_model_calls=0)
    drive.begin()
    return drive
