"""
What a tool is to the loop: its words, its traits, how an input is read, how it runs.

Everything that offers tools (functions, the ready toolset, a host's own code)
makes ``Tool`` objects; ``toolbox.py`` turns them into the ``Tools`` port.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypedDict

import attrs

from stepfold.adapters.tools.wanted import (
    COUNT_OR_NOTHING,
    FLAG,
    FLAG_OR_FUNCTION,
    FUNCTION,
    FUNCTION_OR_NOTHING,
    MESSAGES,
    STOP_OR_NOTHING,
    TEXT,
)
from stepfold.engine.events import HookStop, Interrupt
from stepfold.engine.messages import Message

Arguments: TypeAlias = Mapping[str, object]
SafePredicate: TypeAlias = Callable[[Arguments], bool]
Meaning: TypeAlias = Callable[[Arguments], str | None]
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


class InvalidInput(ValueError):
    """An input does not fit the tool; the text is for the model."""


class ToolFailed(Exception):
    """
    Raised by a tool that wants exactly these words, or blocks, as its error result.

    Any other exception becomes its class and text.
    """

    def __init__(self, content: object) -> None:
        super().__init__(content if isinstance(content, str) else "the tool failed")
        self.content = content


def _interrupt(value: object) -> Interrupt:
    try:
        return Interrupt(str(value))
    except ValueError:
        allowed = " or ".join(Interrupt)
        raise ValueError(f"Traits: interrupt is {value!r}; wanted {allowed}") from None


@attrs.frozen(kw_only=True)
class Traits:
    """
    How the loop may treat a tool; the first three are named like MCP's hints.

    Args:
        read_only: It changes nothing outside.
        destructive: It may destroy what cannot be brought back; shown where permission is asked.
        idempotent: Running it twice with one input does no more than running it
            once: after a crash it is run again instead of ending as unknown.
        safe: Whether a call may run beside others: a constant, or a predicate on
            the arguments.  A predicate that raises, or returns anything but True, says no.
        interrupt: What a submit abort does to a running call.
        shell: A failure cancels the other calls of the same answer.
        max_result_chars: A longer result becomes a preview; None is infinite.
        clearable: Old results may be cleared from the context.

    Raises ``TypeError`` or ``ValueError`` that names what cannot be.
    """

    read_only: bool = attrs.field(default=False, validator=FLAG)
    destructive: bool = attrs.field(default=False, validator=FLAG)
    idempotent: bool = attrs.field(default=False, validator=FLAG)
    safe: bool | SafePredicate = attrs.field(default=False, validator=FLAG_OR_FUNCTION)
    interrupt: Interrupt = attrs.field(default=Interrupt.WAIT, converter=_interrupt)
    shell: bool = attrs.field(default=False, validator=FLAG)
    max_result_chars: int | None = attrs.field(default=50_000, validator=COUNT_OR_NOTHING)
    clearable: bool = attrs.field(default=False, validator=FLAG)

    def allows_company(self, arguments: Arguments) -> bool:
        """Return whether a call with *arguments* may run beside others."""
        if not callable(self.safe):
            return self.safe
        try:
            return self.safe(arguments) is True
        except Exception:  # a predicate that fails has not said yes (specification, section 6)
            return False


class Hints(TypedDict, total=False):
    """The traits by name, for ``@tool(read_only=True)``."""

    read_only: bool
    destructive: bool
    idempotent: bool
    safe: bool | SafePredicate
    interrupt: Literal["wait", "cancel"]
    shell: bool
    max_result_chars: int | None
    clearable: bool


@attrs.frozen
class CallContext:
    """
    What a running tool may know of its call.

    ``effect_id`` stays the same when a call is run again after a crash of the
    process: with the run's id it makes an idempotency key.
    """

    use_id: str
    name: str
    effect_id: int
    progress: Callable[[str], None]


def _messages(given: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(given)


@attrs.frozen(kw_only=True)
class Reply:
    """
    A result with more than words in it; a tool may return this in place of plain content.

    Args:
        content: Anything a tool may return: text, blocks, or a value that is sent as JSON.
        is_error: The call counts as failed.
        messages: Further user messages that join after the results.
        stop: Ends the run after this batch.
    """

    content: object = None
    is_error: bool = attrs.field(default=False, validator=FLAG)
    messages: tuple[Message, ...] = attrs.field(default=(), converter=_messages, validator=MESSAGES)
    stop: HookStop | None = attrs.field(default=None, validator=STOP_OR_NOTHING)


def _name(instance: object, attribute: attrs.Attribute[Any], value: str) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(f"{value!r} is no tool name: the API takes letters, digits, _ and -, at most 128")


def _as_given(arguments: Arguments) -> Arguments:
    return arguments


@attrs.frozen(kw_only=True)
class Tool:
    """
    One tool.

    Args:
        name: As the model calls it.
        description: For the model.
        input_schema: JSON text of the input's schema.
        call: Runs it; gets the arguments that ``read`` returned.
        traits: How the loop may treat it.
        read: Checks an input against the schema and returns the arguments;
            raises ``InvalidInput`` with words for the model.
        meaning: Says what is wrong with arguments that fit the schema, or None.
        fill: Makes the filled-out copy of the arguments, as JSON values, for
            hooks and consumer.
        close: Gives back what the tool holds, when the run is over.
    """

    name: str = attrs.field(validator=_name)
    description: str = attrs.field(default="", validator=TEXT)
    input_schema: str = attrs.field(default='{"type":"object"}', validator=TEXT)
    call: Callable[[Arguments, CallContext], Awaitable[object]] = attrs.field(validator=FUNCTION)
    traits: Traits = Traits()
    read: Callable[[Arguments], Arguments] = _as_given
    meaning: Meaning | None = attrs.field(default=None, validator=FUNCTION_OR_NOTHING)
    fill: Callable[[Arguments], Arguments] = _as_given
    close: Callable[[], Awaitable[None]] | None = None
