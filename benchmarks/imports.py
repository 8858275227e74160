"""What importing the engine costs, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

CODE = (
    "import time; a = time.process_time(); import attrs; b = time.process_time()\n"
    "import stepfold.engine; c = time.process_time(); print((b - a) * 1e3, (c - a) * 1e3)"
)


def import_ms() -> tuple[float, float]:
    """Return CPU ms of importing attrs, and of importing the engine, attrs included; bytecode is cached."""
    figures = []
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(5):
            done = subprocess.run(
                [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
            )
            before, after = done.stdout.split()
            figures.append((float(before), float(after)))
    return min(figures, key=lambda pair: pair[1])
