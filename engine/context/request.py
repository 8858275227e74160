"""
The list of messages that goes out, from the view (specification, section 7).

``project`` works on one message and depends on nothing else, so an adapter
may render each message once and reuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from stepfold.engine.context.places import belongs, order_of
from stepfold.engine.context.repair import WORDLESS, encodable
from stepfold.engine.effects import CallModel
from stepfold.engine.messages import (
    Block,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
)


def project(message: Message, model: str, thinking: bool) -> tuple[Block, ...]:
    """
    Return the blocks of *message* for a request to *model*; () where nothing of it goes out.

    Empty text leaves, and what no message of this role may hold; thinking
    leaves where it is off or another model wrote it.  An error gets words.
    """
    if message.origin is Origin.BOUNDARY:
        return ()
    role = message.role
    keeps = thinking and role is Role.ASSISTANT and message.model in ("", model)
    return tuple(_worded(encodable(block)) for block in message.content if _goes_out(block, keeps, role))


def _goes_out(block: Block, keeps_thinking: bool, role: Role) -> bool:
    match block:
        case Text(text):
            return bool(text.strip())
        case Thinking(text, signature):
            return keeps_thinking and bool(text or signature)
        case RedactedThinking():
            return keeps_thinking
        case _:
            return belongs(block, role)


def _worded(block: Block) -> Block:
    if isinstance(block, ToolResult) and block.is_error and not block.content:
        return attrs.evolve(block, content=(Text(WORDLESS),))
    return block


def merge(messages: Iterable[tuple[Role, Sequence[Block]]]) -> list[tuple[Role, list[Block]]]:
    """Join neighbours of one role; empty ones vanish, and their neighbours join."""
    out: list[tuple[Role, list[Block]]] = []
    for role, content in messages:
        if not content:
            continue
        if out and out[-1][0] is role:
            out[-1][1].extend(content)
        else:
            out.append((role, list(content)))
    return out


def request_messages(order: CallModel) -> tuple[Message, ...]:
    """
    Return the messages of *order* as they go out.

    Roles alternate, results come first, thinking never last, and the system
    speaks only where it may.
    """
    parts = ((m.role, project(m, order.model, order.thinking)) for m in order.messages)
    merged = _sound_server_calls(merge(parts), order.resend)
    last = len(merged) - 1
    for place, (role, content) in enumerate(merged):
        if role is Role.ASSISTANT and not (order.resend and place == last):
            merged[place] = (role, _without_trailing_thinking(content))
    told = merge(merged)
    if any(role is Role.SYSTEM for role, _ in told):
        told = merge(told[place] for place in order_of(told, open_end=False))
    return tuple(
        Message(role, tuple(_results_first(content) if role is Role.USER else content))
        for role, content in told
    )


def _sound_server_calls(
    merged: list[tuple[Role, list[Block]]], resend: bool
) -> list[tuple[Role, list[Block]]]:
    """
    Drop of server-side calls and results what has no partner, or one already.

    A call that nothing has answered is lost once a user has spoken since.  It
    is pending in a paused answer that is sent back, and while the client calls
    of the same answer are answered.
    """
    blocks = [block for _, content in merged for block in content]
    if not any(isinstance(block, Opaque) and (block.call_id or block.answers) for block in blocks):
        return merged
    odd, lost = _without_partner(blocks)
    if not odd and not lost:
        return merged
    end = len(merged) - 1
    if not resend and all(isinstance(block, ToolResult) for block in merged[end][1]):
        end -= 1
    out, number = [], 0
    for place, (role, content) in enumerate(merged):
        gone = odd if place >= end else odd | lost
        out.append((role, [block for n, block in enumerate(content, number) if n not in gone]))
        number += len(content)
    return merge(out)


def _without_partner(blocks: Iterable[Block]) -> tuple[set[int], set[int]]:
    """Return the places of server-side blocks that cannot stay, and of calls that nothing has answered."""
    odd: set[int] = set()
    asked: dict[str, int] = {}
    done: set[str] = set()
    for place, block in enumerate(blocks):
        if not isinstance(block, Opaque):
            continue
        if block.answers:
            if block.answers in asked and block.answers not in done:
                done.add(block.answers)
            else:
                odd.add(place)
        elif block.call_id in asked:
            odd.add(place)
        elif block.call_id:
            asked[block.call_id] = place
    return odd, {place for name, place in asked.items() if name not in done}


def _without_trailing_thinking(content: list[Block]) -> list[Block]:
    end = len(content)
    while end and isinstance(content[end - 1], Thinking | RedactedThinking):
        end -= 1
    return content[:end]


def _results_first(content: list[Block]) -> list[Block]:
    results: list[Block] = [block for block in content if isinstance(block, ToolResult)]
    if not results or all(block is got for block, got in zip(results, content, strict=False)):
        return content
    return [*results, *(block for block in content if not isinstance(block, ToolResult))]
