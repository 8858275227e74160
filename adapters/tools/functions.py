"""Tools from Python functions, plain or async."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, Unpack, overload

import attrs

from stepfold.adapters.tools.definition import Arguments, CallContext, Hints, Meaning, Tool, Traits
from stepfold.adapters.tools.signature import Signature, signature_of
from stepfold.adapters.tools.toolbox import Toolbox
from stepfold.adapters.tools.wanted import FUNCTION, FUNCTION_OR_NOTHING, TEXT_OR_NOTHING
from stepfold.effects.flow.threads import called
from stepfold.engine.effects import RunTool
from stepfold.engine.events import CallFacts, ToolEnded, ToolSpec
from stepfold.engine.messages import ToolUse

P = ParamSpec("P")
R = TypeVar("R")


@attrs.frozen(kw_only=True)
class FunctionTool(Generic[P, R]):
    """A function with its traits: a ``Tools`` port of one tool.  Calling it calls the function."""

    function: Callable[P, R] = attrs.field(validator=FUNCTION)
    name: str
    description: str | None = attrs.field(default=None, validator=TEXT_OR_NOTHING)
    traits: Traits = Traits()
    meaning: Meaning | None = attrs.field(default=None, validator=FUNCTION_OR_NOTHING)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @functools.cached_property
    def box(self) -> Toolbox:
        """The port over this one tool; raises ``TypeError`` as ``definition`` does."""
        return Toolbox((self.definition(),))

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool as the model sees it."""
        return self.box.specs()

    def facts(self, call: ToolUse) -> CallFacts:
        """Look up, read and judge a call; never raises."""
        return self.box.facts(call)

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the call with its input filled out."""
        return self.box.filled(call)

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Run one call."""
        return await self.box.run(order, progress)

    async def close(self) -> None:
        """Give back what the tool holds."""
        await self.box.close()

    def definition(self) -> Tool:
        """Return the tool; raises ``TypeError`` where the signature cannot be a tool's."""
        signature = signature_of(self.function, self.name)
        return Tool(
            name=self.name,
            description=signature.description if self.description is None else self.description,
            input_schema=signature.input_schema,
            traits=self.traits,
            read=signature.read,
            meaning=self.meaning,
            fill=signature.fill,
            call=functools.partial(_call, self.function, signature),
        )


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    traits: Traits | None = None,
    meaning: Meaning | None = None,
    **hints: Unpack[Hints],
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    traits: Traits | None = None,
    meaning: Meaning | None = None,
    **hints: Unpack[Hints],
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """
    Make a tool of a function: ``@tool``, or ``@tool(read_only=True, safe=True)``.

    Args:
        function: Plain or async.  A plain one runs in a thread: it cannot be
            stopped, only left behind, so make async what may take long.  A
            parameter annotated ``CallContext`` gets the call's context.  What a
            generator yields, plain or async, is one list.
        name: As the model calls it; the function's name by default.
        description: For the model; the docstring by default.
        traits: All traits at once.
        meaning: Says what is wrong with arguments that fit the schema, or None.
        hints: Single traits, by the names of ``Traits``.
    """
    if traits is not None and hints:
        raise TypeError("tool: give traits, or single hints, not both")
    if function is not None and not callable(function):
        raise TypeError(f"tool: {function!r} is no function")
    names = [field.name for field in attrs.fields(Traits)]
    for hint in hints:
        if hint not in names:
            close = difflib.get_close_matches(hint, names, n=1)
            guess = f"; did you mean {close[0]!r}?" if close else ";"
            raise TypeError(f"tool: there is no hint {hint!r}{guess} the hints are {', '.join(names)}")
    chosen = traits if traits is not None else Traits(**hints)

    def make(target: Callable[P, R]) -> FunctionTool[P, R]:
        called = name or getattr(target, "__name__", "")
        if not called or called == "<lambda>":
            raise TypeError(f"{target!r} has no name: give one with name=...")
        return FunctionTool(
            function=target, name=called, description=description, traits=chosen, meaning=meaning
        )

    return make if function is None else make(function)


Offered: TypeAlias = Tool | FunctionTool[..., Any] | Callable[..., Any]


def function_tools(offered: Iterable[Offered]) -> Toolbox:
    """
    Return the ``Tools`` port over functions, decorated or bare, and ready ``Tool`` objects.

    Raises ``TypeError`` where one cannot be a tool.
    """
    given: Any = offered
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"function_tools: wanted a list of functions, not {given!r}")
    return Toolbox(tuple(_definition(each) for each in given))


def _definition(offered: Offered) -> Tool:
    match offered:
        case Tool():
            return offered
        case FunctionTool():
            return offered.definition()
        case _ if callable(offered):
            made: FunctionTool[..., Any] = tool(offered)
            return made.definition()
    raise TypeError(f"{offered!r} is no tool: give a function, @tool, or Tool")


async def _call(
    function: Callable[..., object], signature: Signature, arguments: Arguments, context: CallContext
) -> object:
    given = dict(arguments)
    if signature.context is not None:
        given[signature.context] = context
    placed = [given.pop(name) for name in signature.positional]
    if _runs_here(function):
        returned = function(*placed, **given)
    else:
        returned = await called(functools.partial(_gathered, functools.partial(function, *placed, **given)))
    if inspect.isasyncgen(returned):
        return [each async for each in returned]
    return await returned if inspect.isawaitable(returned) else returned


def _gathered(function: Callable[[], object]) -> object:
    """Call *function*; what it yields, if it is a generator, is gathered in the same thread."""
    returned = function()
    return list(returned) if inspect.isgenerator(returned) else returned


def _runs_here(function: Callable[..., object]) -> bool:
    """Return whether calling *function* only makes a coroutine: looks into partials and objects."""
    while isinstance(function, functools.partial):
        function = function.func
    body = function if inspect.isroutine(function) else type(function).__call__
    body = inspect.unwrap(body)
    return inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body)
