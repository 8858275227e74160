"""
Would the API take this request?  The cheap half of the question, for every request of every run.

It reads the messages as they go out and shares no code with what made them.
``stepfold.adapters.scenarios.judging.protocol`` reads the JSON and asks more;
findings and some of the runs go through that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepfold.engine.context.request import request_messages
from stepfold.engine.effects import CallModel
from stepfold.engine.messages import Message, Role, Text, Thinking, ToolResult, ToolUse

SIGNED: Final = "signed by "  # what the fuzzed world writes before the name of the model


def request_problem(order: CallModel, failed: Mapping[str, bool]) -> str:
    """
    Return why the API would refuse *order*, or "".

    Args:
        order: The request.
        failed: For each call that its tool answered in this run, whether it failed.
    """
    messages = request_messages(order)
    if not messages:
        return "the request has no messages"
    before: Role | None = None
    asked: list[str] = []
    last = len(messages) - 1
    for place, message in enumerate(messages):
        if message.role is before:
            return f"message {place + 1} has the role of the one before it"
        before = message.role
        if message.role is Role.ASSISTANT:
            problem = _answer(message, order, order.resend and place == last)
            asked = [block.id for block in message.content if type(block) is ToolUse]
        else:
            problem = _user(message, asked, failed)
            asked = []
        if problem:
            return f"message {place + 1}: {problem}"
    if messages[0].role is not Role.USER:
        return "it begins with an answer"
    if messages[-1].role is not Role.USER and not order.resend:
        return "it ends with an answer"
    return f"nothing answers {asked[0]!r}" if asked else ""


def pairing_problem(order: CallModel, failed: Mapping[str, bool]) -> str:
    """Return which call of the view has no result, or which result no call; the cheapest check there is."""
    asked: list[str] = []
    place = 0
    for message in order.messages:
        if message.role is Role.ASSISTANT:
            if place < len(asked):
                return f"nothing answers {asked[place]!r}"
            asked = [block.id for block in message.content if type(block) is ToolUse]
            place = 0
            continue
        for block in message.content:
            if type(block) is ToolResult:
                use_id = block.use_id
                if place >= len(asked) or asked[place] != use_id:
                    return f"a result for {use_id!r}, wanted are {asked[place:]}"
                if failed.get(use_id, block.is_error) != block.is_error:
                    return f"the result of {use_id!r} is not the one that its tool gave"
                place += 1
    return f"nothing answers {asked[place]!r}" if place < len(asked) else ""


def _answer(message: Message, order: CallModel, paused: bool) -> str:
    some = False
    kind: type | None = None
    ids: set[str] = set()
    for block in message.content:
        kind = type(block)
        if kind is Text:
            some = some or bool(block.text.strip())  # type: ignore[union-attr]
            continue
        some = True
        if kind is Thinking:
            signature: str = block.signature  # type: ignore[union-attr]
            if signature.startswith(SIGNED) and signature != SIGNED + order.model:
                return f"thinking {signature} goes to {order.model}"
        elif kind is ToolResult:
            return "a result stands in an answer"
        elif kind is ToolUse:
            name: str = block.id  # type: ignore[union-attr]
            if name in ids or not name:
                return f"the id {name!r} is empty or stands twice"
            ids.add(name)
    if not some:
        return "it is empty"
    if kind is Thinking and not paused:
        return "it ends with thinking"
    return ""


def _user(message: Message, asked: list[str], failed: Mapping[str, bool]) -> str:
    some, place = False, 0
    for block in message.content:
        kind = type(block)
        if kind is ToolResult:
            use_id: str = block.use_id  # type: ignore[union-attr]
            if place >= len(asked) or asked[place] != use_id:
                return f"a result for {use_id!r}, wanted are {asked[place:]}"
            if failed.get(use_id, block.is_error) != block.is_error:  # type: ignore[union-attr]
                return f"the result of {use_id!r} is not the one that its tool gave"
            place += 1
            some = True
            continue
        if place < len(asked):
            return f"{kind.__name__} stands before the result of {asked[place]!r}"
        some = some or kind is not Text or bool(block.text.strip())  # type: ignore[union-attr]
    if place < len(asked):
        return f"nothing answers {asked[place]!r}"
    return "" if some else "it is empty"
