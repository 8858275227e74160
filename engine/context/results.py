"""Layer 0: a result over its limit becomes a preview and a reference (specification, section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from stepfold.engine.config import Config
from stepfold.engine.context.tokens import chars_of, freed_tokens
from stepfold.engine.events import ToolSpec
from stepfold.engine.messages import Block, Message, ResultBlock, Text, ToolResult

DEFAULT_RESULT_CHARS = 50_000
MARK = "[The full result is kept in the log under "


def smallest_limit(tools: tuple[ToolSpec, ...], config: Config) -> int:
    """Return the characters under which no result of a batch can be over any limit."""
    finite = [spec.max_result_chars for spec in tools if spec.max_result_chars is not None]
    return min((*finite, DEFAULT_RESULT_CHARS, config.max_batch_result_chars))


def hold_to_budget(
    message: Message, names: Mapping[str, str], tools: Mapping[str, ToolSpec], config: Config
) -> tuple[Message, int]:
    """
    Return *message* with its oversized results as previews, and the tokens freed.

    Args:
        message: A user message with the results of one batch.
        names: Tool name by call id.
        tools: Tool by name; an unknown one has the default limit.
        config: Gives the limit of a batch (characters) and the preview (bytes).
    """
    before = message.content
    if not any(isinstance(block, ToolResult) for block in before):
        return message, 0
    content = list(before)
    for place, block in enumerate(before):
        if isinstance(block, ToolResult) and chars_of(block) > _limit(names.get(block.use_id, ""), tools):
            content[place] = _preview(block, config)
    while _finite(content, names, tools) > config.max_batch_result_chars:
        largest = max(
            (
                p
                for p, b in enumerate(content)
                if isinstance(b, ToolResult)
                and not _is_preview(b)
                and tools.get(names.get(b.use_id, ""), ToolSpec("")).max_result_chars is not None
            ),
            key=lambda p: chars_of(content[p]),
            default=None,
        )
        if largest is None:
            break
        block = content[largest]
        assert isinstance(block, ToolResult)
        content[largest] = _preview(block, config)
    if content == list(before):
        return message, 0
    freed = freed_tokens(before) - freed_tokens(content)
    return attrs.evolve(message, content=tuple(content)), max(0, freed)


def _limit(name: str, tools: Mapping[str, ToolSpec]) -> int:
    spec = tools.get(name)
    if spec is None:
        return DEFAULT_RESULT_CHARS
    return 2**62 if spec.max_result_chars is None else spec.max_result_chars


def _finite(content: Sequence[Block], names: Mapping[str, str], tools: Mapping[str, ToolSpec]) -> int:
    """Return the characters of the results whose tools have a finite limit."""
    return sum(
        chars_of(block)
        for block in content
        if isinstance(block, ToolResult)
        and tools.get(names.get(block.use_id, ""), ToolSpec("")).max_result_chars is not None
    )


def _is_preview(block: ToolResult) -> bool:
    return any(isinstance(part, Text) and MARK in part.text for part in block.content)


def _preview(block: ToolResult, config: Config) -> ToolResult:
    text = "\n".join(part.text for part in block.content if isinstance(part, Text))
    head = text.encode("utf-8", "replace")[: config.result_preview_bytes].decode("utf-8", "ignore")
    words = f"{head}\n{MARK}{block.use_id}: {chars_of(block)} characters.]"
    content: tuple[ResultBlock, ...] = (Text(words),)
    return attrs.evolve(block, content=content)
