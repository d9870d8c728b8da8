"""The engine that a server runs, which tells an observer how many messages share a commit, and looks at depths.

Between the doors and the engine stands batching; what arrives here is what it joined. So the sizes of groups are seen
from this side, and batching need not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from angelhair import limits
from angelhair.clock import Clock
from angelhair.engine.addressing import AckOutcome
from angelhair.engine.bucketed.put import Count
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.engine.databag.inspect import BagSeen
from angelhair.engine.engine import Engine, PutOutcome, ReceiveOutcome
from angelhair.engine.identities import Identities
from angelhair.engine.kinds.databag import Databag
from angelhair.engine.kinds.timeline import Timeline
from angelhair.engine.puts import Reservation
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.store import JoiningStore, Store
from angelhair.model import Ask, NewMessage, WantedChange
from angelhair.server.observing.observer import Observer


class TimelineSeen(NamedTuple):
    shards_held: int
    lag_ms: int
    aside: int
    """Messages that were written again at a later time, since the server began to remember the queue."""
    dead: int


class MeasuredEngine(Engine):
    def __init__(self, store: Store, identities: Identities, clock: Clock, observer: Observer) -> None:
        super().__init__(store, identities, clock)
        self._observer = observer

    async def reserve_or_none(
        self, account: str, name: str, count: Count, rank: Rank = PLAIN
    ) -> Reservation | None:
        wanted = 0

        def noted() -> int:
            nonlocal wanted
            wanted = count()
            return wanted

        reservation = await super().reserve_or_none(account, name, noted, rank)
        if reservation is not None:
            self._observer.group("put", wanted)
        return reservation

    async def put_whole(
        self, account: str, name: str, messages: Sequence[NewMessage], rank: Rank = PLAIN
    ) -> list[PutOutcome]:
        self._observer.group("put", len(messages))
        return await super().put_whole(account, name, messages, rank)

    async def _put_together(
        self, account: str, name: str, messages: Sequence[NewMessage], store: JoiningStore, rank: Rank
    ) -> list[PutOutcome] | Reservation | None:
        put = await super()._put_together(account, name, messages, store, rank)
        if put is not None:
            self._observer.group("put", len(messages))
        return put

    async def receive(self, account: str, name: str, asks: Sequence[Ask]) -> list[ReceiveOutcome]:
        answers = await super().receive(account, name, asks)
        found = sum(len(answer) for answer in answers if isinstance(answer, list))
        if found:
            # Looks that found nothing committed nothing.
            self._observer.group("receive", found)
        return answers

    async def ack(self, account: str, name: str, texts: Sequence[str], in_flight: bool = False) -> list[AckOutcome]:
        self._observer.group("ack", len(texts))
        return await super().ack(account, name, texts, in_flight)

    async def change(self, account: str, name: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        self._observer.group("change", len(changes))
        return await super().change(account, name, changes)

    async def step(self, account: str, name: str) -> int:
        try:
            return await super().step(account, name)
        finally:
            self._observer.leases_held(self.leases_held())

    def leases_held(self) -> int:
        now = self.clock.now()
        return sum(worker.lease.held(now) for worker in self.memory.workers.values())

    async def timeline(self, account: str, name: str) -> TimelineSeen | None:
        """What this server does for a timeline, and how late that is; None for a queue of another kind.

        Of shards that nobody works on every server says how late they are: somebody should know.
        """

        async def attempt(queue: Queue) -> TimelineSeen | None:
            verbs = self._verbs(queue)
            if not isinstance(verbs, Timeline):
                return None
            line = verbs.line(queue)
            now = self.clock.now()
            held = {held.lane for held in line.all_held() if held.believed(now)}
            lag_ms = 0
            for shard in await verbs.shards(queue):
                touched_ms = shard.touched_at_ms or 0
                elsewhere = shard.consumer is not None and now.wall_ms - touched_ms < queue.settings.lock_ms
                if shard.waiting_since_ms is not None and (shard.lane in held or not elsewhere):
                    lag_ms = max(lag_ms, now.wall_ms - shard.waiting_since_ms)
            return TimelineSeen(len(held), lag_ms, line.sessions.aside_count, line.sessions.dead_count)

        return await self._with_queue(account, name, attempt)

    async def databag(self, account: str, name: str) -> BagSeen | None:
        """How a databag is cut; None for a queue of another kind, and when another server is the one to say."""

        async def attempt(queue: Queue) -> BagSeen | None:
            verbs = self._verbs(queue)
            if not isinstance(verbs, Databag) or not self._speaks_for_databags():
                return None
            return await verbs.partitions(queue)

        return await self._with_queue(account, name, attempt)

    def _speaks_for_databags(self) -> bool:
        """There is no lease: the first of the servers that live does it for all."""
        return self.membership.place()[0] == 0

    async def depth(self, account: str, name: str) -> Stats | None:
        """What the queue holds, at fewer reads than `stats`; None when another server is the one to say.

        That is whoever holds the lease of the queue's first lane, so that of many servers one looks.
        """

        async def attempt(queue: Queue) -> Stats | None:
            now = self.clock.now()
            lanes = queue.read_lanes
            verbs = self._verbs(queue)
            if isinstance(verbs, Timeline):
                # Here the locks of shards are what leases are elsewhere.
                held = verbs.line(queue).held(min(lanes))
                if held is None or not held.believed(now):
                    return None
                return await verbs.stats(queue, limits.DEPTH_BUCKETS)
            if isinstance(verbs, Databag):
                return await verbs.stats(queue, limits.DEPTH_BUCKETS) if self._speaks_for_databags() else None
            worker = self.memory.workers.get((queue.incarnation, min(lanes)))
            if worker is None or not worker.lease.held(now):
                return None
            return await self._verbs(queue).stats(queue, limits.DEPTH_BUCKETS)

        return await self._with_queue(account, name, attempt)
