"""Layer 1: the oldest whole rounds leave the view (specification, section 2)."""

from __future__ import annotations

from itertools import pairwise

from stepfold.engine.context.rounds import round_starts
from stepfold.engine.context.tokens import freed_tokens
from stepfold.engine.history import History
from stepfold.engine.messages import Message, Origin, Role


def snip(view: History[Message], over_tokens: int) -> tuple[History[Message], int, int]:
    """
    Return the view without its oldest rounds, the tokens freed, the rounds that left.

    Rounds leave until at least *over_tokens* are freed; the first prompt and
    the last round never do.  One boundary message stays in their place.
    """
    messages = tuple(view)
    kept = next((p for p, m in enumerate(messages) if m.role is Role.ASSISTANT), len(messages))
    edges = [kept, *(start for start in round_starts(messages) if start > kept)]
    freed, cut, rounds = 0, kept, 0
    for start, end in pairwise(edges):
        if freed >= over_tokens:
            break
        freed += sum(freed_tokens(message.content) for message in messages[start:end])
        cut, rounds = end, rounds + 1
    if not rounds:
        return view, 0, 0
    before = tuple(message for message in messages[:kept] if message.origin is not Origin.BOUNDARY)
    boundary = Message(Role.USER, (), Origin.BOUNDARY)
    return History[Message]().extend((*before, boundary, *messages[cut:])), freed, rounds
