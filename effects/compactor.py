"""
The compactor: a nested run of the same loop that writes a summary (specification, sections 1 and 2).

The nested run sees the head of the view, keeps the tools in its request but may
call none, has one turn, no retries and no context layers of its own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import attrs

from stepfold.effects.flow.threads import called
from stepfold.effects.interpreter import Interpreter
from stepfold.effects.ports import Clock, Model, ModelPart
from stepfold.effects.ready.hooks import FunctionHooks
from stepfold.effects.ready.permission import Nobody
from stepfold.effects.result import Result, Tally
from stepfold.effects.world import World
from stepfold.engine import Config, Terminal, start
from stepfold.engine.config import SUMMARY_RESERVE_TOKENS
from stepfold.engine.context.tail import compacted_view
from stepfold.engine.context.tokens import estimate_message, estimate_messages
from stepfold.engine.effects import CallModel, Compact, RunTool, StageCollapse
from stepfold.engine.events import (
    CallFacts,
    CallStatus,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    RunStarted,
    ToolEnded,
    ToolSpec,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Message, Origin, Text, ToolUse, user_text
from stepfold.engine.terminals import Completed, Ending, ImageError, ModelError, PromptTooLong

Restore: TypeAlias = Callable[[tuple[str, ...]], Any]
PATH_KEYS: Final = ("file_path", "path", "notebook_path")
MAX_FILES: Final = 20
MAX_FILE_TOKENS: Final = 5_000

SUMMARY_PROMPT: Final = """\
This conversation is about to outgrow its window. Everything above will be replaced by what you write now, \
so write a hand-over from which the work can go on without a break. Call no tool; answer with text only.

Keep, under these headings, whatever there is of it:

1. Task: what the user wants, in the user's own words, with every later change of mind.
2. Decisions: what was decided and why; what was tried and given up.
3. Files and code: each file that was read, made or changed, with its full path, what matters in it, and the \
exact snippets, names and signatures that the next steps depend on.
4. Errors: what went wrong, the exact message, and what cured it; what the user said about it.
5. The user's words: every message of the user that is not a tool result, complete where it is short.
6. Open work: what is not done, and what is waited for.
7. Now: what was being done at the very end, and the next step, quoted where it was agreed.

Facts only; nothing that is not above. Leave out greetings, thanks and what can simply be looked up again.\
"""

SPAN_PROMPT: Final = """\
The part of the conversation above will be shown as a short note from now on. Write that note: \
what was asked, what was done and found, paths, names, values and error messages that may still \
matter, and how it ended. Call no tool; answer with text only.\
"""


class NestedCompactor:
    """
    The ``Compactor`` port over a model.

    Head and tail of an order come without media where the order wants them
    stripped: what it is given goes out as it is.

    Args:
        model: Writes the summaries.
        config: Of the run whose view is compacted; what a nested run may not do is turned off.
        tools: Gives the tools now on offer: they stay in the request, so that its prefix stays cached.
        clock: For the deadlines of the nested run.
        restore: Reads files again: gets paths, the most recent first, and returns
            (path, text) pairs; plain (then in a thread) or async.  None: nothing is restored.
    """

    def __init__(
        self,
        model: Model,
        *,
        config: Config,
        tools: Callable[[], tuple[ToolSpec, ...]],
        clock: Clock,
        restore: Restore | None = None,
    ) -> None:
        self._model = model
        self._config = config
        self._tools = tools
        self._clock = clock
        self._restore = restore

    async def compact(self, order: Compact) -> Compacted | CompactionFailed:
        """Summarise the head of a view and say how large the whole new view is."""
        result = await self._nested(order.head, SUMMARY_PROMPT, "compact", order.model)
        failure = _failure(result)
        if failure is not None:
            return CompactionFailed(order.id, failure, result.usage)
        summary = result.output
        attachments = await self._restored(order)
        tokens = order.floor + estimate_messages(compacted_view(summary, order.tail, attachments))
        return Compacted(order.id, summary, tokens, attachments, result.usage)

    async def stage(self, order: StageCollapse) -> CollapseStaged:
        """Summarise a span in the background."""
        result = await self._nested(order.span, SPAN_PROMPT, "collapse", self._config.model)
        return CollapseStaged(order.id, result.output if _failure(result) is None else None)

    async def _nested(self, messages: Sequence[Message], prompt: str, source: str, model: str) -> Result:
        """Run the loop on *messages* once, for its text alone."""
        specs = self._tools()
        config = nested_config(self._config, source, model)
        loop = Interpreter(
            World(
                model=_CallsNothing(self._model),
                tools=_Unused(specs),
                compactor=_Never(),
                permission=Nobody(),
                hooks=FunctionHooks({}),
                clock=self._clock,
            ),
            config,
            start(messages, specs),
            Tally(),
        )
        return await loop.drive((lambda now: RunStarted((Text(prompt),), source, 0, now),))

    async def _restored(self, order: Compact) -> tuple[Message, ...]:
        """Return the recent files of the head that the tail does not show, within the order's tokens."""
        shown = set(_paths(order.tail))
        paths = tuple(path for path in _paths(order.head) if path not in shown)[:MAX_FILES]
        if self._restore is None or not paths or not order.restore:
            return ()
        kept: list[Message] = []
        left = order.restore
        for path, text in await called(self._restore, paths):
            message = user_text(f"[The file {path} as it is now]\n{text}", Origin.ATTACHMENT)
            tokens = estimate_message(message)
            if tokens <= min(left, MAX_FILE_TOKENS):
                kept.append(message)
                left -= tokens
        return tuple(kept)


