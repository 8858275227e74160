"""What replaying one file came to, for people and for programs; small enough to go between processes."""

from __future__ import annotations

from typing import Any, Final

import attrs
import orjson

from stepfold.adapters.codec import digest
from stepfold.adapters.recording import RecordingError, read_recording
from stepfold.adapters.replay.folding import Folded, FoldedRun, fold_recording, lies
from stepfold.adapters.replay.whatif import WhatIf, what_if
from stepfold.engine import Config, ConfigError

LONG: Final = 200  # characters of a value in a message


@attrs.frozen
class Report:
    """
    What replaying one file came to.

    Args:
        path: The file, as it was named.
        plain: What ``--json`` prints.
        lines: What people read of it, one by one.
        ok: Whether it replays, and comes to what it tells.
        unreadable: Whether it is no recording, a damaged one, or one that lies.
    """

    path: str
    plain: dict[str, Any]
    lines: tuple[str, ...]
    ok: bool
    unreadable: bool = False


def replayed(path: str, changes: dict[str, Any] | None = None) -> Report:
    """
    Replay one file.

    Args:
        path: The file.
        changes: Fields of a Config to fold it under as well; None: only its own.
    """
    try:
        folded = fold_recording(path)
        found = None if changes is None or not folded.ok else _what_if(path, folded.begun.config, changes)
    except RecordingError as error:
        return Report(path, {"recording": path, "ok": False, "error": str(error)}, (str(error),), False, True)
    plain = _plain(folded)
    lines = _lines(folded)
    if found is not None:
        plain["what_if"] = attrs.asdict(found)
        lines += what_if_lines(found)
    return Report(path, plain, tuple(lines), folded.ok, lies(folded))


def _what_if(path: str, config: Config, changes: dict[str, Any]) -> WhatIf:
    try:
        other = attrs.evolve(config, **changes)
    except ConfigError as error:
        raise RecordingError(f"{path}: its config with these changes cannot be: {error}") from error
    return what_if(read_recording(path), other)


def _plain(folded: Folded) -> dict[str, Any]:
    data: dict[str, Any] = {"recording": folded.path, "ok": folded.ok, "events": folded.events}
    data["torn"] = folded.torn
    data["compared"] = folded.compared
    data["version"] = folded.header.version
    data["runs"] = [_run(run) for run in folded.runs]
    data["digest"] = digest(folded.state)
    if (found := folded.divergence) is not None:
        data["event"], data["field"], data["problem"] = found.entry, found.field, what_parted(folded)
        data["recorded"], data["now"], data["cause"] = found.recorded, found.now, found.cause
    return data


def _run(run: FoldedRun) -> dict[str, Any]:
    return {
        "prompt": run.prompt,
        "transitions": [str(item.reason) for item in run.transitions],
        "terminal": None if run.end is None else run.end.reason.value,
        "ok": False if run.end is None else run.end.ok,
        "why": "the run was never finished" if run.end is None else run.end.why,
    }


def what_parted(folded: Folded) -> str:
    """Return in words where a recording parted from today's code; "" where it did not."""
    found = folded.divergence
    if found is None:
        return ""
    if found.unfit:
        return " ".join(found.words.split())
    return f"recorded {_short(found.recorded)}, now {_short(found.now)}"


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def _lines(folded: Folded) -> list[str]:
    from stepfold.adapters.cli.terminal.words import end_line, line_of, transition_line

    torn = f", {folded.torn} bytes of a torn last line left out" if folded.torn else ""
    verdict = _verdict(folded)
    lines = [f"{folded.path}: {verdict}: {folded.events} events{torn}, state {digest(folded.state)[:12]}"]
    for run in folded.runs:
        lines.append(f"   prompt: {line_of(run.prompt)}")
        lines += [f"-- {transition_line(item.reason, item.count, item.turn)}" for item in run.transitions]
        lines.append(f"== {'not finished' if run.end is None else end_line(run.end)}")
    if (found := folded.divergence) is not None:
        what = "does not replay" if found.unfit else "diverges"
        lines.append(f"   {what}: event {found.entry}, {found.field}: {line_of(what_parted(folded), 600)}")
        lines.append(f"   likely cause: {found.cause}")
    return lines


def _verdict(folded: Folded) -> str:
    if not folded.ok:
        return "NOT THE SAME"
    if not folded.compared:
        return "replays (it does not tell what its steps came to)"
    return "same"


def what_if_lines(found: WhatIf) -> list[str]:
    """Return what would have happened, for people."""
    count = f"{found.entry} of {found.entries} events"
    end = f"; the end would be {found.ended}" if found.ended else ""
    lines = [f"   under the other config: {count} fit{end}"]
    if not found.same:
        lines.append(f"   then {found.why}: there the recording has no answer")
    if found.assumed:
        lines.append(f"   taken as answered, though it differs: {', '.join(found.assumed)}")
    return lines
