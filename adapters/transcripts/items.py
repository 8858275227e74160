"""
The neutral form: what any agent's transcript tells, as a stream of items.

One file may hold several sessions and side chains; an item names its own.
Messages are the engine's, as the foreign loop kept them: nothing is repaired
here, so that what is wrong with them can still be seen.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from stepfold.engine.events import Usage
from stepfold.engine.messages import Message


@attrs.frozen
class Place:
    """
    Where an item stands.

    Args:
        line: Of the file, counted from 1; in a file that is one JSON value, the item's number in its list.
        session: The session's id, where the format has one.
        chain: "" in the main conversation; else the name of the side chain (a sub-agent).
        at_ms: When, since the epoch; None: the format does not tell.
    """

    line: int
    session: str = ""
    chain: str = ""
    at_ms: int | None = None


@attrs.frozen
class Began:
    """A session, or a new sitting of it, began."""

    place: Place
    model: str = ""
    tools: tuple[str, ...] = ()
    version: str = ""


@attrs.frozen
class Said:
    """
    A message was added to the history.

    Args:
        place: Where.
        message: As it was kept.
        answer: The id of the model's answer; several lines may share one. "" for what is no answer.
        model: Which answered.
        stop: Why the answer ended, in the format's own word; "" where it is not told.
        usage: Of the answer, as told on this line.
        meta: Whether the foreign loop wrote it itself (a reminder, a caveat), not a person, model or tool.
    """

    place: Place
    message: Message
    answer: str = ""
    model: str = ""
    stop: str = ""
    usage: Usage | None = None
    meta: bool = False


@attrs.frozen
class RequestFailed:
    """
    A request failed.

    Args:
        place: Where.
        words: What was told of it.
        status: HTTP status; None: no answer came, or it is not told.
        kind: The API's error type, as ``overloaded_error``; "" where it is not told.
        attempt: Which attempt it was, from 1; 0: not told.
        attempts: How many are allowed; 0: not told.
        wait_ms: How long the loop waits before the next; None: it gave up, or it is not told.
        shown: Whether it stands in the conversation as an answer of the model.
    """

    place: Place
    words: str
    status: int | None = None
    kind: str = ""
    attempt: int = 0
    attempts: int = 0
    wait_ms: int | None = None
    shown: bool = False


@attrs.frozen
class Compacted:
    """
    The history before this place was replaced by a summary, or thinned out.

    Args:
        place: Where.
        trigger: The format's own word: ``auto``, ``manual``, ...
        before_tokens: Of the context before; None: not told.
        after_tokens: After; None: not told.
        micro: Whether only old tool results were cleared.
    """

    place: Place
    trigger: str = ""
    before_tokens: int | None = None
    after_tokens: int | None = None
    micro: bool = False


@attrs.frozen
class Interrupted:
    """The user stopped it; *in_tool*: while a tool ran, or was asked about."""

    place: Place
    in_tool: bool = False


@attrs.frozen
class Ended:
    """
    A run ended.

    Args:
        place: Where.
        reason: In the format's own word, as ``error_max_turns``.
        ok: Whether the format calls it a success; None: it does not tell.
        turns: How many; None: not told.
    """

    place: Place
    reason: str
    ok: bool | None = None
    turns: int | None = None


Item: TypeAlias = Began | Said | RequestFailed | Compacted | Interrupted | Ended
