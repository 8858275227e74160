"""``stepfold fuzz`` and ``museum``: an adversary for the engine, a config or an agent; real faults."""

from __future__ import annotations

import json as jsons
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs

from stepfold.adapters.cli.exits import FAILED, OK, Problem
from stepfold.adapters.fuzzing.corpus import keep_corpus, read_corpus
from stepfold.adapters.fuzzing.findings.found import Found, found
from stepfold.adapters.fuzzing.museum.catalogue import EXHIBITS
from stepfold.adapters.fuzzing.museum.visit import visits
from stepfold.adapters.fuzzing.session import Total, Wanted, fuzz, player_of
from stepfold.adapters.fuzzing.summary import lines, page, plain, progress
from stepfold.adapters.fuzzing.targets.live import LiveDriver
from stepfold.adapters.fuzzing.targets.target import BadTarget
from stepfold.adapters.testing.world import ALL_FAULTS, Fault

SHORT = 8  # events


@attrs.frozen(kw_only=True)
class FuzzWishes:
    """What was typed."""

    target: str
    seconds: float
    seed: int
    workers: int
    invariants: tuple[str, ...]
    faults: tuple[str, ...]
    corpus: Path | None
    findings: Path
    html: Path | None
    json: bool


def fuzz_command(wishes: FuzzWishes) -> int:
    """Fuzz; 0 nothing was found, 1 something was; raises ``Problem`` for what cannot be used."""
    try:
        return _fuzz(wishes)
    except BadTarget as problem:
        raise Problem(str(problem)) from problem


def _fuzz(wishes: FuzzWishes) -> int:
    wanted = Wanted(
        target=wishes.target,
        invariants=wishes.invariants,
        faults=_faults(wishes.faults),
        seed=wishes.seed,
        seconds=wishes.seconds,
        workers=wishes.workers,
    )
    player = player_of(wanted)  # what cannot be used is told before anything begins
    known = () if wishes.corpus is None else read_corpus(wishes.corpus)
    if wishes.corpus is not None:
        keep_corpus(wishes.corpus, ())
    quiet = wishes.json or not sys.stderr.isatty()
    with _executor(wishes.workers) as executor, _shown(quiet) as status:
        total = fuzz(wanted, executor, known, _told(status))
    live = isinstance(player, LiveDriver)
    seen = [found(player, rule, tape, live=live) for rule, tape in total.broken.items()]
    _keep(wishes, wanted, total, seen)
    return FAILED if seen else OK


def _keep(wishes: FuzzWishes, wanted: Wanted, total: Total, seen: list[Found]) -> None:
    """Write what was found, the corpus and the page; print the summary."""
    if wishes.corpus is not None:
        keep_corpus(wishes.corpus, (*(each.tape for each in seen), *total.corpus))
    try:
        written = [each.write(wishes.findings) for each in seen]
        if wishes.html is not None:
            wishes.html.write_text(page(wanted, total, seen), encoding="utf-8")
    except OSError as problem:
        raise Problem(f"{problem.filename or wishes.findings}: {problem.strerror or problem}") from problem
    if wishes.json:
        said = plain(wanted, total, seen)
        said["files"] = [
            {"recording": str(one.recording), "scenario": None if one.scenario is None else str(one.scenario)}
            for one in written
        ]
        print(jsons.dumps(said, ensure_ascii=False))
        return
    for line in lines(total, seen):
        print(line)
    for one in written:
        for line in one.lines():
            print(f"  {line}")


def _faults(given: tuple[str, ...]) -> tuple[Fault, ...]:
    names = {fault.value: fault for fault in Fault}
    for name in given:
        if name not in names:
            raise Problem(f"--fault {name}: there is no such fault; allowed are {', '.join(names)}")
    return tuple(names[name] for name in given) or tuple(ALL_FAULTS)


def _executor(workers: int) -> Executor:
    if workers == 1:
        return _Here()
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


class _Here(Executor):
    """One worker: this thread, so that a target that does not come back can be broken off."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as problem:
            future.set_exception(problem)
        return future


def _shown(quiet: bool) -> Any:
    """Return the line that shows how it goes, in a terminal."""
    if quiet:
        return nullcontext(None)
    from rich.console import Console

    return Console(stderr=True).status("fuzzing")


def _told(status: Any) -> Any:
    def told(total: Total) -> None:
        if status is not None:
            status.update(progress(total))

    return told


# ------------------------------------------------------------------------ museum


def museum_command(names: Sequence[str], *, seconds: float, seed: int, listed: bool, json: bool) -> int:
    """Visit exhibits; 0 each was found, 1 one was not; raises ``Problem`` for a name that is none."""
    unknown = [name for name in names if name not in EXHIBITS]
    if unknown:
        raise Problem(f"{unknown[0]}: there is no such exhibit; --list names them")
    chosen = [EXHIBITS[name] for name in names] or list(EXHIBITS.values())
    if listed:
        for exhibit in chosen:
            print(f"{exhibit.name}\n    {exhibit.story}\n    Planted: {exhibit.planted}.")
        return OK
    found = short = 0
    for one in visits(chosen, seconds=seconds, seed=seed):
        print(jsons.dumps(one.json(), ensure_ascii=False) if json else one.line(), flush=True)
        found += one.found
        short += one.found and len(one.events) <= SHORT
    if not json:
        print(f"{len(chosen)} exhibits: {found} found, {short} of them in {SHORT} events or fewer")
    return OK if found == len(chosen) else FAILED
