"""Autocompact and reactive compaction: asking, asking again, taking the answer."""

from __future__ import annotations

import attrs

from stepfold.engine.config import Config
from stepfold.engine.context.tail import can_drop, compacted_view, drop_rounds, split, without_media
from stepfold.engine.effects import (
    Compact,
    CompactReason,
    Effect,
    MessageShown,
    Notice,
    NoticeKind,
    Show,
)
from stepfold.engine.events import Compacted, CompactionFailed, Resumed, StreamClosed, StreamFailed, Usage
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.frozen import evolve
from stepfold.engine.guards.spending import spend
from stepfold.engine.history import History
from stepfold.engine.messages import Message
from stepfold.engine.moves.iteration import replaced
from stepfold.engine.moves.ledger import beside, one_more_request, owing, spec_of, total, without
from stepfold.engine.moves.reply import stream_ended
from stepfold.engine.moves.turn import window_partial
from stepfold.engine.phases import FITTING, Compacting, Reacting, Sampling
from stepfold.engine.state import (
    Batch,
    Compaction,
    Control,
    Data,
    Entered,
    Fill,
    Move,
    Spending,
    State,
    Tried,
    Withheld,
)


def _order(control: Control, data: Data, reason: CompactReason, k: Config) -> Compact:
    """Return the order that summarises the view; reactive compaction strips media."""
    head, tail = split(tuple(data.messages), k)
    strip = reason is CompactReason.REACTIVE
    return Compact(
        id=data.ledger.next_id,
        reason=reason,
        head=without_media(head) if strip else head,
        tail=without_media(tail) if strip else tail,
        model=spec_of(control, k).name,
        strip_media=strip,
        restore=k.restore_max_tokens,
        floor=control.fill.floor,
    )


def _asked(control: Control, order: Compact) -> Control:
    """Return *control* with one more request counted and the room for retries known."""
    fill = control.fill
    return evolve(
        control,
        spending=one_more_request(control),
        fill=Fill(fill.tokens, fill.floor, last_round=not can_drop(order.head)),
    )


def start_compaction(s: State, e: Entered, k: Config) -> Move:
    """Ask for a summary of everything but the tail."""
    order = _order(s.control, s.data, CompactReason.AUTO, k)
    return Move(_asked(s.control, order), Compacting(order), owing(s.data, order), (order,))


def _shorter(s: State, e: CompactionFailed, k: Config) -> tuple[Compact, Control, Data]:
    """Ask again over a head without its oldest rounds."""
    assert isinstance(s.phase, Compacting | Reacting)
    old = s.phase.compact
    order = attrs.evolve(
        old,
        id=s.data.ledger.next_id,
        head=drop_rounds(old.head, e.failure.excess_tokens),
        attempt=old.attempt + 1,
    )
    control = evolve(s.control, spending=spend(s.control, e.usage, spec_of(s.control, k)))
    data = _booked(owing(s.data, order), e.usage)
    control = _asked(control, order)
    return order, evolve(control, attempts=evolve(control.attempts, crashed=False)), data


def retry_compaction(s: State, e: CompactionFailed, k: Config) -> Move:
    """Autocompact's request was itself too long: drop the oldest rounds and ask again."""
    order, control, data = _shorter(s, e, k)
    book = evolve(control.compaction, retries=control.compaction.retries + 1)
    return Move(evolve(control, compaction=book), Compacting(order), data, (order,))


def retry_reaction(s: State, e: CompactionFailed, k: Config) -> Move:
    """Reactive compaction's request was itself too long: drop the oldest rounds and ask again."""
    assert isinstance(s.phase, Reacting)
    order, control, data = _shorter(s, e, k)
    book = evolve(control.compaction, reactive_retries=control.compaction.reactive_retries + 1)
    phase = Reacting(order, s.phase.failure, s.phase.partial)
    return Move(evolve(control, compaction=book), phase, data, (order,))


def _booked(data: Data, usage: Usage | None) -> Data:
    if usage is None:
        return data
    return evolve(data, book=evolve(data.book, usage=total(data.book.usage, usage)))


