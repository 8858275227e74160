"""
What only this file catches: a word, an order or a count that no other test names.

Every scenario comes to what it came to when somebody last read it.  Where a
change is wanted, write it anew (``tests/engine/approved/outcome.py``) and read
the difference.
"""

from __future__ import annotations

import pytest

from tests.engine.approved.outcome import FILES, kept, outcome

KEPT = kept()


def test_every_scenario_has_been_read() -> None:
    assert FILES == sorted(KEPT)


@pytest.mark.parametrize("name", FILES)
def test_a_scenario_comes_to_what_it_came_to(name: str) -> None:
    assert KEPT[name] == outcome(name)
