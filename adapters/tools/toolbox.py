"""
The ``Tools`` port over a list of tools: look up, read, judge, run.

A call is read twice, once for its facts and once when it runs, because a hook
may have changed the input in between.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

import attrs

from stepfold.adapters.tools.content import blocks_of, json_text, words_of
from stepfold.adapters.tools.definition import Arguments, CallContext, InvalidInput, Reply, Tool, ToolFailed
from stepfold.engine.effects import RunTool
from stepfold.engine.events import CallFacts, CallStatus, ToolEnded, ToolSpec
from stepfold.engine.messages import ToolUse


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def json_object(text: str) -> dict[str, object]:
    """Return the object that JSON *text* holds; raises ``InvalidInput`` with words for the model."""
    try:
        value = json.loads(text or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The input is not valid JSON ({error}). It was: {_short(text)}") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"The input must be a JSON object. It was: {_short(text)}")
    return value


def _short(text: str, limit: int = 500) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


@attrs.frozen
class Toolbox:
    """Offers *tools*; two of one name are refused with ``ValueError``, what is none with ``TypeError``."""

    tools: tuple[Tool, ...]
    _by_name: Mapping[str, Tool] = attrs.field(init=False, repr=False, eq=False)
    _specs: tuple[ToolSpec, ...] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        by_name: dict[str, Tool] = {}
        for tool in self.tools:
            if not isinstance(tool, Tool):
                raise TypeError(f"Toolbox: {tool!r} is no Tool; function_tools makes them of functions")
            if tool.name in by_name:
                raise ValueError(f"two tools are named {tool.name!r}")
            by_name[tool.name] = tool
        object.__setattr__(self, "_by_name", by_name)
        object.__setattr__(self, "_specs", tuple(_spec(tool) for tool in self.tools))

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools as the model sees them."""
        return self._specs

    def facts(self, call: ToolUse) -> CallFacts:
        """Look up, read and judge a call; never raises."""
        tool = self._by_name.get(call.name)
        if tool is None:
            return CallFacts(known=False, valid=False, problem=unknown_tool(call.name, self._by_name))
        traits = tool.traits
        try:
            arguments = self._read(tool, call.raw_input or call.input)
        except InvalidInput as error:
            return CallFacts(valid=False, interrupt=traits.interrupt, shell=traits.shell, problem=str(error))
        return CallFacts(
            safe=traits.allows_company(arguments),
            interrupt=traits.interrupt,
            idempotent=traits.idempotent,
            shell=traits.shell,
        )

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the call with its input filled out; one that is not valid stays as it is."""
        tool = self._by_name.get(call.name)
        if tool is None:
            return call
        try:
            arguments = tool.fill(self._read(tool, call.raw_input or call.input))
        except InvalidInput:
            return call
        return attrs.evolve(call, input=json_text(dict(arguments)))

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Run one call; whatever the tool raises is a failed call."""
        tool = self._by_name.get(order.call.name)
        if tool is None:
            return _failed(order, unknown_tool(order.call.name, self._by_name))
        context = CallContext(order.call.id, tool.name, order.id, progress)
        try:
            returned = await tool.call(self._read(tool, order.input), context)
            return _ended(order, returned)
        except (InvalidInput, ToolFailed) as error:
            return _failed(order, error.content if isinstance(error, ToolFailed) else str(error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return ToolEnded(order.id, blocks_of("The tool cancelled itself."), CallStatus.CANCELLED)
        except (Exception, SystemExit) as error:
            return _failed(order, words_of(error))

    async def close(self) -> None:
        """Close every tool that holds something, the last one first; raises what closing raised."""
        problems: list[Exception] = []
        for tool in reversed(self.tools):
            if tool.close is None:
                continue
            try:
                await tool.close()
            except Exception as error:
                problems.append(error)
        if problems:
            raise ExceptionGroup("tools could not be closed", problems)

    def _read(self, tool: Tool, text: str) -> Arguments:
        """Return the arguments of an input; raises ``InvalidInput`` if schema or meaning are not met."""
        try:
            arguments = tool.read(json_object(text))
            problem = tool.meaning(arguments) if tool.meaning is not None else None
        except InvalidInput:
            raise
        except Exception as error:  # facts never raise: a check that fails has not accepted the input
            raise InvalidInput(words_of(error)) from error
        if problem is not None:
            raise InvalidInput(str(problem))
        return arguments


def _spec(tool: Tool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        max_result_chars=tool.traits.max_result_chars,
        clearable=tool.traits.clearable,
        read_only=tool.traits.read_only,
    )


def unknown_tool(name: str, known: Iterable[str]) -> str:
    """Return the words for a call to a tool that does not exist."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    offered = f"The tools are: {', '.join(names)}." if names else "There are no tools."
    return f"There is no tool named {name!r}.{guess} {offered}"


def _failed(order: RunTool, content: object) -> ToolEnded:
    blocks = blocks_of(content) or blocks_of("The tool failed without a word.")  # the API wants words
    return ToolEnded(order.id, blocks, CallStatus.FAILED)


def _ended(order: RunTool, returned: object) -> ToolEnded:
    if not isinstance(returned, Reply):
        return ToolEnded(order.id, blocks_of(returned))
    plain = ToolEnded(order.id, blocks_of(returned.content))
    ended = _failed(order, returned.content) if returned.is_error else plain
    return attrs.evolve(ended, stop=returned.stop, messages=returned.messages)
