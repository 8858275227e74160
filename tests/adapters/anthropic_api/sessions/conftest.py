"""The fixture of the sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.anthropic_api.sessions.playing import Play


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Return what plays sessions."""
    return Play(tmp_path)
