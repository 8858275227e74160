"""Exit codes (docs/cli.md), and the error that becomes one line and a code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # help and complaints about the command line need no engine
    from stepfold.engine.terminals import End

OK: Final = 0
FAILED: Final = 1  # an answer that is not whole; a scenario, replay or demo that is not as it should be
USAGE: Final = 2
SKIPPED: Final = 3  # of prove: nothing fails, but a net that was asked for could not run
BUG: Final = 70
OUTPUT_LOST: Final = 74
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

BY_TERMINAL: Final[Mapping[str, int]] = {
    "completed": FAILED,  # where it is not ok
    "blocking_limit": 11,
    "prompt_too_long": 12,
    "image_error": 13,
    "model_error": 14,
    "stop_hook_prevented": 15,
    "hook_stopped": 16,
    "max_turns": 17,
    "aborted_streaming": INTERRUPTED,
    "aborted_tools": INTERRUPTED,
}


class Problem(Exception):
    """Something that the user can set right; told in one line, without a traceback."""

    def __init__(self, words: str, code: int = USAGE) -> None:
        super().__init__(" ".join(words.split()))
        self.code = code


def exit_code(end: End) -> int:
    """Return the exit code of a run that ended like this."""
    return OK if end.ok else BY_TERMINAL[end.reason]
