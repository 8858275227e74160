"""
Token estimates (specification, section 2): high for what joins, low for what leaves.

An estimate is made once, when something joins or leaves the view; no step
scans the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

MEDIA_TOKENS: Final = 2_667
CHARS_HIGH: Final = 3
CHARS_LOW: Final = 4


def _result_chars(block: ToolResult) -> int:
    chars = len(block.extra)
    for part in block.content:
        chars += len(part.text) + len(part.extra) if isinstance(part, Text) else chars_of(part)
    return chars


# By class, not by match: this runs for every block that joins a view.
_CHARS: Final[dict[type, Callable[[Any], int]]] = {
    Text: lambda block: len(block.text) + len(block.extra),
    Thinking: lambda block: len(block.thinking) + len(block.signature) + len(block.extra),
    RedactedThinking: lambda block: len(block.data) + len(block.extra),
    ToolUse: lambda block: len(block.name) + len(block.input) + len(block.extra),
    ToolResult: _result_chars,
    Media: lambda block: 0,
    Opaque: lambda block: len(block.wire),
}


_MAY_HOLD_MEDIA: Final = frozenset({ToolResult, Media})


def chars_of(block: Block) -> int:
    """Return the characters that *block* puts on the wire; media count apart."""
    return _CHARS[type(block)](block)


def media_in(block: Block) -> int:
    """Return how many images and documents *block* holds."""
    if isinstance(block, ToolResult):
        return [type(part) for part in block.content].count(Media)
    return int(isinstance(block, Media))


def estimate_blocks(blocks: Iterable[Block]) -> int:
    """Return the tokens that *blocks* may cost, leaning high: characters / 3, rounded up."""
    chars = media = 0
    for block in blocks:
        chars += chars_of(block)
        if type(block) in _MAY_HOLD_MEDIA:
            media += media_in(block)
    return -(-chars // CHARS_HIGH) + media * MEDIA_TOKENS


def estimate_message(message: Message) -> int:
    """Return the tokens that *message* may cost, leaning high."""
    return estimate_blocks(message.content)


def estimate_messages(messages: Iterable[Message]) -> int:
    """Return the tokens that *messages* may cost together, leaning high."""
    return sum(estimate_blocks(message.content) for message in messages)


def freed_tokens(blocks: Iterable[Block]) -> int:
    """Return the tokens that leave with *blocks*, leaning low: characters / 4."""
    chars = media = 0
    for block in blocks:
        chars += chars_of(block)
        media += media_in(block)
    return chars // CHARS_LOW + media * MEDIA_TOKENS
