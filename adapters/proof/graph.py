"""
What holds of the whole graph of an exploration: eventually, and never in a circle.

*Eventually*: from every state some way leads to an end, so nothing is a trap.
*No circle*: whatever goes round without spending a turn (or beginning a run)
changes nothing that decides: late answers, queued words, work beside the
loop.  Together with the world that answers, every run ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from stepfold.adapters.proof.explore import Exploration, is_over

Edges: TypeAlias = Sequence[Sequence[tuple[int, bool, bool]]]


def graph_findings(found: Exploration, exempt: bool) -> Iterator[str]:
    """
    Yield what the graph breaks.

    Args:
        found: A whole exploration.
        exempt: Counters other than turns are held as {left, last}, so their retries go in circles here.
    """
    for number in traps(found):
        yield f"{found.name}: eventually an end: no way leads to one\n    after {found.path_to(number)}"
        break
    if exempt:
        return
    for number in circles(found.edges):
        yield f"{found.name}: never a circle without a turn\n    after {found.path_to(number)}"
        break


def traps(found: Exploration) -> list[int]:
    """Return the states from which no end can be reached."""
    back: list[list[int]] = [[] for _ in found.edges]
    for number, edges in enumerate(found.edges):
        for target, _, _ in edges:
            back[target].append(number)
    waiting = [number for number, key in enumerate(found.keys) if is_over(key)]
    safe = set(waiting)
    while waiting:
        for number in back[waiting.pop()]:
            if number not in safe:
                safe.add(number)
                waiting.append(number)
    return [number for number in range(len(found.edges)) if number not in safe]


def circles(edges: Edges) -> list[int]:
    """Return states on a circle that spends no turn and yet changes what decides."""
    group = components(edges)
    return [
        number
        for number, targets in enumerate(edges)
        if any(group[target] == group[number] and not turn and not idle for target, turn, idle in targets)
    ]


def components(edges: Edges) -> list[int]:
    """Return the number of the strongly connected component of each state, turns cut."""
    count = len(edges)
    index, low, group = [-1] * count, [0] * count, [-1] * count
    stack: list[int] = []
    clock = 0
    for root in range(count):
        if index[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            node, place = work.pop()
            if place == 0:
                index[node] = low[node] = clock
                clock += 1
                stack.append(node)
            targets = edges[node]
            while place < len(targets):
                target, turn, _ = targets[place]
                place += 1
                if turn:
                    continue
                if index[target] < 0:
                    work += [(node, place), (target, 0)]
                    break
                if group[target] < 0:
                    low[node] = min(low[node], index[target])
            else:
                if low[node] == index[node]:
                    while True:
                        member = stack.pop()
                        group[member] = node
                        if member == node:
                            break
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
    return group
