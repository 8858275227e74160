"""Tools from Python functions, plain or async."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, Unpack, overload

import attrs

from stepfold.adapters.tools.definition import Arguments, CallContext, Hints, Meaning, Tool, Traits
from stepfold.adapters.tools.signature import Signature, signature_of
from stepfold.adapters.tools.toolbox import Toolbox

P = ParamSpec("P")
R = TypeVar("R")
MAX_THREADS = 32


@attrs.frozen(kw_only=True)
class FunctionTool(Generic[P, R]):
    """A function with its traits; calling it calls the function."""

    function: Callable[P, R]
    name: str
    description: str | None = None
    traits: Traits = Traits()
    meaning: Meaning | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def definition(self) -> Tool:
        """Return the tool; raises ``TypeError`` where the signature cannot be a tool's."""
        signature = signature_of(self.function, self.name)
        threads = _Threads()
        plain = not inspect.iscoroutinefunction(inspect.unwrap(_body(self.function)))
        return Tool(
            name=self.name,
            description=signature.description if self.description is None else self.description,
            input_schema=signature.input_schema,
            traits=self.traits,
            read=signature.read,
            meaning=self.meaning,
            fill=signature.fill,
            call=functools.partial(_call, self.function, signature, threads if plain else None),
            close=threads.close if plain else None,
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
            parameter annotated ``CallContext`` gets the call's context.
        name: As the model calls it; the function's name by default.
        description: For the model; the docstring by default.
        traits: All traits at once.
        meaning: Says what is wrong with arguments that fit the schema, or None.
        hints: Single traits, by the names of ``Traits``.
    """
    if traits is not None and hints:
        raise TypeError("give traits, or single hints, not both")
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
    """Return the ``Tools`` port over functions, decorated or bare, and ready ``Tool`` objects."""
    return Toolbox(tuple(_definition(each) for each in offered))


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


def _body(function: Callable[..., object]) -> Callable[..., object]:
    """Return what is really called: the inside of a partial, the ``__call__`` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


class _Threads:
    """The threads of one plain function, started when first needed."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], object]) -> object:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="stepfold-tool")
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool, context.run, work)

    async def close(self) -> None:
        """Forget the threads: one that is stuck is not waited for here, only when Python exits."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


async def _call(
    function: Callable[..., object],
    signature: Signature,
    threads: _Threads | None,
    arguments: Arguments,
    context: CallContext,
) -> object:
    given = dict(arguments)
    if signature.context is not None:
        given[signature.context] = context if threads is None else _from_thread(context)
    placed = [given.pop(name) for name in signature.positional]
    work = functools.partial(function, *placed, **given)
    returned = work() if threads is None else await threads.run(work)
    return await returned if isinstance(returned, Awaitable) else returned


def _from_thread(context: CallContext) -> CallContext:
    """Return a context whose progress may be called in another thread."""
    loop = asyncio.get_running_loop()

    def progress(text: str) -> None:
        loop.call_soon_threadsafe(context.progress, text)

    return attrs.evolve(context, progress=progress)
