"""Whom the model of a world may call: the world's own tools, or a user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from stepfold.adapters.testing import answers
from stepfold.adapters.testing.machine.inputs import inputs_of
from stepfold.adapters.testing.world import Fault, Pick, World
from stepfold.effects.ports import Tools
from stepfold.effects.ready.tools import joined
from stepfold.engine.events import BlockCompleted, ToolSpec
from stepfold.engine.messages import Message, Origin, Role, Text, ToolUse


class Caller:
    """
    Makes the calls of a model.

    Args:
        tools: A ``Tools`` port or several; none: the world's own tools are called.
        inputs: {tool: inputs to call it with}.

    Raises:
        TypeError: Something given is no ``Tools`` port.
        ValueError: *inputs* names a tool that is not there.
    """

    def __init__(self, tools: Any, inputs: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        ports = (tools,) if _is_port(tools) else tuple(tools)
        for port in ports:
            if not _is_port(port):
                raise TypeError(f"tools: {port!r} is no Tools port; stepfold.adapters.tools makes them")
        self._tools: Tools | None = joined(ports) if ports else None
        self.specs: tuple[ToolSpec, ...] = () if self._tools is None else self._tools.specs()
        names = tuple(spec.name for spec in self.specs)
        if self._tools is not None and (strangers := sorted(set(inputs) - set(names))):
            raise ValueError(f"inputs: no tool is named {strangers[0]!r}; there are {', '.join(names)}")
        self._inputs = {spec.name: inputs_of(spec, inputs.get(spec.name, ())) for spec in self.specs}

    def named(self, world: World) -> World:
        """Return *world* with the names of these tools in the place of its own."""
        if self._tools is None:
            return world
        bad = ("nothing",) if world.has(Fault.BAD_CALLS) else ()
        names = (*self._inputs, *bad) or ("nothing",)
        return attrs.evolve(world, said=attrs.evolve(world.said, call_names=names))

    def call(self, world: World, call_id: int, pick: Pick, fresh: str) -> BlockCompleted:
        """Return one call; see ``answers.call``."""
        if self._tools is None:
            return answers.call(world, call_id, pick, fresh)
        id = pick(world.said.call_ids) if world.said.call_ids else fresh
        name = pick(world.said.call_names)
        raw = pick(("", "", "[1]")) if world.has(Fault.BAD_CALLS) else ""
        use = ToolUse(id, name, "{}" if raw else pick(self._inputs.get(name, ("{}",))), raw_input=raw)
        return BlockCompleted(call_id, use, self._tools.facts(use))


def _is_port(port: object) -> bool:
    return callable(getattr(port, "facts", None))


def talk(rounds: int, chars: int) -> tuple[Message, ...]:
    """Return a history of so many questions and answers, each of so many characters."""
    return tuple(
        message
        for number in range(rounds)
        for message in (
            Message(Role.USER, (Text(f"q{number} ".ljust(chars, "q")),)),
            Message(Role.ASSISTANT, (Text(f"a{number} ".ljust(chars, "a")),), Origin.ANSWER, "main"),
        )
    )
