"""
Call ids to be cleared, as the API's own context edit.

The API's ``clear_tool_uses_20250919`` takes no ids.  Once its ``trigger`` is
passed it clears the results of the oldest tool uses, all but the ``keep``
newest and those of the tools in ``exclude_tools``.  So a set of ids can be
expressed only as far as it is "the oldest N uses, except whole tools":

* ``keep`` is the number of uses behind the newest id to clear;
* a tool with an older use that shall stay is excluded as a whole;
* ``trigger`` is as low as ``keep``, so the edit always fires.

What cannot be said so is not cleared: an id is left standing rather than
another result lost.  That happens where one tool has, before the newest id, a
use to clear and a use to stay (a result that came later in the same batch is
no such case: the loop clears the oldest first).  Among the cuts that are
possible the one that clears most ids is taken, the earliest of equals: it stays
as it is while the history grows, and so does the prompt cache.  Whether ``keep`` counts the
uses of excluded and of server tools is not documented; it is counted here as
if it did, which in the other case clears less, never more.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from stepfold.adapters.anthropic_api.wire import Wire, loads
from stepfold.engine.messages import Message, Opaque, ToolUse

BETA = "context-management-2025-06-27"


@attrs.frozen
class Edit:
    """The edit to send (None where nothing can be cleared) and the ids that it does not reach."""

    wire: Wire | None
    unmet: tuple[str, ...] = ()


def clearing(ids: Sequence[str], messages: Sequence[Message]) -> Edit:
    """Return the edit that clears the results of the calls *ids* in *messages*, and of no other call."""
    uses = _uses(messages)
    wanted = set(ids)
    count, best, best_cut, best_excluded = 0, 0, 0, frozenset[str]()
    excluded: set[str] = set()
    by_tool: dict[str, int] = {}
    for place, (call_id, name) in enumerate(uses, start=1):
        if call_id not in wanted:
            if name not in excluded:
                excluded.add(name)
                count -= by_tool.get(name, 0)
            continue
        by_tool[name] = by_tool.get(name, 0) + 1
        if name not in excluded:
            count += 1
            if count > best:
                best, best_cut, best_excluded = count, place, frozenset(excluded)
    if not best:
        return Edit(None, tuple(ids))
    keep = len(uses) - best_cut
    wire: Wire = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": max(1, keep)},
        "keep": {"type": "tool_uses", "value": keep},
    }
    if best_excluded:
        wire["exclude_tools"] = sorted(best_excluded)
    met = {call_id for call_id, name in uses[:best_cut] if call_id in wanted and name not in best_excluded}
    return Edit(wire, tuple(call_id for call_id in ids if call_id not in met))


def _uses(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return id and tool name of every call, the server's own too, oldest first."""
    uses = []
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolUse):
                uses.append((block.id, block.name))
            elif isinstance(block, Opaque) and block.call_id:
                uses.append((block.call_id, str(loads(block.wire).get("name", ""))))
    return uses
