"""``stepfold replay``: fold recordings again, and say where they part from what they tell."""

from __future__ import annotations

import json as jsons
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from stepfold.adapters.cli.exits import FAILED, OK, USAGE, Problem
from stepfold.adapters.cli.terminal.progress import progress
from stepfold.adapters.cli.terminal.words import line_of
from stepfold.adapters.config_file import ConfigFileError, read_settings
from stepfold.adapters.recording import Difference, Recording, RecordingError, compare, read_recording
from stepfold.adapters.replay.files import recordings_in, replay_all
from stepfold.adapters.replay.report import Report

FEW: Final = 8  # files for which a second process does not pay


@attrs.frozen(kw_only=True)
class ReplayWishes:
    """What was typed."""

    files: Sequence[Path]
    same: bool = False
    config: Path | None = None
    against: str | None = None
    workers: int | None = None
    quiet: bool = False
    json: bool = False


def replay_command(wishes: ReplayWishes) -> int:
    """
    Replay and print.

    Returns:
        0 all come to what they tell, 1 one does not, 2 one cannot be read or lies (2 wins over 1).
    """
    try:
        files = recordings_in(wishes.files)
    except RecordingError as error:
        raise Problem(str(error)) from error
    changes = None if wishes.config is None else _changes(wishes.config)
    if wishes.against is not None:
        return _against(wishes.against, files, wishes)
    first = _first(files[0]) if wishes.same else None
    workers = wishes.workers or os.cpu_count() or 1
    good = parted = unreadable = 0
    with (
        _pool(workers, len(files)) as pool,
        progress("replaying", len(files), hidden=wishes.json or len(files) <= FEW) as begin,
    ):
        for report in replay_all(files, pool, workers=workers, changes=changes):
            begin(report.path)
            difference = _difference(first, report) if first is not None else None
            _print(report, wishes, first, difference)
            unreadable += report.unreadable
            fine = report.ok and difference is None
            good += fine
            parted += not fine and not report.unreadable
    if len(files) > 1 and not wishes.json:
        print(f"{len(files)} recordings: {good} the same, {parted} not, {unreadable} that cannot be read")
    return USAGE if unreadable else FAILED if parted else OK


def _against(revision: str, files: list[str], wishes: ReplayWishes) -> int:
    from stepfold.adapters.replay.against import RevisionError, compare_with

    good = 0
    try:
        with progress("replaying", len(files), hidden=wishes.json or len(files) <= FEW) as begin:
            for one in compare_with(revision, files):
                begin(one.path)
                good += not one.entry
                if wishes.json:
                    print(jsons.dumps(attrs.asdict(one), ensure_ascii=False), flush=True)
                elif one.entry or not wishes.quiet:
                    print(one.line(revision))
    except (RevisionError, RecordingError) as error:
        raise Problem(str(error)) from error
    if len(files) > 1 and not wishes.json:
        print(f"{len(files)} recordings: {good} the same as {revision}, {len(files) - good} not")
    return OK if good == len(files) else FAILED


def _changes(path: Path) -> dict[str, Any]:
    try:
        return dict(read_settings(path).values)
    except ConfigFileError as error:
        raise Problem(str(error)) from error


def _first(path: str) -> Recording | None:
    try:
        return read_recording(path)
    except RecordingError:  # told by its own report
        return None


def _difference(first: Recording | None, report: Report) -> Difference | None:
    if first is None or "error" in report.plain:
        return None
    return compare(first, read_recording(report.path))


def _print(
    report: Report, wishes: ReplayWishes, first: Recording | None, difference: Difference | None
) -> None:
    if wishes.json:
        data = dict(report.plain)
        if wishes.same and "error" not in data:
            words = None if difference is None else {"words": str(difference)}
            data["difference"] = None if difference is None else attrs.asdict(difference) | (words or {})
        print(jsons.dumps(data, ensure_ascii=False), flush=True)
        return
    if report.unreadable and "error" in report.plain:
        print(f"stepfold: {line_of(report.plain['error'], 1_000)}", file=sys.stderr, flush=True)
        return
    if not (wishes.quiet and report.ok and difference is None):
        for line in report.lines:
            print(line)
    if difference is not None and first is not None:
        print(f"   differs from {wishes.files[0]} at {line_of(str(difference), 400)}")


@contextmanager
def _pool(workers: int, files: int) -> Iterator[Executor | None]:
    """Yield processes, where they pay; broken off, they end at once."""
    if workers == 1 or files <= FEW:
        yield None
        return
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    except BaseException:
        for process in (pool._processes or {}).values():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
