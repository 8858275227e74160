"""
The one place that puts adapters together.

    from stepfold.adapters.wiring import wired
    from stepfold.effects import run_sync

    result = run_sync("fix the bug", **wired(model="claude-sonnet-5-5", folder="src", log="run.jsonl"))

Everything here can be done by hand with the ports of ``stepfold.effects``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from stepfold.adapters.tools import Rules, function_tools
from stepfold.adapters.tools.functions import Offered
from stepfold.adapters.tools.permission import AfterHook, BeforeHook, CanUseTool, Guard
from stepfold.adapters.tools.toolset import folder_tools
from stepfold.effects.options import SINGLE, shown
from stepfold.effects.ports import Log, Model, Tools
from stepfold.effects.ready.tools import joined
from stepfold.effects.setup import Options
from stepfold.engine.config import Config, ModelSpec
from stepfold.engine.events import ToolSpec

DEFAULT_MODEL: Final = "claude-sonnet-5-5"
CHARS_PER_TOKEN: Final = 3


def wired(
    *,
    model: str | Model = DEFAULT_MODEL,
    tools: Iterable[Offered | Tools] = (),
    folder: str | os.PathLike[str] | None = None,
    rules: Rules | None = None,
    before: dict[str, BeforeHook] | None = None,
    after: dict[str, AfterHook] | None = None,
    can_use_tool: CanUseTool | None = None,
    config: Config | None = None,
    log: str | os.PathLike[str] | Log | None = None,
    client: Any = None,
    **rest: Any,
) -> Options:
    """
    Return the options of ``run`` for what most callers want.

    ``model`` and ``log`` in what is returned are the caller's to close, when no more runs come.

    Args:
        model: A model's name, called through the vendor's SDK, or a ``Model`` port.
        tools: Functions, ``@tool`` functions, ``Tool`` objects, ``Tools`` ports.
        folder: Offer the ready toolset in this folder too.
        rules, before, after, can_use_tool: See ``Guard``.  Without any of them every tool runs unasked,
            ``bash`` too; ``rules=Rules(allow_read_only=True)`` with a *can_use_tool* asks before changes.
        config: Limits and gates; a model's name and what is known of it are filled in.
        log: A file that is made or gone on with, or a ``Log`` port.
        client: An async client of the vendor's SDK; None makes one from the environment.
        rest: Further options of ``run``, as they are.

    Raises ``TypeError`` or ``ValueError`` that names what cannot be.
    """
    SINGLE["config"].check("wired", "config", config)
    given: Any = tools
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"wired: tools is {shown(tools)}; wanted a list of functions, tools or ports")
    chosen = config or Config()
    if isinstance(model, str):
        chosen = attrs.evolve(chosen, model=model, models=with_limits(chosen, model))
    ports = joined(_ports(tools, folder))
    offered: Tools = ports
    if rules is not None or before or after or can_use_tool is not None:
        offered = Guard(
            tools=ports,
            rules=rules or Rules(),
            before=before or {},
            after=after or {},
            can_use_tool=can_use_tool,
            hook_timeout_ms=chosen.hook_timeout_ms,
        )
    options = Options(
        model=vendor_model(chosen, client) if isinstance(model, str) else model,
        tools=offered,
        config=attrs.evolve(chosen, fixed_prompt_tokens=fixed_tokens(chosen, ports.specs())),
        log=file_log(log) if isinstance(log, str | os.PathLike) else log,
    )
    if folder is not None:
        options["restore"] = file_reader(Path(folder))
    made: Any = {**options, **rest}
    return made  # type: ignore[no-any-return]


def _ports(tools: Iterable[Offered | Tools], folder: str | os.PathLike[str] | None) -> list[Tools]:
    functions: list[Offered] = []
    ports: list[Tools] = []
    for each in tools:
        ports.append(each) if hasattr(each, "specs") else functions.append(each)  # type: ignore[arg-type]
    if functions:
        ports.append(function_tools(functions))
    if folder is not None:
        ports.append(folder_tools(os.fspath(folder)))
    return ports


def vendor_model(config: Config, client: Any = None) -> Model:
    """Return the model port on the vendor's SDK; the SDK is imported with the first call."""
    from stepfold.adapters.anthropic_api.client import AnthropicModel

    return AnthropicModel(client, system=config.system_prompt)


def with_limits(config: Config, *models: str) -> tuple[ModelSpec, ...]:
    """Return ``config.models`` and, of *models* that it lacks, what the table knows."""
    from stepfold.adapters.anthropic_api.models import spec

    given = {each.name: each for each in config.models}
    wanted = (*models, *config.fallback_models)
    known = (spec(name) for name in dict.fromkeys(wanted) if name not in given)
    return (*config.models, *(each for each in known if each is not None))


def fixed_tokens(config: Config, specs: Sequence[ToolSpec]) -> int:
    """Return what system prompt and tool definitions take in tokens, high; Config's own number wins."""
    if config.fixed_prompt_tokens:
        return config.fixed_prompt_tokens
    written = [config.system_prompt]
    written += [each.wire or each.name + each.description + each.input_schema for each in specs]
    return -(-sum(map(len, written)) // CHARS_PER_TOKEN)


def file_log(
    path: str | os.PathLike[str], *, deltas: bool = False, redact: Callable[[str], str] | None = None
) -> Log:
    """Return the log in a file, see ``JsonlLog``; raises ``RecordingError``."""
    from stepfold.adapters.jsonl_log import JsonlLog

    return JsonlLog(path, deltas=deltas, redact=redact)


def file_reader(folder: Path) -> Callable[[tuple[str, ...]], list[tuple[str, str]]]:
    """Return what reads files of *folder* again after a compaction; others are left out."""
    root = folder.resolve()

    def read(paths: tuple[str, ...]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for path in paths:
            file = (root / path).resolve()
            if file.is_relative_to(root) and file.is_file():
                try:
                    found.append((path, file.read_text(encoding="utf-8")))
                except (OSError, UnicodeDecodeError):
                    continue  # gone meanwhile, or no text: it is not restored
        return found

    return read
