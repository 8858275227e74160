"""A corpus that persists: one file for each run worth playing again first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from stepfold.adapters.fuzzing.driver.runs import GENE
from stepfold.adapters.fuzzing.driver.setups import HEADER
from stepfold.adapters.fuzzing.targets.target import BadTarget

SUFFIX: Final = ".run"


def read_corpus(folder: Path) -> tuple[bytes, ...]:
    """
    Return the choices that *folder* holds, in the order of their names; () where it is not there.

    Raises:
        BadTarget: It is no folder, or cannot be read.
    """
    if not folder.exists():
        return ()
    try:
        tapes = [path.read_bytes() for path in sorted(folder.glob(f"*{SUFFIX}"))]
        if not folder.is_dir():
            raise NotADirectoryError(20, "it is no folder")
    except OSError as problem:
        raise BadTarget(f"--corpus {folder}: {problem.strerror or problem}") from problem
    return tuple(tape for tape in tapes if len(tape) >= HEADER and (len(tape) - HEADER) % GENE == 0)


def keep_corpus(folder: Path, tapes: Iterable[bytes]) -> int:
    """
    Keep *tapes* in *folder*, which is made if it is not there; return how many are new.

    Raises:
        BadTarget: It cannot be written to.
    """
    new = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for tape in tapes:
            path = folder / f"{hashlib.sha256(tape).hexdigest()[:20]}{SUFFIX}"
            if not path.exists():
                half = path.with_suffix(".half")
                half.write_bytes(tape)
                half.replace(path)
                new += 1
    except OSError as problem:
        raise BadTarget(f"--corpus {folder}: {problem.strerror or problem}") from problem
    return new
