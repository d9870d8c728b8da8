"""The verbs of a databag: random ids, served by partitions, deleted by id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from angelhair import limits
from angelhair.engine.addressing import AckOutcome
from angelhair.engine.bucketed.put import PutOutcome
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids, inspect, peek, sync, worker
from angelhair.engine.databag.ack import delete
from angelhair.engine.databag.inspect import BagSeen
from angelhair.engine.databag.keyed import put_keyed
from angelhair.engine.databag.lane import LANE, Bag, BagView
from angelhair.engine.databag.put import Sent, put
from angelhair.engine.databag.receive import receive
from angelhair.engine.kinds.verbs import Verbs
from angelhair.engine.marks import QueueGone
from angelhair.engine.settling import begun
from angelhair.engine.waiting import Waiting
from angelhair.errors import InvalidReceipt, InvalidRequest, OutcomeUnknown, QueueNotFound, StoreError, Unavailable
from angelhair.model import DATABAG, DueId, MessageId, NewMessage, Peeked, WantedChange, validate_databag_message

Put = Callable[[Bag, Sequence[NewMessage], Sent], Awaitable[list[PutOutcome]]]


class Databag(Verbs):
    async def bag(self, queue: Queue) -> Bag:
        """With what is in force on this server; if the last sync was long ago, after another."""
        memory = self.memory
        view = memory.view(queue, LANE, BagView)
        place, servers = memory.membership.place()
        bag = Bag(
            memory.store, queue.account, queue.name, queue.incarnation, queue.secret, view.settings or queue.settings,
            memory.identities, memory.clock, memory.clock_is_good, view, place, servers,
        )
        asked_ms = memory.clock.now().monotonic_ms
        if asked_ms - view.synced_ms < memory.sync_ms:
            return bag
        view.sync_begun += 1
        turn = view.sync_begun
        memory.distrust(queue.account, queue.name)
        try:
            queue = await memory.find_queue(queue.account, queue.name, memory.clock.now())
        except QueueNotFound:
            raise QueueGone(queue.name) from None
        if queue.incarnation != bag.incarnation:
            raise QueueGone(queue.name)
        await sync.take_over(bag, queue.settings, asked_ms, turn)
        return replace(bag, settings=view.settings or queue.settings)

    # --- messages -------------------------------------------------------------------------------------------------

    async def put_whole(self, queue: Queue, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        outcomes: dict[int, PutOutcome] = {}
        good: dict[int, NewMessage] = {}
        for index, message in enumerate(messages):
            try:
                validate_databag_message(message)
                good[index] = message
            except InvalidRequest as error:
                # A bad message concerns nobody but itself.
                outcomes[index] = error
        begun = False
        for put_some in (put, put_keyed):
            some = {index: one for index, one in good.items() if (one.key is not None) == (put_some is put_keyed)}
            if some:
                outcomes.update(zip(some, await self._put(queue, list(some.values()), put_some, begun), strict=True))
                begun = True
        return [outcomes[index] for index in range(len(messages))]

    async def put_moved(self, queue: Queue, message: NewMessage) -> PutOutcome:
        """One that comes from another queue. Raises `QueueGone`."""
        (outcome,) = await self.put_whole(queue, [message])
        return outcome

    async def _put(self, queue: Queue, messages: Sequence[NewMessage], put_some: Put, begun: bool) -> list[PutOutcome]:
        """Raises `QueueGone` if nothing was written, of these or, `begun`, of others that were given with them."""
        memory, sent = self.memory, Sent()
        for _ in range(limits.RECEIVE_ROUNDS):
            before = sent.some
            try:
                outcomes = list(await put_some(await self.bag(queue), messages, sent))
                return [_told(outcome, before) for outcome in outcomes]
            except StoreError as error:
                return [_told(error, sent.some)] * len(messages)
            except QueueGone:
                memory.distrust(queue.account, queue.name)
                if not sent.some and not begun:
                    raise
            # To the queue that has the name now. Whatever becomes of that, before the other one was deleted it may
            # have been given there.
            try:
                queue = await memory.find_queue(queue.account, queue.name, memory.clock.now())
            except (QueueNotFound, StoreError) as error:
                return [OutcomeUnknown(str(error))] * len(messages)
            if queue.settings.kind != DATABAG:
                break
        return [OutcomeUnknown("the queue was deleted while the message was being put")] * len(messages)

    async def receive(self, queue: Queue, group: Sequence[Waiting]) -> None:
        await receive(await self.bag(queue), group)

    async def ack(self, queue: Queue, account: str, texts: Sequence[str], in_flight: bool) -> list[AckOutcome]:
        """A message's receipt is its id."""
        numbers: dict[int, int] = {}
        outcomes: list[AckOutcome] = [None] * len(texts)
        for index, text in enumerate(texts):
            try:
                numbers[index] = _number(text)
            except InvalidRequest as error:
                outcomes[index] = error
        if numbers:
            found = await self._delete(queue, list(numbers.values()))
            for index, outcome in zip(numbers, found, strict=True):
                outcomes[index] = outcome
        return outcomes

    async def _delete(self, queue: Queue, numbers: Sequence[int]) -> list[AckOutcome]:
        memory = self.memory
        for _ in range(limits.RECEIVE_ROUNDS):
            try:
                return list(await delete(await self.bag(queue), numbers))
            except StoreError as error:
                return [error] * len(numbers)
            except QueueGone:
                memory.distrust(queue.account, queue.name)
                queue = await memory.find_queue(queue.account, queue.name, memory.clock.now())
                if queue.settings.kind != DATABAG:
                    return [InvalidReceipt("belongs to an earlier queue of this name")] * len(numbers)
        return [Unavailable("the queue is being made and deleted all the time")] * len(numbers)

    async def change(self, queue: Queue, account: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        self._cannot(queue, "locks partitions, not messages: the visibility of one cannot be changed, nor its body")

    # --- looking and operating ------------------------------------------------------------------------------------

    async def partitions(self, queue: Queue) -> BagSeen:
        return await inspect.inspect(await self.bag(queue), self.memory.sync_ms)

    async def peek(self, queue: Queue, most: int) -> list[Peeked]:
        return await peek.peek(await self.bag(queue), most)

    async def stats(self, queue: Queue, most_buckets: int) -> Stats:
        return await peek.stats(await self.bag(queue), limits.BAG_COUNTED)

    async def purge(self, queue: Queue) -> None:
        """Every epoch is finished, whatever is in it; what is put from now on goes to new ones."""
        bag = await self.bag(queue)
        for block in range(limits.BAG_BLOCKS):
            with begun(block > 0):
                await self._purge_block(bag, block)

    @staticmethod
    async def _purge_block(bag: Bag, block: int) -> None:
        for attempt in range(limits.ADMIT_ROUNDS):
            # What was refused to us may have been ours, and changed again since.
            with begun(attempt > 0):
                (epochs,) = await epochs_of.load(bag, [block])
                now_ms = await bag.time_ms()
                new = epochs.sealed_now(now_ms)
                over = new.finished([each.number for each in new.sealed], now_ms, bag.kept_ms)
                if await epochs_of.change(bag, block, epochs, over) is not None:
                    return
        raise OutcomeUnknown("the block's epochs are being changed by others all the time")

    async def redrive(self, queue: Queue, destination: str | None, most: int) -> int:
        self._cannot(queue, "moves no messages: receive them, put them where they belong, and delete them")

    # --- background -----------------------------------------------------------------------------------------------

    async def step(self, queue: Queue) -> int:
        return await worker.step(await self.bag(queue))


def _number(text: str) -> int:
    try:
        identity = MessageId.parse(text)
    except InvalidRequest:
        raise InvalidReceipt("is not the id of a message of a databag") from None
    if isinstance(identity, DueId) or identity.lane != LANE or not ids.is_one(identity.number):
        raise InvalidReceipt("is not the id of a message of a databag")
    return identity.number


def _told(outcome: PutOutcome, sent_before: bool) -> PutOutcome:
    """That it did not happen is not the whole truth of what may have been written before."""
    return OutcomeUnknown(str(outcome)) if sent_before and isinstance(outcome, Unavailable) else outcome
