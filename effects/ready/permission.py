"""Permission from one plain function, or from nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import attrs

from stepfold.effects.flow.threads import called
from stepfold.effects.ports import Tools
from stepfold.engine.effects import AskPermission, RunTool
from stepfold.engine.events import CallFacts, PermissionAnswered, ToolEnded, ToolSpec, Verdict
from stepfold.engine.messages import ToolUse

DENIED: Final = "Permission to run this call was denied."


class Nobody:
    """Denies what has to be asked for: there is nobody to ask."""

    async def ask(self, order: AskPermission) -> PermissionAnswered:
        """Deny one call."""
        words = "This call needs a permission, and there is nobody to ask."
        return PermissionAnswered(order.id, allowed=False, words=words)


@attrs.frozen
class AskFunction:
    """
    Asks ``can_use_tool(name, input)``, plain (then in a thread) or async.

    *input* is the filled-out copy, parsed.  True allows; False denies; a text
    denies with these words for the model.
    """

    can_use_tool: Callable[[str, dict[str, Any]], Any]
    tools: Tools

    async def ask(self, order: AskPermission) -> PermissionAnswered:
        """Ask about one call."""
        filled = self.tools.filled(order.call)
        answer = await called(self.can_use_tool, filled.name, json.loads(filled.input or "{}"))
        match answer:
            case True:
                return PermissionAnswered(order.id, allowed=True)
            case False:
                return PermissionAnswered(order.id, allowed=False, words=DENIED)
            case str(words):
                return PermissionAnswered(order.id, allowed=False, words=words)
        raise TypeError(f"can_use_tool returned {answer!r}; wanted True, False or a text")


@attrs.frozen
class Asking:
    """Tools of which every call that is not denied is asked about."""

    tools: Tools

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the wrapped tools."""
        return self.tools.specs()

    def facts(self, call: ToolUse) -> CallFacts:
        """Return the wrapped port's facts, "ask" in the place of "allow"."""
        facts = self.tools.facts(call)
        if facts.known and facts.valid and facts.verdict is Verdict.ALLOW:
            return attrs.evolve(facts, verdict=Verdict.ASK)
        return facts

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the filled-out copy."""
        return self.tools.filled(call)

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Run a call."""
        return await self.tools.run(order, progress)

    async def close(self) -> None:
        """Close the wrapped tools."""
        await self.tools.close()
