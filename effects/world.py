"""All ports of a run in one place."""

from __future__ import annotations

import attrs

from stepfold.effects.ports import (
    BackgroundWork,
    Clock,
    Compactor,
    Hooks,
    Log,
    Microcompactor,
    Model,
    Permission,
    Prefetcher,
    Summariser,
    Tools,
)


@attrs.frozen(kw_only=True)
class World:
    """
    The outside of a run.

    None stands for a port that is not there: no log is kept, nothing is
    summarised or found, cache edits go out with the request as they are, and
    background work is not done.
    """

    model: Model
    tools: Tools
    compactor: Compactor
    permission: Permission
    hooks: Hooks
    clock: Clock
    summariser: Summariser | None = None
    prefetcher: Prefetcher | None = None
    microcompactor: Microcompactor | None = None
    background: BackgroundWork | None = None
    log: Log | None = None
