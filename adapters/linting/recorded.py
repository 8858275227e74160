"""A recording of this loop as items, so that one set of rules reads both."""

from __future__ import annotations

from collections.abc import Iterator

from stepfold.adapters.recording import Entries
from stepfold.adapters.transcripts.items import (
    Began,
    Compacted,
    Ended,
    Interrupted,
    Item,
    Place,
    RequestFailed,
    Said,
)
from stepfold.engine import State, start, step
from stepfold.engine.effects import CallShown, Effect, ErrorShown, Show, Wait
from stepfold.engine.events import (
    AbortRequested,
    BlockCompleted,
    Event,
    RunStarted,
    StreamClosed,
    StreamFailed,
)
from stepfold.engine.events import Compacted as SummaryCame
from stepfold.engine.messages import Message, Origin, Role, ToolResult


def items_of(entries: Entries) -> Iterator[Item]:
    """
    Yield what a recording tells, line by line.

    Raises:
        RecordingError: It is damaged.
        UnexpectedEvent: An event cannot happen where it stands.
    """
    begun = entries.begun
    state = start(begun.messages, begun.tools, begun.collapses)
    yield Began(Place(1), begun.config.model, tuple(spec.name for spec in begun.tools))
    for message in begun.messages:
        yield Said(Place(1), message)
    line = 1
    for event, _ in entries:
        line += 1
        before = state
        state, effects = step(state, event, begun.config)
        place = Place(line, at_ms=event.at_ms)
        yield from _told(event, before, state, effects, place)
        if state.end is not None and before.end is None:
            yield Ended(place, state.end.reason.value, state.end.ok)


def _told(
    event: Event, before: State, after: State, effects: tuple[Effect, ...], place: Place
) -> Iterator[Item]:
    match event:
        case RunStarted(prompt=prompt):
            yield Said(place, Message(Role.USER, prompt, Origin.PROMPT))
        case BlockCompleted(effect_id=id, block=block):
            yield Said(place, Message(Role.ASSISTANT, (block,), Origin.ANSWER), f"{id}")
        case StreamClosed(effect_id=id, stop=stop, usage=usage):
            empty = Message(Role.ASSISTANT, (), Origin.ANSWER)
            yield Said(place, empty, f"{id}", "", stop.value, usage)
        case StreamFailed(failure=failure):
            wait = next((effect.ms for effect in effects if isinstance(effect, Wait)), None)
            shown = any(isinstance(e, Show) and isinstance(e.item, ErrorShown) for e in effects)
            kind = failure.error_type or failure.kind.value
            yield RequestFailed(
                place, failure.message, failure.status or None, kind, wait_ms=wait, shown=shown
            )
        case SummaryCame():
            old, new = before.control.fill.tokens, after.control.fill.tokens
            yield Compacted(place, "auto", old, new)
        case AbortRequested():
            yield Interrupted(place)
        case _:
            pass
    results = tuple(
        ToolResult(effect.item.original_id or effect.item.use_id, effect.item.content)
        for effect in effects
        if isinstance(effect, Show) and isinstance(effect.item, CallShown)
    )
    if results:
        yield Said(place, Message(Role.USER, results, Origin.RESULTS))