def nested_config(config: Config, source: str, model: str) -> Config:
    """Return *config* for a nested run: one turn, one model, its own source, no hooks, no budgets."""
    return attrs.evolve(
        config,
        source=source,
        model=model,
        fallback_models=(),
        max_turns=1,
        max_model_calls=None,
        max_run_tokens=None,
        max_cost=None,
        token_budget_tokens=None,
        task_budget_tokens=None,
        max_output_tokens=min(SUMMARY_RESERVE_TOKENS, _max_output(config, model)),
        stop_hooks=(),
    )


def _max_output(config: Config, model: str) -> int:
    named = {spec.name: spec.max_output_tokens for spec in (*config.models, *config.all_models)}
    return named.get(model, config.model_max_output_tokens)


def _failure(result: Result) -> Failure | None:
    """Return why a nested run gave no summary, or None; what the API said keeps its kind."""
    unused = not result.tool_calls
    match result.end:
        case PromptTooLong(failure) | ImageError(failure) | ModelError(failure):
            return failure
        case Completed(Ending.END_TURN | Ending.STOP_SEQUENCE) if unused:
            return None if result.output.strip() else Failure(FailureKind.UNUSABLE, "the summary is empty")
        case Completed(ending) if unused:
            return Failure(FailureKind.UNUSABLE, f"the summary is no whole answer: {ending}")
    if result.terminal in (Terminal.COMPLETED, Terminal.MAX_TURNS):
        return Failure(FailureKind.UNUSABLE, "the summary is a tool call")
    return Failure(FailureKind.UNUSABLE, result.end.why)


def _paths(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the paths that calls in *messages* name, each once, the most recent first."""
    found: dict[str, None] = {}
    for message in reversed(tuple(messages)):
        for block in reversed(message.content):
            if isinstance(block, ToolUse):
                found.update(dict.fromkeys(_named(block)))
    return tuple(found)


def _named(call: ToolUse) -> tuple[str, ...]:
    try:
        given = json.loads(call.input)
    except ValueError:  # the model wrote it: such a call read no file
        return ()
    if not isinstance(given, dict):
        return ()
    return tuple(given[key] for key in PATH_KEYS if isinstance(given.get(key), str))


@attrs.frozen
class _CallsNothing:
    """A model that is told to call no tool, though the request defines them."""

    model: Model

    def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        return self.model.call(attrs.evolve(order, tool_choice_none=True))


@attrs.frozen
class _Unused:
    """Tools that are defined and never run."""

    offered: tuple[ToolSpec, ...]

    def specs(self) -> tuple[ToolSpec, ...]:
        return self.offered

    def facts(self, call: ToolUse) -> CallFacts:
        return CallFacts(known=False, valid=False, problem="No tool can be called here.")

    def filled(self, call: ToolUse) -> ToolUse:
        return call

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        return ToolEnded(order.id, (Text("No tool can be called here."),), CallStatus.FAILED)

    async def close(self) -> None:
        return


class _Never:
    """The compactor of a nested run: there is none."""

    async def compact(self, order: Compact) -> Compacted | CompactionFailed:
        return CompactionFailed(order.id, Failure(FailureKind.UNUSABLE, "a nested run compacts nothing"))

    async def stage(self, order: StageCollapse) -> CollapseStaged:
        return CollapseStaged(order.id, None)


__all__ = ["NestedCompactor", "Restore", "nested_config"]
