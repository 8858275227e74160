"""
The SDK's ready toolset: bash, read, write, edit, glob, grep, in one folder.

The file tools cannot leave the folder, symlinks included.  bash is not
confined: it starts in the folder and may do what the user may do.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from stepfold.adapters.tools.definition import Arguments, Tool, ToolFailed, Traits
from stepfold.adapters.tools.functions import FunctionTool
from stepfold.adapters.tools.shell import Shell
from stepfold.adapters.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from anthropic.lib.tools.agent_toolset import AgentToolContext

LOOKING: Final = Traits(read_only=True, idempotent=True, safe=True, clearable=True)
CHANGING: Final = Traits(destructive=True, clearable=True)
SHELL: Final = Traits(destructive=True, shell=True, clearable=True)
Made: TypeAlias = tuple[Callable[..., Awaitable[object]], str, Traits]
NAMES: Final = ("bash", "read", "write", "edit", "glob", "grep")


def folder_tools(folder: str | Path, *, names: tuple[str, ...] = NAMES) -> Toolbox:
    """
    Return the toolset of *folder*; closing it ends its shell and all that the shell started.

    Args:
        folder: Must exist; relative paths in calls start here.
        names: Which of the six to offer.

    Raises ``ValueError`` where the folder is none, or a name is not one of the six, ``TypeError``
    where it is no path.
    """
    if not isinstance(folder, str | Path):
        raise TypeError(f"folder: {folder!r} is no path")
    root = Path(folder).resolve()
    if not root.is_dir():
        raise ValueError(f"{folder} is not a folder")
    if unknown := [name for name in names if name not in NAMES]:
        raise ValueError(f"{unknown[0]!r} is not in the toolset; it has {', '.join(NAMES)}")
    offered = {tool.name: tool for tool in (*_file_tools(root), _bash_tool(root))}
    return Toolbox(tuple(offered[name] for name in names))


def _bash_tool(root: Path) -> Tool:
    shell = Shell(root)

    async def bash(command: str = "", timeout_ms: int | None = None, restart: bool = False) -> str:
        """
        Run a command in a bash shell that keeps its folder, variables and jobs between calls.

        Output and errors come back together. Nothing can be typed into a command. A command that
        fails is an error with its exit code.

        Args:
            command: What to run.
            timeout_ms: Milliseconds until the command is stopped, and the shell with it; 120000 if not given.
            restart: Start the shell anew instead of running a command.
        """
        if restart:
            await shell.close()
            return "The shell is started anew."
        if not command.strip():
            raise ToolFailed("There is no command to run.")
        return await shell.run(command, timeout_ms=timeout_ms or 120_000)

    made = FunctionTool(function=bash, name="bash", traits=SHELL).definition()
    return attrs.evolve(made, close=shell.close)


def _file_tools(root: Path) -> tuple[Tool, ...]:
    from anthropic.lib.tools import agent_toolset as sdk

    context = sdk.AgentToolContext(workdir=root)
    made = (*_looking_tools(sdk, context), *_changing_tools(sdk, context))
    return tuple(_confined(context, function, key, traits) for function, key, traits in made)


def _looking_tools(sdk: Any, context: Any) -> Iterator[Made]:
    """Yield read, glob and grep: function, the key of its path, traits."""
    sdk_read = _plain(sdk.beta_read_tool(context).func)
    sdk_glob = _plain(sdk.beta_glob_tool(context).func)
    sdk_grep = _plain(sdk.beta_grep_tool(context).func)

    async def read(file_path: str, view_range: list[int] | None = None) -> object:
        """
        Read a file: text, or an image or PDF.

        Args:
            file_path: In the folder, relative to it or absolute.
            view_range: First and last line, counted from 1; a last line of -1 is the end. Text only.
        """
        return await sdk_read(file_path, view_range)

    async def glob(pattern: str, path: str | None = None) -> object:
        """
        List files whose path fits a pattern, newest first.

        Args:
            pattern: Relative, such as src/**/*.py.
            path: The folder to look in; the whole folder if not given.
        """
        return await sdk_glob(pattern, path)

    async def grep(pattern: str, path: str | None = None) -> object:
        """
        Search in files; gives path, line number and line of each match.

        Args:
            pattern: A regular expression.
            path: The file or folder to search; the whole folder if not given.
        """
        return await sdk_grep(pattern, path)

    yield read, "file_path", LOOKING
    yield glob, "path", LOOKING
    yield grep, "path", LOOKING


def _changing_tools(sdk: Any, context: Any) -> Iterator[Made]:
    """Yield write and edit: function, the key of its path, traits."""
    sdk_write = _plain(sdk.beta_write_tool(context).func)
    sdk_edit = _plain(sdk.beta_edit_tool(context).func)

    async def write(file_path: str, content: str) -> object:
        """
        Write a text file, in place of what was there; folders are made as needed.

        Args:
            file_path: In the folder, relative to it or absolute.
            content: The whole file.
        """
        return await sdk_write(file_path, content)

    async def edit(file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> object:
        """
        Replace text in a file.

        Args:
            file_path: In the folder, relative to it or absolute.
            old_string: The exact text to replace; it must occur once, unless replace_all is true.
            new_string: What takes its place.
            replace_all: Replace every occurrence.
        """
        return await sdk_edit(file_path, old_string, new_string, replace_all)

    yield write, "file_path", attrs.evolve(CHANGING, idempotent=True)
    yield edit, "file_path", CHANGING


def _confined(
    context: AgentToolContext, function: Callable[..., Awaitable[object]], key: str, traits: Traits
) -> Tool:
    """Return a tool whose argument *key* is a path: outside it is refused, for hooks it is made full."""
    from anthropic.lib.tools.agent_toolset import resolve_path

    def meaning(arguments: Arguments) -> str | None:
        path = arguments.get(key)
        if not isinstance(path, str):
            return None
        try:
            resolve_path(context, path)
        except ValueError as error:
            return f"{error}. The folder is {context.workdir}."
        return None

    name = function.__name__
    tool = FunctionTool(function=function, name=name, traits=traits, meaning=meaning).definition()

    def fill(arguments: Arguments) -> Arguments:
        path = arguments.get(key)
        full = {key: str(resolve_path(context, path))} if isinstance(path, str) else {}
        return {**tool.fill(arguments), **full}

    return attrs.evolve(tool, fill=fill)


def _plain(function: Callable[..., Any]) -> Callable[..., Awaitable[object]]:
    """Return the SDK's function with its own kind of error turned into ours."""
    from anthropic.lib.tools import ToolError

    @functools.wraps(function)
    async def call(*args: object) -> object:
        try:
            return await function(*args)
        except ToolError as error:
            raise ToolFailed(error.content) from error

    return call
