"""What only this file catches: a real transcript that is misread, or shows a traceback."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from stepfold.adapters.recording import parse_recording
from stepfold.adapters.replay.folding import fold_recording
from stepfold.adapters.transcripts.importing import conversations
from stepfold.adapters.transcripts.items import Compacted, Ended, Interrupted, RequestFailed, Said
from stepfold.adapters.transcripts.reading import transcript
from stepfold.adapters.transcripts.source import TranscriptError
from stepfold.effects import fold
from stepfold.engine.messages import Role, ToolResult, ToolUse
from tests.transcripts.test_formats import imported

CASES = Path(__file__).parents[3] / "shared" / "cases"
FOLDERS = ("claude_code", "other_agents", "stream_json")
FILES = sorted(
    path for name in FOLDERS for path in (CASES / name).rglob("*") if path.is_file() and path.suffix != ".md"
)
CLAUDE = [path for path in FILES if path.is_relative_to(CASES / "claude_code")]
CANNOT = {
    "fixtures_conversations_v1_11_5_cli_default_base_state.json": "it is of no format that is known",
    "fixtures_llm_data_nonfncall-llm-logs_litellm_proxy__deepseek__deepseek-chat-1757015062.589.json": "JSON",
    "fixtures_llm_data_nonfncall-llm-logs_litellm_proxy__deepseek__deepseek-chat-1757015068.723.json": "JSON",
    "log_test_eval_log_log_read_sample.eval": "it is a zip file",
}

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason="the real transcripts are not beside this checkout"
)


def label(path: Path) -> str:
    return path.name[-60:]


@pytest.mark.parametrize("path", FILES, ids=label)
def test_it_is_imported_or_says_why_not(path: Path) -> None:
    if path.name in CANNOT:
        with pytest.raises(TranscriptError, match=CANNOT[path.name]), transcript(path) as found:
            list(found.items)
        return
    with transcript(path) as found:
        parts = conversations(found.items)
    assert parts or "storage_message" in path.name
    for part in parts:
        done, content = imported(part)
        recording = parse_recording(content, "it")
        assert recording is not None
        assert (len(recording.events) > 0) is not bool(done.why)
        state = fold(recording.events, recording.state(), recording.begun.config)
        kept = [(message.role, message.content) for message in state.data.messages]
        told = [(message.role, message.content) for message in part.messages]
        assert kept in (told, told[:-1] if told[-1][0] is Role.ASSISTANT else told)


def independent(path: Path) -> Counter[str]:
    """Count what a session of Claude Code holds, in the plainest way."""
    count: Counter[str] = Counter()
    seen: set[str] = set()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record: Any = json.loads(line)
        except ValueError:
            count["broken"] += bool(line.strip())
            continue
        if not isinstance(record, dict) or record.get("uuid") in seen:
            continue
        seen |= {record["uuid"]} if record.get("uuid") else set()
        if record.get("subtype") == "compact_boundary":
            count["compacted"] += 1
        if record.get("type") not in ("user", "assistant"):
            continue
        if record.get("isApiErrorMessage"):
            count["errors"] += 1
            continue
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            kind = block.get("type") if isinstance(block, dict) else ""
            count[kind] += kind in ("tool_use", "tool_result", "thinking", "image")
        count["said"] += 1
    return +count


@pytest.mark.parametrize("path", CLAUDE, ids=label)
def test_nothing_of_a_session_is_lost(path: Path) -> None:
    count: Counter[str] = Counter()
    with transcript(path) as found:
        for item in found.items:
            match item:
                case Said(message=message):
                    count["said"] += 1
                    for block in message.content:
                        names = {"ToolUse": "tool_use", "ToolResult": "tool_result", "Thinking": "thinking"}
                        count[names.get(type(block).__name__, "")] += 1
                        count["image"] += getattr(block, "type", "") == "image"
                case Compacted():
                    count["compacted"] += 1
                case RequestFailed():
                    count["errors"] += 1
                case _:
                    pass
    del count[""]
    count["broken"] = found.counts.broken_lines
    assert independent(path) == +count


def test_what_all_sessions_hold() -> None:
    """Totals, so that a reader that sees nothing cannot pass."""
    count: Counter[str] = Counter()
    for path in CLAUDE:
        count += independent(path)
    assert count["said"] > 2_500
    assert count["tool_use"] > 800
    assert abs(count["tool_use"] - count["tool_result"]) < 20
    assert (2, 1) == (count["compacted"], count["errors"])


def test_ends_and_interrupts_are_seen() -> None:
    kinds: Counter[type] = Counter()
    for path in FILES:
        if path.name not in CANNOT:
            with transcript(path) as found:
                kinds.update(type(item) for item in found.items)
    assert kinds[Interrupted] >= 15
    assert kinds[Ended] >= 15


def test_calls_and_their_results_find_each_other() -> None:
    """In every other agent's trajectory, too: a result names a call that came before it."""
    strays = 0
    for path in FILES:
        if path.name in CANNOT or "tool_call_error" in path.name:  # that one holds nothing but results
            continue
        with transcript(path) as found:
            asked: set[str] = set()
            for item in found.items:
                for block in item.message.content if isinstance(item, Said) else ():
                    if isinstance(block, ToolUse):
                        asked.add(block.id)
                    strays += isinstance(block, ToolResult) and block.use_id not in asked
    assert 3 == strays


def test_the_command_over_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["import", *(str(CASES / name) for name in FOLDERS), "--out", str(tmp_path), "--json"])
    assert 2 == code
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert set(CANNOT) <= {Path(each["transcript"]).name for each in told if "error" in each}
    whole = [each for each in told if each.get("events")]
    assert len(whole) >= 50
    for each in whole:
        assert fold_recording(each["recording"]).ok
