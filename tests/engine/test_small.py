"""What only this file catches: a number, an id or a flag that is off by one where nothing else reads it."""

from __future__ import annotations

import pytest

from stepfold.engine.effects import BlockShown, CallModel
from stepfold.engine.events import Usage
from stepfold.engine.messages import Text
from tests.engine.driven.context import full
from tests.engine.driven.drive import Drive


def test_a_block_that_crosses_an_abort_is_shown_with_the_id_of_its_call() -> None:
    drive = Drive()
    drive.begin()
    call = drive.open(CallModel).id
    drive.abort()
    drive.text("late")

    assert BlockShown(call, Text("late")) == drive.last(BlockShown)


@pytest.mark.parametrize(("output", "percent"), [(8_950, 89), (99, 0), (100, 1)])
def test_how_much_of_the_budget_is_used_is_told_in_whole_percent(output: int, percent: int) -> None:
    drive = Drive(token_budget_tokens=10_000)
    drive.begin()
    drive.text()
    drive.close(output=output)

    assert f"You have used {percent}% of the token budget: {output} of 10000 tokens" in drive.texts[-1]


def test_what_a_failed_summary_used_is_added_up() -> None:
    drive = full()
    before = drive.state.data.book.usage
    drive.not_compacted(usage=Usage(100, 10, 3, 2))
    after = drive.state.data.book.usage

    assert (before.input_tokens + 100, before.output_tokens + 10) == (after.input_tokens, after.output_tokens)
    assert before.cache_read_tokens + 3 == after.cache_read_tokens
    assert before.cache_creation_tokens + 2 == after.cache_creation_tokens
