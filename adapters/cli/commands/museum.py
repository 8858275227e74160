"""``stepfold museum``: faults of real loops, and how short the fuzzer shows each."""

from __future__ import annotations

import json as jsons
from collections.abc import Sequence

from stepfold.adapters.cli.exits import FAILED, OK, Problem
from stepfold.adapters.fuzzing.museum.catalogue import EXHIBITS
from stepfold.adapters.fuzzing.museum.visit import visits

SHORT = 8


def museum_command(names: Sequence[str], *, seconds: float, seed: int, listed: bool, json: bool) -> int:
    """Visit exhibits; 0 each was found, 1 one was not; raises ``Problem`` for a name that is none."""
    unknown = [name for name in names if name not in EXHIBITS]
    if unknown:
        raise Problem(f"{unknown[0]}: there is no such exhibit; --list names them")
    chosen = [EXHIBITS[name] for name in names] or list(EXHIBITS.values())
    if listed:
        for exhibit in chosen:
            print(f"{exhibit.name}\n    {exhibit.story}\n    Planted: {exhibit.planted}.")
        return OK
    found = short = 0
    for one in visits(chosen, seconds=seconds, seed=seed):
        print(jsons.dumps(one.json(), ensure_ascii=False) if json else one.line(), flush=True)
        found += one.found
        short += one.found and len(one.events) <= SHORT
    if not json:
        print(f"{len(chosen)} exhibits: {found} found, {short} of them in {SHORT} events or fewer")
    return OK if found == len(chosen) else FAILED
