"""Several ``Tools`` ports as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from stepfold.adapters.tools.toolbox import unknown_tool
from stepfold.effects.ports import Tools
from stepfold.engine.effects import RunTool
from stepfold.engine.events import CallFacts, CallStatus, ToolEnded, ToolSpec
from stepfold.engine.messages import Text, ToolUse


@attrs.frozen
class Union:
    """Asks the port that offers the tool; looked up anew each time, since a port's tools may change."""

    parts: tuple[Tools, ...]

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools of all, in order."""
        return tuple(spec for part in self.parts for spec in part.specs())

    def facts(self, call: ToolUse) -> CallFacts:
        """Return the facts as the tool's own port knows them."""
        part = self._part(call.name)
        if part is None:
            return CallFacts(known=False, valid=False, problem=self._unknown(call.name))
        return part.facts(call)

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the filled-out copy that the tool's own port makes."""
        part = self._part(call.name)
        return call if part is None else part.filled(call)

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Let the tool's own port run the call."""
        part = self._part(order.call.name)
        if part is None:
            return ToolEnded(order.id, (Text(self._unknown(order.call.name)),), CallStatus.FAILED)
        return await part.run(order, progress)

    async def close(self) -> None:
        """Close all, the last one first; raises what closing raised."""
        problems: list[Exception] = []
        for part in reversed(self.parts):
            try:
                await part.close()
            except Exception as error:
                problems.append(error)
        if problems:
            raise ExceptionGroup("tools could not be closed", problems)

    def _part(self, name: str) -> Tools | None:
        for part in self.parts:
            if any(spec.name == name for spec in part.specs()):
                return part
        return None

    def _unknown(self, name: str) -> str:
        return unknown_tool(name, (spec.name for spec in self.specs()))


def combined(parts: Iterable[Tools]) -> Tools:
    """Return one port over *parts*; raises ``ValueError`` where two offer a tool of one name."""
    ports = tuple(parts)
    seen: set[str] = set()
    for port in ports:
        for spec in port.specs():
            if spec.name in seen:
                raise ValueError(f"two tools are named {spec.name!r}")
            seen.add(spec.name)
    return ports[0] if len(ports) == 1 else Union(ports)
