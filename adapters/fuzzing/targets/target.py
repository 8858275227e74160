"""What is fuzzed: the engine, the engine under a config file, or an agent that can be imported."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import attrs

from stepfold.adapters.config_file import ConfigFileError, read_settings
from stepfold.adapters.fuzzing.driver.runs import Invariant
from stepfold.adapters.scripted import ScriptedModel
from stepfold.adapters.testing.machine.calling import Caller
from stepfold.effects.options import checked
from stepfold.effects.setup import Options
from stepfold.engine import Config, ConfigError

KEYS: Final = tuple(sorted(set(Options.__annotations__) - {"model", "log", "clock", "ids", "on_command"}))
Fresh: TypeAlias = Callable[[], Options]


class BadTarget(ValueError):
    """A target, or an invariant, cannot be used; the text is one line for people."""


@attrs.frozen
class EngineTarget:
    """The engine, under many configs; or under one, where there is one."""

    config: Config | None = None


@attrs.frozen
class AgentTarget:
    """
    An agent: keywords of ``run``, made anew for each run.

    Args:
        name: As it was given, ``module:name``.
        fresh: Makes them.
    """

    name: str
    fresh: Fresh


Target: TypeAlias = EngineTarget | AgentTarget
ASKED: Final = ("before", "event", "effects", "after")


def target_of(given: str) -> Target:
    """
    Return what *given* names: "" is the engine, a ``.toml`` file its config, ``module:name`` an agent.

    An agent is a mapping with keywords of ``stepfold.effects.run`` (``tools``, ``stop_hooks``,
    ``can_use_tool``, ``config``, ...), or a callable without arguments that returns one; the
    callable is called for each run, so that no run sees what another left behind.

    Raises:
        BadTarget: It cannot be used; the text says why.
    """
    if not given:
        return EngineTarget()
    if given.endswith(".toml") or (":" not in given and Path(given).is_file()):
        try:
            return EngineTarget(read_settings(given).config())
        except ConfigFileError as problem:
            raise BadTarget(str(problem)) from problem
        except ConfigError as problem:
            raise BadTarget(f"{given}: {problem}") from problem
    return _agent(given)


def _agent(given: str) -> AgentTarget:
    found = imported(given, "TARGET", ", or a config file that ends with .toml")
    _plain(given, found)

    def fresh() -> Options:
        made = found() if callable(found) else found
        if not isinstance(made, Mapping):
            raise BadTarget(f"{given}: it gives {type(made).__name__}; wanted keywords of run, as a dict")
        unknown = sorted(set(made) - set(KEYS))
        if unknown:
            raise BadTarget(f"{given}: {unknown[0]!r} is no keyword of it; allowed are {', '.join(KEYS)}")
        return cast(Options, dict(made))

    try:
        with _quiet():
            options = fresh()
            specs = Caller(options.get("tools", ()), {}).specs
    except BadTarget:
        raise
    except (Exception, SystemExit) as problem:
        raise BadTarget(f"{given}: {type(problem).__name__}: {' '.join(str(problem).split())}") from problem
    if not specs:
        raise BadTarget(f"{given}: it has no tools; without any, fuzz its config file")
    try:
        checked(given, {**options, "model": ScriptedModel([])})  # as run would
    except (TypeError, ValueError) as problem:
        raise BadTarget(str(problem)) from problem
    return AgentTarget(given, fresh)


def invariant_of(given: str) -> Invariant:
    """
    Return the function that ``module:name`` names.

    Raises:
        BadTarget: There is none.
    """
    found = imported(given, "--invariant")
    if not callable(found):
        raise BadTarget(f"--invariant {given}: it is {type(found).__name__}; wanted a function")
    _plain(f"--invariant {given}", found)
    try:
        inspect.signature(found).bind(*ASKED)
    except TypeError as problem:
        raise BadTarget(f"--invariant {given}: it is called with {', '.join(ASKED)}: {problem}") from problem
    except ValueError:  # it does not tell what it takes
        pass
    invariant: Invariant = found
    return invariant


def _plain(named: str, found: Any) -> None:
    """Raise ``BadTarget`` where *found* is async: nobody awaits it."""
    if inspect.iscoroutinefunction(found):
        raise BadTarget(f"{named}: it is async; wanted a plain function")


def imported(given: str, what: str, more: str = "") -> Any:
    """Return what ``module:name`` names, modules of the current folder included; *more* is allowed, too."""
    module, colon, name = given.partition(":")
    if not colon or not module or not name:
        raise BadTarget(f"{what} {given!r}: wanted module:name{more}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with _quiet():
            found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as problem:
        words = " ".join(str(problem).split())
        raise BadTarget(
            f"{what} {given}: {module} does not import: {type(problem).__name__}: {words}"
        ) from problem
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise BadTarget(f"{what} {given}: there is no {part} in {module}") from None
    return found


def _quiet() -> contextlib.redirect_stdout[io.StringIO]:
    return contextlib.redirect_stdout(io.StringIO())
