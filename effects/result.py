"""What a run comes to, and what is noted on the way for it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from stepfold.engine.effects import CallShown, Continued, Effect, Mark, MarkCommand, Show
from stepfold.engine.events import CallStatus, Usage
from stepfold.engine.messages import Message, Origin, Role, texts
from stepfold.engine.state import Continue, State, Transition
from stepfold.engine.terminals import End, Terminal


class CommandMark(enum.StrEnum):
    """What became of queued words; ``COMPLETED`` is told when the run has returned a terminal."""

    STARTED = "started"
    REFUSED = "refused"
    COMPLETED = "completed"


class RunFailed(Exception):
    """``Result.unwrap`` was asked for the output of a run that is not ok; ``result`` has the rest."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.end.why)
        self.result = result


@attrs.frozen(repr=False)
class Result:
    """
    How a run ended.  Its repr is short: ``asyncio.run`` makes one of what it returns, each time.

    Args:
        end: The terminal with its payload.
        state: The last state; a next run may begin on it.
        transitions: Why each iteration but the last went round again, in order.
        tool_calls: How each call ended, by the id that the model gave it.
    """

    end: End
    state: State
    transitions: tuple[Transition, ...] = ()
    tool_calls: Mapping[str, CallStatus] = attrs.field(factory=dict)

    def __repr__(self) -> str:
        calls, continues = len(self.tool_calls), len(self.transitions)
        return f"<Result {self.terminal}: {self.end.why}; {continues} transitions, {calls} calls>"

    @property
    def terminal(self) -> Terminal:
        """One of the ten ends."""
        return self.end.reason

    @property
    def ok(self) -> bool:
        """True for a whole answer only."""
        return self.end.ok

    @property
    def output(self) -> str:
        """The text of the last answer of this run, as far as it came; "" if there is none."""
        messages = self.state.data.messages
        for place in range(len(messages) - 1, -1, -1):
            message = messages[place]
            if message.role is Role.ASSISTANT:
                return texts(message.content)
            if message.origin is Origin.PROMPT:
                break
        return ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The view at the end."""
        return tuple(self.state.data.messages)

    @property
    def usage(self) -> Usage:
        """Tokens that the API reported for this run."""
        return self.state.data.book.usage

    @property
    def queued(self) -> tuple[str, ...]:
        """Words that were queued and never joined; they stay queued for the next run."""
        return tuple(texts(command.content) for command in self.state.data.side.queue)

    def unwrap(self) -> str:
        """Return the output; raises ``RunFailed`` where the run is not ok."""
        if not self.ok:
            raise RunFailed(self)
        return self.output


@attrs.define
class Tally:
    """What a run's orders say of it; kept as they are carried out, or read again from a log."""

    transitions: list[Transition] = attrs.field(factory=list)
    tool_calls: dict[str, CallStatus] = attrs.field(factory=dict)
    started: list[str] = attrs.field(factory=list)

    def note_all(self, effects: Iterable[Effect]) -> None:
        """Note what *effects* tell."""
        for effect in effects:
            if type(effect) is Show:
                self.note_item(effect.item)
            elif type(effect) is MarkCommand and effect.mark is Mark.STARTED:
                self.started.append(effect.command_id)

    def note_item(self, item: object) -> None:
        """Note what an item for the consumer tells."""
        note = NOTES.get(type(item))
        if note is not None:
            note(self, item)

    def note_continued(self, item: Continued) -> None:
        """A transition was taken."""
        self.transitions.append(Transition(Continue(item.reason), item.count))

    def note_call(self, item: CallShown) -> None:
        """A call ended."""
        self.tool_calls[item.original_id or item.use_id] = item.status

    def result(self, end: End, state: State) -> Result:
        """Return the result of a run that came to *end*."""
        return Result(end, state, tuple(self.transitions), dict(self.tool_calls))


NOTES: Final[Mapping[type, Callable[[Tally, Any], None]]] = MappingProxyType(
    {Continued: Tally.note_continued, CallShown: Tally.note_call}
)
