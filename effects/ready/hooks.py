"""Stop hooks from plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from stepfold.effects.flow.threads import called
from stepfold.engine.config import HookSpec
from stepfold.engine.effects import RunHook
from stepfold.engine.events import HookAnswered, HookVerdict
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Role, texts


@attrs.frozen
class Blocks:
    """The answer will not do; the model gets *words* and goes on."""

    words: str


@attrs.frozen
class Prevents:
    """The run must not go on, neither way; *words* say why."""

    words: str = ""


@attrs.frozen
class Stopping:
    """
    What a stop hook sees.

    Args:
        hook: Its own name.
        active: A stop hook has sent the model back in this run already.
        messages: The view, the answer that would end the run last.
    """

    hook: str
    active: bool
    messages: History[Message]

    @property
    def answer(self) -> str:
        """The text of that answer."""
        last = self.messages[-1] if len(self.messages) else None
        return texts(last.content) if last is not None and last.role is Role.ASSISTANT else ""


def _function(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not callable(value):
        raise TypeError(f"StopHook: ask is {value!r}; wanted a function that gets a Stopping")


def _name(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or not value:
        raise TypeError(f"StopHook: name is {value!r}; wanted a text")


def _blocks(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not int or value < 1:
        raise ValueError(f"StopHook: max_blocks is {value!r}; wanted a whole number >= 1")


@attrs.frozen
class StopHook:
    """
    A stop hook.

    Args:
        ask: Plain (then run in a thread) or async; gets a ``Stopping``; returns
            None, True or an empty text to let the run end, a text or ``Blocks``
            to send the model back, ``Prevents`` to end it as prevented.
        name: Unique among the hooks of a run; the function's name by default.
        max_blocks: How often it may send the model back in one run; at least once.

    Raises ``TypeError`` or ``ValueError`` that names what cannot be.
    """

    ask: Callable[[Stopping], Any] = attrs.field(validator=_function)
    name: str = attrs.field(validator=_name)
    max_blocks: int = attrs.field(default=1, validator=_blocks)

    @name.default
    def _name(self) -> str:
        return getattr(self.ask, "__name__", type(self.ask).__name__)


@attrs.frozen
class FunctionHooks:
    """The ``Hooks`` port over stop hooks."""

    hooks: Mapping[str, StopHook]

    async def ask(self, order: RunHook) -> HookAnswered:
        """Ask one hook; what it raises is for the caller."""
        answer = await called(
            self.hooks[order.hook].ask, Stopping(order.hook, order.active, order.messages)
        )
        match answer:
            case None | True:
                return HookAnswered(order.id, HookVerdict.PASS)
            case str(words) if not words.strip():
                return HookAnswered(order.id, HookVerdict.PASS)
            case str(words) | Blocks(str(words)):
                return HookAnswered(order.id, HookVerdict.BLOCK, words)
            case Prevents(str(words)):
                return HookAnswered(order.id, HookVerdict.PREVENT, words)
        raise TypeError(
            f"stop hook {order.hook!r} returned {answer!r}; wanted None, True, a text, Blocks or Prevents"
        )

    def specs(self) -> tuple[HookSpec, ...]:
        """Return what Config says of these hooks."""
        return tuple(HookSpec(hook.name, hook.max_blocks) for hook in self.hooks.values())


def function_hooks(given: Iterable[StopHook | Callable[[Stopping], Any]]) -> FunctionHooks:
    """Return the port over functions and ``StopHook`` objects; two of one name are a ``ValueError``."""
    hooks: dict[str, StopHook] = {}
    for each in given:
        hook = each if isinstance(each, StopHook) else StopHook(each)
        if hook.name in hooks:
            raise ValueError(f"two stop hooks are named {hook.name!r}; StopHook(f, name=...) names one")
        hooks[hook.name] = hook
    return FunctionHooks(hooks)
