"""Paths as they are typed: what cannot be one is told with the name of its option."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import typer


def to_read(text: str) -> Path:
    """Return the path of something to read; whether it is there is for the command to say."""
    path = to_make(text)
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return path
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):  # some never end
        raise typer.BadParameter(f"{text} is a device; wanted a file")
    return path


def to_make(text: str) -> Path:
    """Return a path that may be there or not."""
    if not text:  # pathlib takes it for the current folder
        raise typer.BadParameter("it is empty; wanted a path")
    try:
        os.lstat(text)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as problem:  # too long, a file where a folder is needed, no right to look
        words = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise typer.BadParameter(f"{text if len(text) <= 200 else text[:200] + '...'}: {words}") from problem
    return Path(text)
