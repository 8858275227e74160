"""
One fault, and the net that should catch it.

A fault is planted in the imported engine (``tests.mutants.planting``), in the
table alone, in the arithmetic of the spec, or in the formal model.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from stepfold.engine.config import Config
from stepfold.engine.state import Move
from tests.mutants.planting import Function, Planting, part

Plant: TypeAlias = Callable[[Planting], None]
Edits: TypeAlias = tuple[tuple[str, str], ...]

SECOND_COPY = "second copy"
EXPLORER = "explorer"
MATRIX = "matrix"
MEASURE = "measure"
ARITHMETIC = "arithmetic"
Z3 = "z3"
CROSSHAIR = "CrossHair"
CONFORMANCE = "conformance"
TRACES = "traces"
TLC = "TLC"


@attrs.frozen
class Fault:
    """
    One fault.

    Args:
        of: The guard, limit or row that it is a fault of.
        words: What is changed, in a few words.
        net: The net that should catch it.
        where: Where the net looks: an exploration, a graph, a contract, phase and event, or a config of TLC.
        told: What the net says of it, in part.
        plant: Changes the engine; None where the fault is in the spec or in the model.
        edits: Changes of the spec, (old, new), each of which has one place.
    """

    of: str
    words: str
    net: str
    where: str
    told: str = ""
    plant: Plant | None = None
    edits: Edits = ()

    @property
    def name(self) -> str:
        """The fault in one line."""
        return f"{self.of}: {self.words}"


# ---------------------------------------------------------------- ways to plant


def ever(guard: str) -> Plant:
    """The guard always holds."""
    return lambda p: p.swap(guard, lambda old: _named(old, lambda c, e, k: True))


def never(guard: str) -> Plant:
    """The guard never holds."""
    return lambda p: p.swap(guard, lambda old: _named(old, lambda c, e, k: False))


def off_by(amount: int, limit: str, guard: str) -> Plant:
    """The guard reads the limit as *amount* more than it is."""

    @functools.lru_cache
    def wrong(k: Config) -> Config:
        return attrs.evolve(k, **{limit: getattr(k, limit) + amount})

    return lambda p: p.swap(guard, lambda old: _named(old, lambda c, e, k: old(c, e, wrong(k))))


def without(limit: str, guard: str) -> Plant:
    """The guard reads the limit as off."""

    @functools.lru_cache
    def wrong(k: Config) -> Config:
        return attrs.evolve(k, **{limit: None})

    return lambda p: p.swap(guard, lambda old: _named(old, lambda c, e, k: old(c, e, wrong(k))))


def sets(move: str, of: str, module: str = "", **values: Any) -> Plant:
    """The move leaves these values in one part of control; a function is given the control before."""

    def plant(p: Planting) -> None:
        def make(old: Function) -> Function:
            def changed(s: Any, e: Any, k: Any) -> Move:
                made = {n: v(s.control) if callable(v) else v for n, v in values.items()}
                return part(old(s, e, k), of, **made)

            return _named(old, changed)

        p.swap(move, make, module)

    return plant


def _named(old: Function, new: Function) -> Function:
    """The name of a guard is how the second copy, and the arithmetic, know it."""
    return functools.wraps(old)(new)


def helper(module: str, name: str, make: Callable[[Function], Function]) -> Plant:
    """A function of the engine that is neither a guard nor a move of a row is another one."""
    importlib.import_module(f"stepfold.engine.{module}")
    return lambda p: p.swap(name, make, module)
