"""Does the view fit, and may a request leave?"""

from __future__ import annotations

from stepfold.engine.config import Config
from stepfold.engine.guards.facts import AnyEvent
from stepfold.engine.guards.spending import requests_spent
from stepfold.engine.state import Control, Tried


def staged_at_threshold(c: Control, e: AnyEvent, k: Config) -> bool:
    """Collapses are staged and the view is at autocompact's threshold."""
    return (
        c.recovery.staged > 0
        and k.collapse
        and not k.nested
        and c.fill.tokens >= k.thresholds[c.attempts.fallbacks].autocompact
    )


def compaction_due(c: Control, e: AnyEvent, k: Config) -> bool:
    """Autocompact fires: at its threshold, not tried in this iteration, breaker closed, a floor below it."""
    threshold = k.thresholds[c.attempts.fallbacks].autocompact
    return (
        c.fill.tokens >= threshold
        and k.autocompact
        and not k.nested
        and c.compaction.tried is Tried.NOT
        and c.compaction.failures < k.max_compaction_failures
        and c.fill.floor < threshold
    )


def compaction_barred(c: Control, e: AnyEvent, k: Config) -> bool:
    """Autocompact would fire, but no request may leave."""
    return compaction_due(c, e, k) and requests_spent(c, e, k)


def context_full(c: Control, e: AnyEvent, k: Config) -> bool:
    """The view is at the blocking limit, and nothing that could still shrink it is unspent."""
    limit = k.thresholds[c.attempts.fallbacks].blocking
    if k.nested:
        return False
    if c.fill.floor >= limit:
        return True
    return (
        c.fill.tokens >= limit
        and c.compaction.tried is not Tried.WORKED
        and not (k.reactive_compact and not c.recovery.reactive_compacted)
        and not (k.collapse and c.recovery.staged > 0)
    )
