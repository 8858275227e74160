"""
What requests and answers are made of: blocks and messages, frozen.

JSON stays text here (``input``, ``extra``, ``wire``): the engine never parses
it, so an unknown block or field is echoed byte for byte.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from stepfold.engine.frozen import frozen


class Role(enum.StrEnum):
    """Who speaks, in the API's words."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class Origin(enum.StrEnum):
    """Where a message came from; decides nothing on the wire."""

    PROMPT = "prompt"
    ANSWER = "answer"
    RESULTS = "results"
    COMMAND = "command"
    RESUME = "resume"
    NUDGE = "nudge"
    HOOK = "hook"
    SUMMARY = "summary"
    BOUNDARY = "boundary"  # a mark of the view, never on the wire
    BOUNDARY_NOTE = "boundary_note"  # says in a summary request that rounds were dropped
    ATTACHMENT = "attachment"
    INTERRUPTION = "interruption"


@frozen(slots=True, weakref_slot=True)
class Text:
    """A text block. ``extra`` is the JSON object text of further fields (citations, ...)."""

    text: str
    extra: str = ""


@frozen(slots=True, weakref_slot=True)
class Thinking:
    """A thinking block with its signature; bound to the model that wrote it."""

    thinking: str
    signature: str = ""
    extra: str = ""


@frozen(slots=True, weakref_slot=True)
class RedactedThinking:
    """Thinking that only the API can read."""

    data: str
    extra: str = ""


@frozen(slots=True, weakref_slot=True)
class ToolUse:
    """
    A client tool call. ``input`` is JSON text of an object.

    ``raw_input`` is set only where what the model wrote is no JSON object
    (``input`` is ``{}`` then): the call is invalid.  It is never sent.
    """

    id: str
    name: str
    input: str = "{}"
    extra: str = ""
    raw_input: str = ""


@frozen(slots=True, weakref_slot=True)
class Media:
    """An image or document. ``wire`` is the JSON text of the whole block."""

    type: str  # "image" or "document"
    wire: str


@frozen(slots=True, weakref_slot=True)
class Opaque:
    """
    Any other block, echoed untouched.

    ``wire`` is the JSON text of the whole block; ``call_id`` the id of a
    server-side call; ``answers`` the id of the server-side call it answers.
    """

    type: str
    wire: str
    call_id: str = ""
    answers: str = ""


@frozen(slots=True, weakref_slot=True)
class ToolResult:
    """The result of one client tool call; ``content`` holds no tool blocks."""

    use_id: str
    content: tuple[Text | Media | Opaque, ...] = ()
    is_error: bool = False
    extra: str = ""


Block: TypeAlias = Text | Thinking | RedactedThinking | ToolUse | ToolResult | Media | Opaque
ResultBlock: TypeAlias = Text | Media | Opaque


@frozen(slots=True)
class Message:
    """
    One message of the view.

    ``model`` names the model that wrote an answer ("" elsewhere): thinking is
    sent only to that model.
    """

    role: Role
    content: tuple[Block, ...]
    origin: Origin = Origin.PROMPT
    model: str = ""


def user_text(text: str, origin: Origin) -> Message:
    """Return a user message with one text block."""
    return Message(Role.USER, (Text(text),), origin)


def texts(content: tuple[Block, ...]) -> str:
    """Return the text blocks of *content* joined by line breaks."""
    return "\n".join(block.text for block in content if isinstance(block, Text))
