"""Which block may stand in whose message, and where the system speaks (specification, sections 7 and 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from stepfold.engine.messages import (
    Block,
    Media,
    Opaque,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

Spoken: TypeAlias = tuple[Role, Sequence[Block]]

SYSTEM_ONLY: Final = ("tool_addition", "tool_removal")


def belongs(block: Block, role: Role) -> bool:
    """
    Return whether a message of *role* may hold *block*.

    Calls, thinking and the server's own calls and results are the answer's;
    results and media the user's; a block unknown here may stand anywhere.
    """
    match block:
        case Text():
            return True
        case ToolResult() | Media():
            return role is Role.USER
        case ToolUse() | Thinking() | RedactedThinking():
            return role is Role.ASSISTANT
        case Opaque(type, _, call_id, answers):
            if type in SYSTEM_ONLY:
                return role is Role.SYSTEM
            return role is Role.ASSISTANT or not (call_id or answers)


def result_part(block: Block) -> bool:
    """Return whether a result may hold *block*."""
    return belongs(block, Role.USER) and not isinstance(block, ToolResult)


def order_of(messages: Sequence[Spoken], *, open_end: bool) -> list[int]:
    """
    Return the places of *messages* in an order in which the system speaks only where it may.

    That is behind a user, or behind a server's result, and before an answer or
    at the end.  A message of the system that stands elsewhere goes behind the
    next that the user says.  What is empty is not on the wire and counts for
    nothing.

    Args:
        messages: Role and blocks of each.
        open_end: The user will say something behind the last; else a message
            of the system that the end leaves over goes behind the last user,
            and is left out where there is none.
    """
    order: list[int] = []
    waiting: list[int] = []
    may_speak, last_user = False, 0  # whether those that wait may stand here; where the last user has spoken
    for place, (role, content) in enumerate(messages):
        if role is Role.SYSTEM and content:
            waiting.append(place)
            continue
        if role is Role.ASSISTANT and content and may_speak:
            order, waiting = order + waiting, []
        order.append(place)
        if content:
            may_speak = role is Role.USER or (not waiting and _answers(content[-1]))
            last_user = len(order) if role is Role.USER else last_user
    if may_speak or open_end:
        order += waiting
    elif last_user:
        order[last_user:last_user] = waiting
    filled = [place for place in order if messages[place][1]]
    same = filled == [place for place, (_, content) in enumerate(messages) if content]
    return list(range(len(messages))) if same else order


def _answers(block: Block) -> bool:
    return isinstance(block, Opaque) and bool(block.answers)
