"""All driven runs by name; together they take every row of the table."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Final

from tests.engine.driven import answers, context, crashes
from tests.engine.driven.drive import Drive

Walk = Callable[[], Drive]
PARTS: Final = frozenset({"full", "crash_in_hook"})  # with arguments: they build others


def _of(module: ModuleType) -> dict[str, Walk]:
    return {
        name: made
        for name, made in vars(module).items()
        if getattr(made, "__module__", "") == module.__name__ and name not in PARTS
    }


WALKS: Final[dict[str, Walk]] = {**_of(answers), **_of(context), **_of(crashes)}
