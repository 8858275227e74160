"""Only this catches virtual time that depends on the machine, or on the order of a heap."""

from __future__ import annotations

import asyncio
import time

import pytest

from stepfold.adapters.scenarios.playing.virtual_time import Stuck, VirtualClock, run_virtual


def nothing() -> None:
    """What is done where the loop breaks off: nothing."""


def test_nothing_sleeps() -> None:
    clock = VirtualClock()

    async def work() -> None:
        await clock.sleep(3_600_000)
        await asyncio.sleep(3_600)

    before = time.process_time()
    run_virtual(work(), clock, nothing)

    assert 7_200_000 == clock.now_ms()
    assert time.process_time() - before < 60


def test_equal_times_happen_in_the_order_in_which_they_were_asked_for() -> None:
    clock = VirtualClock()
    seen: list[int] = []

    async def sleeper(number: int) -> None:
        await clock.sleep(10)
        seen.append(number)

    async def work() -> None:
        await asyncio.gather(*(sleeper(number) for number in range(100)))

    run_virtual(work(), clock, nothing)

    assert list(range(100)) == seen


def test_one_thing_at_a_time_with_all_that_it_causes() -> None:
    clock = VirtualClock()
    seen: list[str] = []

    async def talker(name: str) -> None:
        await clock.sleep(10)
        for part in range(3):
            seen.append(f"{name}{part}")
            await asyncio.sleep(0)

    async def work() -> None:
        await asyncio.gather(talker("a"), talker("b"))

    run_virtual(work(), clock, nothing)

    assert ["a0", "a1", "a2", "b0", "b1", "b2"] == seen


def test_a_place_is_kept_from_the_moment_it_is_asked_for() -> None:
    clock = VirtualClock()
    seen: list[str] = []

    async def answer(moments: list[asyncio.Future[None]]) -> None:
        for number, moment in enumerate(moments):
            await moment
            seen.append(f"block {number}")

    async def tool() -> None:
        await clock.sleep(0)
        seen.append("tool")

    async def work() -> None:
        moments = [clock.after(0) for _ in range(3)]
        await asyncio.gather(answer(moments), tool())

    run_virtual(work(), clock, nothing)

    assert ["block 0", "block 1", "block 2", "tool"] == seen


def test_a_deed_comes_before_what_is_due_and_after_what_runs() -> None:
    clock = VirtualClock()
    seen: list[str] = []

    async def work() -> None:
        due = clock.after(0)
        clock.soon(lambda: seen.append("deed"))
        for part in range(3):
            seen.append(f"work {part}")
            await asyncio.sleep(0)
        await due
        seen.append("due")

    run_virtual(work(), clock, nothing)

    assert ["work 0", "work 1", "work 2", "deed", "due"] == seen


def test_a_deed_that_raises_ends_the_loop_before_anything_else_happens() -> None:
    clock = VirtualClock()
    seen: list[str] = []

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    async def work() -> None:
        clock.soon(die)
        try:
            await clock.sleep(1)
            seen.append("went on")
        finally:
            seen.append("cleared away")

    with pytest.raises(Died):
        run_virtual(work(), clock, lambda: seen.append("broken"))

    assert ["broken", "cleared away"] == seen


def test_waiting_for_nothing_is_told() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck, match="nothing is due"):
        run_virtual(work(), VirtualClock(), nothing)
