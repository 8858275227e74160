"""
A whole session: find and fix the null-pointer bug in src/auth/validate.ts.

The model is scripted; the files, the tools, the permission and the recording
are real.  Three model calls, two tools, one permission.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from stepfold.adapters.cli.terminal.view import View
from stepfold.adapters.cli.terminal.words import line_of
from stepfold.adapters.jsonl_log import JsonlLog
from stepfold.adapters.scripted import Answer, Closes, ScriptedModel, says
from stepfold.adapters.tools import Rules, folder_tools
from stepfold.adapters.wiring import wired
from stepfold.effects import Result, run
from stepfold.engine import Config
from stepfold.engine.effects import Summarise
from stepfold.engine.events import Stop, SummaryReady, Usage
from stepfold.engine.messages import Text, ToolUse

PROMPT: Final = "Fix the null pointer bug in src/auth/validate.ts"
FILE: Final = "src/auth/validate.ts"
BUG_LINE: Final = 42
BROKEN: Final = "const user = getUser(userId)"
FIXED: Final = "if (!userId) return { error: 'unauthorized' }\n  const user = getUser(userId)"
HEAD: Final = """\
import { getUser } from './users'
import { readToken } from './token'

export type Session =
  | { user: string; role: string }
  | { error: string }

// Turns a request into a session.
"""


def source() -> str:
    """Return the file with the bug, which is on line 42."""
    checks = "\n".join(
        f"const needs{number} = (role: string) => role === 'level{number}'" for number in range(1, 31)
    )
    return (
        f"{HEAD}{checks}\n\n"
        "export function validate(request: Request): Session {\n"
        "  const userId = readToken(request)?.userId\n"
        f"  {BROKEN}\n"
        "  return { user: user.name, role: user.role }\n"
        "}\n"
    )


def script() -> tuple[Answer, ...]:
    """Return the three answers of the model."""
    edit = {"file_path": FILE, "old_string": BROKEN, "new_string": FIXED}
    return (
        _calls("Let me look at the file.", "call_1", "read", {"file_path": FILE}),
        _calls(f"I see the bug on line {BUG_LINE}: userId can be null.", "call_2", "edit", edit),
        says("I fixed the null pointer bug by adding a guard clause.", usage=Usage(1_900, 20)),
    )


def _calls(text: str, id: str, name: str, arguments: Mapping[str, str]) -> Answer:
    call = ToolUse(id, name, json.dumps(arguments))
    return Answer((Text(text), call), Closes(Stop.TOOL_USE, Stop.TOOL_USE.value), Usage(900, 60))


@attrs.define
class Owner:
    """The user of the demo: says yes, and counts how often."""

    view: View
    asked: int = 0

    async def __call__(self, name: str, input: Mapping[str, object]) -> bool:
        """Allow one call."""
        self.asked += 1
        path = line_of(str(input.get("file_path", "")))
        self.view.line(f"?  may {name} change {path}?  yes", "bold magenta")
        return True


class BatchSummariser:
    """The small model of the demo: names the tools of a batch."""

    async def summarise(self, order: Summarise) -> SummaryReady:
        """Write one line."""
        return SummaryReady(order.id, "; ".join(f"{call.name} {FILE}" for call in order.calls))


@attrs.frozen
class Session:
    """How the session went; ``problems`` is empty where it went as it should."""

    result: Result
    counts: str
    problems: tuple[str, ...]


async def play_session(view: View, project: Path, recording: Path) -> Session:
    """Run the session in the folder *project*, which is filled, and keep it in *recording*."""
    file = project / FILE
    file.parent.mkdir(parents=True)
    file.write_text(source(), encoding="utf-8")
    model, owner, log = ScriptedModel(list(script())), Owner(view), JsonlLog(recording)
    try:
        options = wired(
            model=model,
            tools=[folder_tools(project, names=("read", "write", "edit", "glob", "grep"))],
            rules=Rules(allow_read_only=True),
            can_use_tool=owner,
            config=Config(tool_summaries=True),
            log=log,
            summariser=BatchSummariser(),
        )
        result = await run(PROMPT, on_item=view.show, **options)
    finally:
        await log.close()
    model.check()
    view.finish(result)
    counts = f"{len(model.calls)} model calls, {len(result.tool_calls)} tools, {owner.asked} permission asked"
    return Session(result, counts, tuple(_problems(result, model, owner, file)))


def _problems(result: Result, model: ScriptedModel, owner: Owner, file: Path) -> list[str]:
    expected = {
        "terminal": ("completed", result.terminal.value),
        "transitions": (["next_turn", "next_turn"], [each.reason.value for each in result.transitions]),
        "model calls": (3, len(model.calls)),
        "tools": (["completed", "completed"], [status.value for status in result.tool_calls.values()]),
        "permissions asked": (1, owner.asked),
        "the file is fixed": (True, FIXED in file.read_text(encoding="utf-8")),
    }
    return [f"{what}: wanted {want}, got {got}" for what, (want, got) in expected.items() if want != got]
