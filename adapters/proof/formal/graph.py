"""
TLC's whole state graph of one config: every state, and for each event of the model its successors.

The graph is dumped from a generated module that says the same as ``Next`` of
the model, with one name for each event and payload, since TLC writes names of
actions beside the edges.  States are kept as the text that TLC prints.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Final

import attrs

from stepfold.adapters.proof.formal.constants import Constants, read_constants
from stepfold.adapters.proof.formal.happenings import Saying, sayings
from stepfold.adapters.proof.formal.projection import REST, Variables
from stepfold.adapters.proof.formal.tlc import Run, Tool, Verdict, run_tlc

MODULE: Final = "Graph"
FIELD: Final = re.compile(r"(\w+) \|-> ")
CALLS: Final = re.compile(r"(?<=calls \|-> <<)\[([^]]*)\][^>]*(?=>>)")


class GraphError(Exception):
    """TLC did not give a graph; the words say why."""


@attrs.define
class Graph:
    """
    The states as text and their edges.

    ``edges[n][e]`` are the successors of state n by saying e of ``said``;
    where there is none, the event cannot happen there.
    """

    said: tuple[Saying, ...]
    constants: Constants
    fields: tuple[str, ...] = ()  # in the order in which TLC prints them
    call_fields: tuple[str, ...] = ()
    texts: list[str] = attrs.Factory(list)
    number_of: dict[str, int] = attrs.Factory(dict)
    starts: list[int] = attrs.Factory(list)
    edges: list[dict[int, tuple[int, ...]]] = attrs.Factory(list)

    rest: tuple[str, ...] = ()  # how TLC prints the fields of a machine at rest

    def named(self, fields: tuple[str, ...], call_fields: tuple[str, ...]) -> None:
        """Take note of the order in which TLC prints fields."""
        self.fields, self.call_fields = fields, call_fields
        self.rest = tuple(f"{name} |-> {written(REST[name])}" for name in fields)

    def text_of(self, variables: Variables) -> str:
        """Return *variables* as TLC would print them."""
        parts = list(self.rest)
        for place, name in enumerate(self.fields):
            value = variables[name]
            if value is not REST[name]:
                if name == "calls":
                    value = tuple({each: call[each] for each in self.call_fields} for call in value)
                parts[place] = f"{name} |-> {written(value)}"
        return "[" + ", ".join(parts) + "]"

    @property
    def edge_count(self) -> int:
        """How many edges there are, one for each saying."""
        return sum(len(to) for edges in self.edges for to in edges.values())


def written(value: Any) -> str:
    """Return a value of a variable as TLC prints it."""
    if value is True:
        return "TRUE"
    if value is False:
        return "FALSE"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "<<" + ", ".join(map(written, value)) + ">>" if value else "<<>>"
    if isinstance(value, dict):
        return "[" + ", ".join(f"{name} |-> {written(each)}" for name, each in value.items()) + "]"
    return str(value)


def changes(before: str, after: str) -> str:
    """Return what of a state's text differs from another's."""
    old = set(before.strip("[]").split(", "))
    return "[" + ", ".join(part for part in after.strip("[]").split(", ") if part not in old) + "]"


def module_of(said: tuple[Saying, ...], name: str = MODULE) -> str:
    """Return a module whose actions are *said*, one by one; what is conjoined with TRUE keeps its name."""
    actions = "\n".join(f"E{number} == TRUE /\\ {each.written()}" for number, each in enumerate(said))
    every = " \\/ ".join(f"E{number}" for number in range(len(said)))
    return (
        f"---- MODULE {name} ----\nEXTENDS AgentLoopProps\n{actions}\n"
        f"Named == {every}\nNamedMoves == Init /\\ [][Named]_m\n"
        f"NextIsNamed == [][Named]_m\n====\n"
    )


def dumped(tool: Tool, config: Path) -> tuple[Graph, Run]:
    """
    Let TLC check *config* and dump its graph.

    Raises:
        GraphError: A property of the config fails, or TLC broke off.
    """
    constants = read_constants(config)
    said = tuple(sayings(constants))
    with tempfile.TemporaryDirectory(prefix="stepfold-graph-") as folder:
        module, named = Path(folder, f"{MODULE}.tla"), Path(folder, f"{MODULE}.cfg")
        module.write_text(module_of(said), encoding="utf-8")
        text = config.read_text(encoding="utf-8")
        named.write_text(text.replace("SPECIFICATION Moves", "SPECIFICATION NamedMoves"), encoding="utf-8")
        dump = Path(folder, "graph.dot")
        run = run_tlc(tool, module, named, dump=dump)
        if run.verdict is not Verdict.HOLDS:
            raise GraphError(f"{config.stem}: {run.why}")
        graph = read_dot(dump, Graph(said, constants))
    if len(graph.texts) != run.states:
        raise GraphError(f"{config.stem}: {run.states} states found, {len(graph.texts)} dumped")
    return graph, run


def read_dot(dump: Path, graph: Graph) -> Graph:
    """Fill *graph* from what TLC dumped."""
    numbers: dict[str, int] = {}
    edges: list[tuple[str, str, str]] = []
    with dump.open(encoding="utf-8") as lines:
        for line in lines:
            if " -> " in line[:45]:
                if '[label="E' in line[:60]:
                    head, _, label = line.partition(' [label="E')
                    here, _, there = head.partition(" -> ")
                    edges.append((here, there, label[: label.index('"')]))
            elif ' [label="m = ' in line[:40]:
                name, _, rest = line.partition(' [label="m = ')
                text = rest[: rest.rindex('"]') if "style" not in rest[-20:] else rest.rindex('",style')]
                text = text.replace('\\"', '"').replace("<< >>", "<<>>")
                if name not in numbers:
                    numbers[name] = graph.number_of[text] = len(graph.texts)
                    graph.texts.append(text)
                if "style = filled" in rest[-20:]:
                    graph.starts.append(numbers[name])
    calls = (CALLS.search(text) for text in graph.texts)
    first = next((tuple(FIELD.findall(found.group(1))) for found in calls if found), ())
    graph.named(tuple(FIELD.findall(CALLS.sub("", graph.texts[0]))), first)
    graph.edges = [{} for _ in graph.texts]
    for here, there, label in edges:
        saying, to = int(label), numbers[there]
        known = graph.edges[numbers[here]].get(saying, ())
        if to not in known:
            graph.edges[numbers[here]][saying] = (*known, to)
    return graph
