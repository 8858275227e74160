"""
Broken histories from outside, repaired once (specification, section 7).

The API merges neighbours of one role before it pairs calls with results, so
the repair works on such groups.  Applying it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import groupby
from typing import TypeVar

import attrs

from stepfold.engine.context.places import belongs, order_of, result_part
from stepfold.engine.messages import (
    Block,
    Media,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

MISSING = "[No result: this call was never answered.]"
WORDLESS = "[This call failed without a word.]"
SURROGATES = dict.fromkeys(range(55296, 57344), "�")
B = TypeVar("B", bound=Block)


@attrs.frozen
class Repaired:
    """A valid history and what had to be done, one line a kind of repair."""

    messages: tuple[Message, ...]
    report: tuple[str, ...] = ()


def repair(messages: Sequence[Message]) -> Repaired:
    """Return *messages* in a form that the API accepts, with a report of every change."""
    report: list[str] = []
    at_home = [_evolved(message, _at_home(message, report)) for message in messages]
    cleaned = [_evolved(message, _without_empty_text(message.content, report)) for message in at_home]
    kept = [message for message in cleaned if message.content or message.origin is Origin.BOUNDARY]
    _count(report, len(cleaned) - len(kept), "empty messages dropped")
    paired = _pair(kept, report)
    sound = _server_pairs(paired, report)
    full = [message for message in sound if message.content or message.origin is Origin.BOUNDARY]
    _count(report, len(sound) - len(full), "messages left empty dropped")
    plain = [_evolved(message, _encodable(message.content)) for message in full]
    _count(report, sum(a is not b for a, b in zip(full, plain, strict=True)), "lone surrogates replaced")
    order = _systems_placed(plain, report)
    return Repaired(tuple(order), tuple(report))


def _evolved(message: Message, content: tuple[Block, ...]) -> Message:
    return message if content == message.content else attrs.evolve(message, content=content)


def _count(report: list[str], number: int, what: str) -> None:
    if number:
        report.append(f"{number} {what}")


def _at_home(message: Message, report: list[str]) -> tuple[Block, ...]:
    """Return the blocks that a message of this role may hold; results in an answer are told apart."""
    if message.origin is Origin.BOUNDARY:  # a mark, never on the wire: what it holds would answer nobody
        _count(report, len(message.content), "blocks in a boundary dropped")
        return ()
    kept = []
    for block in message.content:
        if belongs(block, message.role) or isinstance(block, ToolResult):
            kept.append(block)
        else:
            name = block.type if isinstance(block, Media | Opaque) else type(block).__name__
            _count(report, 1, f"{name} in a message of the {message.role} dropped")
    return tuple(kept)


def _systems_placed(messages: list[Message], report: list[str]) -> list[Message]:
    """Put each message of the system where one may stand."""
    order = order_of([(message.role, message.content) for message in messages], open_end=True)
    if order != list(range(len(messages))):
        _count(report, 1, "move of system messages behind what the user says")
    return [messages[place] for place in order]


def _without_empty_text(content: tuple[Block, ...], report: list[str]) -> tuple[Block, ...]:
    kept = [block for block in content if not _blank(block)]
    _count(report, len(content) - len(kept), "empty text blocks dropped")
    sound = tuple(_sound_parts(block) for block in kept)
    _count(report, sum(a is not b for a, b in zip(kept, sound, strict=True)), "results with parts put right")
    return sound


def _blank(block: Block) -> bool:
    return isinstance(block, Text) and not block.text.strip()


def _sound_parts(block: Block) -> Block:
    """A result may be empty, but none of its texts may; one that is an error needs words."""
    if not isinstance(block, ToolResult):
        return block
    content = tuple(part for part in block.content if result_part(part) and not _blank(part))
    if block.is_error and not content:
        content = (Text(WORDLESS),)
    return block if content == block.content else attrs.evolve(block, content=content)


def _pair(messages: list[Message], report: list[str]) -> list[Message]:
    """Give every call exactly one result, first in the next user message, and drop the rest."""
    out: list[Message] = []
    used: set[str] = set()
    calls: tuple[ToolUse, ...] = ()
    names: dict[str, list[str]] = {}
    for assistant, members in groupby(messages, lambda message: message.role is Role.ASSISTANT):
        group = list(members)
        if assistant:
            _answer_missing(out, calls, report)
            group, calls, names = _name_calls(group, used, report)
            out += group
        else:
            out += _order_results(group, calls, names, report)
            calls = ()
    _answer_missing(out, calls, report)
    return out


def _answer_missing(out: list[Message], calls: tuple[ToolUse, ...], report: list[str]) -> None:
    if calls:
        _count(report, len(calls), "missing results written")
        out.append(Message(Role.USER, tuple(_missing(call.id) for call in calls), Origin.RESULTS))


def _missing(use_id: str) -> ToolResult:
    return ToolResult(use_id, (Text(MISSING),), is_error=True)


def _name_calls(
    group: list[Message], used: set[str], report: list[str]
) -> tuple[list[Message], tuple[ToolUse, ...], dict[str, list[str]]]:
    """
    Give each call of one answer an id of its own; the same call twice is one call.

    Returns messages, calls, and by the id that stood there the ids that its
    calls have now, in their order.
    """
    calls: list[ToolUse] = []
    names: dict[str, list[str]] = {}
    seen: set[tuple[str, ...]] = set()
    out = []
    for message in group:
        content: list[Block] = []
        for block in message.content:
            if isinstance(block, ToolUse):
                same = (block.id, block.name, block.input, block.raw_input)
                if block.id and same in seen:
                    _count(report, 1, f"repetitions of the call {block.id!r} dropped")
                    continue
                seen.add(same)
                fresh = fresh_id(block.id, used, len(used) + 1)
                if fresh != block.id:
                    _count(report, 1, f"second use of the call id {block.id!r} renamed")
                names.setdefault(block.id, []).append(fresh)
                used.add(fresh)
                block = attrs.evolve(block, id=fresh)
                calls.append(block)
            elif isinstance(block, ToolResult):
                _count(report, 1, "results in an answer dropped")
                continue
            content.append(block)
        out.append(_evolved(message, tuple(content)))
    return out, tuple(calls), names


def fresh_id(name: str, used: Container[str], number: int) -> str:
    """Return *name* if it is a first use, else the first free ``call_N`` with N from *number* on."""
    while not name or name in used:
        name, number = f"call_{number}", number + 1
    return name


def _order_results(
    group: list[Message], calls: tuple[ToolUse, ...], names: dict[str, list[str]], report: list[str]
) -> list[Message]:
    """
    Return the user messages behind *calls* with one result a call, first and in order.

    Results of one id go to the calls that had it in the order of both.
    """
    found: dict[str, ToolResult] = {}
    for message in group:
        for block in message.content:
            if isinstance(block, ToolResult):
                had = names.get(block.use_id, [])
                name = next((name for name in had if name not in found), "")
                if name:
                    found[name] = attrs.evolve(block, use_id=name)
                elif had:
                    _count(report, 1, "second results for one call dropped")
                else:
                    _count(report, 1, "results without their call dropped")
    missing = [call.id for call in calls if call.id not in found]
    _count(report, len(missing), "missing results written")
    results = tuple(found.get(call.id, _missing(call.id)) for call in calls)
    rest = [
        _evolved(message, tuple(block for block in message.content if not isinstance(block, ToolResult)))
        for message in group
    ]
    if not results:
        return rest
    first = group[0].content
    whole = first[: len(results)] == results and first[len(results) :] == rest[0].content
    if whole and group[0].role is Role.USER and all(a is b for a, b in zip(group[1:], rest[1:], strict=True)):
        return group
    return [Message(Role.USER, results, Origin.RESULTS), *(m for m in rest if m.content)]


def _server_pairs(messages: list[Message], report: list[str]) -> list[Message]:
    """Keep of the server-side calls those with a result behind them, each with its first result."""
    answered = _answered(messages)
    asked: set[str] = set()
    done: set[str] = set()
    out = []
    for message in messages:
        content = []
        for block in message.content:
            problem = _server_problem(block, asked, done, answered) if isinstance(block, Opaque) else ""
            if problem:
                _count(report, 1, problem)
            else:
                content.append(block)
        out.append(_evolved(message, tuple(content)))
    return out


def _answered(messages: Iterable[Message]) -> set[str]:
    """Return the server-side calls that a result follows."""
    asked: set[str] = set()
    answered: set[str] = set()
    for block in _blocks(messages):
        if isinstance(block, Opaque):
            answered |= {block.answers} & asked
            asked |= {block.call_id} - {""}
    return answered


def _server_problem(block: Opaque, asked: set[str], done: set[str], answered: set[str]) -> str:
    """Return why *block* cannot stay, or "" and remember it."""
    if block.answers:
        if block.answers not in asked:
            return "server results without their call dropped"
        if block.answers in done:
            return "second results for one server call dropped"
        done.add(block.answers)
    elif block.call_id:
        if block.call_id not in answered:
            return "server calls without a result dropped"
        if block.call_id in asked:
            return "second uses of a server call id dropped"
        asked.add(block.call_id)
    return ""


def _blocks(messages: Iterable[Message]) -> Iterable[Block]:
    return (block for message in messages for block in message.content)


def _encodable(content: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(encodable(block) for block in content)


def encodable(block: B) -> B:
    """Return *block* with lone surrogates replaced, which no JSON body may hold."""
    match block:
        case Text(text) if _lone(text):
            return attrs.evolve(block, text=text.translate(SURROGATES))
        case ToolUse(_, _, input) if _lone(input):
            return attrs.evolve(block, input=input.translate(SURROGATES))
        case ToolResult(_, content) if any(isinstance(part, Text) and _lone(part.text) for part in content):
            return attrs.evolve(block, content=tuple(encodable(part) for part in content))
        case Thinking() | RedactedThinking() | _:
            return block


def _lone(text: str) -> bool:
    """Whether *text* holds a surrogate; pure ASCII answers at once."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
