"""What happened in a recording, entry by entry, and how it stood after one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from stepfold.adapters.codec import EVENT_TAGS, canonical
from stepfold.adapters.recording import Recording, RecordingError
from stepfold.effects import trace
from stepfold.engine import Config, State
from stepfold.engine.effects import Continued, Effect, Owed, Show
from stepfold.engine.events import (
    BlockCompleted,
    Compacted,
    Event,
    HookAnswered,
    PermissionAnswered,
    RunStarted,
    StreamClosed,
    StreamFailed,
    ToolEnded,
)
from stepfold.engine.messages import Block, Text, Thinking, ToolResult, ToolUse, texts


@attrs.frozen
class Moment:
    """
    One entry of a recording.

    Args:
        entry: Its number, counted from 1.
        run: Number of its run, counted from 1; 0: before any.
        at_ms: When it happened, on the run's clock.
        event: Its name, as in the file.
        effect_id: Of the order that it answers, or None.
        words: What it says, in one line.
        orders: What it caused: name and id of each order that is owed an answer.
        continued: Reasons why the loop went round.
        ended: Reason of the end; None: the run goes on.
    """

    entry: int
    run: int
    at_ms: int
    event: str
    effect_id: int | None
    words: str
    orders: tuple[str, ...]
    continued: tuple[str, ...]
    ended: str | None


def moments(recording: Recording) -> Iterator[Moment]:
    """Yield the entries of *recording*; raises ``UnexpectedEvent`` where one cannot happen."""
    run, over = 0, True
    for entry, (event, state, effects) in enumerate(
        trace(recording.events, recording.state(), recording.begun.config), 1
    ):
        run += isinstance(event, RunStarted)
        end = state.end
        ended = None if end is None or (over and not isinstance(event, RunStarted)) else end.reason.value
        over = end is not None
        yield Moment(
            entry,
            run,
            event.at_ms,
            EVENT_TAGS[type(event)],
            getattr(event, "effect_id", None),
            words_of(event),
            tuple(_order(effect) for effect in effects if isinstance(effect, Owed)),
            tuple(_continues(effects)),
            ended,
        )


def _order(order: Owed) -> str:
    return f"{type(order).__name__} {order.id}"


def _continues(effects: tuple[Effect, ...]) -> Iterator[str]:
    for effect in effects:
        if isinstance(effect, Show) and isinstance(effect.item, Continued):
            yield str(effect.item.reason)


def words_of(event: Event) -> str:
    """Return what *event* says, in short."""
    match event:
        case RunStarted(prompt=blocks):
            return texts(blocks)
        case BlockCompleted(block=block):
            return _block(block)
        case ToolEnded(content=content, status=status):
            return f"{status.value}: {_said(content)}"
        case StreamClosed(stop=stop, reason=reason):
            return reason or stop.value
        case StreamFailed(failure=failure):
            return f"{failure.kind.value}: {failure.message}"
        case Compacted(summary=summary):
            return summary
        case HookAnswered(verdict=verdict):
            return verdict.value
        case PermissionAnswered(allowed=allowed):
            return "allowed" if allowed else "denied"
        case _:
            return ""


def _block(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case Thinking(thinking=text):
            return f"(thinking) {text}"
        case ToolUse(name=name, input=given):
            return f"{name} {given}"
        case ToolResult(content=content):
            return _said(content)
        case _:
            return type(block).__name__


def _said(content: tuple[Any, ...]) -> str:
    return " ".join(part.text if isinstance(part, Text) else type(part).__name__ for part in content)


# ------------------------------------------------------------------- one instant


@attrs.frozen
class Instant:
    """
    How it stood after an entry.

    Args:
        entry: Its number, counted from 1; 0: before the first.
        of: How many the recording holds.
        state: The state.
        config: Of the recording.
    """

    entry: int
    of: int
    state: State
    config: Config

    def limits(self) -> list[tuple[str, int, int]]:
        """Return each limit that is on: its key in Config, how much is used, and how much there is."""
        control, config = self.state.control, self.config
        spent, recovery = control.spending, control.recovery
        hooks = sum(hook.max_blocks for hook in config.stop_hooks)
        window = config.thresholds[control.attempts.fallbacks]
        used: tuple[tuple[str, int, int | None], ...] = (
            ("max_turns", control.turn, config.max_turns),
            ("max_model_calls", spent.model_calls, config.max_model_calls),
            ("max_run_tokens", spent.input_tokens + spent.output_tokens, config.max_run_tokens),
            ("max_cost", spent.cost, config.max_cost),
            ("token_budget_tokens", spent.output_tokens, config.token_budget_tokens),
            ("context_window_tokens", control.fill.tokens, window.window),
            ("max_retries", control.attempts.retries, config.max_retries),
            ("max_resends", control.attempts.resends, config.max_resends),
            ("max_output_recoveries", recovery.output_recoveries, config.max_output_recoveries),
            ("max_compaction_failures", control.compaction.failures, config.max_compaction_failures),
            ("stop_hooks", sum(self.state.data.book.hook_blocks), hooks or None),
        )
        return [(name, count, limit) for name, count, limit in used if limit is not None]

    def plain(self) -> dict[str, Any]:
        """Return the whole state as JSON data."""
        return {"entry": self.entry, "of": self.of, "state": canonical(self.state)}


def instant(recording: Recording, entry: int) -> Instant:
    """
    Return how it stood after entry number *entry*.

    Raises:
        RecordingError: There is no such entry.
        UnexpectedEvent: One before it cannot happen.
    """
    count = len(recording.events)
    if not 0 <= entry <= count:
        raise RecordingError(f"there is no entry {entry}; wanted a number from 0 to {count}")
    state = recording.state()
    for _, after, _ in trace(recording.events[:entry], state, recording.begun.config):
        state = after
    return Instant(entry, count, state, recording.begun.config)
