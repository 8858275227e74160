"""One file held against all rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import orjson

from stepfold.adapters.linting.finding import Finding
from stepfold.adapters.linting.loop import Loop
from stepfold.adapters.linting.protocol import Protocol
from stepfold.adapters.linting.recorded import items_of
from stepfold.adapters.recording import Entries, RecordingError
from stepfold.adapters.recording.reading import opened
from stepfold.adapters.transcripts.items import Item, Place
from stepfold.adapters.transcripts.reading import transcript
from stepfold.adapters.transcripts.source import DAMAGED, TranscriptError
from stepfold.engine import Config, UnexpectedEvent

OURS = "stepfold"


@attrs.frozen
class Linted:
    """
    What was found in a file.

    Args:
        path: The file.
        format: Its format; ``stepfold`` for a recording.
        findings: In the order of their lines.
        broken_lines: Lines that were left out, for they are no JSON.
    """

    path: str
    format: str
    findings: tuple[Finding, ...]
    broken_lines: int = 0


def lint(path: str | Path, config: Config | None = None, format: str | None = None) -> Linted:
    """
    Hold a recording, or a transcript, against all rules.

    Args:
        path: The file.
        config: Whose limits it is held against; None: those of a recording's own, else the default.
        format: Of a transcript; None: it is recognised.

    Raises:
        TranscriptError: It cannot be read, is of no format that is known, or is a recording that lies.
    """
    if format is None and _is_recording(path):
        return _recording(path, config)
    with transcript(path, format) as found:
        name = found.format.name
        findings = tuple(sorted(findings_in(found.items, name, config or Config()), key=_order))
        return Linted(str(path), name, findings, found.counts.broken_lines)


def _is_recording(path: str | Path) -> bool:
    try:
        with opened(path) as file:
            first = file.readline(1 << 16)
    except (RecordingError, *DAMAGED):
        return False
    return first.startswith(b'{"stepfold"')


def _recording(path: str | Path, config: Config | None) -> Linted:
    try:
        with opened(path) as file:
            entries = Entries(file, str(path))
            limits = config or entries.begun.config
            findings = tuple(sorted(findings_in(items_of(entries), OURS, limits), key=_order))
    except RecordingError as problem:
        raise TranscriptError(str(problem)) from problem
    except UnexpectedEvent as problem:
        raise TranscriptError(f"{path}: an event cannot happen where it stands: {problem}") from problem
    return Linted(str(path), OURS, findings)


def findings_in(items: Iterable[Item], format: str, config: Config) -> Iterator[Finding]:
    """Yield what the rules find in *items*; each conversation is held against them by itself."""
    chains: dict[tuple[str, str], tuple[Protocol, Loop]] = {}
    place = Place(1)
    for item in items:
        place = item.place
        name = (place.session, place.chain)
        if name not in chains:
            chains[name] = (Protocol(), Loop(format, config))
        for one in chains[name]:
            yield from one.see(item)
    for (session, chain), both in chains.items():
        for one in both:
            yield from one.end(attrs.evolve(place, session=session, chain=chain))


def _order(finding: Finding) -> tuple[int, str]:
    return finding.place.line, finding.rule


def plain(path: str, finding: Finding) -> dict[str, Any]:
    """Return a finding as ``--json`` prints it."""
    return {
        "file": path,
        "line": finding.place.line,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "words": finding.words,
        "session": finding.place.session,
        "chain": finding.place.chain,
    }


def sarif(files: Iterable[Linted]) -> bytes:
    """Return findings as SARIF 2.1.0, the format of code-review tools."""
    from stepfold.adapters.linting.finding import RULES
    from stepfold.adapters.recording.format import package_version

    names = list(RULES)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": rule.about},
            "help": {"text": f"{rule.about} See docs/lint.md, {name}."},
            "defaultConfiguration": {"level": rule.severity.value},
        }
        for name, rule in RULES.items()
    ]
    results = [
        {
            "ruleId": one.rule,
            "ruleIndex": names.index(one.rule),
            "level": one.severity.value,
            "message": {"text": one.words},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(file.path)},
                        "region": {"startLine": max(1, one.place.line)},
                    }
                }
            ],
        }
        for file in files
        for one in file.findings
    ]
    tool = {"driver": {"name": "stepfold lint", "version": package_version(), "rules": rules}}
    whole = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": tool, "results": results, "columnKind": "unicodeCodePoints"}],
    }
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path.replace("\\", "/"), errors="replace")
