"""How things are said on the terminal."""

from __future__ import annotations

import re
from typing import Final

from stepfold.engine.state import Continue
from stepfold.engine.terminals import End

# Everything that moves the cursor, changes colours or rings: a model's words must not steer a terminal.
CONTROL: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"  # a sequence such as a colour
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # an order such as a window title
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def harmless(text: str) -> str:
    """Return *text* without control characters, line breaks and tabs kept."""
    return CONTROL.sub("", text)


def line_of(text: str, limit: int = 120) -> str:
    """Return *text* as one line of at most *limit* characters."""
    line = " ".join(harmless(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def transition_line(reason: str, count: int, turn: int) -> str:
    """Return the line that names a transition."""
    match reason:
        case Continue.COLLAPSE_DRAIN_RETRY:
            return f"{reason} (committed {count})"
        case Continue.MAX_OUTPUT_TOKENS_RECOVERY:
            return f"{reason} (attempt {count})"
        case Continue.NEXT_TURN:
            return f"{reason} (turn {turn})"
    return str(reason)


def end_line(end: End) -> str:
    """Return the line that names the end."""
    return f"{end.reason}: {line_of(end.why, 400)}"
