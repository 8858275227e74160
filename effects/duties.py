"""
What the world owes for each effect that asks for one answer: whom to ask, how
long, and what is said where no answer came.  (A model call gives many answers:
``model_call.py``.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from stepfold.effects.border import (
    WrongAnswer,
    awaited,
    block_problem,
    clean,
    message_problem,
    said,
    short,
    want,
    want_field,
    whole_usage,
)
from stepfold.effects.world import World
from stepfold.engine.config import Config
from stepfold.engine.context.places import belongs, result_part
from stepfold.engine.context.repair import encodable
from stepfold.engine.effects import (
    AskPermission,
    Compact,
    Prefetch,
    RunHook,
    RunTool,
    StageCollapse,
    Summarise,
    Wait,
)
from stepfold.engine.events import (
    CallStatus,
    CollapseStaged,
    Compacted,
    CompactionFailed,
    Event,
    HookAnswered,
    HookStop,
    HookVerdict,
    PermissionAnswered,
    Prefetched,
    SummaryReady,
    ToolEnded,
    WaitElapsed,
)
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.messages import Message, ResultBlock, Role, Text, ToolResult

Progress = Callable[[str], None]


@attrs.frozen
class Duty:
    """
    One class of effect.

    Args:
        ask: Asks the port; its answer goes through ``stamp``.
        stamp: Makes the event, with the order's id and the time in ms; raises
            ``WrongAnswer`` for anything but an answer.
        failed: The event where the port raised: id, words, time.
        expired: The event where the deadline passed: id, words, time.
        deadline_ms: How long an answer may take; None: for ever.
        mute: The event has no place for the words of a failure: they are logged.
    """

    ask: Callable[[World, Any, Progress], Awaitable[Any]]
    stamp: Callable[[Any, int, int], Event]
    failed: Callable[[int, str, int], Event]
    expired: Callable[[int, str, int], Event]
    deadline_ms: Callable[[Config], int | None]
    mute: bool = False


def clean_failure(failure: Failure) -> Failure:
    """Return *failure* with words that a log can hold."""
    return failure if failure.message.isascii() else attrs.evolve(failure, message=clean(failure.message))


# ------------------------------------------------------------------------ tools


def _tool_ended(answer: ToolEnded, id: int, now: int) -> Event:
    want(answer, ToolEnded)
    if type(answer.content) is not tuple or type(answer.messages) is not tuple:
        want_field(answer, "content", tuple)
        want_field(answer, "messages", tuple)
    if type(answer.status) is not CallStatus or answer.stop is not None:
        want_field(answer, "status", CallStatus)
        want_field(answer, "stop", HookStop, type(None))
    for part in answer.content:
        if type(part) is not Text or type(part.text) is not str:
            _want_part(part)
    for message in answer.messages:
        _want_further(message)
    content = tuple(map(_clean_result, answer.content))
    messages = tuple(map(_clean_message, answer.messages)) if answer.messages else ()
    return ToolEnded(id, content, answer.status, answer.stop, messages, now)


def _want_part(part: object) -> None:
    """Raise ``WrongAnswer`` where no result may hold *part*."""
    if problem := block_problem(part):
        raise WrongAnswer(f"the result holds what is no block: {problem}")
    if not result_part(part):  # type: ignore[arg-type]
        raise WrongAnswer(f"the result holds {short(part)}; wanted Text, Media, Opaque blocks without calls")


def _want_further(message: Message) -> None:
    """Raise ``WrongAnswer`` where *message* cannot join behind the results."""
    if problem := message_problem(message):
        raise WrongAnswer(f"the tool brought a message that is none: {problem}")
    if message.role is Role.ASSISTANT:
        raise WrongAnswer(f"the tool brought {short(message)}; wanted messages of the user or the system")
    for block in message.content:
        if isinstance(block, ToolResult) or not belongs(block, message.role):
            raise WrongAnswer(f"the tool brought a message of the {message.role} with {short(block)} in it")


def _clean_result(block: ResultBlock) -> ResultBlock:
    return block if type(block) is Text and block.text.isascii() else encodable(block)


def _clean_message(message: Message) -> Message:
    return attrs.evolve(message, content=tuple(map(encodable, message.content)))


def _tool_failed(id: int, words: str, now: int) -> Event:
    return ToolEnded(id, (Text(words),), CallStatus.FAILED, None, (), now)


async def _run_tool(world: World, order: RunTool, progress: Progress) -> ToolEnded:
    return await awaited(world.tools.run(order, progress), "Tools.run")


# ------------------------------------------------------------------- permission


def _permission(answer: PermissionAnswered, id: int, now: int) -> Event:
    want(answer, PermissionAnswered)
    want_field(answer, "allowed", bool)
    want_field(answer, "input", str, type(None))
    want_field(answer, "stop", HookStop, type(None))
    return PermissionAnswered(id, answer.allowed, said(answer, "words"), answer.input, answer.stop, now)


def _no_permission(id: int, words: str, now: int) -> Event:
    return PermissionAnswered(id, False, f"Asking for permission failed: {words}", None, None, now)


async def _ask_permission(world: World, order: AskPermission, progress: Progress) -> PermissionAnswered:
    return await awaited(world.permission.ask(order), "Permission.ask")


# ------------------------------------------------------------------- compaction


def _compacted(answer: Compacted | CompactionFailed, id: int, now: int) -> Event:
    want(answer, Compacted, CompactionFailed)
    usage = whole_usage(answer.usage)
    if isinstance(answer, CompactionFailed):
        want_field(answer, "failure", Failure)
        return CompactionFailed(id, clean_failure(answer.failure), usage, now)
    want_field(answer, "tokens", int)
    want_field(answer, "attachments", tuple)
    for message in answer.attachments:
        if problem := message_problem(message):
            raise WrongAnswer(f"the compactor attached a message that is none: {problem}")
    attachments = tuple(map(_clean_message, answer.attachments))
    return Compacted(id, said(answer, "summary"), answer.tokens, attachments, usage, now)


def _compaction_failed(id: int, words: str, now: int) -> Event:
    return CompactionFailed(id, Failure(FailureKind.OTHER, words), None, now)


def _compaction_expired(id: int, words: str, now: int) -> Event:
    return CompactionFailed(id, Failure(FailureKind.TIMEOUT, words), None, now)


async def _compact(world: World, order: Compact, progress: Progress) -> Compacted | CompactionFailed:
    return await awaited(world.compactor.compact(order), "Compactor.compact")


def _staged(answer: CollapseStaged, id: int, now: int) -> Event:
    want(answer, CollapseStaged)
    return CollapseStaged(id, None if answer.summary is None else said(answer, "summary"), now)


def _not_staged(id: int, words: str, now: int) -> Event:
    return CollapseStaged(id, None, now)


async def _stage(world: World, order: StageCollapse, progress: Progress) -> CollapseStaged:
    return await awaited(world.compactor.stage(order), "Compactor.stage")


# ------------------------------------------------------------------ the others


def _hook_answered(answer: HookAnswered, id: int, now: int) -> Event:
    want(answer, HookAnswered)
    want_field(answer, "verdict", HookVerdict)
    return HookAnswered(id, answer.verdict, said(answer, "words"), now)


def _hook_crashed(id: int, words: str, now: int) -> Event:
    return HookAnswered(id, HookVerdict.CRASH, words, now)


def _hook_expired(id: int, words: str, now: int) -> Event:
    return HookAnswered(id, HookVerdict.TIMEOUT, words, now)


async def _ask_hook(world: World, order: RunHook, progress: Progress) -> HookAnswered:
    return await awaited(world.hooks.ask(order), "Hooks.ask")


def _summary(answer: SummaryReady, id: int, now: int) -> Event:
    want(answer, SummaryReady)
    return SummaryReady(id, None if answer.summary is None else said(answer, "summary"), now)


def _no_summary(id: int, words: str, now: int) -> Event:
    return SummaryReady(id, None, now)


async def _summarise(world: World, order: Summarise, progress: Progress) -> SummaryReady:
    if world.summariser is None:
        return SummaryReady(order.id, None)
    return await awaited(world.summariser.summarise(order), "Summariser.summarise")


def _prefetched(answer: Prefetched, id: int, now: int) -> Event:
    want(answer, Prefetched)
    want_field(answer, "texts", tuple)
    return Prefetched(id, tuple(map(clean, answer.texts)), now)


def _nothing_found(id: int, words: str, now: int) -> Event:
    return Prefetched(id, (), now)


async def _prefetch(world: World, order: Prefetch, progress: Progress) -> Prefetched:
    if world.prefetcher is None:
        return Prefetched(order.id)
    return await awaited(world.prefetcher.prefetch(order), "Prefetcher.prefetch")


def _elapsed(answer: object, id: int, now: int) -> Event:
    return WaitElapsed(id, now)


def _not_slept(id: int, words: str, now: int) -> Event:
    return WaitElapsed(id, now)


async def _wait(world: World, order: Wait, progress: Progress) -> None:
    await awaited(world.clock.sleep(order.ms), "Clock.sleep")


def _tool_ms(config: Config) -> int:
    return config.tool_timeout_ms


def _hook_ms(config: Config) -> int:
    return config.hook_timeout_ms


def _compactor_ms(config: Config) -> int:
    return config.compactor_timeout_ms


def _side_ms(config: Config) -> int:
    return config.side_timeout_ms


def _for_ever(config: Config) -> int | None:
    return None


DUTIES: Final[Mapping[type, Duty]] = MappingProxyType(
    {
        RunTool:       Duty(_run_tool, _tool_ended, _tool_failed, _tool_failed, _tool_ms),
        AskPermission: Duty(_ask_permission, _permission, _no_permission, _no_permission, _for_ever),
        Compact:       Duty(_compact, _compacted, _compaction_failed, _compaction_expired, _compactor_ms),
        StageCollapse: Duty(_stage, _staged, _not_staged, _not_staged, _side_ms, mute=True),
        RunHook:       Duty(_ask_hook, _hook_answered, _hook_crashed, _hook_expired, _hook_ms),
        Summarise:     Duty(_summarise, _summary, _no_summary, _no_summary, _side_ms, mute=True),
        Prefetch:      Duty(_prefetch, _prefetched, _nothing_found, _nothing_found, _side_ms, mute=True),
        Wait:          Duty(_wait, _elapsed, _not_slept, _not_slept, _for_ever, mute=True),
    }
)  # fmt: skip
