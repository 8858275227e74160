"""
What recordings and transcripts cost: ``python -m benchmarks.recordings [--json] [--tiny]``.

CPU time, in one process.  Each figure stands beside a floor of the same run (a
turn of the bare reducer), so that machines can be compared; the wanted rates
are scaled by it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.floor import FLOOR_ON_REFERENCE_US, cpu_us, floor_us
from stepfold.adapters.codec import dump_event
from stepfold.adapters.linting.linting import lint
from stepfold.adapters.recording import event_line, header_line, read_recording
from stepfold.adapters.recording.writing import recording_bytes
from stepfold.adapters.replay.folding import fold_recording
from stepfold.adapters.transcripts.importing import conversations, write_recording
from stepfold.adapters.transcripts.reading import transcript
from stepfold.effects import fold, trace
from stepfold.effects.ports import Start
from stepfold.engine import Config, start
from stepfold.engine.events import (
    BlockCompleted,
    CallFacts,
    Event,
    RunStarted,
    Stop,
    StreamClosed,
    ToolEnded,
    ToolSpec,
)
from stepfold.engine.messages import Text, ToolUse

ENTRIES_A_SECOND = 50_000
MB_A_SECOND = 30
OPEN = Config(max_turns=None, max_model_calls=None, autocompact=False, context_window_tokens=10**9)


def events(turns: int) -> list[Event]:
    """Return a run of so many turns, each with a text and a call."""
    found: list[Event] = [RunStarted((Text("Look at everything."),))]
    id = 1
    for number in range(turns):
        use = ToolUse(f"t{number}", "read", f'{{"path":"src/module_{number}.py"}}')
        found += [
            BlockCompleted(id, Text(f"I look at module {number}.")),
            BlockCompleted(id, use, CallFacts(safe=True)),
            StreamClosed(id, Stop.TOOL_USE, "tool_use"),
            ToolEnded(id + 1, (Text("def main() -> None:\n    ...\n" * 8),)),
        ]
        id += 2
    return found


def session(turns: int) -> str:
    """Return a session of Claude Code of so many turns."""
    lines = [{"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "go"}}]
    for number in range(turns):
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Read",
            "input": {"file_path": f"/a/{number}.py"},
        }
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "x = 1\n" * 400}
        base = {"sessionId": "s", "timestamp": "2026-01-02T03:04:05.678Z", "isSidechain": False, "cwd": "/a"}
        answer = {"role": "assistant", "id": f"m{number}", "model": "claude-x", "content": [use]}
        told = {"role": "user", "content": [result]}
        lines.append({"type": "assistant", "uuid": f"a{number}", "message": answer, **base})
        lines.append({"type": "user", "uuid": f"r{number}", "message": told, **base})
    return "".join(json.dumps(line) + "\n" for line in lines)


def _read_through(path: Path) -> None:
    with transcript(path) as found:
        for _ in found.items:
            pass


def _imported(path: Path) -> None:
    with transcript(path) as found:
        told = conversations(found.items)
    for number, one in enumerate(told):
        with path.with_name(f"new{number}").open("w+b") as file:
            write_recording(one, file)


def _written(begun: Start, whole: list[Event]) -> bytes:
    return recording_bytes(begun, trace(whole, start((), begun.tools), begun.config))


def figures(turns: int) -> dict[str, float]:
    """Measure; a few turns only show that it works."""
    floor = floor_us()
    begun = Start(OPEN, (), (ToolSpec("read"),))
    before = start((), begun.tools)
    whole = events(turns)
    with tempfile.TemporaryDirectory() as folder:
        plain, told, foreign = (Path(folder) / name for name in ("plain", "told", "foreign"))
        content = recording_bytes(begun, trace(whole, before, OPEN))
        told.write_bytes(content)
        numbered = enumerate(map(dump_event, whole), 1)
        plain.write_bytes(header_line(begun) + b"".join(event_line(*one) for one in numbered))
        foreign.write_text(session(turns))
        megabytes = foreign.stat().st_size / 1e6
        count = len(whole)

        def rate(work: Callable[[Path], object], path: Path) -> float:
            return count / cpu_us(lambda: work(path), rounds=3) * 1e6

        found = {
            "replay_entries_a_second": rate(fold_recording, plain),
            "replay_and_compare_entries_a_second": rate(fold_recording, told),
            "read_entries_a_second": rate(read_recording, plain),
            "step_entries_a_second": count / cpu_us(lambda: fold(whole, before, OPEN), rounds=3) * 1e6,
            "write_entries_a_second": rate(
                lambda _: recording_bytes(begun, trace(whole, before, OPEN)), told
            ),
            "bytes_an_entry": len(content) / count,
            "import_mb_a_second": megabytes / cpu_us(lambda: _read_through(foreign), rounds=3) * 1e6,
            "import_to_recording_mb_a_second": megabytes / cpu_us(lambda: _imported(foreign), 3) * 1e6,
            "lint_mb_a_second": megabytes / cpu_us(lambda: lint(foreign), rounds=3) * 1e6,
        }
    floor = min(floor, floor_us())
    scale = FLOOR_ON_REFERENCE_US / floor
    return {
        "floor_us": round(floor, 2),
        "wanted_replay_here": round(ENTRIES_A_SECOND * scale),
        "wanted_import_here": round(MB_A_SECOND * scale, 1),
        **{name: round(value, 1) for name, value in found.items()},
    }


def main(arguments: list[str]) -> int:
    """Print the figures; 2 for a word that is not known."""
    unknown = set(arguments) - {"--json", "--tiny"}
    if unknown:
        words = ", ".join(sorted(unknown))
        print(f"benchmarks.recordings: {words} is not known; allowed: --json, --tiny", file=sys.stderr)
        return 2
    seen = figures(20 if "--tiny" in arguments else 3_000)
    if "--json" in arguments:
        print(json.dumps(seen))
        return 0
    for name, value in seen.items():
        print(f"{name.replace('_', ' '):40} {value:>12,}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
