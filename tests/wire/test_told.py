"""
What the loop tells and decides nothing by: notices, background work, what became of queued words.

Only this file sees that each is told once, at its point, and that the requests are the same without it.
"""

from __future__ import annotations

from typing import Any

import pytest

from stepfold.effects import Handle, Stream, stream
from stepfold.effects.ports import TextDelta
from stepfold.engine import Config, Terminal
from stepfold.engine.effects import Background, Continued
from stepfold.engine.events import Stop
from stepfold.engine.messages import Role, texts
from tests.wire.session import MEDIA, Model, Session, fails, gives, inside, play, says, uses, words

TURN = [uses("t1 read"), says("done")]


def requests(session: Session) -> list[list[str]]:
    return [words(order) for order in session.requests]


# ---------------------------------------------------------------- notices


def test_one_warning_when_the_window_fills_up() -> None:
    """At 147,000 of 200,000 tokens, and not again for as long as the run goes on."""

    def filled(tokens: int) -> Session:
        turns = [uses(f"t{n} read", tokens=tokens) for n in range(1, 4)]
        return play([*turns, says("done")], tools=gives(3))

    under, at = filled(146_988), filled(146_989)  # and ten for the answer, one for the result
    assert [] == under.notices("context_warning")
    assert [147_000] == [notice.count for notice in at.notices("context_warning")]
    assert requests(under) == requests(at)


def test_one_notice_at_turn_twenty() -> None:
    def turns(count: int) -> Session:
        each = [uses(f"t{n} read", n=n) for n in range(1, count)]
        return play([*each, says("done")], tools=gives(3))

    assert [] == turns(19).notices("many_turns")
    long = turns(25)
    assert [20] == [notice.count for notice in long.notices("many_turns")]
    place = long.items.index(long.notices("many_turns")[0])
    assert 20 == next(item.turn for item in long.items[place:] if isinstance(item, Continued))


def test_a_call_that_comes_again_and_again_is_told_at_every_third_time() -> None:
    def calling(*numbers: int) -> list[int]:
        each = [uses(f"t{place} read", n=n) for place, n in enumerate(numbers)]
        session = play([*each, says("done")], tools=gives(3))
        return [notice.count for notice in session.notices("repeated_call")]

    assert [3, 6] == calling(1, 1, 1, 1, 1, 1)
    assert [] == calling(1, 1, 2, 1, 1, 2)
    assert [3] == calling(1, 1, 2, 2, 2)


# ---------------------------------------------------------------- background work


def behind(
    answers: list[Any], config: Config | None = None, **options: Any
) -> tuple[Session, list[Background]]:
    seen: list[Background] = []

    async def work(order: Background) -> None:
        seen.append(order)
        raise RuntimeError("nobody waits for this, and nobody minds")

    return play(answers, config, background=work, **options), seen


def test_background_work_begins_with_the_clean_answer_and_decides_nothing() -> None:
    on, seen = behind(TURN, tools=gives(4))
    off = play(TURN, tools=gives(4))
    (order,) = seen
    last = order.messages[-1]
    assert (Role.ASSISTANT, "done") == (last.role, texts(last.content))
    assert requests(on) == requests(off)
    assert on.result.end == off.result.end


@pytest.mark.parametrize(
    ("answer", "config"),
    [
        (says("half", stop=Stop.MAX_TOKENS), Config(max_output_tokens=9, max_output_recoveries=0)),
        (says("no", stop=Stop.REFUSAL), Config()),
        (fails(MEDIA), Config(reactive_compact=False)),
        (says("done"), Config(source="agent:finder")),
        (says("done"), Config(source="compact")),
    ],
    ids=["cut", "refused", "failed", "sub-agent", "nested"],
)
def test_no_background_work_behind_a_failed_answer_or_another_source(answer: Any, config: Config) -> None:
    _, seen = behind([answer], config)
    assert [] == seen


# ---------------------------------------------------------------- what became of queued words


def queued(answers: list[Any], config: Config | None = None) -> Session:
    handle = Handle()
    handle.queue("hurry")
    return play(answers, config, tools=gives(4), handle=handle)


@pytest.mark.parametrize(
    ("answers", "config", "terminal"),
    [
        (TURN, Config(), Terminal.COMPLETED),
        (TURN, Config(max_turns=1), Terminal.MAX_TURNS),
        ([TURN[0], fails(MEDIA)], Config(reactive_compact=False), Terminal.IMAGE_ERROR),
    ],
)
def test_words_that_joined_are_completed_by_whichever_terminal(
    answers: list[Any], config: Config, terminal: Terminal
) -> None:
    session = queued(answers, config)
    assert terminal is session.result.terminal
    assert ["started", "completed"] == [mark for _, mark in session.marks]
    assert 1 == len({id for id, _ in session.marks})


def test_a_full_queue_says_no() -> None:
    handle = Handle()
    for text in ("one", "two"):
        handle.queue(text)
    session = play(TURN, Config(max_queued_commands=1), tools=gives(4), handle=handle)
    assert ["go", "xxxx", "one"] == words(session.requests[1])
    assert ["refused", "started", "completed"] == [mark for _, mark in session.marks]
    assert 1 == len(session.notices("queue_full"))


def test_a_run_that_its_consumer_left_confirms_nothing() -> None:
    marks: list[str] = []

    async def left() -> Stream:
        handle = Handle()
        handle.queue("hurry")
        running = stream(
            "go",
            model=Model(TURN),
            tools=gives(4),
            handle=handle,
            on_command=lambda id, mark: marks.append(str(mark)),
        )
        async for item in running:
            if isinstance(item, TextDelta):  # of the second answer: the words have joined
                break
        await running.aclose()
        return running

    running = inside(left())
    assert ["started"] == marks
    with pytest.raises(RuntimeError, match="no result"):
        _ = running.result
