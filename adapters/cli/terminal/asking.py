"""Permission, asked on the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Protocol

import attrs

from stepfold.adapters.cli.terminal.words import harmless, line_of
from stepfold.adapters.tools.permission import Deny

NOBODY = "There is no terminal to ask for permission, so the call was not run."


class Screen(Protocol):
    """What is needed of a view to ask something."""

    def pause(self) -> None: ...

    def wait_for(self, what: str) -> None: ...


async def nobody(name: str, input: Mapping[str, object]) -> Deny:
    """Deny a call: there is nobody to ask."""
    return Deny(NOBODY)


def is_terminal() -> bool:
    """Return whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@attrs.define
class AskOnTerminal:
    """
    Asks yes, no, always, or no with a reason.

    Questions come one at a time.  An answer is awaited without a thread, so
    Ctrl+C gets through.
    """

    screen: Screen
    _always: set[str] = attrs.field(factory=set)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)

    async def __call__(self, name: str, input: Mapping[str, object]) -> bool | Deny:
        """Ask about one call."""
        async with self._turn:
            if name in self._always:
                return True
            self.screen.pause()
            print(_question(name, input), end="", file=sys.stderr, flush=True)
            answer = (await line_from(sys.stdin.fileno())).strip()
            self.screen.wait_for(name)
        match answer.lower():
            case "y" | "yes":
                return True
            case "a" | "always":
                self._always.add(name)
                return True
            case "" | "n" | "no":
                return False
        return Deny(f"The user refused this call and said: {answer}")


def _question(name: str, input: Mapping[str, object]) -> str:
    lines = [f"?  {name} wants to run:"]
    for key, value in input.items():
        text = harmless(value if isinstance(value, str) else repr(value))
        lines += [f"     {key}: {line_of(each, 160)}" for each in text.splitlines()[:20] or [""]]
    return "\n".join((*lines, "   [y]es, [a]lways this tool, [n]o, or say why not: "))


async def line_from(file: int) -> str:
    """Return the next line that is typed; "" at the end of the input."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        try:
            text = os.read(file, 65_536).decode(errors="replace")
        except OSError:  # the terminal went away
            text = ""
        if not arrived.done():
            arrived.set_result(text)

    loop.add_reader(file, read)
    try:
        return await arrived
    finally:
        loop.remove_reader(file)
