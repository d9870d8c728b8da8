"""The engine: every verb of a queue, each over many messages, on one store.

One `Engine` is what one server runs. It awaits the store and nothing else: clock and tokens are handed to it, it never
sleeps (background work is `step`, which says when to come back). Any number of engines work on the same store at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from angelhair import limits
from angelhair.clock import Clock
from angelhair.engine import bury, catalog, ledger
from angelhair.engine.addressing import by_lane
from angelhair.engine.bucketed import peek as peeking
from angelhair.engine.bucketed import put as putting
from angelhair.engine.bucketed.ack import AckOutcome, ack
from angelhair.engine.bucketed.change import ChangeResult, Wanted, change
from angelhair.engine.bucketed.erase import erase
from angelhair.engine.bucketed.inspect import BucketSeen, inspect
from angelhair.engine.bucketed.lane import Lane, LaneSealed, Marks, QueueGone, read_marks
from angelhair.engine.bucketed.operate import move_repair_back, purge_lanes, raise_archived
from angelhair.engine.bucketed.receive import Waiting, receive
from angelhair.engine.bucketed.retire import retire
from angelhair.engine.catalog import Queue
from angelhair.engine.identities import Identities
from angelhair.engine.lanes import step_lanes
from angelhair.engine.ledger import Begun, Run
from angelhair.engine.memory import Memory
from angelhair.engine.moves import redrive
from angelhair.engine.packed import Packed
from angelhair.engine.puts import Reservation, perhaps_landed, put_reserved, put_together
from angelhair.engine.receipts import Receipt
from angelhair.engine.runs import Bodies
from angelhair.engine.stats import Stats, lane_stats
from angelhair.engine.store import JoiningStore, Store, joining
from angelhair.errors import InvalidRequest, QueueNotFound, StoreError
from angelhair.model import (
    Ask,
    Delivery,
    MessageId,
    NewMessage,
    Peeked,
    QueueSettings,
    validate_ask,
    validate_bodies,
    validate_message,
    validate_name,
    validate_visibility,
    validate_whole,
)

PutOutcome = putting.PutOutcome
ReceiveOutcome = list[Delivery] | StoreError
R = TypeVar("R")
W = TypeVar("W")


class Engine:
    def __init__(self, store: Store, identities: Identities, clock: Clock) -> None:
        self.store = store
        self.identities = identities
        self.clock = clock
        self.memory = Memory(store, identities, clock)
        self.joined = joining(store)
        """The store, if it can make a put in one step."""

    # --- queues ---------------------------------------------------------------------------------------------------

    async def create_queue(self, account: str, name: str, settings: QueueSettings) -> tuple[Queue, bool]:
        """The queue, and whether it was made now."""
        validate_name("account", account)
        validate_name("name", name)
        settings.validated()
        _check_dead_letters(name, settings.dead_letter_queue)
        queue, made = await catalog.create(self.store, account, name, settings, self.identities, self.clock.now())
        self.memory.remember(queue, self.clock.now())
        return queue, made

    async def change_queue(self, account: str, name: str, changes: Mapping[str, Any]) -> Queue:
        self.memory.distrust(account, name)
        queue = await self.find_queue(account, name)
        _check_dead_letters(name, changes.get("dead_letter_queue"))
        changed = await catalog.change(self.store, queue, changes, self.clock.now())
        self.memory.remember(changed, self.clock.now())
        return changed

    async def delete_queue(self, account: str, name: str) -> None:
        validate_name("account", account)
        validate_name("name", name)
        self.memory.distrust(account, name)
        await catalog.delete(self.store, account, name, self.clock.now())

    async def list_queues(
        self, account: str, prefix: str = "", after: str | None = None, most: int = limits.LIST_QUEUES
    ) -> tuple[list[str], bool]:
        """Names of this account's queues in order, and whether there are more."""
        validate_name("account", account)
        validate_whole("most", most, 1, limits.LIST_QUEUES)
        if not isinstance(prefix, str) or not isinstance(after, str | None):
            raise InvalidRequest("prefix", "must be text")
        return await catalog.list_names(self.store, account, prefix, after, most)

    async def find_queue(self, account: str, name: str) -> Queue:
        return await self.memory.find_queue(account, name, self.clock.now())

    # --- messages -------------------------------------------------------------------------------------------------

    async def put(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """An id for each message, or the error that it met. A bad message is refused before anything is written."""
        _check_batch(len(messages))
        for message in messages:
            validate_message(message)
        return await self.put_group(account, name, messages)

    async def put_group(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """As `put`, for messages that were checked already."""
        put = None if self.joined is None else await self._put_together(account, name, messages, self.joined)
        if put is None:
            return await self.put_reserved(await self.reserve(account, name, len(messages)), messages)
        return put if isinstance(put, list) else await perhaps_landed(self.put_reserved(put, messages))

    async def _put_together(
        self, account: str, name: str, messages: Sequence[NewMessage], store: JoiningStore
    ) -> list[PutOutcome] | Reservation | None:
        async def attempt(queue: Queue) -> list[PutOutcome] | Reservation | None:
            return await put_together(self.memory, queue, store, messages, partial(self.reserve, account, name))

        return await self._with_queue(account, name, attempt)

    async def reserve(self, account: str, name: str, count: int) -> Reservation:
        """The first half of a put: ids for exactly so many messages."""

        async def attempt(queue: Queue) -> Reservation:
            lane = self.memory.lane_for_put(queue, self.clock.now())
            first = await putting.reserve(lane, count, self.identities.fresh())
            return Reservation(queue, lane, first)

        return await self._with_queue(account, name, attempt)

    async def put_reserved(self, reservation: Reservation, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """The second half of a put; many may run while further reservations are made."""
        queue = reservation.queue
        return await put_reserved(self.memory, reservation, messages, partial(self.reserve, queue.account, queue.name))

    async def receive(self, account: str, name: str, asks: Sequence[Ask]) -> list[ReceiveOutcome]:
        """For each ask the messages it got, none if there are none; or the error if that is why."""
        for ask in asks:
            validate_ask(ask)
        group = [Waiting(ask) for ask in asks]

        async def attempt(queue: Queue) -> None:
            expiring = self.memory.clock_is_good(self.clock.now())
            for lane in self.memory.lanes_for_receive(queue, self.clock.now()):
                wanting = [waiting for waiting in group if waiting.missing > 0 and waiting.error is None]
                if not wanting:
                    return
                try:
                    await receive(lane, wanting, self.identities, self.clock.now(), expiring)
                except StoreError as error:
                    # Of this lane; others may have messages.
                    failed.append(error)

        failed: list[StoreError] = []
        try:
            await self._with_queue(account, name, attempt)
        except StoreError as error:
            failed.append(error)
        for waiting in group if failed else ():
            waiting.error = waiting.error or failed[0]
        return [
            waiting.error if waiting.error is not None and not waiting.deliveries else waiting.deliveries
            for waiting in group
        ]

    def due_in_ms(self, account: str, name: str) -> int | None:
        """In how many milliseconds a receive may find something that this server knows of; None if it knows nothing."""
        return self.memory.due_in_ms(account, name, self.clock.now())

    async def ack(self, account: str, name: str, texts: Sequence[str]) -> list[AckOutcome]:
        """None for each message that is settled by this receipt, or what is wrong."""

        async def run(lane: Lane, group: list[tuple[Receipt, None]]) -> list[AckOutcome]:
            return await ack(lane, [receipt for receipt, _ in group], self.clock.now())

        return await by_lane(self.memory, account, name, [(text, None) for text in texts], run)

    async def change(
        self, account: str, name: str, changes: Sequence[tuple[str, int | None, bytes | None]]
    ) -> list[ChangeResult]:
        """Changes (receipt, visibility_ms, body) of delivered messages: extend, release (0) or rewrite them."""
        for _, visibility_ms, body in changes:
            if visibility_ms is not None:
                validate_visibility(visibility_ms)
            if body is not None:
                validate_message(NewMessage(body))

        async def run(lane: Lane, group: list[tuple[Receipt, tuple[int | None, bytes | None]]]) -> list[ChangeResult]:
            wanted = [Wanted(receipt, *wish) for receipt, wish in group]
            return await change(lane, wanted, self.identities.fresh(), self.clock.now())

        return await by_lane(self.memory, account, name, [(text, (ms, body)) for text, ms, body in changes], run)

    async def begin_run(self, account: str, name: str, run: Run) -> Begun | None:
        """The first half of messages that are put once, however often it is tried; None when they are there already."""
        return await self._with_queue(account, name, lambda queue: ledger.begin(self.memory, queue, run))

    async def finish_run(
        self, begun: Begun, messages: Sequence[NewMessage], accept: ledger.Accept = ledger.accept_all
    ) -> set[int]:
        """The second half; which of the messages have a key that was there before. After an error both halves may be
        tried again, by anybody."""
        validate_whole("messages", len(messages), begun.run.messages, begun.run.messages)
        if isinstance(messages, Bodies):
            if not isinstance(messages.bodies, Packed) or messages.bodies.at_most > limits.BODY_BYTES:
                validate_bodies(messages.bodies)
        else:
            for message in messages:
                validate_message(message)
        queue = begun.queue
        reserve_again = partial(self.reserve, queue.account, queue.name)
        return await ledger.finish(self.memory, begun, messages, reserve_again, accept)

    # --- looking and operating ------------------------------------------------------------------------------------

    async def peek(self, account: str, name: str, most: int) -> list[Peeked]:
        validate_whole("count", most, 1, limits.PEEK_MESSAGES)

        async def attempt(queue: Queue) -> list[Peeked]:
            found: list[Peeked] = []
            for number in queue.read_lanes:
                if len(found) < most:
                    lane = self.memory.lane(queue, number)
                    found += await peeking.peek(lane, most - len(found), self.memory.clock_is_good(self.clock.now()))
            return found

        return await self._with_queue(account, name, attempt)

    async def stats(self, account: str, name: str) -> Stats:
        async def attempt(queue: Queue) -> Stats:
            total = Stats()
            most = max(2, limits.STATS_BUCKETS // len(queue.lanes))
            for number in queue.read_lanes:
                total.add(
                    await lane_stats(
                        self.memory.lane(queue, number),
                        self.clock.now(),
                        self.memory.clock_is_good(self.clock.now()),
                        most,
                    )
                )
            return total

        return await self._with_queue(account, name, attempt)

    async def marks(self, account: str, name: str) -> dict[int, Marks]:
        """The pointers of each lane."""

        async def attempt(queue: Queue) -> dict[int, Marks]:
            return {number: await read_marks(self.memory.lane(queue, number)) for number in queue.lanes}

        return await self._with_queue(account, name, attempt)

    async def buckets(
        self, account: str, name: str, lane_number: int, first: int | None, count: int
    ) -> list[BucketSeen]:
        """A run of a lane's buckets from `first` on, or from the first that is kept."""
        validate_whole("first", first or 0, 0, limits.INTEGER_LIMIT - 1)
        validate_whole("count", count, 1, limits.STATS_BUCKETS)

        async def attempt(queue: Queue) -> list[BucketSeen]:
            return await inspect(await self.memory.known_lane(queue, lane_number), first, count)

        return await self._with_queue(account, name, attempt)

    async def purge(self, account: str, name: str) -> None:
        """All that was put before this is gone, in flight or not."""

        async def attempt(queue: Queue) -> None:
            await purge_lanes([self.memory.lane(queue, number) for number in queue.lanes])

        self.memory.distrust(account, name)
        await self._with_queue(account, name, attempt)

    async def move_back(self, account: str, name: str, lane_number: int, bucket: int) -> int:
        """Moves the repair mark back, so that buckets are looked into again; never below the floor (A8)."""
        validate_whole("bucket", bucket, 0, limits.INTEGER_LIMIT - 1)

        async def attempt(queue: Queue) -> int:
            return await move_repair_back(await self.memory.known_lane(queue, lane_number), bucket)

        return await self._with_queue(account, name, attempt)

    async def archived_up_to(self, account: str, name: str, lane_number: int, bucket: int) -> int:
        """Raises the archive mark: buckets below are safe elsewhere. It follows the repair mark at most."""
        validate_whole("bucket", bucket, 0, limits.INTEGER_LIMIT - 1)

        async def attempt(queue: Queue) -> int:
            return await raise_archived(await self.memory.known_lane(queue, lane_number), bucket)

        return await self._with_queue(account, name, attempt)

    async def retire(self, account: str, name: str) -> dict[int, range]:
        """Drops what may go by now: finished, its history over and, with `archive`, behind the archive mark. By lane,
        the buckets that went. Background work does the same in its own time; two at once do no harm."""
        await self.memory.check_clock(self.clock.now())

        async def attempt(queue: Queue) -> dict[int, range]:
            went = {}
            for number in queue.lanes:
                lane = self.memory.lane(queue, number)
                before = marks = await read_marks(lane)
                while await retire(lane, marks, self.clock.now(), self.memory.clock_is_good(self.clock.now())):
                    marks = await read_marks(lane)
                went[number] = range(before.dropped, (await read_marks(lane)).dropped)
            return went

        return await self._with_queue(account, name, attempt)

    async def erase(self, account: str, name: str, message: MessageId) -> bool:
        """What the message says goes, now; its place stays. False when there is no such message."""

        async def attempt(queue: Queue) -> bool:
            return await erase(await self.memory.known_lane(queue, message.lane), message.number, self.clock.now())

        return await self._with_queue(account, name, attempt)

    async def redrive(self, account: str, name: str, destination: str | None, most: int) -> int:
        """Moves visible messages to another queue, or each to where it came from; returns how many went."""
        _check_batch(most)

        async def attempt(queue: Queue) -> int:
            return await redrive(self.memory, queue, destination, most)

        return await self._with_queue(account, name, attempt)

    # --- background -----------------------------------------------------------------------------------------------

    async def step(self, account: str, name: str) -> int:
        """One step of a queue's background work on this server; returns in how many milliseconds to come back."""
        await self.memory.glance_at_clock()

        async def attempt(queue: Queue) -> int:
            return await step_lanes(self.memory, queue)

        return await self._with_queue(account, name, attempt)

    async def bury_step(self) -> bool:
        """Drops a portion of what deleted queues held. True when there is more."""
        return await bury.bury_step(self.store)

    async def release_leases(self) -> None:
        """Before a server stops: others need not wait for its leases to lapse."""
        for worker in self.memory.workers.values():
            await worker.lease.release(self.store, self.clock.now())

    # --- inside ---------------------------------------------------------------------------------------------------

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


def _check_dead_letters(name: str, dead_letter_queue: object) -> None:
    if dead_letter_queue == name:
        raise InvalidRequest("dead_letter_queue", "cannot be the queue itself")


def _check_batch(count: int) -> None:
    validate_whole("messages", count, 1, limits.BATCH_MESSAGES)