def compacted_data(
    c: Control, data: Data, order: Compact, e: Compacted, k: Config
) -> tuple[Data, Fill, tuple[Effect, ...], Spending]:
    """
    Return the world after a compaction is applied: view, token count, effects, spending.

    The task budget is corrected here: what the old view held is spent, and
    ``remaining`` is fixed until the next compaction.
    """
    view = compacted_view(e.summary, order.tail, e.attachments)
    data, cancelled = replaced(data, History[Message]().extend(view))
    book = evolve(data.book, usage=total(data.book.usage, e.usage))
    if k.task_budget_tokens is not None:
        spent = book.task_spent + c.fill.tokens
        book = evolve(book, task_spent=spent, task_remaining=max(0, k.task_budget_tokens - spent))
    data = evolve(data, book=book)
    words = f"{len(order.head)} messages were summarised"
    notice = Notice(NoticeKind.COMPACTED, words, max(0, c.fill.tokens - e.tokens))
    shown = tuple(Show(MessageShown(message)) for message in (view[1], *e.attachments))
    effects = (*cancelled, Show(notice), *shown)
    return data, Fill(e.tokens, c.fill.floor), effects, spend(c, e.usage, spec_of(c, k))


def _after(c: Control, book: Compaction, fill: Fill, spending: Spending, staged: int) -> Control:
    return evolve(
        c,
        compaction=book,
        fill=Fill(fill.tokens, fill.floor),
        spending=spending,
        recovery=evolve(c.recovery, staged=staged),
        attempts=evolve(c.attempts, crashed=False),
    )


def take_compaction(s: State, e: Compacted, k: Config) -> Move:
    """Autocompact worked: the new view stands, the failures are forgotten."""
    assert isinstance(s.phase, Compacting)
    c = s.control
    data, fill, effects, spending = compacted_data(c, s.data, s.phase.compact, e, k)
    book = evolve(c.compaction, compacted=True, turns_since=0, failures=0, tried=Tried.WORKED)
    return Move(_after(c, book, fill, spending, 0), FITTING, data, effects)


def take_short_compaction(s: State, e: Compacted, k: Config) -> Move:
    """Autocompact did not get under its threshold: a failure, but what is smaller is kept."""
    assert isinstance(s.phase, Compacting)
    c, data, staged = s.control, _booked(s.data, e.usage), s.control.recovery.staged
    failures = c.compaction.failures + 1
    book = evolve(c.compaction, failures=failures, tried=Tried.FAILED)
    fill, spending = c.fill, spend(c, e.usage, spec_of(c, k))
    words = "the summary did not bring the view under its threshold"
    notice = Notice(NoticeKind.COMPACTION_FAILED, words, failures)
    effects: tuple[Effect, ...] = (Show(notice),)
    if e.summary.strip() and e.tokens < c.fill.tokens:
        data, fill, more, spending = compacted_data(c, s.data, s.phase.compact, e, k)
        effects, staged = (*effects, *more), 0
        book = evolve(book, compacted=True, turns_since=0)
    return Move(_after(c, book, fill, spending, staged), FITTING, data, effects)


def fail_compaction(s: State, e: CompactionFailed | Resumed, k: Config) -> Move:
    """Autocompact gave nothing: one failure more for the breaker; the view is unchanged."""
    c, usage, words = s.control, None, "the process died while it ran"
    data, again = s.data, tuple[Effect, ...]()
    if isinstance(e, CompactionFailed):
        usage, words = e.usage, e.failure.message or e.failure.kind
    else:
        again = beside(data)
        data = without(data, (effect.id for effect in data.ledger.owed if isinstance(effect, Compact)))
    failures = c.compaction.failures + 1
    book = evolve(c.compaction, failures=failures, tried=Tried.FAILED)
    control = _after(c, book, c.fill, spend(c, usage, spec_of(c, k)), c.recovery.staged)
    notice = Notice(NoticeKind.COMPACTION_FAILED, f"compaction failed: {words}", failures)
    return Move(control, FITTING, _booked(data, usage), (Show(notice), *again))


def react(s: State, e: StreamFailed | StreamClosed, k: Config) -> Move:
    """Keep the failure back and ask for a compaction, media stripped."""
    assert isinstance(s.phase, Sampling)
    c, data, reply, shown = stream_ended(s, s.phase.reply, e, k)
    data, partial, effects = window_partial(data, reply, e, spec_of(c, k).name, k)
    failure = withheld(e)
    kind = Withheld.MEDIA if failure.kind is FailureKind.MEDIA_TOO_LARGE else Withheld.TOO_LONG
    order = _order(c, data, CompactReason.REACTIVE, k)
    control = evolve(
        _asked(c, order),
        recovery=evolve(c.recovery, withheld=kind),
        attempts=evolve(c.attempts, crashed=False),
        batch=Batch(),
    )
    return Move(control, Reacting(order, failure, partial), owing(data, order), (*shown, *effects, order))


def withheld(e: StreamFailed | StreamClosed) -> Failure:
    """Return the failure that a stream's end stands for."""
    if isinstance(e, StreamFailed):
        return e.failure
    return Failure(FailureKind.WINDOW_EXCEEDED, "the answer reached the limit of the context window")
