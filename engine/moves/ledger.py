"""Effects that are owed an answer, and joining the view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stepfold.engine.config import Config, ModelSpec
from stepfold.engine.context.tokens import estimate_message
from stepfold.engine.effects import (
    CallModel,
    Cancel,
    CancelModel,
    CancelTool,
    Effect,
    Finish,
    Owed,
    Prefetch,
    RunTool,
    StageCollapse,
    Summarise,
)
from stepfold.engine.events import Usage
from stepfold.engine.frozen import evolve
from stepfold.engine.ids import Ids
from stepfold.engine.messages import Message, Role, ToolUse
from stepfold.engine.phases import Done
from stepfold.engine.state import (
    Book,
    Control,
    Data,
    Fill,
    Ledger,
    Move,
    Spending,
)
from stepfold.engine.terminals import End

# Bound once: on Python 3.11 the way to a member through its class costs more than a guard.
ASSISTANT: Final = Role.ASSISTANT


def owing(data: Data, effect: Owed) -> Data:
    """Return *data* that waits for an answer to *effect*, whose id is the next one."""
    ledger = data.ledger
    return with_ledger(data, Ledger((*ledger.owed, effect), ledger.next_id + 1))


def with_ledger(data: Data, ledger: Ledger) -> Data:
    """Return *data* with another ledger."""
    return evolve(data, ledger=ledger)


def with_book(data: Data, book: Book) -> Data:
    """Return *data* with another book."""
    return evolve(data, book=book)


def without(data: Data, ids: Iterable[int]) -> Data:
    """Return *data* that no longer waits for *ids*: their answers will be late."""
    gone = frozenset(ids)
    ledger = data.ledger
    owed = tuple(effect for effect in ledger.owed if effect.id not in gone)
    return with_ledger(data, Ledger(owed, ledger.next_id))


def cancel_all(data: Data) -> tuple[Data, tuple[Effect, ...]]:
    """Return *data* that waits for nothing, and the orders that cancel what was outstanding."""
    ledger = data.ledger
    orders = tuple(cancellation(effect) for effect in ledger.owed)
    if data.layers.staging:
        data = evolve(data, layers=evolve(data.layers, staging=0))
    return with_ledger(data, Ledger((), ledger.next_id)), orders


def cancellation(effect: Owed) -> Effect:
    """Return the order that cancels *effect*."""
    match effect:
        case CallModel(id):
            return CancelModel(id)
        case RunTool(id):
            return CancelTool(id)
        case _:
            return Cancel(effect.id)


def cancel_staging(data: Data) -> tuple[Data, tuple[Effect, ...]]:
    """Return *data* without a collapse being staged: the view it was made for is gone."""
    stale = tuple(effect for effect in data.ledger.owed if isinstance(effect, StageCollapse))
    if not stale:
        return data, ()
    return without(data, (effect.id for effect in stale)), tuple(Cancel(effect.id) for effect in stale)


def beside(data: Data) -> tuple[Effect, ...]:
    """Return the orders that a new process begins again of what ran beside the loop."""
    return tuple(e for e in data.ledger.owed if isinstance(e, Summarise | Prefetch | StageCollapse))


def joined(
    data: Data, fill: Fill, messages: Iterable[Message], tokens: int | None = None
) -> tuple[Data, Fill]:
    """
    Return data and fill with *messages* at the end of the view.

    Args:
        data: What is added to.
        fill: The token count that grows.
        messages: What joins.
        tokens: What they take, where it was reported; else it is estimated.
    """
    new = tuple(messages)
    if not new:
        return data, fill
    size = sum(map(estimate_message, new)) if tokens is None else tokens
    data = evolve(data, messages=data.messages.extend(new), used_ids=learned(data.used_ids, new))
    return data, Fill(fill.tokens + size, fill.floor, fill.last_round)


def learned(used: Ids, messages: Iterable[Message]) -> Ids:
    """Return *used* with the call ids of *messages*."""
    for message in messages:
        if message.role is ASSISTANT:
            for block in message.content:
                if type(block) is ToolUse:
                    used = used.add(block.id)
    return used


def total(usage: Usage, more: Usage | None) -> Usage:
    """Return the run's usage with *more* added."""
    if more is None:
        return usage
    return Usage(
        usage.input_tokens + more.input_tokens,
        usage.output_tokens + more.output_tokens,
        usage.cache_read_tokens + more.cache_read_tokens,
        usage.cache_creation_tokens + more.cache_creation_tokens,
    )


def one_more_request(control: Control) -> Spending:
    """Return the spending with one more request counted, before it leaves."""
    spent = control.spending
    return evolve(spent, model_calls=spent.model_calls + 1)


def finish(control: Control, data: Data, end: End, *effects: Effect) -> Move:
    """Return the move that ends the run: nothing stays outstanding, ``Finish`` is last."""
    data, cancelled = cancel_all(data)
    return Move(control, Done(end), data, (*cancelled, *effects, Finish(end)))


def spec_of(control: Control, config: Config) -> ModelSpec:
    """Return the current model's spec."""
    return config.all_models[control.attempts.fallbacks]
