"""Contracts of Compacting and Reacting: a compaction answers, fails, is aborted, dies."""

from __future__ import annotations

from typing import Final

from stepfold.adapters.proof.symbolic.given import (
    PLAIN,
    Given,
    compact,
    config,
    control,
    data,
    falls,
    small,
    sound,
)
from stepfold.engine.effects import CompactReason
from stepfold.engine.events import AbortKind, AbortRequested, Compacted, CompactionFailed, Event, Resumed
from stepfold.engine.failures import Failure, FailureKind
from stepfold.engine.phases import Compacting, PhaseKind, Reacting
from stepfold.engine.state import Recovery, Withheld

TOO_LONG: Final = Failure(FailureKind.PROMPT_TOO_LONG)
UNUSABLE: Final = Failure(FailureKind.UNUSABLE)
AUTO: Final = compact(CompactReason.AUTO)
REACTIVE: Final = compact(CompactReason.REACTIVE)


def _auto(g: Given, event: Event) -> bool:
    return falls(control(g, PhaseKind.COMPACTING), event, Compacting(AUTO), data(AUTO), config(g, PLAIN))


def _reactive(g: Given, event: Event) -> bool:
    withheld = Recovery(g.recoveries, False, None, withheld=Withheld.TOO_LONG, staged=g.staged)
    c = control(g, PhaseKind.REACTING, recovery=withheld)
    return falls(c, event, Reacting(REACTIVE, TOO_LONG), data(REACTIVE), config(g, PLAIN))


def compacting_compacted(g: Given) -> None:
    """The new view of any size: a request, or the end."""
    assert sound(g)
    assert _auto(g, Compacted(1, "s", g.fact))


def compacting_compacted_nothing(g: Given) -> None:
    """An empty summary: the old view of any size, a request, or the end."""
    assert sound(g)
    assert _auto(g, Compacted(1, "", g.fact))


def compacting_failed_too_long(g: Given) -> None:
    """Asked again over less, or given up."""
    assert sound(g)
    assert _auto(g, CompactionFailed(1, TOO_LONG))


def compacting_failed(g: Given) -> None:
    """Given up: a request with the old view, or the end."""
    assert sound(g)
    assert _auto(g, CompactionFailed(1, UNUSABLE))


def compacting_aborted(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _auto(g, AbortRequested(AbortKind.HARD))


def compacting_resumed(g: Given) -> None:
    """Begun again once, then given up."""
    assert sound(g)
    assert _auto(g, Resumed())


def reacting_compacted(g: Given) -> None:
    """The view shrank: the seventh way round, or the end."""
    assert sound(g) & small(g)
    assert _reactive(g, Compacted(1, "s", g.fact))


def reacting_failed_too_long(g: Given) -> None:
    """Asked again over less, or the end."""
    assert sound(g)
    assert _reactive(g, CompactionFailed(1, TOO_LONG))


def reacting_failed(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _reactive(g, CompactionFailed(1, UNUSABLE))


def reacting_aborted(g: Given) -> None:
    """The end."""
    assert sound(g)
    assert _reactive(g, AbortRequested(AbortKind.HARD))


def reacting_resumed(g: Given) -> None:
    """Begun again once, then the end."""
    assert sound(g)
    assert _reactive(g, Resumed())
