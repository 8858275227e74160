"""A seed for each search of a world, so that a report can name it."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from stepfold.adapters.testing.machine.played import PlayedWorld

_SEED = "_hypothesis_internal_use_seed"  # what ``hypothesis.seed`` sets on a machine


def seeded(machine: type[Any], config: pytest.Config) -> str:
    """
    Return the seed with which Hypothesis will search *machine*, "" for a machine of somebody else.

    One is chosen here where neither the test, nor its settings, nor
    ``--hypothesis-seed`` says.
    """
    if not issubclass(machine, PlayedWorld):
        return ""
    given = getattr(machine, _SEED, None)
    if given is not None:
        return f"{given} (by @seed)"
    if machine.TestCase.settings.derandomize:
        return "none: the search is the same every time (derandomize)"
    forced = config.getoption("hypothesis_seed", None)
    if forced is not None:
        return f"{forced} (by --hypothesis-seed)"
    chosen = secrets.randbits(32)
    setattr(machine, _SEED, chosen)
    return f"{chosen} (again: --hypothesis-seed={chosen})"
