"""
The nets of ``--deep`` cast beside the others, each package of them in a process of its own.

They need two cores and wait for other programs much of the time; so the whole
takes little longer than the longest of them.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import queue
import signal
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from stepfold.adapters.proof.explore import Progress
from stepfold.adapters.proof.verdict import Check, Status
from stepfold.engine.config import Config

# Name -> module and function: each is a ``verdict.Net``.
DEEP: Final[Mapping[str, str]] = {
    "symbolic": "stepfold.adapters.proof.symbolic.nets:cast",
    "formal": "stepfold.adapters.proof.formal.nets:cast",
}
LOOK_S: Final = 0.5  # how often one that has nothing to say is looked after
Said: TypeAlias = "tuple[str, Check | tuple[str, int, int] | None]"


class Beside:
    """Casts nets in processes of their own; use it in a ``with`` block, which ends them."""

    def __init__(self, nets: Mapping[str, str], config: Config, told: Progress) -> None:
        self.told = told
        self.found: list[Check] = []
        spawning = multiprocessing.get_context("spawn")
        self.said: Any = spawning.Queue()
        self.processes = {
            name: spawning.Process(target=_work, args=(name, where, config, self.said), daemon=True)
            for name, where in nets.items()
        }
        self.busy = set(nets)

    def __enter__(self) -> Beside:
        for process in self.processes.values():
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.is_alive() and process.pid is not None:
                try:
                    os.killpg(process.pid, signal.SIGTERM)  # and what it has started
                except (ProcessLookupError, PermissionError):  # it has no group of its own yet
                    process.terminate()
            process.join()

    def look(self) -> None:
        """Take what has been said by now."""
        while True:
            try:
                self._take(self.said.get_nowait())
            except queue.Empty:
                return

    def checks(self) -> Iterator[Check]:
        """Yield every check, in the order in which they are known, until all nets are done."""
        while True:
            yield from self.found
            self.found.clear()
            if not self.busy:
                return
            try:
                self._take(self.said.get(timeout=LOOK_S))
            except queue.Empty:
                self._look_after()

    def _take(self, said: Said) -> None:
        name, what = said
        match what:
            case Check():
                self.found.append(what)
            case None:
                self.busy.discard(name)
            case _:
                self.told(*what)

    def _look_after(self) -> None:
        """A process that has died without a word has proved nothing."""
        for name in sorted(self.busy):
            process = self.processes[name]
            if not process.is_alive() and self.said.empty():
                words = f"its process died with exit code {process.exitcode}"
                self.found.append(Check(name, Status.FAILED, words, (words,)))
                self.busy.discard(name)


def _work(name: str, where: str, config: Config, said: Any) -> None:
    """Cast one net; what it needs is imported only here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    os.setpgid(0, 0)
    module, function = where.split(":")
    try:
        cast = getattr(importlib.import_module(module), function)
        for check in cast(config, lambda *told: said.put((name, told))):
            said.put((name, check))
    except ImportError as problem:
        said.put((name, Check(name, Status.SKIPPED, f"cannot be imported: {problem}")))
    except Exception as problem:
        words = f"it broke off: {type(problem).__name__}: {problem}"
        said.put((name, Check(name, Status.FAILED, words, (words,))))
    said.put((name, None))
