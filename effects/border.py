"""What ports say, checked where it comes in: a wrong answer is named here, and goes no further."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import attrs

from stepfold.engine.context.repair import encodable
from stepfold.engine.events import Stop, StreamClosed, StreamFailed, Usage
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Block, Message, Origin, Role, Text, ToolResult

T = TypeVar("T")
COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


class WrongAnswer(TypeError):
    """A port answered with something that is no answer to its order."""


def short(value: object) -> str:
    """Return the repr of *value*, cut short and on one line; never raises, whatever its repr does."""
    cut = reprlib.Repr()
    cut.maxother = cut.maxstring = 100
    return " ".join(cut.repr(value).split())


def want(answer: object, *kinds: type) -> None:
    """Raise ``WrongAnswer`` where *answer* is an object of none of *kinds*."""
    if type(answer) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise WrongAnswer(f"the port answered with {short(answer)}, not with {wanted}")


def want_field(answer: object, name: str, *kinds: type) -> None:
    """Raise ``WrongAnswer`` where the field *name* of *answer* is an object of none of *kinds*."""
    value = getattr(answer, name)
    if type(value) not in kinds:
        wanted = " or ".join("nothing" if kind is type(None) else kind.__name__ for kind in kinds)
        kind = type(answer).__name__
        raise WrongAnswer(f"the port answered with {kind}({name}={short(value)}); wanted {wanted} there")


async def awaited(answer: Awaitable[T], what: str) -> T:
    """Return what *answer* comes to; *what* names the method that gave it, which must be async."""
    given: object = answer
    if not inspect.isawaitable(given):
        it = f"{what} returned {short(given)}"
        raise WrongAnswer(f"{it}, which cannot be awaited: make it an async function")
    return await answer


def clean(text: str) -> str:
    """Return *text* with lone surrogates replaced: no log and no request can hold them."""
    if text.isascii():
        return text
    block = encodable(Text(text))
    return block.text


def said(answer: object, name: str) -> str:
    """Return the text in the field *name* of *answer*, clean."""
    text = getattr(answer, name)
    if type(text) is not str:
        want_field(answer, name, str)
    return clean(text)


def whole_usage(usage: Usage | None) -> Usage | None:
    """Return *usage* with whole numbers >= 0, or None (specification, section 2)."""
    if usage is None:
        return None
    if type(usage) is not Usage:
        raise WrongAnswer(f"the port reported {short(usage)}; wanted a Usage or nothing")
    odd = {name: value for name in COUNTS if type(value := getattr(usage, name)) is not int or value < 0}
    return attrs.evolve(usage, **{name: _whole(usage, name) for name in odd}) if odd else usage


def _whole(usage: Usage, name: str) -> int:
    value: Any = getattr(usage, name)
    if isinstance(value, int | float) and abs(value) < 2**62:
        return max(0, int(value))
    raise WrongAnswer(f"the port reported {name}={short(value)}; wanted a whole number >= 0")


def block_problem(block: object) -> str:
    """Return what is wrong with *block*, "" where it is a block whose texts are texts."""
    if not isinstance(block, Block):
        return f"{short(block)} is no block of stepfold.engine.messages"
    if type(block) is ToolResult:
        return _result_problem(block)
    for name in block.__match_args__:
        if type(getattr(block, name)) is not str:
            return f"{short(block)} has a {name} that is no text"
    return ""


def _result_problem(result: ToolResult) -> str:
    if type(result.content) is not tuple:
        return f"{short(result)} has a content that is no tuple of blocks"
    if type(result.use_id) is not str or type(result.extra) is not str or type(result.is_error) is not bool:
        return f"{short(result)} has a use_id or extra that is no text, or an is_error that is no bool"
    return next(filter(None, map(block_problem, result.content)), "")


def message_problem(message: object) -> str:
    """Return what is wrong with *message*, "" where it is a message that is made of blocks."""
    if not isinstance(message, Message):
        return f"{short(message)} is no Message of stepfold.engine.messages"
    for name, kind in (("role", Role), ("content", tuple), ("origin", Origin), ("model", str)):
        value = getattr(message, name)
        if type(value) is not kind:
            of = " of blocks" if kind is tuple else ""
            return f"its {name} is {short(value)}; wanted a {kind.__name__}{of}"
    return next(filter(None, map(block_problem, message.content)), "")


def sound_block(block: Block) -> Block:
    """Return *block* as it can be kept; raises ``WrongAnswer`` where a text of it is none."""
    kind = type(block)
    for name in kind.__match_args__:
        if type(getattr(block, name)) is not str:
            if problem := block_problem(block):
                raise WrongAnswer(f"the model port yielded {problem}")
            break
    return encodable(block)


def sound_end(end: StreamClosed | StreamFailed) -> StreamClosed | StreamFailed:
    """Return *end*, its usage whole; raises ``WrongAnswer`` where it does not say how the stream ended."""
    if isinstance(end, StreamClosed):
        if type(end.stop) is not Stop or type(end.cleared_tokens) is not int:
            want_field(end, "stop", Stop)
            want_field(end, "cleared_tokens", int)
        if type(end.reason) is not str or type(end.details) is not str:
            want_field(end, "reason", str)
            want_field(end, "details", str)
    else:
        want_field(end, "failure", Failure)
        want_field(end.failure, "kind", FailureKind)
        want_field(end.failure, "message", str)
    want_field(end, "open_text", str)
    usage = whole_usage(end.usage)
    return end if usage is end.usage else attrs.evolve(end, usage=usage)
