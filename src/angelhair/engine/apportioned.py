"""Runs a verb of a queue's kind, and the verbs that are about how a queue is shared: shards of timelines and who holds
them, partitions of databags."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from angelhair import limits
from angelhair.engine.catalog import Queue
from angelhair.engine.databag.inspect import BagSeen
from angelhair.engine.kinds.verbs import Verbs
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.timeline.consumer import Share
from angelhair.engine.timeline.inspect import ShardSeen
from angelhair.errors import QueueNotFound
from angelhair.model import validate_consumer, validate_whole

R = TypeVar("R")


class Apportioned:
    def __init__(self, memory: Memory, kinds: Mapping[str, Verbs]) -> None:
        self.memory = memory
        self._kinds = kinds

    async def find_queue(self, account: str, name: str) -> Queue:
        return await self.memory.find_queue(account, name, self.memory.clock.now())

    # --- consumers of timelines -----------------------------------------------------------------------------------

    async def touch_consumer(
        self, account: str, name: str, consumer: str, most_shards: int | None = None
    ) -> Share:
        """Says that a consumer is there: gives it its fair share of the shards and touches the locks of all it has."""
        validate_consumer(consumer)
        if most_shards is not None:
            validate_whole("most_shards", most_shards, 1, limits.SHARDS_MAXIMUM)
        return await self._with_queue(
            account, name, lambda queue: self._verbs(queue).touch_consumer(queue, consumer, most_shards)
        )

    async def leave_consumer(self, account: str, name: str, consumer: str) -> None:
        """Says goodbye: its checkpoints are moved and its shards given back."""
        validate_consumer(consumer)
        await self._with_queue(account, name, lambda queue: self._verbs(queue).leave_consumer(queue, consumer))

    async def shards(self, account: str, name: str) -> list[ShardSeen]:
        """The shards of a timeline: who holds each, and how far it is."""
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).shards(queue))

    # --- partitions of databags -----------------------------------------------------------------------------------

    async def partitions(self, account: str, name: str) -> BagSeen:
        """How a databag is cut, as far as it is in force on this server, and what is locked of it."""
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).partitions(queue))

    # --- inside ---------------------------------------------------------------------------------------------------

    def _verbs(self, queue: Queue) -> Verbs:
        return self._kinds[queue.settings.kind]

    async def _with_queue(self, account: str, name: str, action: Callable[[Queue], Awaitable[R]]) -> R:
        """Runs a verb on the queue; if what was remembered of it proves old, looks it up and runs it again (R6)."""
        for _ in range(limits.RECEIVE_ROUNDS):
            queue = await self.find_queue(account, name)
            await self.memory.glance_at_clock()
            try:
                return await action(queue)
            except (QueueGone, LaneSealed):
                self.memory.distrust(account, name)
        raise QueueNotFound(account, name)
