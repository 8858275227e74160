"""
A program that dies: it forks a process for each append of a run, which ends before or after that append.

    python -m tests.effects.dying FOLDER

Prints one JSON object a case: what the dead process left, what the next one did, and which tools really ran.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.recording import read_recording
from stepfold.effects import run
from stepfold.effects.ports import ModelPart, TextDelta
from stepfold.engine import Config
from stepfold.engine.effects import CallModel, RunTool
from stepfold.engine.events import CallFacts, Stop, StreamClosed, ToolEnded, ToolSpec
from stepfold.engine.messages import Role, Text, ToolResult, ToolUse

DIED = 77


class DyingLog(JsonlLog):
    """Ends the process, without any goodbye, before or after append number *at*."""

    at = 0
    after = False
    done = 0

    async def append_outcome(self, *step: Any, durable: bool) -> None:
        self.done += 1
        if self.done == self.at and not self.after:
            os._exit(DIED)
        await super().append_outcome(*step, durable=durable)
        if self.done == self.at:
            os._exit(DIED)


class Model:
    """Two tool turns, then the end: told from the number of answers it is shown."""

    async def call(self, order: CallModel) -> AsyncIterator[ModelPart]:
        turns = sum(message.role is Role.ASSISTANT for message in order.messages)
        yield TextDelta("hm")
        yield Text("hm")
        if turns < 2:  # every answer has ids of its own, as the API's have
            for name in ("safe", "alone", "again"):
                yield ToolUse(f"{name}-{order.id}", name, "{}")
            yield StreamClosed(order.id, Stop.TOOL_USE)
        else:
            yield StreamClosed(order.id, Stop.END_TURN)


class Tools:
    """Each call really does something: it writes its id to a file."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(name) for name in ("safe", "alone", "again"))

    def facts(self, call: ToolUse) -> CallFacts:
        return CallFacts(safe=call.name == "safe", idempotent=call.name == "again")

    def filled(self, call: ToolUse) -> ToolUse:
        return call

    async def run(self, order: RunTool, progress: Callable[[str], None]) -> ToolEnded:
        with self.ledger.open("a") as file:
            file.write(f"{order.call.id}\n")
        await asyncio.sleep(0)
        return ToolEnded(order.id, (Text("ok"),))

    async def close(self) -> None:
        return


async def live(folder: Path, prompt: str | None, at: int, after: bool) -> dict[str, Any]:
    """Run, or go on; die at an append, or return what came of it."""
    log = DyingLog(folder / "log.jsonl")
    log.at, log.after = at, after
    result = await run(
        prompt, model=Model(), tools=Tools(folder / "ran"), log=log, config=Config(max_turns=5)
    )
    await log.close()
    return {
        "terminal": result.terminal.value,
        "calls": {id: status.value for id, status in result.tool_calls.items()},
        "results": [b.use_id for m in result.messages for b in m.content if isinstance(b, ToolResult)],
        "uses": [b.id for m in result.messages for b in m.content if isinstance(b, ToolUse)],
        "repaired": log.repaired,
    }


def in_a_process(work: Callable[[], dict[str, Any]], out: Path) -> int:
    """Do *work* in a process of its own; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            out.write_text(json.dumps(work()))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def case(folder: Path, at: int, after: bool) -> dict[str, Any]:
    """Let one process die at an append, and a second one go on."""
    folder.mkdir()
    out = folder / "out"
    code = in_a_process(lambda: asyncio.run(live(folder, "p", at, after)), out)
    told: dict[str, Any] = {"at": at, "after": after, "died": code == DIED, "code": code}
    if code == DIED:
        left = read_recording(folder / "log.jsonl")
        told["left"] = len(left.events)
        prompt = None if left.events else "p"
        told["code"] = in_a_process(lambda: asyncio.run(live(folder, prompt, 0, False)), out)
    if told["code"] == 0:
        told |= json.loads(out.read_text())
        told["events"] = [type(event).__name__ for event in read_recording(folder / "log.jsonl").events]
        told["ran"] = (folder / "ran").read_text().split()
    return told


def main() -> None:
    root = Path(sys.argv[1])
    for after in (False, True):
        at = 0
        while True:
            at += 1
            told = case(root / f"{at}-{after}", at, after)
            print(json.dumps(told), flush=True)
            if not told["died"]:
                break


if __name__ == "__main__":
    main()
