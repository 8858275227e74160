"""Rounds of a view: where it may be cut without parting what belongs together."""

from __future__ import annotations

from collections.abc import Sequence

from stepfold.engine.messages import Message, Opaque, Role, ToolResult, ToolUse


def holds_results(message: Message) -> bool:
    """Whether *message* answers tool calls."""
    return any(isinstance(block, ToolResult) for block in message.content)


def holds_calls(message: Message) -> bool:
    """Whether *message* makes client tool calls."""
    return any(isinstance(block, ToolUse) for block in message.content)


def round_starts(messages: Sequence[Message]) -> list[int]:
    """
    Return the indexes at which *messages* may be cut in two.

    A round begins with a user message that answers no call, or with an answer
    that follows tool results; neighbouring user messages and neighbouring
    parts of one answer stay together, and so do a server-side call and the
    later answer that brings its result.
    """
    starts = []
    for place, message in enumerate(messages):
        if place == 0:
            starts.append(0)
            continue
        before = messages[place - 1]
        if message.role is Role.ASSISTANT:
            follows = before.role is not Role.ASSISTANT and _ends_results(messages, place - 1)
            if follows and not _answers_before(messages, place):
                starts.append(place)
        elif before.role is Role.ASSISTANT and not holds_results(message):
            starts.append(place)
    return starts


def _ends_results(messages: Sequence[Message], place: int) -> bool:
    """Whether the run of user messages that ends at *place* began with tool results."""
    while place >= 0 and messages[place].role is not Role.ASSISTANT:
        if holds_results(messages[place]):
            return True
        place -= 1
    return False


def _answers_before(messages: Sequence[Message], place: int) -> bool:
    """Whether the answer that begins at *place* holds the result of an earlier server-side call."""
    asked: set[str] = set()
    while place < len(messages) and messages[place].role is Role.ASSISTANT:
        for block in messages[place].content:
            if isinstance(block, Opaque):
                if block.answers and block.answers not in asked:
                    return True
                asked.add(block.call_id)
        place += 1
    return False


def snap(messages: Sequence[Message], cut: int) -> int:
    """Return the first index >= *cut* (at most the end) at which *messages* may be cut."""
    if cut >= len(messages):
        return len(messages)
    return next((start for start in round_starts(messages) if start >= cut), len(messages))
