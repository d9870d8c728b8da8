"""One conditional write per partition at a time.

Two ballots of one partition that meet push each other back, and each push is a chance of a time-out whose outcome is
then unknown (8 writers: 9 % time-outs). Waiting here costs less. Other servers are not held off by it: correctness
rests on the conditions, this is for speed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from angelhair.engine.store import Partition


class Turns:
    def __init__(self) -> None:
        self._lines: dict[Partition, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, partition: Partition) -> AsyncIterator[None]:
        lock, users = self._lines.get(partition) or (asyncio.Lock(), 0)
        self._lines[partition] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            _, users = self._lines[partition]
            if users == 1:
                del self._lines[partition]
            else:
                self._lines[partition] = (lock, users - 1)
