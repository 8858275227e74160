"""Only this file checks the small parts by themselves: channel, inbox, plain functions in threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stepfold.effects.flow.channel import Channel, Closed
from stepfold.effects.flow.inbox import Inbox
from stepfold.effects.flow.threads import called


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_giver_waits_for_the_taker_and_givers_keep_their_order() -> None:
    channel: Channel[int] = Channel()
    givers = [asyncio.create_task(channel.give(number)) for number in range(3)]
    await turns()
    assert channel.blocked
    assert not any(giver.done() for giver in givers)
    assert [0, 1, 2] == [await channel.take() for _ in range(3)]
    await turns()
    assert all(giver.done() for giver in givers)
    assert not channel.blocked


async def test_an_item_handed_to_a_cancelled_taker_is_not_lost() -> None:
    channel: Channel[str] = Channel()
    taker = asyncio.create_task(channel.take())
    await turns()
    await channel.give("a")
    taker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taker
    later = asyncio.create_task(channel.give("b"))
    assert ["a", "b"] == [await channel.take(), await channel.take()]
    await later


async def test_a_cancelled_giver_takes_its_item_back() -> None:
    channel: Channel[str] = Channel()
    giver = asyncio.create_task(channel.give("a"))
    await turns()
    giver.cancel()
    await turns()
    other = asyncio.create_task(channel.give("b"))
    assert "b" == await channel.take()
    await other


async def test_a_channel_has_one_taker_and_an_end() -> None:
    channel: Channel[str] = Channel()
    taker = asyncio.create_task(channel.take())
    await turns()
    with pytest.raises(RuntimeError, match="one consumer"):
        await channel.take()
    channel.close()
    assert isinstance(await taker, Closed)
    assert isinstance(await channel.take(), Closed)


async def test_an_inbox_tells_when_an_item_has_been_dealt_with() -> None:
    inbox: Inbox[str] = Inbox()
    first, second = inbox.post("a"), inbox.post("b")
    waiting = [asyncio.create_task(inbox.until_settled(number)) for number in (first, second)]
    await turns()
    assert "a" == await inbox.next()
    inbox.settle()
    await turns()
    assert [True, False] == [each.done() for each in waiting]
    assert "b" == await inbox.next()
    inbox.settle()
    await asyncio.gather(*waiting)
    reader = asyncio.create_task(inbox.next())
    await turns()
    assert not reader.done()
    inbox.post("c")
    assert "c" == await reader


async def test_plain_functions_run_in_threads_and_others_here() -> None:
    here = threading.get_ident()

    def plain() -> int:
        return threading.get_ident()

    def quick() -> int:
        return threading.get_ident()

    quick.in_thread = False  # type: ignore[attr-defined]

    async def coroutine() -> int:
        return threading.get_ident()

    class Callable:
        async def __call__(self) -> int:
            return threading.get_ident()

    assert here != await called(plain)
    assert [here] * 4 == [await called(f) for f in (quick, coroutine, Callable(), lambda: coroutine())][:4]


@pytest.mark.parametrize("raised", [ValueError("x"), StopIteration("x"), SystemExit(3)])
async def test_what_a_plain_function_raises_is_raised(raised: BaseException) -> None:
    def fails() -> None:
        raise raised

    wanted = RuntimeError if isinstance(raised, StopIteration) else type(raised)
    with pytest.raises(wanted):
        await called(fails)


PROGRAM = """
import asyncio, time
from stepfold.effects.flow.threads import called
async def main():
    try:
        async with asyncio.timeout(0.05):
            await called(time.sleep, 60)
    except TimeoutError:
        print("left behind")
asyncio.run(main())
"""


def test_a_thread_that_hangs_does_not_keep_the_process_alive() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert ("left behind\n", "") == (done.stdout, done.stderr)
