"""How the tests of this folder call tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from stepfold.adapters.tools import (
    Toolbox,
)
from stepfold.engine.effects import RunTool
from stepfold.engine.events import ToolEnded
from stepfold.engine.messages import Text, ToolUse

T = TypeVar("T")


def ran(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def use(name: str, input: str = "{}") -> ToolUse:
    return ToolUse("t1", name, input)


def ended(box: Toolbox, name: str, input: str = "{}", seen: list[str] | None = None) -> ToolEnded:
    call = use(name, input)
    progress = (seen if seen is not None else []).append
    return ran(box.run(RunTool(7, call, input), progress))


def words(end: ToolEnded) -> str:
    return "\n".join(block.text for block in end.content if isinstance(block, Text))


def schema(box: Toolbox) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(box.specs()[0].input_schema)
    return made


Mode = Literal["exact", "loose"]


def search(pattern: str, limit: Annotated[int, Field(ge=1)] = 10, *, mode: Mode = "exact") -> str:
    """
    Search the index.

    Slow for long patterns.

    Args:
        pattern: What to look for.
        limit: How many at most.
    """
    return f"{pattern} {limit} {mode}"
