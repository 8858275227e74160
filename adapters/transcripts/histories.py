"""A history as the one line of a recording without events, written piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import attrs

from stepfold.adapters.codec import CodecError, plain_start
from stepfold.adapters.recording.format import MOST_BYTES, OUTCOMES, header_line, line_of
from stepfold.effects.ports import Start
from stepfold.engine.messages import Message

AT_ONCE: Final = 32  # messages that are made plain together


FIRST: Final = b'"messages":['
LAST: Final = b"]}\n"


def history_line(begun: Start, messages: Iterable[Message]) -> Iterator[bytes]:
    """
    Yield the pieces of a recording that holds nothing but *messages*.

    Args:
        begun: What it starts from; without messages of its own.
        messages: They are read once, a few at a time; there is at least one.

    Raises:
        CodecError: The line would be longer than a recording may have.
    """
    head = header_line(attrs.evolve(begun, messages=()), keeps=(OUTCOMES,)).removesuffix(b"}\n")
    opening, end = head + b"," + FIRST, LAST
    length = len(end)
    left = iter(messages)
    while batch := tuple(islice(left, AT_ONCE)):
        plain = plain_start(attrs.evolve(begun, messages=batch))["messages"]
        piece = opening + line_of({"messages": plain}).removeprefix(b"{" + FIRST).removesuffix(LAST)
        opening = b","
        length += len(piece)
        if length > MOST_BYTES:
            raise CodecError(f"it makes a line of more than {MOST_BYTES:,} bytes; a recording has none")
        yield piece
    yield end
