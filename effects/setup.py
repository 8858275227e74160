"""What a caller may hand to ``run``, and how ports and Config are made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Self, TypeAlias, TypedDict, TypeVar

import attrs

from stepfold.effects.compactor import NestedCompactor, Restore
from stepfold.effects.options import SPEC, checked, has
from stepfold.effects.ports import (
    BackgroundWork,
    Clock,
    Compactor,
    Hooks,
    Ids,
    Log,
    Microcompactor,
    Model,
    Permission,
    Prefetcher,
    Start,
    Summariser,
    Tools,
)
from stepfold.effects.ready.hooks import StopHook, Stopping, function_hooks
from stepfold.effects.ready.permission import AskFunction, Asking, Nobody
from stepfold.effects.ready.system import SystemClock, SystemIds
from stepfold.effects.ready.tools import joined
from stepfold.effects.world import World
from stepfold.engine import Config
from stepfold.engine.events import ToolSpec
from stepfold.engine.messages import Message
from stepfold.engine.state import Collapse

T = TypeVar("T")
StopHooks: TypeAlias = Hooks | Iterable[StopHook | Callable[[Stopping], Any]]
OnItem: TypeAlias = Callable[[Any], Awaitable[None] | None]
OnCommand: TypeAlias = Callable[[str, str], None]


class Options(TypedDict, total=False):
    """
    The keywords of ``run``, ``run_sync`` and ``stream``; all may be left out but ``model``.

    All are checked before anything happens: a wrong one is a ``TypeError`` or
    ``ValueError`` of one line that names it.  ``stream`` raises it when it is
    called, ``run`` when it is awaited.

    model: The ``Model`` port.  It stays the caller's: a run never closes it.
    tools: A ``Tools`` port, or several; closed when the run is over.
    stop_hooks: A ``Hooks`` port (then Config names them), or functions and ``StopHook`` objects.
    can_use_tool: A ``Permission`` port, or ``(name, input) -> bool | text``, asked about every
        call that no rule denies.  Left out: the tools, if they are a permission port too.
    config: Left out: the one that the log was begun with, or the default.
    system: The system prompt, in place of Config's.
    log: Where events are kept; a log that holds a run already is gone on with.  One run at a
        time, and the caller's to close.
    messages: The history before the first run.
    collapses: Summaries staged for spans of ``messages``, oldest first.
    compactor: Left out: a nested run of this same loop on the same model.
    restore: ``(paths) -> [(path, text), ...]``: reads files again after a compaction.
    summariser, prefetcher, microcompactor, background: Left out: not there.
    clock, ids: Left out: the system's.
    on_command: ``(id, mark)``: told what became of queued words.
    """

    model: Model
    tools: Tools | Iterable[Tools]
    stop_hooks: StopHooks
    can_use_tool: Permission | Callable[[str, dict[str, Any]], Any] | None
    config: Config | None
    system: str | None
    log: Log | None
    messages: Iterable[Message]
    collapses: Iterable[Collapse]
    compactor: Compactor | None
    restore: Restore | None
    summariser: Summariser | None
    prefetcher: Prefetcher | None
    microcompactor: Microcompactor | None
    background: BackgroundWork | None
    clock: Clock | None
    ids: Ids | None
    on_command: OnCommand | None


@attrs.frozen(kw_only=True)
class Setup:
    """A run as the caller wants it; see ``Options``."""

    model: Model
    tools: Tools | Iterable[Tools] = ()
    stop_hooks: StopHooks = ()
    can_use_tool: Permission | Callable[[str, dict[str, Any]], Any] | None = None
    config: Config | None = None
    system: str | None = None
    log: Log | None = None
    messages: Iterable[Message] = ()
    collapses: Iterable[Collapse] = ()
    compactor: Compactor | None = None
    restore: Restore | None = None
    summariser: Summariser | None = None
    prefetcher: Prefetcher | None = None
    microcompactor: Microcompactor | None = None
    background: BackgroundWork | None = None
    clock: Clock | None = None
    ids: Ids | None = None
    on_command: OnCommand | None = None

    @classmethod
    def of(cls, where: str, options: Mapping[str, Any], more: Collection[str] = ()) -> Self:
        """
        Return the setup that *options* describe; lists are read once.

        Args:
            where: The function that got them; named in what is raised.
            options: By keyword, see ``Options``.
            more: What *where* has beside them.

        Raises:
            TypeError: One is unknown, missing or of the wrong kind.
        """
        return cls(**checked(where, options, more))

    def start(self, config: Config, tools: tuple[ToolSpec, ...], prompt: str = "") -> Start:
        """Return what a first run on a new log starts from."""
        return Start(config, tuple(self.messages), tools, tuple(self.collapses), prompt)

    def plan(self, where: str) -> Plan:
        """Return ports and Config; raises ``ValueError`` that names *where* and the keyword."""
        config = self.config or Config()
        changes: dict[str, Any] = {}
        if self.system is not None:
            changes["system_prompt"] = self.system
        hooks: Any = self.stop_hooks
        if isinstance(hooks, tuple):
            hooks = _named(where, "stop_hooks", lambda: function_hooks(self.stop_hooks))  # type: ignore[arg-type]
            if hooks.hooks:
                changes["stop_hooks"] = hooks.specs()
            elif config.stop_hooks:
                names = ", ".join(spec.name for spec in config.stop_hooks)
                raise ValueError(f"{where}: stop_hooks: config names {names}, but none was given")
        tools, permission = _named(where, "tools", self._tools)
        config = attrs.evolve(config, **changes) if changes else config
        clock = self.clock or SystemClock()
        if type(now := clock.now_ms()) is not int:
            raise TypeError(f"{where}: clock: now_ms gave {now!r}; wanted a whole number of ms")
        own = NestedCompactor(self.model, config=config, tools=tools.specs, clock=clock, restore=self.restore)
        world = World(
            model=self.model,
            tools=tools,
            compactor=self.compactor or own,
            permission=permission,
            hooks=hooks,
            clock=clock,
            summariser=self.summariser,
            prefetcher=self.prefetcher,
            microcompactor=self.microcompactor,
            background=self.background,
            log=self.log,
        )
        return Plan(world, config, self.config is not None or bool(changes), self.ids or SystemIds())

    def _tools(self) -> tuple[Tools, Permission]:
        given: Any = self.tools
        ports: tuple[Tools, ...] = given if isinstance(given, tuple) else (given,)
        for port in ports:
            for spec in port.specs():  # a tool that cannot be one says so now
                SPEC.check(type(port).__name__, "one of its specs", spec)
        tools = joined(ports)
        asked: Any = self.can_use_tool
        if asked is None:
            return tools, tools if has("ask")(tools) else Nobody()  # type: ignore[return-value]
        return Asking(tools), asked if has("ask")(asked) else AskFunction(asked, tools)


def _named(where: str, name: str, make: Callable[[], T]) -> T:
    """Return what *make* makes; what it says is wrong is said with *where* and *name*."""
    try:
        return make()
    except TypeError as problem:
        raise TypeError(f"{where}: {name}: {problem}") from problem
    except ValueError as problem:
        raise ValueError(f"{where}: {name}: {problem}") from problem


@attrs.frozen
class Plan:
    """Ports and Config of a run; ``config_given`` says that the caller chose the Config."""

    world: World
    config: Config
    config_given: bool
    ids: Ids
