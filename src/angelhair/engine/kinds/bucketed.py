"""The verbs of a bucketed queue, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from angelhair.engine import catalog, ledger, runs
from angelhair.engine.addressing import AckOutcome, by_lane
from angelhair.engine.bucketed import peek as peeking
from angelhair.engine.bucketed import put as putting
from angelhair.engine.bucketed.ack import ack
from angelhair.engine.bucketed.change import change
from angelhair.engine.bucketed.erase import erase
from angelhair.engine.bucketed.inspect import BucketSeen, inspect
from angelhair.engine.bucketed.lane import Lane, read_marks
from angelhair.engine.bucketed.operate import move_repair_back, purge_lanes, raise_archived
from angelhair.engine.bucketed.put import Count, PutOutcome
from angelhair.engine.bucketed.receive import receive
from angelhair.engine.bucketed.retire import retire
from angelhair.engine.catalog import Queue, Rewritten
from angelhair.engine.counts import Stats
from angelhair.engine.kinds.databag import Databag
from angelhair.engine.kinds.delay_line import DelayLine
from angelhair.engine.kinds.timeline import Timeline
from angelhair.engine.kinds.verbs import Verbs
from angelhair.engine.lanes import step_lanes
from angelhair.engine.ledger import Run
from angelhair.engine.marks import Marks, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.moves import redrive
from angelhair.engine.puts import Reservation, ReserveAgain, put_reserved, put_together
from angelhair.engine.ranks import NO_LANE, PLAIN, Rank
from angelhair.engine.receipts import Receipt
from angelhair.engine.runs import Begun
from angelhair.engine.settling import begun
from angelhair.engine.stats import lane_stats
from angelhair.engine.store import JoiningStore
from angelhair.engine.waiting import Waiting
from angelhair.errors import QueueNotFound, StoreError
from angelhair.model import DATABAG, TIMELINE, DueId, MessageId, NewMessage, Peeked, WantedChange


class Bucketed(Verbs):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        timeline = Timeline(memory)
        self._line = DelayLine(memory, self, timeline)
        memory.put_elsewhere = self._line.putter
        memory.put_apart = {TIMELINE: timeline.put_moved, DATABAG: Databag(memory).put_moved}

    # --- messages -------------------------------------------------------------------------------------------------

    async def reserve(self, queue: Queue, count: Count, rank: Rank = PLAIN) -> Reservation | None:
        if rank == NO_LANE:
            return None
        queue = await self._with_lanes(queue, rank)
        lane = self.memory.lane_for_put(queue, self.memory.clock.now(), rank)
        first = await putting.reserve_all(lane, count, self.memory.identities.fresh())
        return Reservation(queue, lane, first)

    async def put_reserved(
        self, reservation: Reservation, messages: Sequence[NewMessage], reserve_again: ReserveAgain
    ) -> list[PutOutcome]:
        return await put_reserved(self.memory, reservation, messages, reserve_again)

    async def put_together(
        self, queue: Queue, store: JoiningStore, messages: Sequence[NewMessage], reserve_again: ReserveAgain,
        rank: Rank = PLAIN,
    ) -> list[PutOutcome] | Reservation | None:
        if rank == NO_LANE:
            return None
        queue = await self._with_lanes(queue, rank)
        return await put_together(self.memory, queue, store, messages, reserve_again, rank)

    async def put_whole(self, queue: Queue, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """Those that are to wait in the delay line."""

        async def reserve(count: int) -> Reservation:
            reservation = await self.reserve(queue, lambda: count)
            assert reservation is not None
            return reservation

        return await self._line.put_all(queue, messages, reserve)

    async def _with_lanes(self, queue: Queue, rank: Rank) -> Queue:
        """The queue with lanes for noisy tenants, which are made for the first of them. Where that fails, messages go
        among the others: nothing but their turn depends on it."""
        rank = queue.nearest(rank)
        if not rank.noisy or not queue.settings.fair or queue.open_lanes_of(rank):
            return queue
        memory = self.memory
        try:
            changed = await catalog.change(
                memory.store, queue, lambda found: Rewritten({}, found.notes), memory.clock.now(), rank
            )
        except (StoreError, QueueNotFound):
            memory.distrust(queue.account, queue.name)
            return queue
        memory.remember(changed, memory.clock.now())
        return changed

    async def receive(self, queue: Queue, group: Sequence[Waiting]) -> None:
        memory = self.memory
        with suppress(StoreError):
            # What is due by now; at the next look if that fails.
            await self._line.step(queue)
        expiring = memory.clock_is_good(memory.clock.now())
        failed: StoreError | None = None
        for lane in memory.lanes_for_receive(queue, memory.clock.now()):
            wanting = [waiting for waiting in group if waiting.missing > 0 and waiting.error is None]
            if not wanting:
                break
            try:
                await receive(lane, wanting, memory.identities, memory.clock.now(), expiring)
            except StoreError as error:
                # Of this lane; others may have messages.
                failed = failed or error
        if failed is not None:
            raise failed

    async def ack(self, queue: Queue, account: str, texts: Sequence[str], in_flight: bool) -> list[AckOutcome]:
        if in_flight:
            self._cannot(queue, "takes an ack whenever the message was not delivered again since")

        async def run(lane: Lane, group: list[tuple[Receipt, None]]) -> list[AckOutcome]:
            return await ack(lane, [receipt for receipt, _ in group], self.memory.clock.now())

        return await by_lane(self.memory, account, queue.name, [(text, None) for text in texts], self.memory.lane, run)

    async def change(self, queue: Queue, account: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        async def run(lane: Lane, group: list[tuple[Receipt, WantedChange]]) -> list[AckOutcome]:
            return await change(lane, group, self.memory.identities.fresh(), self.memory.clock.now())

        wanted = [(change.receipt, change) for change in changes]
        return await by_lane(self.memory, account, queue.name, wanted, self.memory.lane, run)

    async def begin_run(self, queue: Queue, run: Run) -> Begun | None:
        return await runs.begin(self.memory, queue, run)

    async def finish_run(
        self, begun: Begun, messages: Sequence[NewMessage], reserve_again: ReserveAgain, accept: ledger.Accept
    ) -> set[int]:
        return await runs.finish(self.memory, begun, messages, reserve_again, accept)

    # --- looking and operating ------------------------------------------------------------------------------------

    async def peek(self, queue: Queue, most: int) -> list[Peeked]:
        memory = self.memory
        found: list[Peeked] = []
        for number in queue.read_lanes:
            if len(found) < most:
                lane = memory.lane(queue, number)
                found += await peeking.peek(lane, most - len(found), memory.clock_is_good(memory.clock.now()))
        return found

    async def stats(self, queue: Queue, most_buckets: int) -> Stats:
        memory = self.memory
        total = Stats()
        most = max(2, most_buckets // len(queue.lanes))
        for number in queue.read_lanes:
            now = memory.clock.now()
            total.add(await lane_stats(memory.lane(queue, number), now, memory.clock_is_good(now), most))
        total.add(await self._line.stats(queue, most_buckets))
        return total

    async def marks(self, queue: Queue) -> dict[int, Marks]:
        return {number: await read_marks(self.memory.lane(queue, number)) for number in queue.lanes}

    async def buckets(self, queue: Queue, lane_number: int, first: int | None, count: int) -> list[BucketSeen]:
        return await inspect(await self.memory.known_lane(queue, lane_number), first, count)

    async def purge(self, queue: Queue) -> None:
        memory = self.memory
        with begun(await self._line.purge(queue)):
            # What was handed over before the line went may lie in lanes that were made since we looked.
            memory.distrust(queue.account, queue.name)
            now = await memory.find_queue(queue.account, queue.name, memory.clock.now())
            if now.incarnation != queue.incarnation:
                raise QueueGone(queue.name)
            await purge_lanes([memory.lane(now, number) for number in now.lanes])

    async def move_back(self, queue: Queue, lane_number: int, bucket: int) -> int:
        return await move_repair_back(await self.memory.known_lane(queue, lane_number), bucket)

    async def archived_up_to(self, queue: Queue, lane_number: int, bucket: int) -> int:
        return await raise_archived(await self.memory.known_lane(queue, lane_number), bucket)

    async def retire(self, queue: Queue) -> dict[int, range]:
        memory = self.memory
        went = {}
        for number in queue.lanes:
            lane = memory.lane(queue, number)
            before = marks = await read_marks(lane)
            while await retire(lane, marks, memory.clock.now(), memory.clock_is_good(memory.clock.now())):
                marks = await read_marks(lane)
            went[number] = range(before.dropped, (await read_marks(lane)).dropped)
        return went

    async def erase(self, queue: Queue, message: MessageId) -> bool:
        if isinstance(message, DueId):
            # It waits in the delay line, or has waited there and has another place since.
            return False
        lane = await self.memory.known_lane(queue, message.lane)
        return await erase(lane, message.number, self.memory.clock.now())

    async def redrive(self, queue: Queue, destination: str | None, most: int) -> int:
        return await redrive(self.memory, queue, destination, most)

    # --- background -----------------------------------------------------------------------------------------------

    async def step(self, queue: Queue) -> int:
        """A line that cannot be read stops no lane; its error is raised when they are done."""
        try:
            pause_ms = await self._line.step(queue)
        except StoreError:
            await step_lanes(self.memory, queue)
            raise
        return min(pause_ms, await step_lanes(self.memory, queue))
