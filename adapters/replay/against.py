"""
This code against that of another revision, on the same recordings.

The other revision is taken out of the repository and put beside this one's
dependencies, in an environment of its own in the user's cache; a program that
both can run folds each recording and tells what every step came to.
"""

from __future__ import annotations

import io
import json as jsons
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

import stepfold.engine
from stepfold.adapters.recording import RecordingError
from stepfold.adapters.recording.comparing import differ
from stepfold.adapters.replay.telling import __file__ as TELLING

FOLDERS: Final = ("engine", "effects", "adapters")
TOGETHER: Final = 50  # files for one process


class RevisionError(ValueError):
    """A revision cannot be compared with; the text says why, in one line."""


@attrs.frozen
class Compared:
    """
    One recording, told by two revisions.

    Args:
        path: The file.
        entries: How many were compared.
        entry: The first where they part, counted from 1; 0: none.
        field: Where in it.
        here: What this code makes of it.
        there: What the other revision does.
    """

    path: str
    entries: int
    entry: int = 0
    field: str = ""
    here: Any = None
    there: Any = None

    def line(self, revision: str) -> str:
        """Return it for people."""
        if not self.entry:
            return f"{self.path}: same as {revision}: {self.entries} entries"
        return (
            f"{self.path}: NOT THE SAME: entry {self.entry}, {self.field}: "
            f"{revision} {_short(self.there)}, here {_short(self.here)}"
        )


def compare_with(revision: str, files: Sequence[str], repository: Path | None = None) -> Iterator[Compared]:
    """
    Compare this code with *revision* on each of *files*.

    Args:
        revision: As git names it.
        files: Recordings.
        repository: Where it is; None: the one that this package lies in.

    Raises:
        RevisionError: There is no such revision, or it cannot be run here.
        RecordingError: A file cannot be read.
    """
    python = environment_of(revision, repository)
    for at in range(0, len(files), TOGETHER):
        some = files[at : at + TOGETHER]
        both = zip(some, _told(Path(sys.executable), some), _told(python, some), strict=True)
        yield from (_compared(file, here, there) for file, here, there in both)


def _compared(path: str, here: list[Any], there: list[Any]) -> Compared:
    for number, (one, other) in enumerate(zip(here, there, strict=False), 1):
        found = differ(one, other, "", times=True)
        if found is not None:
            return Compared(path, number, number, *found)
    shorter = min(len(here), len(there))
    if len(here) != len(there):
        rest = [each[shorter] if len(each) > shorter else None for each in (here, there)]
        return Compared(path, shorter, shorter + 1, "", *rest)
    return Compared(path, shorter)


def _told(python: Path, files: Sequence[str]) -> list[list[Any]]:
    """Return what each entry of each file comes to, told by another process with its own code."""
    command = [str(python), "-P", TELLING, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RevisionError(f"the revision cannot be run here: {last}")
    lists = [jsons.loads(line) for line in done.stdout.splitlines()]
    if (words := next((one for one in lists if isinstance(one, str)), None)) is not None:
        raise RecordingError(words)
    return lists


def environment_of(revision: str, repository: Path | None = None) -> Path:
    """Return the Python of *revision*'s environment, which is made if it is not there."""
    top = repository or Path(stepfold.engine.__file__).resolve().parent.parent
    commit = _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", of=revision).strip()
    place = _cache() / commit
    python = place / "venv" / "bin" / "python"
    if python.exists():
        return python
    place.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f"{commit[:12]}-", dir=place.parent))
    try:
        _fill(half, top, commit, revision)
        shutil.rmtree(place, ignore_errors=True)
        half.rename(place)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return python


def _fill(half: Path, top: Path, commit: str, revision: str) -> None:
    packed = subprocess.run(
        ["git", "-C", str(top), "archive", commit, *FOLDERS], capture_output=True, check=False
    )
    if packed.returncode:
        raise RevisionError(f"{revision}: it has no engine/, effects/ and adapters/ at its top")
    venv.create(half / "venv", symlinks=True)
    library = next((half / "venv" / "lib").glob("python*/site-packages"))
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(library / "stepfold", filter="data")
    # Dependencies are this environment's; its own links to stepfold are not followed from there.
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")


def _git(top: Path, *words: str, of: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(top), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise RevisionError("--against needs git, which is not here") from None
    if "not a git repository" in done.stderr:
        raise RevisionError(f"{top}: it is no git repository; --against compares with revisions of one")
    if done.returncode:
        raise RevisionError(f"{of}: there is no such revision in {top}")
    return done.stdout


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "stepfold" / "revisions"


def _short(value: Any) -> str:
    text = jsons.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
