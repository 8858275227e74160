"""No tools, or several ``Tools`` ports as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stepfold.effects.ports import Tools
from stepfold.effects.ready.permission import Nobody
from stepfold.engine.effects import AskPermission, RunTool
from stepfold.engine.events import CallFacts, CallStatus, PermissionAnswered, ToolEnded, ToolSpec
from stepfold.engine.messages import Text, ToolUse


class JoinedTools:
    """
    Asks the port that offers the tool; with no ports, every tool is unknown.

    Which port that is, is found anew where a name is not: a port's tools may change.
    """

    def __init__(self, ports: Iterable[Tools]) -> None:
        self._ports = tuple(ports)
        self._by_name: dict[str, Tools] = {}
        for port in self._ports:
            for spec in port.specs():
                if spec.name in self._by_name:
                    raise ValueError(f"two tools are named {spec.name!r}")
                self._by_name[spec.name] = port

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools of all, in order."""
        return tuple(spec for port in self._ports for spec in port.specs())

    def facts(self, call: ToolUse) -> CallFacts:
        """Return the facts as the tool's own port knows them."""
        port = self._port(call.name)
        if port is None:
            return CallFacts(known=False, valid=False, problem=self._unknown(call.name))
        return port.facts(call)

    def filled(self, call: ToolUse) -> ToolUse:
        """Return the filled-out copy that the tool's own port makes."""
        port = self._port(call.name)
        return call if port is None else port.filled(call)

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        """Let the tool's own port run the call."""
        port = self._port(order.call.name)
        if port is None:
            return ToolEnded(order.id, (Text(self._unknown(order.call.name)),), CallStatus.FAILED)
        return await port.run(order, progress)

    async def ask(self, order: AskPermission) -> PermissionAnswered:
        """Let the tool's own port ask, if it can; else there is nobody who could allow the call."""
        asking = getattr(self._port(order.call.name), "ask", None)
        answered: PermissionAnswered = await (asking or Nobody().ask)(order)
        return answered

    async def close(self) -> None:
        """Close all, the last one first; raises what closing raised."""
        problems: list[Exception] = []
        for port in reversed(self._ports):
            try:
                await port.close()
            except Exception as problem:
                problems.append(problem)
        if problems:
            raise ExceptionGroup("tools could not be closed", problems)

    def _port(self, name: str) -> Tools | None:
        found = self._by_name.get(name)
        if found is None:
            for port in self._ports:
                if any(spec.name == name for spec in port.specs()):
                    self._by_name[name] = found = port
                    break
        return found

    def _unknown(self, name: str) -> str:
        names = ", ".join(spec.name for spec in self.specs())
        offered = f"The tools are: {names}." if names else "There are no tools."
        return f"There is no tool named {name!r}. {offered}"


def joined(ports: Iterable[Tools]) -> Tools:
    """Return one port over *ports*; raises ``ValueError`` where two offer a tool of one name."""
    given = tuple(ports)
    return given[0] if len(given) == 1 else JoinedTools(given)
