"""Many recordings: folders gone through, each file replayed, over all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from stepfold.adapters.recording import RecordingError
from stepfold.adapters.replay.report import Report, replayed

SUFFIXES: Final = (".jsonl", ".jsonl.gz")
AHEAD: Final = 4  # files that wait for each worker


def recordings_in(paths: Iterable[Path]) -> list[str]:
    """
    Return the files of *paths*: those that are named, and each ``*.jsonl`` and ``*.jsonl.gz`` in folders.

    Raises:
        RecordingError: A path is not there, a folder cannot be read, or holds no recording.
    """
    found: list[str] = []
    for path in paths:
        if not path.is_dir():
            found.append(str(path))
            continue
        inside = sorted(_inside(path))
        if not inside:
            raise RecordingError(f"{path}: there is no recording in it (wanted *.jsonl or *.jsonl.gz)")
        found += inside
    return found


def _inside(folder: Path) -> Iterator[str]:
    def refuse(problem: OSError) -> None:
        raise RecordingError(f"{problem.filename}: {problem.strerror}") from problem

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (os.path.join(place, name) for name in names if name.endswith(SUFFIXES))


def replay_all(
    files: Iterable[str],
    executor: Executor | None,
    *,
    workers: int = 1,
    changes: dict[str, Any] | None = None,
) -> Iterator[Report]:
    """
    Replay *files*; reports come in their order.

    Args:
        files: By name.
        executor: Where the work is done; None: here.
        workers: How many processes it has: as many files wait for each as keep it busy.
        changes: As for ``replayed``.
    """
    work: Callable[[str], Report] = partial(replayed, changes=changes)
    if executor is None:
        yield from map(work, files)
        return
    rest = iter(files)
    waiting: list[Future[Report]] = [executor.submit(work, file) for file in islice(rest, workers * AHEAD)]
    while waiting:
        report = waiting.pop(0).result()
        waiting += [executor.submit(work, file) for file in islice(rest, 1)]
        yield report
