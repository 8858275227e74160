"""
What each option of a run may be.  Anything else is refused by name, before anything happens.

A refusal is one line: who was called, the keyword, what came, and what is allowed.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from stepfold.effects.border import block_problem, clean, message_problem, short
from stepfold.effects.ready.hooks import StopHook
from stepfold.engine import Config
from stepfold.engine.context.places import belongs
from stepfold.engine.context.repair import encodable
from stepfold.engine.events import ToolSpec
from stepfold.engine.messages import Block, Media, Message, Opaque, Role, Text
from stepfold.engine.state import Collapse

Words: TypeAlias = tuple[Block, ...]

NO_PORT: Final = "put @tool of stepfold.adapters.tools on a function, or wrap it with function_tools"


def shown(value: object) -> str:
    """Return *value* and its class in a few words."""
    return "None" if value is None else f"{short(value)} ({type(value).__name__})"


@attrs.frozen
class Want:
    """
    What an option may be.

    Args:
        allowed: Said to who gave something else.
        fits: Whether a value is such a thing.
        optional: None stands for "left out".
        hint: Said as well.
    """

    allowed: str
    fits: Callable[[Any], bool]
    optional: bool = True
    hint: str = ""

    def check(self, where: str, name: str, value: object) -> None:
        """Raise ``TypeError`` where *value*, given as *name* to *where*, does not fit."""
        if value is None and self.optional:
            return
        if isinstance(value, type):
            wanted = f"an object of it, or {self.allowed}"
            raise TypeError(f"{where}: {name} is the class {value.__name__} itself; wanted {wanted}")
        if not self.fits(value):
            more = f" ({self.hint})" if self.hint else ""
            raise TypeError(f"{where}: {name} is {shown(value)}; wanted {self.allowed}{more}")


def port(kind: str, *methods: str, optional: bool = True, hint: str = "") -> Want:
    """Return what a port must be: an object with *methods*."""
    return Want(f"a {kind} port: an object with {', '.join(methods)}", has(*methods), optional, hint)


def has(*methods: str) -> Callable[[object], bool]:
    """Return the check that an object, and no class, has *methods*."""

    def fits(value: object) -> bool:
        return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in methods)

    return fits


def instance(wanted: type, allowed: str, *, optional: bool = True, hint: str = "") -> Want:
    """Return what is an object of the class *wanted*."""
    return Want(allowed, lambda value: isinstance(value, wanted), optional, hint)


FUNCTION: Final = Want("a function", callable)
TOOLS: Final = port("Tools", "specs", "facts", "filled", "run", "close", optional=False, hint=NO_PORT)
HOOK: Final = Want("a function or a StopHook", lambda v: isinstance(v, StopHook) or callable(v), False)
SPEC: Final = instance(ToolSpec, "a ToolSpec of stepfold.engine.events", optional=False)
MESSAGE: Final = instance(Message, "a Message of stepfold.engine.messages", optional=False)
COLLAPSE: Final = instance(Collapse, "a Collapse of stepfold.engine.state", optional=False)

MODEL: Final = port(
    "Model",
    "call",
    optional=False,
    hint="wired(model=NAME) of stepfold.adapters.wiring makes one of a model's name",
)
LOG: Final = port(
    "Log", "append", "read", "close", hint="JsonlLog(PATH) of stepfold.adapters.jsonl_log is one in a file"
)
PERMISSION: Final = Want(
    "a function (name, input) -> True, False or a text, or a Permission port",
    lambda value: callable(value) or has("ask")(value),
)
SINGLE: Final[Mapping[str, Want]] = MappingProxyType(
    {
        "model": MODEL,
        "can_use_tool": PERMISSION,
        "config": instance(Config, "a Config of stepfold.engine"),
        "system": instance(str, "a text"),
        "log": LOG,
        "compactor": port("Compactor", "compact", "stage"),
        "restore": FUNCTION,
        "summariser": port("Summariser", "summarise"),
        "prefetcher": port("Prefetcher", "prefetch"),
        "microcompactor": port("Microcompactor", "edit"),
        "background": FUNCTION,
        "clock": port("Clock", "now_ms", "sleep"),
        "ids": port("Ids", "run_id", "seed"),
        "on_command": FUNCTION,
    }
)


@attrs.frozen
class Several:
    """An option that is a list of ``member``, or one object for which ``whole`` holds."""

    member: Want
    allowed: str
    whole: Callable[[Any], bool] = lambda value: False


def _is_hooks_port(value: object) -> bool:
    return has("ask")(value) and not isinstance(value, StopHook)


MANY: Final[Mapping[str, Several]] = MappingProxyType(
    {
        "tools": Several(TOOLS, "a list of Tools ports, or one", TOOLS.fits),
        "stop_hooks": Several(
            HOOK, "a list of functions and StopHook objects, or a Hooks port", _is_hooks_port
        ),
        "messages": Several(MESSAGE, "a list of Message objects"),
        "collapses": Several(COLLAPSE, "a list of Collapse objects"),
    }
)


def checked(where: str, given: Mapping[str, Any], more: Collection[str] = ()) -> dict[str, Any]:
    """
    Return the options *given* to *where*, lists as tuples.

    Args:
        where: Who was called: ``run``, ``stream`` or ``run_sync``.
        given: By keyword; see ``Options``.
        more: Keywords that *where* has beside them.

    Raises:
        TypeError: A keyword is unknown, ``model`` is missing, or a value is of the wrong kind.
    """
    for name in given:
        if name not in SINGLE and name not in MANY:
            raise TypeError(f"{where}: {_unknown(name, (*SINGLE, *MANY, *more))}")
    if "model" not in given:
        raise TypeError(f"{where}: model is missing; wanted {MODEL.allowed} ({MODEL.hint})")
    options = dict(given)
    for name, value in given.items():
        if name in SINGLE:
            SINGLE[name].check(where, name, value)
        else:
            options[name] = _several(where, name, value, MANY[name])
    _check_history(where, options.get("messages", ()), options.get("collapses", ()))
    return options


def _check_history(where: str, messages: Sequence[Message], collapses: Sequence[Collapse]) -> None:
    """Raise where a message is none inside, or a collapse stands for what is not there."""
    for place, message in enumerate(messages):
        if problem := message_problem(message):
            raise TypeError(f"{where}: messages[{place}]: {problem}")
    before = 0
    for place, collapse in enumerate(collapses):
        name, through = f"collapses[{place}]", collapse.through
        if type(through) is not int or type(collapse.summary) is not str:
            raise TypeError(f"{where}: {name} is {shown(collapse)}; wanted a number of messages and a text")
        if not before < through <= len(messages):
            allowed = f"from {before + 1} to {len(messages)}, the number of messages"
            raise ValueError(f"{where}: {name} reaches through {through}; wanted {allowed}")
        before = through


def _unknown(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    guess = f"did you mean {close[0]!r}? the" if close else "the"
    return f"there is no option {name!r}; {guess} options are {', '.join(sorted(names))}"


def _several(where: str, name: str, value: Any, wanted: Several) -> Any:
    """Return the port that *value* is, or its members as a tuple."""
    if wanted.whole(value):
        return value
    if not _is_list(value):
        more = f" ({wanted.member.hint})" if wanted.member.hint else ""
        raise TypeError(f"{where}: {name} is {shown(value)}; wanted {wanted.allowed}{more}")
    members = tuple(value)
    for place, each in enumerate(members):
        wanted.member.check(where, f"{name}[{place}]", each)
    return members


def _is_list(value: object) -> bool:
    """Whether *value* can be gone through, and is neither a text nor a table."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | type)


# ---------------------------------------------------------------------- words


def user_words(where: str, name: str, words: object) -> Words:
    """
    Return the blocks of what a user says: a text, or blocks.

    Raises:
        TypeError: *words*, given as *name* to *where*, are neither, or hold what no user's message may hold.
        ValueError: They are empty.
    """
    wanted = "a text, or a list of Text, Media and Opaque blocks of stepfold.engine.messages"
    if isinstance(words, str):
        blocks: Words = (Text(clean(words)),)
    elif not isinstance(words, Iterable) or not _is_list(words):
        raise TypeError(f"{where}: {name} is {shown(words)}; wanted {wanted}")
    else:
        given = tuple(words)
        for place, block in enumerate(given):
            if not isinstance(block, Text | Media | Opaque) or not belongs(block, Role.USER):
                raise TypeError(f"{where}: {name}[{place}] is {shown(block)}; wanted {wanted}")
            if problem := block_problem(block):
                raise TypeError(f"{where}: {name}[{place}]: {problem}")
        blocks = tuple(map(encodable, given))
    if all(isinstance(block, Text) and not block.text.strip() for block in blocks):
        raise ValueError(f"{where}: {name} is empty; give a text or blocks")
    return blocks
