"""Waiting receives: woken at once by what this server does, and within a bounded time by what others do.

Those who wait for one queue stand in line; of a timeline, those who wait for one consumer's shards. A put of n messages
wakes the first n; whoever is woken looks. What other servers did is found by looking now and then, one receive of the
line at a time; whoever finds something wakes the next, so that a thousand waiting receives cost the store no more than
one while nothing comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from angelhair import limits
from angelhair.model import Ask, Delivery

Look = Callable[[str, str, Ask], Awaitable[list[Delivery]]]
Due = Callable[[str, str], int | None]
Name = tuple[str, str]


class Patience:
    """What a waiting receive has, until whoever asked for it has none left."""

    __slots__ = ("over", "place")

    def __init__(self) -> None:
        self.over = False
        self.place: asyncio.Future[None] | None = None
        """Where it stands in line."""

    def end(self) -> None:
        """Wait no longer: a look that is under way is finished and answered, no other is begun."""
        self.over = True
        if self.place is not None:
            _release(self.place)


class Polling:
    """To be made inside a running loop."""

    def __init__(self, look: Look, due_in_ms: Due) -> None:
        self._look = look
        self._due_in_ms = due_in_ms
        self._loop = asyncio.get_running_loop()
        self._lines: dict[Name, dict[str | None, _Line]] = {}
        """By queue, and by whose shards of a timeline are meant."""
        self._stopping = False

    @property
    def waiting(self) -> int:
        return sum(line.users for lines in self._lines.values() for line in lines.values())

    async def receive(
        self, account: str, name: str, ask: Ask, wait_seconds: float, patience: Patience | None = None,
        look: Look | None = None,
    ) -> list[Delivery]:
        """As soon as there is something, and empty-handed when the time, or the patience, is over. `look`: a way of the
        caller's own to look at the queue."""
        look = look or self._look
        if wait_seconds <= 0:
            return await look(account, name, ask)
        end = self._loop.time() + wait_seconds
        patience = patience or Patience()
        key = (account, name)
        lines = self._lines.setdefault(key, {})
        line = lines.get(ask.consumer)
        if line is None:
            line = lines[ask.consumer] = _Line(self._loop, lambda: self._due_in_ms(account, name))
        line.users += 1
        try:
            while True:
                seen = line.wakes
                found = await look(account, name, ask)
                if found:
                    line.found()
                    return found
                if self._stopping or patience.over or self._loop.time() >= end:
                    return []
                # What was put while we were looking may have been too late for that look, and found nobody in line.
                if line.wakes == seen:
                    await line.wait(end, patience)
                    if patience.over:
                        # We may have been woken, too, and do not look: the wake belongs to the next in line.
                        line.wake(1)
                        return []
        finally:
            line.users -= 1
            if not line.users:
                line.end()
                lines.pop(ask.consumer, None)
                if not lines:
                    self._lines.pop(key, None)

    def wake(self, account: str, name: str, messages: int) -> None:
        """So many messages of this queue may have become visible, by what this server did."""
        for line in self._lines.get((account, name), {}).values():
            line.wake(messages)

    def wake_all(self, account: str) -> None:
        """Something may have become visible in any queue of the account: one receive of each looks."""
        for (owner, _), lines in self._lines.items():
            for line in lines.values() if owner == account else ():
                line.wake(1)

    def stop(self) -> None:
        """The server stops: nobody waits any longer."""
        self._stopping = True
        for lines in self._lines.values():
            for line in lines.values():
                line.wake(line.users)


class _Line:
    """The receives that wait for one queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop, due_in_ms: Callable[[], int | None]) -> None:
        self.users = 0
        """Receives of this queue that may wait, those that are just looking included."""
        self.wakes = 0
        """Grows with every wake."""
        self._loop = loop
        self._due_in_ms = due_in_ms
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pause = limits.POLL_FIRST_SECONDS
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, end: float, patience: Patience) -> None:
        """Until somebody wakes us, or until the end."""
        place: asyncio.Future[None] = self._loop.create_future()
        patience.place = place
        self._waiting.append(place)
        self._set_timer()
        timer = self._loop.call_at(end, _release, place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                # We were woken and are gone before we could look: the wake belongs to the next in line.
                self.wake(1)
            raise
        finally:
            timer.cancel()
            if place in self._waiting:
                self._waiting.remove(place)

    def wake(self, count: int) -> None:
        self.wakes += 1
        while self._waiting and count > 0:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                count -= 1

    def found(self) -> None:
        """There was something, so there may be more; and more may come soon."""
        self._pause = limits.POLL_FIRST_SECONDS
        self.wake(1)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is None:
            due_ms = self._due_in_ms()
            pause = self._pause if due_ms is None else min(self._pause, due_ms / 1000)
            self._timer = self._loop.call_later(max(pause, limits.POLL_FIRST_SECONDS), self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._pause = min(self._pause * limits.POLL_GROWTH, limits.POLL_MOST_SECONDS)
        self.wake(1)
        if self._waiting:
            self._set_timer()


def _release(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_result(None)
