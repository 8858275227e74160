"""Layer 4: what a compaction summarises, keeps, and drops from its own request (section 2 and 5)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from stepfold.engine.config import Config
from stepfold.engine.context.rounds import round_starts
from stepfold.engine.context.tokens import estimate_message
from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Origin,
    Role,
    Text,
    ToolResult,
    user_text,
)

DROPPED = "[Earlier messages were dropped so that this summary request fits.]"


def tail_start(messages: Sequence[Message], config: Config) -> int:
    """
    Return the index at which the protected tail begins.

    The tail holds at least ``tail_min_tokens`` and ``tail_min_messages``
    messages with text, at most ``tail_max_tokens``, and begins between rounds.
    """
    tokens = spoken = 0
    begin = len(messages)
    starts = set(round_starts(messages))
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        tokens += estimate_message(message)
        if tokens > config.tail_max_tokens:
            break
        spoken += any(isinstance(block, Text) for block in message.content)
        if place in starts:
            begin = place
            if tokens >= config.tail_min_tokens and spoken >= config.tail_min_messages:
                break
    return begin


def split(messages: Sequence[Message], config: Config) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return (head to summarise, tail to keep); where the tail covers all, the head is all of it too."""
    begin = tail_start(messages, config)
    tail = tuple(messages[begin:])
    return (tuple(messages[:begin]) or tail), tail


def can_drop(head: Sequence[Message]) -> bool:
    """Whether a summary request over *head* has a round to spare."""
    return len(round_starts(_unmarked(head))) > 1


def drop_rounds(head: Sequence[Message], excess_tokens: int) -> tuple[Message, ...]:
    """
    Return *head* without its oldest rounds; at least one leaves, the last never.

    They cover *excess_tokens* where the API reported it, else a fifth of the
    rounds.  An old marker is removed before counting; a new one goes first.
    """
    messages = _unmarked(head)
    starts = [*round_starts(messages), len(messages)]
    rounds = len(starts) - 1
    if excess_tokens:
        covered, count = 0, 0
        while count < rounds - 1 and (covered < excess_tokens or not count):
            covered += sum(map(estimate_message, messages[starts[count] : starts[count + 1]]))
            count += 1
    else:
        count = max(1, rounds // 5)
    count = min(count, rounds - 1)
    return (user_text(DROPPED, Origin.BOUNDARY_NOTE), *messages[starts[count] :])


def _unmarked(head: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(message for message in head if message.origin is not Origin.BOUNDARY_NOTE)


def without_media(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return *messages* with every image and document replaced by a line of text."""
    return tuple(_stripped(message) for message in messages)


def _stripped(message: Message) -> Message:
    content = tuple(_plain(block) for block in message.content)
    return message if content == message.content else attrs.evolve(message, content=content)


def _plain(block: Block) -> Block:
    match block:
        case Media():
            return Text(f"[{block.type} removed]")
        case ToolResult() if any(isinstance(part, Media) for part in block.content):
            parts = tuple(
                Text(f"[{part.type} removed]") if isinstance(part, Media) else part for part in block.content
            )
            return attrs.evolve(block, content=parts)
        case _:
            return block


def compacted_view(
    summary: str, tail: Sequence[Message], attachments: Sequence[Message]
) -> tuple[Message, ...]:
    """Return boundary, summary, tail and attachments: the view after a compaction."""
    boundary = Message(Role.USER, (), Origin.BOUNDARY)
    return (boundary, user_text(summary, Origin.SUMMARY), *tail, *attachments)
