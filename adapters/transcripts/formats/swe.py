"""SWE-agent and mini-SWE-agent: their trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepfold.adapters.transcripts.content import answered, asked, blocks_of, call, result
from stepfold.adapters.transcripts.fields import nested, rows, text
from stepfold.adapters.transcripts.formats.commands import SHIPPED, Signature, called, named_in
from stepfold.adapters.transcripts.formats.messages import said
from stepfold.adapters.transcripts.items import Began, Ended, Item, Place, Said
from stepfold.adapters.transcripts.source import Counts
from stepfold.engine.messages import Block, Text


def recognises(first: Any, lines: bool) -> bool:
    """Whether it is a trajectory of SWE-agent, or of mini-SWE-agent with its information."""
    return (
        not lines
        and isinstance(first, dict)
        and "info" in first
        and bool({"trajectory", "messages"} & {*first})
    )


def read(records: Iterator[tuple[int, Any]], counts: Counts) -> Iterator[Item]:
    """
    Yield thoughts with their actions as answers with a call, observations as results.

    An action that stands in the text gets an id made up from its number.  It
    becomes a call of the command that it is, of those that the prompt names;
    any other one a call of the tool ``command``.
    """
    for _, whole in records:
        listed = rows(whole, "history") or rows(whole, "messages")
        if not listed:
            listed = [part for each in rows(whole, "trajectory") for part in _swe_step(each)]
        named = _named(listed)
        yield Began(Place(1), text(nested(whole, "info"), "model"), tuple(named))
        if any(rows(message, "tool_calls") for message in listed if isinstance(message, dict)):
            yield from said(listed, counts)
        else:
            yield from _texts(listed, named or SHIPPED, counts)
        if status := text(nested(whole, "info"), "exit_status"):
            yield Ended(Place(max(1, len(listed))), status)


def _named(messages: list[Any]) -> dict[str, Signature]:
    """Return the commands that the system prompts name."""
    prompts = (message for message in messages if text(message, "role") == "system")
    words = (
        block.text for each in prompts for block in blocks_of(each.get("content")) if isinstance(block, Text)
    )
    return {name: signature for prompt in words for name, signature in named_in(prompt).items()}


def _swe_step(each: Any) -> tuple[dict[str, str], ...]:
    """Return one step of a trajectory that keeps no history, as messages."""
    words = text(each, "thought") or text(each, "response")
    action = {"role": "assistant", "content": words, "action": text(each, "action")}
    return action, {"role": "user", "content": text(each, "observation")}


def _texts(messages: list[Any], named: Mapping[str, Signature], counts: Counts) -> Iterator[Said]:
    open_call = ""
    for number, message in enumerate(messages, 1):
        role, words = text(message, "role"), message.get("content") if isinstance(message, dict) else None
        match role:
            case "assistant":
                blocks: tuple[Block, ...] = blocks_of(words)
                if action := text(message, "action"):
                    open_call = f"action-{number}"
                    blocks = (*blocks, call(open_call, *called(action, named)))
                yield Said(Place(number), answered(blocks))
            case "user" if open_call:
                yield Said(Place(number), result(open_call, words))
                open_call = ""
            case "user":
                yield Said(Place(number), asked(blocks_of(words)))
            case "system":
                pass
            case _:
                counts.skip(f"role {role}")
