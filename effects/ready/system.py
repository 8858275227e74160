"""Time and chance, as the operating system gives them."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid


class SystemClock:
    """Wall time, so that it means something to the process that resumes; sleeping by asyncio."""

    def now_ms(self) -> int:
        """Return ms since 1970."""
        return time.time_ns() // 1_000_000

    async def sleep(self, ms: int) -> None:
        """Sleep at least *ms*."""
        await asyncio.sleep(ms / 1000)


class SystemIds:
    """Random ids and seeds."""

    def run_id(self) -> str:
        """Return a new id."""
        return uuid.uuid4().hex

    def seed(self) -> int:
        """Return 62 random bits."""
        return secrets.randbits(62)
