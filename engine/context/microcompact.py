"""Layer 2: results of clearable tools are cleared by call id (specification, section 2)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from stepfold.engine.context.tokens import freed_tokens
from stepfold.engine.events import ToolSpec
from stepfold.engine.history import History
from stepfold.engine.messages import Block, Message, Text, ToolResult, ToolUse

CLEARED = Text("[The result of this call was cleared to save context.]")


def clearable_ids(messages: Iterable[Message], tools: tuple[ToolSpec, ...]) -> tuple[str, ...]:
    """Return the ids of the answered calls of clearable tools, oldest first."""
    names = {spec.name for spec in tools if spec.clearable}
    uses: dict[str, str] = {}
    found = []
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolUse):
                uses[block.id] = block.name
            elif isinstance(block, ToolResult) and uses.get(block.use_id) in names:
                found.append(block.use_id)
    return tuple(found)


def clear_results(view: History[Message], ids: frozenset[str]) -> tuple[History[Message], int]:
    """Return the view with the results of *ids* cleared, and the tokens freed; twice is as good as once."""
    freed, messages = 0, []
    for message in view:
        if any(_due(block, ids) for block in message.content):
            content = tuple(_cleared(block) if _due(block, ids) else block for block in message.content)
            freed += max(0, freed_tokens(message.content) - freed_tokens(content))
            message = attrs.evolve(message, content=content)
        messages.append(message)
    return History[Message]().extend(messages), freed


def _cleared(block: Block) -> Block:
    return attrs.evolve(block, content=(CLEARED,)) if isinstance(block, ToolResult) else block


def _due(block: Block, ids: frozenset[str]) -> bool:
    return isinstance(block, ToolResult) and block.use_id in ids and block.content != (CLEARED,)
