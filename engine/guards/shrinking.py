"""A compaction answered."""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.events import (
    Compacted,
    CompactionFailed,
)
from stepfold.engine.failures import TOO_LONG
from stepfold.engine.guards.facts import AnyEvent
from stepfold.engine.guards.spending import requests_spent_after
from stepfold.engine.state import Control, Withheld


def under_threshold(c: Control, e: Compacted, k: Config) -> bool:
    """Autocompact brought the view under its threshold."""
    return bool(e.summary.strip()) and e.tokens < k.thresholds[c.attempts.fallbacks].autocompact


def worked(c: Control, e: Compacted, k: Config) -> bool:
    """
    Reactive compaction worked: under the blocking limit and smaller than before.

    After a prompt that was too long the view before counts as at least the
    whole window, whatever the estimate said.
    """
    limits = k.thresholds[c.attempts.fallbacks]
    before = c.fill.tokens
    if c.recovery.withheld is Withheld.TOO_LONG:
        before = max(before, limits.window)
    return bool(e.summary.strip()) and e.tokens < min(limits.blocking, before)


def _summary_too_long(c: Control, e: CompactionFailed) -> bool:
    return e.failure.kind in TOO_LONG and not c.fill.last_round


def summary_too_long(c: Control, e: CompactionFailed, k: Config) -> bool:
    """Autocompact's own request was too long, and a round and a retry are left."""
    return _summary_too_long(c, e) and c.compaction.retries < k.max_compactor_retries


def summary_barred(c: Control, e: CompactionFailed, k: Config) -> bool:
    """As ``summary_too_long``, but no request may leave."""
    return summary_too_long(c, e, k) and requests_spent_after(c, e.usage, k)


def reaction_too_long(c: Control, e: CompactionFailed, k: Config) -> bool:
    """Reactive compaction's own request was too long, and a round and a retry are left."""
    return _summary_too_long(c, e) and c.compaction.reactive_retries < k.max_compactor_retries


def reaction_barred(c: Control, e: CompactionFailed, k: Config) -> bool:
    """As ``reaction_too_long``, but no request may leave."""
    return reaction_too_long(c, e, k) and requests_spent_after(c, e.usage, k)


def media_withheld(c: Control, e: AnyEvent, k: Config) -> bool:
    """The failure kept back is about media."""
    return c.recovery.withheld is Withheld.MEDIA
