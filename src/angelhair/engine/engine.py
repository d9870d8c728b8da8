"""The engine: every verb of a queue, each over many messages, on one store.

One `Engine` is what one server runs. It awaits the store and nothing else: clock and tokens are handed to it, it never
sleeps (background work is `step`, which says when to come back). Any number of engines work on the same store at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from angelhair import limits
from angelhair.clock import Clock
from angelhair.engine import accounts, bury, catalog, delays, ledger, resting
from angelhair.engine.addressing import AckOutcome
from angelhair.engine.apportioned import Apportioned
from angelhair.engine.bucketed import put as putting
from angelhair.engine.bucketed.inspect import BucketSeen
from angelhair.engine.bucketed.put import Count
from angelhair.engine.catalog import Queue, Rewrite, Rewritten
from angelhair.engine.counts import Stats
from angelhair.engine.identities import Identities
from angelhair.engine.kinds import KINDS
from angelhair.engine.ledger import Run
from angelhair.engine.marks import Marks
from angelhair.engine.memory import Memory
from angelhair.engine.packed import Packed
from angelhair.engine.puts import Reservation, perhaps_landed
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.routing import Routed, route
from angelhair.engine.runs import Begun, Bodies
from angelhair.engine.store import JoiningStore, Store, joining
from angelhair.engine.topics.verbs import Topics
from angelhair.engine.waiting import Waiting
from angelhair.errors import AngelhairError, InvalidRequest, StoreError
from angelhair.model import (
    TIMELINE,
    Ask,
    Delivery,
    MessageId,
    NewMessage,
    Peeked,
    QueueSettings,
    WantedChange,
    validate_account,
    validate_ask,
    validate_bodies,
    validate_change,
    validate_message,
    validate_name,
    validate_whole,
)

PutOutcome = putting.PutOutcome
ReceiveOutcome = list[Delivery] | StoreError
NO_NOTES: Mapping[str, Any] = {}
R = TypeVar("R")
W = TypeVar("W")


class Engine(Apportioned):
    def __init__(self, store: Store, identities: Identities, clock: Clock) -> None:
        memory = Memory(store, identities, clock)
        super().__init__(memory, {name: kind(memory) for name, kind in KINDS.items()})
        self.store = store
        self.identities = identities
        self.clock = clock
        self.membership = self.memory.membership
        self.joined = joining(store)
        """The store, if it can make a put in one step."""
        self.topics = Topics(store, identities, clock)

    # --- queues ---------------------------------------------------------------------------------------------------

    async def create_queue(
        self, account: str, name: str, settings: QueueSettings, notes: Mapping[str, Any] = NO_NOTES
    ) -> tuple[Queue, bool]:
        """The queue, and whether it was made now. `notes` are the doors' own; see `Queue.notes`."""
        validate_account(account)
        validate_name("name", name)
        settings.validated()
        queue, made = await catalog.create(
            self.store, account, name, settings, notes, self.identities, self.clock.now()
        )
        self.memory.remember(queue, self.clock.now())
        return queue, made

    async def change_queue(self, account: str, name: str, changes: Mapping[str, Any]) -> Queue:
        return await self.rewrite_queue(account, name, lambda queue: Rewritten(changes, queue.notes))

    async def rewrite_queue(self, account: str, name: str, rewrite: Rewrite) -> Queue:
        """Changes a queue by what it is: `rewrite` is asked again when somebody else was faster."""
        self.memory.distrust(account, name)
        queue = await self.find_queue(account, name)
        changed = await catalog.change(self.store, queue, rewrite, self.clock.now())
        self.memory.remember(changed, self.clock.now())
        return changed

    async def delete_queue(self, account: str, name: str) -> None:
        validate_name("account", account)
        validate_name("name", name)
        self.memory.distrust(account, name)
        await catalog.delete(self.store, account, name, self.clock.now())

    async def let_name_rest(self, account: str, name: str, seconds: int) -> None:
        """Says that a name is not to be taken for a while, to who asks by `name_rests`; before its queue is deleted."""
        await resting.let_rest(self.store, account, name, seconds)

    async def name_rests(self, account: str, name: str) -> bool:
        return await resting.rests(self.store, account, name)

    async def list_queues(
        self, account: str, prefix: str = "", after: str | None = None, most: int = limits.LIST_QUEUES
    ) -> tuple[list[str], bool]:
        """Names of this account's queues in order, and whether there are more."""
        validate_account(account)
        validate_whole("most", most, 1, limits.LIST_QUEUES)
        if not isinstance(prefix, str) or not isinstance(after, str | None):
            raise InvalidRequest("prefix", "must be text")
        return await catalog.list_names(self.store, account, prefix, after, most)

    async def list_dead_letter_sources(
        self, account: str, name: str, after: str | None = None, most: int = limits.LIST_QUEUES
    ) -> tuple[list[str], bool]:
        """Names of the queues whose dead letters go to this one, in order, and whether there may be more."""
        return await catalog.list_names(self.store, account, "", after, most, lambda to: to.dead_letter_queue == name)

    async def list_accounts(self) -> list[str]:
        """The numbers of all accounts; the default one is always among them."""
        return [account.id for account in await accounts.read_accounts(self.store)]

    # --- messages -------------------------------------------------------------------------------------------------

    async def put(self, account: str, name: str, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """An id for each message, or the error that it met. A bad message is refused before anything is written."""
        _check_batch(len(messages))
        for message in messages:
            validate_message(message)
        await self.check_dues(account, name, messages)
        routed = self.route(account, name, messages)
        if routed is None:
            return await self.put_group(account, name, messages)
        outcomes: list[PutOutcome] = []
        try:
            found: dict[Rank, list[PutOutcome] | AngelhairError] = {}
            for rank in routed.parts:
                try:
                    found[rank] = await self.put_group(account, name, routed.messages(rank), rank)
                except AngelhairError as error:
                    found[rank] = error
            outcomes = routed.joined(found)
            return outcomes
        finally:
            routed.end(outcomes)

    async def check_dues(self, account: str, name: str, messages: Sequence[NewMessage]) -> None:
        """Refuses due times where there are none: to be delivered at once is not what was asked for."""
        if any(message.due_ms is not None for message in messages):
            queue = await self.find_queue(account, name)
            if queue.settings.kind != TIMELINE:
                raise InvalidRequest("due", f"{name} is a {queue.settings.kind} queue; only timelines have due times")

    def route(self, account: str, name: str, messages: Sequence[NewMessage]) -> Routed | None:
        """By rank, messages that do not all go to the same lanes; see `routing.route`."""
        return route(self.memory, account, name, messages)

    async def put_group(
        self, account: str, name: str, messages: Sequence[NewMessage], rank: Rank = PLAIN
    ) -> list[PutOutcome]:
        """As `put`, for messages of one rank that were checked already."""
        put = None if self.joined is None else await self._put_together(account, name, messages, self.joined, rank)
        if put is None:
            reservation = await self.reserve_or_none(account, name, lambda: len(messages), rank)
            if reservation is None:
                return await self.put_whole(account, name, messages, rank)
            return await self.put_reserved(reservation, messages)
        return put if isinstance(put, list) else await perhaps_landed(self.put_reserved(put, messages))

    async def _put_together(
        self, account: str, name: str, messages: Sequence[NewMessage], store: JoiningStore, rank: Rank
    ) -> list[PutOutcome] | Reservation | None:
        async def attempt(queue: Queue) -> list[PutOutcome] | Reservation | None:
            again = partial(self.reserve, account, name, rank=rank)
            return await self._verbs(queue).put_together(queue, store, messages, again, rank)

        return await self._with_queue(account, name, attempt)

    async def put_whole(
        self, account: str, name: str, messages: Sequence[NewMessage], rank: Rank = PLAIN
    ) -> list[PutOutcome]:
        """A group of puts to a kind that reserves no ids; or to one that does, if the queue was made again as such."""

        async def attempt(queue: Queue) -> list[PutOutcome]:
            verbs = self._verbs(queue)
            reservation = await verbs.reserve(queue, lambda: len(messages), rank)
            if reservation is not None:
                return await self.put_reserved(reservation, messages)
            return await verbs.put_whole(queue, messages)

        return await self._with_queue(account, name, attempt)

    async def reserve(self, account: str, name: str, count: int, rank: Rank = PLAIN) -> Reservation:
        """The first half of a put: ids for exactly so many messages, all of one rank."""
        reservation = await self.reserve_or_none(account, name, lambda: count, rank)
        if reservation is None:
            raise InvalidRequest("kind", "a queue of this kind reserves no ids")
        return reservation

    async def reserve_or_none(
        self, account: str, name: str, count: Count, rank: Rank = PLAIN
    ) -> Reservation | None:
        """As `reserve`, for as many as `count` said last; None for a kind whose groups are put in one step, by
        `put_whole`."""
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).reserve(queue, count, rank))

    async def put_reserved(self, reservation: Reservation, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        """The second half of a put; many may run while further reservations are made."""
        queue = reservation.queue
        again = partial(self.reserve, queue.account, queue.name, rank=reservation.lane.rank)
        return await self._verbs(queue).put_reserved(reservation, messages, again)

    async def receive(self, account: str, name: str, asks: Sequence[Ask]) -> list[ReceiveOutcome]:
        """For each ask the messages it got, none if there are none; or the error if that is why."""
        for ask in asks:
            validate_ask(ask)
        group = [Waiting(ask) for ask in asks]
        try:
            await self._with_queue(account, name, lambda queue: self._verbs(queue).receive(queue, group))
        except StoreError as error:
            for waiting in group:
                waiting.error = waiting.error or error
        return [
            waiting.error if waiting.error is not None and not waiting.deliveries else waiting.deliveries
            for waiting in group
        ]

    def due_in_ms(self, account: str, name: str) -> int | None:
        """In how many milliseconds a receive may find something that this server knows of; None if it knows nothing."""
        return self.memory.due_in_ms(account, name, self.clock.now())

    async def ack(self, account: str, name: str, texts: Sequence[str], in_flight: bool = False) -> list[AckOutcome]:
        """None for each message that is settled by this receipt, or what is wrong. `in_flight`: only while the message
        is hidden, as fifo queues of SQS want it."""
        queue = await self.find_queue(account, name)
        return await self._verbs(queue).ack(queue, account, texts, in_flight)

    async def change(self, account: str, name: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        """Extends, releases or rewrites delivered messages."""
        for wanted in changes:
            validate_change(wanted)
        queue = await self.find_queue(account, name)
        return await self._verbs(queue).change(queue, account, changes)

    async def begin_run(self, account: str, name: str, run: Run) -> Begun | None:
        """The first half of messages that are put once, however often it is tried; None when they are there already."""
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).begin_run(queue, run))

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
        again = partial(self.reserve, queue.account, queue.name)
        return await self._verbs(queue).finish_run(begun, messages, again, accept)

    # --- looking and operating ------------------------------------------------------------------------------------

    async def peek(self, account: str, name: str, most: int) -> list[Peeked]:
        validate_whole("count", most, 1, limits.PEEK_MESSAGES)
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).peek(queue, most))

    async def stats(self, account: str, name: str) -> Stats:
        most = limits.STATS_BUCKETS
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).stats(queue, most))

    async def marks(self, account: str, name: str) -> dict[int, Marks]:
        """The pointers of each lane."""
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).marks(queue))

    async def buckets(
        self, account: str, name: str, lane_number: int, first: int | None, count: int
    ) -> list[BucketSeen]:
        """A run of a lane's buckets from `first` on, or from the first that is kept."""
        validate_whole("first", first or 0, 0, limits.INTEGER_LIMIT - 1)
        validate_whole("count", count, 1, limits.STATS_BUCKETS)
        return await self._with_queue(
            account, name, lambda queue: self._verbs(queue).buckets(queue, lane_number, first, count)
        )

    async def purge(self, account: str, name: str) -> None:
        """All that was put before this is gone, in flight or not."""
        self.memory.distrust(account, name)
        await self._with_queue(account, name, lambda queue: self._verbs(queue).purge(queue))

    async def move_back(self, account: str, name: str, lane_number: int, bucket: int) -> int:
        """Moves the repair mark back, so that buckets are looked into again; never below the floor (A8)."""
        validate_whole("bucket", bucket, 0, limits.INTEGER_LIMIT - 1)
        return await self._with_queue(
            account, name, lambda queue: self._verbs(queue).move_back(queue, lane_number, bucket)
        )

    async def archived_up_to(self, account: str, name: str, lane_number: int, bucket: int) -> int:
        """Raises the archive mark: buckets below are safe elsewhere. It follows the repair mark at most."""
        validate_whole("bucket", bucket, 0, limits.INTEGER_LIMIT - 1)
        return await self._with_queue(
            account, name, lambda queue: self._verbs(queue).archived_up_to(queue, lane_number, bucket)
        )

    async def retire(self, account: str, name: str) -> dict[int, range]:
        """Drops what may go by now: finished, its history over and, with `archive`, behind the archive mark. By lane,
        the buckets that went. Background work does the same in its own time; two at once do no harm."""
        await self.memory.check_clock(self.clock.now())
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).retire(queue))

    async def erase(self, account: str, name: str, message: MessageId) -> bool:
        """What the message says goes, now; its place stays. False when there is no such message."""
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).erase(queue, message))

    async def redrive(self, account: str, name: str, destination: str | None, most: int) -> int:
        """Moves visible messages to another queue, or each to where it came from; returns how many went."""
        _check_batch(most)
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).redrive(queue, destination, most))

    # --- background -----------------------------------------------------------------------------------------------

    async def step(self, account: str, name: str) -> int:
        """One step of a queue's background work on this server; returns in how many milliseconds to come back."""
        await self.memory.glance_at_clock()
        return await self._with_queue(account, name, lambda queue: self._verbs(queue).step(queue))

    async def bury_step(self) -> bool:
        """Drops a portion of what deleted queues and topics held. True when there is more."""
        return await bury.bury_step(self.store) or await self.topics.bury_step()

    async def bury_orphan(self, account: str, line: str) -> bool:
        """Deletes a delay line if its queue is gone; whether it was so."""
        return await delays.bury_orphan(self.store, account, line)

    async def release_leases(self) -> None:
        """Before a server stops: others need not wait for its leases to lapse."""
        for worker in self.memory.workers.values():
            await worker.lease.release(self.store, self.clock.now())
        for queue in self.memory.with_kept():
            await self._verbs(queue).leave_all(queue)


def _check_batch(count: int) -> None:
    validate_whole("messages", count, 1, limits.BATCH_MESSAGES)
