"""``stepfold lint``: what went wrong in recordings and transcripts."""

from __future__ import annotations

import json as jsons
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from stepfold.adapters.cli.commands.transcripts import transcripts_in
from stepfold.adapters.cli.exits import FAILED, OK, USAGE, Problem
from stepfold.adapters.cli.terminal.progress import progress
from stepfold.adapters.cli.terminal.words import line_of
from stepfold.adapters.config_file import ConfigFileError, read_settings
from stepfold.adapters.linting.finding import RULES, Finding, Severity
from stepfold.adapters.linting.linting import Linted, lint, plain, sarif
from stepfold.adapters.transcripts.source import TranscriptError
from stepfold.engine import Config, ConfigError


@attrs.frozen(kw_only=True)
class LintWishes:
    """What was typed."""

    paths: Sequence[Path]
    rules: tuple[str, ...] = ()
    config: Path | None = None
    format: str | None = None
    sarif: Path | None = None
    quiet: bool = False
    json: bool = False


def lint_command(wishes: LintWishes) -> int:
    """
    Lint and print.

    Returns:
        0 nothing but notes, 1 an error or a warning, 2 a file cannot be read (2 wins over 1).
    """
    for name in wishes.rules:
        if name not in RULES:
            raise Problem(f"--rule {name}: there is no such rule; allowed are {', '.join(RULES)}")
    config = None if wishes.config is None else _config(wishes.config)
    if wishes.sarif is not None and wishes.sarif.exists() and not wishes.sarif.is_file():
        raise Problem(f"--sarif: {wishes.sarif} is no file")  # nor shall one take its place
    counts: Counter[str] = Counter()
    done: list[Linted] = []
    files = list(transcripts_in(wishes.paths))
    with progress("linting", len(files), hidden=wishes.json) as begin:
        for file, _ in files:
            begin(file.name)
            try:
                found = _chosen(lint(file, config, wishes.format), wishes)
            except TranscriptError as error:
                counts["unreadable"] += 1
                _refuse(file, error, wishes.json)
                continue
            counts["files"] += 1
            done.append(found if wishes.sarif is not None else attrs.evolve(found, findings=()))
            for finding in found.findings:
                counts[finding.severity.value] += 1
                _print(found.path, finding, wishes.json)
    if wishes.sarif is not None:
        _write(wishes.sarif, sarif(done))
    _summary(counts, wishes.json)
    if counts["unreadable"]:
        return USAGE
    return FAILED if counts["error"] + counts["warning"] else OK


def _config(path: Path) -> Config:
    try:
        return read_settings(path).config()
    except ConfigFileError as error:
        raise Problem(str(error)) from error
    except ConfigError as error:
        raise Problem(f"{path}: {error}") from error


def _chosen(found: Linted, wishes: LintWishes) -> Linted:
    kept = tuple(
        one
        for one in found.findings
        if (not wishes.rules or one.rule in wishes.rules)
        and not (wishes.quiet and one.severity is Severity.NOTE)
    )
    return attrs.evolve(found, findings=kept)


def _refuse(file: Path, error: TranscriptError, json: bool) -> None:
    if json:
        print(jsons.dumps({"file": str(file), "error": str(error)}, ensure_ascii=False))
    else:
        print(f"stepfold: {line_of(str(error), 1_000)}", file=sys.stderr, flush=True)


def _print(path: str, finding: Finding, json: bool) -> None:
    if json:
        print(jsons.dumps(plain(path, finding), ensure_ascii=False))
        return
    chain = f" [{finding.place.chain}]" if finding.place.chain else ""
    words = line_of(finding.words, 400)
    print(f"{path}:{finding.place.line}: {finding.severity.value}: {finding.rule}{chain}: {words}")


def _write(path: Path, content: bytes) -> None:
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_bytes(content)
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise Problem(f"--sarif: {path}: {error.strerror or error}") from error


def _summary(counts: Counter[str], json: bool) -> None:
    kinds = ("files", "error", "warning", "note", "unreadable")
    if json:
        print(jsons.dumps({name: counts[name] for name in kinds}))
        return
    told = ", ".join(f"{counts[name]} {name}s" for name in ("error", "warning", "note"))
    bad = f"; {counts['unreadable']} that cannot be read" if counts["unreadable"] else ""
    print(f"{counts['files']} files: {told}{bad}")
