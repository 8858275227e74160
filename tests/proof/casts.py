"""Nets that other processes cast in the tests of the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from stepfold.adapters.proof.verdict import Check, Progress, Status
from stepfold.engine.config import Config


def sound(config: Config, told: Progress) -> Iterator[Check]:
    """Prove something."""
    told("sound", 1, 2)
    yield Check("sound", Status.PROVED, "for all limits")


def lacking(config: Config, told: Progress) -> Iterator[Check]:
    """Lack something."""
    yield Check("lacking", Status.SKIPPED, "there is no Java here")


def broken(config: Config, told: Progress) -> Iterator[Check]:
    """Find something."""
    yield Check("broken", Status.FAILED, "one state", ("it rose",))


def raising(config: Config, told: Progress) -> Iterator[Check]:
    """Raise what no net may raise."""
    yield Check("raising", Status.PROVED, f"{1 // 0}")


def dying(config: Config, told: Progress) -> Iterator[Check]:
    """Die without a word."""
    os._exit(9)
    yield Check("dying", Status.PROVED, "")


def lasting(config: Config, told: Progress) -> Iterator[Check]:
    """Start another program and wait for it; its number goes into the file that the config names."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    path = Path(config.system_prompt)
    path.with_suffix(".part").write_text(str(program.pid), encoding="utf-8")
    path.with_suffix(".part").rename(path)
    program.wait()
    yield Check("lasting", Status.PROVED, "")
