"""What only this file catches: a result that costs more to name the longer its run was."""

from __future__ import annotations

import pytest

from stepfold.adapters.scripted import ScriptedModel, calls
from stepfold.effects import Result, run_sync
from tests.effects.fakes import FakeTools


def result_of(turns: int) -> Result:
    answers = [calls("read", {"line": number}, id=f"t{number}") for number in range(turns)]
    return run_sync("go", model=ScriptedModel([*answers, "done"]), tools=FakeTools(read=lambda *_: "ok"))


@pytest.mark.parametrize("turns", [0, 3, 30])
def test_its_repr_holds_the_end_and_no_history(turns: int) -> None:
    result = result_of(turns)
    assert turns == len(result.tool_calls)
    assert f"<Result completed: {result.end.why}; {turns} transitions, {turns} calls>" == repr(result)
