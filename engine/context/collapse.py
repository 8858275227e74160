"""Layer 3: spans are shown as stored summaries (specification, section 2)."""

from __future__ import annotations

from collections.abc import Sequence

from stepfold.engine.config import Config
from stepfold.engine.context.rounds import round_starts, snap
from stepfold.engine.context.tail import tail_start
from stepfold.engine.context.tokens import estimate_message, freed_tokens
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Origin, user_text
from stepfold.engine.state import Collapse

HEADER = "[Earlier part of this conversation, summarised]\n"


def commit(view: History[Message], collapses: tuple[Collapse, ...]) -> tuple[History[Message], int]:
    """
    Return the view in which each staged span is one summary, and the tokens saved.

    Spans stand oldest first; each begins where the one before ends.  A cut
    that would part a call from its result moves on to the next whole round.
    """
    messages = tuple(view)
    parts: list[Message] = []
    freed, begin = 0, 0
    for collapse in collapses:
        end = snap(messages, collapse.through)
        if end <= begin:
            continue
        summary = user_text(HEADER + collapse.summary, Origin.SUMMARY)
        parts.append(summary)
        freed += sum(freed_tokens(message.content) for message in messages[begin:end])
        freed -= estimate_message(summary)
        begin = end
    return History[Message]().extend((*parts, *messages[begin:])), max(0, freed)


def span_to_stage(
    messages: Sequence[Message], collapses: tuple[Collapse, ...], config: Config
) -> tuple[int, int] | None:
    """
    Return (begin, end) of the oldest whole rounds not yet staged and outside the tail, or None.

    A span takes rounds until it holds a fifth of the effective window.
    """
    begin = collapses[-1].through if collapses else 0
    limit = tail_start(messages, config)
    enough = config.thresholds[0].effective // 5
    tokens, end = 0, begin
    edges = [start for start in round_starts(messages) if begin < start <= limit]
    for edge in edges:
        tokens += sum(estimate_message(message) for message in messages[end:edge])
        end = edge
        if tokens >= enough:
            break
    return (begin, end) if end > begin else None
