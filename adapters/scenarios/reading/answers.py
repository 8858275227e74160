"""``[[model]]`` tables -> answers."""

from __future__ import annotations

from stepfold.adapters.scenarios.border import failure_of, transport_failure
from stepfold.adapters.scenarios.format import FOREVER, Entry
from stepfold.adapters.scenarios.reading.blocks import model_blocks, open_block
from stepfold.adapters.scripted import Answer, Breaks, Closes, Fails, Outcome
from stepfold.adapters.toml.reader import Table, shown
from stepfold.engine.config import MOST
from stepfold.engine.events import Stop, Usage
from stepfold.engine.failures import Failure
from stepfold.engine.messages import Block, ToolUse

OPEN = ("text", "thinking", "tool_use")
ERROR = ("status", "type", "message", "retry_after", "transport")
RETRY_AFTER_MAX = 1_000_000_000  # seconds
USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def entry_of(table: Table, *, last: bool, stopped: bool) -> Entry:
    """
    Return one ``[[model]]`` table.

    Args:
        table: The table.
        last: It is the last one: only that may answer for ever.
        stopped: Something in the file stops a stream, so that a block may stay open.
    """
    blocks = model_blocks(table, "blocks")
    _check_open(table, stopped)
    answer = Answer(
        blocks=blocks,
        outcome=_outcome(table, blocks),
        usage=_usage(table.table("usage", *USAGE)) if "usage" in table else None,
        takes_ms=table.whole("takes", 0),
        open=open_block(table.table("open", *OPEN)) if "open" in table else None,
        model=table.text("model", empty=False) if "model" in table else "",
    )
    if table.values.get("times") != "forever":
        if isinstance(table.values.get("times"), str):
            problem = f"{shown(table.values['times'])} is not allowed"
            table.refuse("times", problem, "a whole number >= 1, forever")
        return Entry(answer, table.whole("times", 1, 1))
    if not last:
        table.refuse("times", "only the last [[model]] may answer for ever", "a whole number >= 1")
    return Entry(answer, FOREVER)


def _check_open(table: Table, stopped: bool) -> None:
    """Refuse a block that never closes in an answer that nothing breaks off."""
    if (
        "open" in table
        and not stopped
        and not table.flag("cut")
        and not {"error", "stop"} & set(table.values)
    ):
        wanted = "open beside error, cut = true or a stop, or an [[act]] that stops the stream"
        table.refuse("open", "nothing breaks this answer off", wanted)


def _outcome(table: Table, blocks: tuple[Block, ...]) -> Outcome:
    endings = [key for key in ("stop", "error") if key in table]
    if table.flag("cut"):
        endings.append("cut")
    if len(endings) > 1:
        table.refuse(endings[-1], f"stands beside {endings[0]}", "one of stop, error, cut")
    if endings == ["cut"]:
        return Breaks()
    if endings == ["error"]:
        return Fails(_failure(table.table("error", *ERROR), in_stream=bool(blocks) or "open" in table))
    calls = any(isinstance(block, ToolUse) for block in blocks)
    reason = table.text("stop", empty=False) if "stop" in table else "tool_use" if calls else "end_turn"
    return Closes(Stop(reason) if reason in list(Stop) and reason != "other" else Stop.OTHER, reason)


def _failure(table: Table, *, in_stream: bool) -> Failure:
    if "transport" in table:
        others = [key for key in table.values if key != "transport"]
        if others:
            table.refuse(others[0], "stands beside transport", "transport alone")
        return transport_failure(table.text("transport"))
    status = table.whole("status", 200 if in_stream else 0)
    kind = table.text_or("type", "")
    if not kind.strip() and "status" not in table:
        table.refuse("", "says neither status nor type", "status, type or transport")
    if "status" in table and not 300 <= status <= 599 and not (status == 200 and kind.strip()):
        wanted = "from 300 to 599, or 200 beside a type (an error in the stream)"
        table.refuse("status", f"{status} is no error", wanted)
    after = table.values.get("retry_after")
    if after is not None and (type(after) not in (int, float) or not 0 <= after <= RETRY_AFTER_MAX):
        wanted = f"seconds, a number >= 0 and <= {RETRY_AFTER_MAX}"
        table.refuse("retry_after", f"{shown(after)} is not allowed", wanted)
    return failure_of(
        status=status,
        error_type=kind,
        message=table.text_or("message", ""),
        retry_after_seconds=after,
    )


def _usage(table: Table) -> Usage:
    """Return what the API reports; the border clamps to whole numbers >= 0."""
    for key, value in table.values.items():
        if type(value) is not int or value > MOST:
            table.refuse(key, f"{shown(value)} is not allowed", f"a whole number <= {MOST}")
    return Usage(*(max(0, table.values.get(key, 0)) for key in USAGE))
