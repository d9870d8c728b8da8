"""How many messages of a queue are in flight, as far as a receive has to know it.

To count is to read up to 64 buckets, so a receive does not: what was counted last and what this server has handed out
since say how many there are at most by its own doing. Only where that comes near the limit is counted again. What other
servers hand out, and other doors, is seen at the next count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from angelhair import limits
from angelhair.clock import Clock
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.model import Ask, Delivery
from angelhair.server.polling import Look
from angelhair.server.sqs.errors import too_many_in_flight

Count = Callable[[str, str], Awaitable[Stats]]


class Flights:
    """Of one server's queues. To be made inside a running loop."""

    def __init__(self, receive: Look, count: Count, clock: Clock) -> None:
        self._receive = receive
        self._count = count
        self._clock = clock
        self._known: dict[str, _Flight] = {}
        """By the queue's incarnation."""

    async def receive(self, queue: Queue, limit: int, ask: Ask, is_told: bool) -> list[Delivery]:
        """No more than there is room for. With none left it finds nothing, and raises `OverLimit` if `is_told`."""
        flight = self._known.get(queue.incarnation)
        if flight is None or flight.out * 2 > limit:
            flight = await self._looked_after(queue, limit)
            if is_told and flight.counted >= limit:
                raise too_many_in_flight()
        most = min(ask.messages, limit - flight.out - flight.asked)
        if most <= 0:
            return []
        flight.asked += most
        try:
            asked = ask if most == ask.messages else ask._replace(messages=most)
            found = await self._receive(queue.account, queue.name, asked)
            flight.out += len(found)
        finally:
            flight.asked -= most
        return found

    async def _looked_after(self, queue: Queue, limit: int) -> _Flight:
        """What is known of it, counted if it is time to. Who comes meanwhile waits for the same count."""
        flight = self._known.get(queue.incarnation)
        if flight is None:
            while len(self._known) >= limits.AWS_IN_FLIGHT_QUEUES:
                self._known.pop(next(iter(self._known)))
            flight = self._known[queue.incarnation] = _Flight()
        if self._is_due(flight, limit):
            async with flight.turn:
                if self._is_due(flight, limit):
                    out = flight.out
                    flight.counted = (await self._count(queue.account, queue.name)).in_flight
                    # What was handed out while it was being counted may be in it, or not.
                    flight.out += flight.counted - out
                    flight.counted_at_ms = self._clock.now().monotonic_ms
        return flight

    def _is_due(self, flight: _Flight, limit: int) -> bool:
        if flight.counted_at_ms is None:
            return True
        age_ms = self._clock.now().monotonic_ms - flight.counted_at_ms
        if flight.out < limit:
            return flight.out * 2 > limit and age_ms >= limits.AWS_IN_FLIGHT_LOOK_SECONDS * 1000
        # With half of the room free when it was counted, so many were handed out since that another count is paid for.
        return flight.counted * 2 <= limit or age_ms >= limits.AWS_IN_FLIGHT_COUNT_SECONDS * 1000


class _Flight:
    __slots__ = ("asked", "counted", "counted_at_ms", "out", "turn")

    def __init__(self) -> None:
        self.counted = 0
        self.counted_at_ms: int | None = None
        """On the monotonic clock; None when it never was."""
        self.out = 0
        """In flight: counted, and handed out since."""
        self.asked = 0
        """What receives that are under way may yet bring."""
        self.turn = asyncio.Lock()
