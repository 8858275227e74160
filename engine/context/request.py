"""
The list of messages that goes out, from the view (specification, section 7).

``project`` works on one message and depends on nothing else, so an adapter
may render each message once and reuse it.
"""

from __future__ import annotations

from collections.abc import Iterable

from stepfold.engine.context.repair import encodable
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

    Empty text leaves; thinking leaves where it is off or another model wrote it.
    """
    if message.origin is Origin.BOUNDARY:
        return ()
    keeps = thinking and message.model in ("", model)
    return tuple(encodable(block) for block in message.content if _goes_out(block, keeps))


def _goes_out(block: Block, keeps_thinking: bool) -> bool:
    match block:
        case Text(text):
            return bool(text.strip())
        case Thinking(text, signature):
            return keeps_thinking and bool(text or signature)
        case RedactedThinking():
            return keeps_thinking
        case _:
            return True


def merge(messages: Iterable[tuple[Role, tuple[Block, ...]]]) -> list[tuple[Role, list[Block]]]:
    """Join neighbours of one role; empty ones vanish, and their neighbours join."""
    out: list[tuple[Role, list[Block]]] = []
    for role, content in messages:
        if not content:
            continue
        if out and out[-1][0] is role and role is not Role.SYSTEM:
            out[-1][1].extend(content)
        else:
            out.append((role, list(content)))
    return out


def request_messages(order: CallModel) -> tuple[Message, ...]:
    """Return the messages of *order* as they go out: roles alternate, results first, thinking never last."""
    parts = ((m.role, project(m, order.model, order.thinking)) for m in order.messages)
    merged = _without_lost_calls(merge(parts), order.resend)
    last = len(merged) - 1
    shaped = []
    for place, (role, content) in enumerate(merged):
        if role is Role.ASSISTANT:
            if not (order.resend and place == last):
                content = _without_trailing_thinking(content)
        elif role is Role.USER:
            content = _results_first(content)
        shaped.append((role, tuple(content)))
    return tuple(Message(role, tuple(content)) for role, content in merge(shaped))


def _without_lost_calls(
    merged: list[tuple[Role, list[Block]]], resend: bool
) -> list[tuple[Role, list[Block]]]:
    """
    Drop server-side calls that can no longer be answered: a user has spoken since.

    One is pending in a paused answer that is sent back, and while the client
    calls of the same answer are answered.
    """
    blocks = [block for _, content in merged for block in content if isinstance(block, Opaque)]
    lost = {block.call_id for block in blocks if block.call_id} - {block.answers for block in blocks}
    if not lost:
        return merged
    end = len(merged) - 1
    if not resend and all(isinstance(block, ToolResult) for block in merged[end][1]):
        end -= 1
    kept = [
        (role, content if place >= end else [block for block in content if not _lost(block, lost)])
        for place, (role, content) in enumerate(merged)
    ]
    return merge((role, tuple(content)) for role, content in kept)


def _lost(block: Block, lost: set[str]) -> bool:
    return isinstance(block, Opaque) and block.call_id in lost


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
