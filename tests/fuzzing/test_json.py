"""What only this file catches: a field of ``fuzz`` or ``museum --json`` that docs/cli.md does not know."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stepfold.adapters.cli import main
from tests.cli.test_json import documented, names

INVARIANT = """
def no_second_turn(before, event, effects, after):
    return "a second turn" if after.control.turn > 1 else None
"""


def said(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> list[dict[str, Any]]:
    assert code == main([*words, "--json"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_session_with_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine_for_json.py").write_text(INVARIANT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    fields = documented("An object of `fuzz --json`")

    (one,) = said(capsys, 1, "fuzz", "--seconds", "3", "--invariant", "mine_for_json:no_second_turn")

    assert set(fields) == set(one)
    (finding,) = one["findings"]
    assert names(fields["findings"]) == set(finding)
    (files,) = one["files"]
    assert names(fields["files"]) == set(files)
    assert all((tmp_path / name).is_file() for name in files.values())
    assert one["rows"] + len(one["never_taken"]) == one["rows_of"]


def test_an_exhibit(capsys: pytest.CaptureFixture[str]) -> None:
    fields = documented("An object of `museum --json`")

    (one,) = said(capsys, 0, "museum", "reactive-flag-reset-by-a-stop-hook")

    assert set(fields) == set(one)
    assert one["found"] is True
    assert re.fullmatch(r"[\w .-]+", one["rule"])
