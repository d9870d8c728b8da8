"""The verbs of a timeline, shard by shard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from angelhair import limits
from angelhair.engine import catalog
from angelhair.engine.addressing import AckOutcome
from angelhair.engine.bucketed.put import PutOutcome
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.engine.kinds.timeline_moves import count_dead, move_exhausted
from angelhair.engine.kinds.verbs import Verbs
from angelhair.engine.marks import QueueGone
from angelhair.engine.timeline import consumer, inspect, lock, receipts, worker
from angelhair.engine.timeline.ack import ack
from angelhair.engine.timeline.change import change
from angelhair.engine.timeline.consumer import Share
from angelhair.engine.timeline.inspect import ShardSeen
from angelhair.engine.timeline.lane import OWN, LaneView, Line, Sessions
from angelhair.engine.timeline.peek import peek, stats
from angelhair.engine.timeline.put import Putting, put
from angelhair.engine.timeline.receipts import Receipt
from angelhair.engine.timeline.receive import receive
from angelhair.engine.timeline.renew import renew
from angelhair.engine.timeline.retire import drop_worked_off, is_drained
from angelhair.engine.waiting import Waiting
from angelhair.errors import (
    InvalidReceipt,
    InvalidRequest,
    OutcomeUnknown,
    QueueNotFound,
    StaleReceipt,
    StoreError,
    Unavailable,
)
from angelhair.model import TIMELINE, NewMessage, Peeked, WantedChange, validate_timeline_message

W = TypeVar("W")
Run = Callable[[Line, list[tuple[Receipt, W]]], Awaitable[list[AckOutcome]]]


class Timeline(Verbs):
    def line(self, queue: Queue) -> Line:
        memory = self.memory

        async def reload() -> Line:
            memory.distrust(queue.account, queue.name)
            try:
                again = await memory.find_queue(queue.account, queue.name, memory.clock.now())
            except QueueNotFound:
                raise QueueGone(queue.name) from None
            if again.incarnation != queue.incarnation:
                raise QueueGone(queue.name)
            return self.line(again)

        return Line(
            memory.store,
            queue.account,
            queue.name,
            queue.incarnation,
            queue.secret,
            queue.settings,
            {lane: queue.lanes[lane] for lane in queue.read_lanes},
            tuple(queue.open_lanes),
            memory.server,
            memory.identities,
            memory.clock,
            memory.clock_is_good,
            memory.kept(queue, Sessions),
            lambda lane: memory.view(queue, lane, LaneView),
            reload,
        )

    # --- messages -------------------------------------------------------------------------------------------------

    async def put_whole(self, queue: Queue, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        outcomes: dict[int, PutOutcome] = {}
        puttings: dict[int, Putting] = {}
        for index, message in enumerate(messages):
            try:
                validate_timeline_message(message)
                puttings[index] = Putting(message)
            except InvalidRequest as error:
                # A bad message concerns nobody but itself.
                outcomes[index] = error
        if puttings:
            put_ones = await self._put(queue, list(puttings.values()))
            outcomes.update(zip(puttings, put_ones, strict=True))
        return [outcomes[index] for index in range(len(messages))]

    async def put_moved(self, queue: Queue, message: NewMessage) -> PutOutcome:
        """One that comes from another queue; it is due at once. Raises `QueueGone`."""
        (outcome,) = await self.put_whole(queue, [message])
        return outcome

    async def _put(self, queue: Queue, puttings: Sequence[Putting]) -> list[PutOutcome]:
        memory = self.memory
        for _ in range(limits.RECEIVE_ROUNDS):
            try:
                return await put(self.line(queue), puttings)
            except QueueGone:
                memory.distrust(queue.account, queue.name)
                if not any(putting.sent for putting in puttings):
                    raise
            # To the queue that has the name now. Whatever becomes of that, before the other one was deleted it may
            # have been given there.
            try:
                queue = await memory.find_queue(queue.account, queue.name, memory.clock.now())
            except (QueueNotFound, StoreError) as error:
                return [OutcomeUnknown(str(error)) if putting.sent else error for putting in puttings]
            if queue.settings.kind != TIMELINE:
                break
            puttings = [Putting(putting.message, sent=putting.sent) for putting in puttings]
        gone = "the queue was deleted while the message was being put"
        return [OutcomeUnknown(gone) if putting.sent else Unavailable(gone) for putting in puttings]

    async def receive(self, queue: Queue, group: Sequence[Waiting]) -> None:
        line = self.line(queue)
        by_consumer: dict[str, list[Waiting]] = {}
        for waiting in group:
            by_consumer.setdefault(waiting.ask.consumer or self._own, []).append(waiting)
        failed: StoreError | None = None
        for name, asking in by_consumer.items():
            wanting = [waiting for waiting in asking if waiting.missing > 0 and waiting.error is None]
            try:
                await receive(line, consumer.session_of(line, name, line.clock.now()), wanting)
            except StoreError as error:
                # Of this consumer's shards; others have their own.
                failed = failed or error
                for waiting in wanting:
                    waiting.error = error
        if failed is not None and len(by_consumer) == 1:
            raise failed

    @property
    def _own(self) -> str:
        return OWN + self.memory.server

    async def ack(self, queue: Queue, account: str, texts: Sequence[str], in_flight: bool) -> list[AckOutcome]:
        async def run(line: Line, group: list[tuple[Receipt, None]]) -> list[AckOutcome]:
            return await ack(line, [receipt for receipt, _ in group], in_flight)

        return await self._by_receipt(queue, [(text, None) for text in texts], run)

    async def change(self, queue: Queue, account: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        return await self._by_receipt(queue, [(wanted.receipt, wanted) for wanted in changes], change)

    async def _by_receipt(self, queue: Queue, items: Sequence[tuple[str, W]], run: Run[W]) -> list[AckOutcome]:
        """Decodes receipts and runs a verb on those that are good; a bad one concerns nobody but itself."""
        decoded = [_decoded(queue, text) for text, _ in items]
        if any(
            isinstance(each, InvalidReceipt) and receipts.is_well_formed(text)
            for each, (text, _) in zip(decoded, items, strict=True)
        ):
            # Perhaps of a newer incarnation than we remember.
            self.memory.distrust(queue.account, queue.name)
            queue = await self.memory.find_queue(queue.account, queue.name, self.memory.clock.now())
            decoded = [_decoded(queue, text) for text, _ in items]
        outcomes: list[AckOutcome] = [each if isinstance(each, InvalidReceipt) else None for each in decoded]
        good = [
            (place, (each, wish))
            for place, (each, (_, wish)) in enumerate(zip(decoded, items, strict=True))
            if isinstance(each, Receipt)
        ]
        if not good:
            return outcomes
        line = self.line(queue)
        self._hear_of(line, [receipt for _, (receipt, _) in good])
        try:
            results = await run(line, [item for _, item in good])
        except StoreError as error:
            results = [error] * len(good)
        except QueueGone:
            self.memory.distrust(queue.account, queue.name)
            results = [StaleReceipt("the message is gone, with its queue")] * len(good)
        for (place, _), result in zip(good, results, strict=True):
            outcomes[place] = result
        return outcomes

    @staticmethod
    def _hear_of(line: Line, good: Sequence[Receipt]) -> None:
        """Who acks is there."""
        for lane in {receipt.lane for receipt in good}:
            held = line.held(lane) if lane in line.states else None
            session = None if held is None else line.sessions.by_name.get(held.consumer)
            if session is not None:
                session.heard_ms = line.clock.now().monotonic_ms

    # --- consumers ------------------------------------------------------------------------------------------------

    async def touch_consumer(self, queue: Queue, name: str, most_shards: int | None) -> Share:
        line = self.line(queue)
        session = consumer.session_of(line, name, line.clock.now())
        session.most = most_shards
        return await consumer.touch(line, session)

    async def leave_consumer(self, queue: Queue, name: str) -> None:
        line = self.line(queue)
        # Who comes next may not stay for long either.
        await move_exhausted(self.memory, line, self.line)
        await consumer.leave(line, consumer.session_of(line, name, line.clock.now()))

    async def leave_all(self, queue: Queue) -> None:
        """Before a server stops: its consumers' shards need not wait until they lapse."""
        line = self.line(queue)
        for session in list(line.sessions.by_name.values()):
            with suppress(QueueGone):
                await consumer.leave(line, session)

    async def checkpoint(self, queue: Queue) -> None:
        """Makes durable what was acked here."""
        line = self.line(queue)
        await lock.keep(line, line.all_held())

    # --- looking --------------------------------------------------------------------------------------------------

    async def shards(self, queue: Queue) -> list[ShardSeen]:
        return await inspect.shards(self.line(queue))

    async def peek(self, queue: Queue, most: int) -> list[Peeked]:
        return await peek(self.line(queue), most)

    async def stats(self, queue: Queue, most_buckets: int) -> Stats:
        line = self.line(queue)
        total = await stats(line, limits.TIMELINE_COUNTED)
        try:
            total.add(await count_dead(self.memory, line, self.line, most_buckets))
        except QueueGone:
            # The dead-letter queue's; this one is there.
            self.memory.distrust(queue.account, queue.settings.dead_letter_queue or "")
        return total

    async def redrive(self, queue: Queue, destination: str | None, most: int) -> int:
        self._cannot(queue, "moves no messages: receive them, put them where they belong, and ack them")

    # --- background -----------------------------------------------------------------------------------------------

    async def step(self, queue: Queue) -> int:
        """One step of this server's work; a shard that cannot be read stops no other."""
        line = self.line(queue)
        first_error: StoreError | None = None
        more = False
        try:
            await worker.keep_sessions(line)
            await move_exhausted(self.memory, line, self.line)
            await worker.make_way(line)
        except StoreError as error:
            first_error = error
        for lane in line.lanes:
            try:
                more = await self._tend(line, lane) or more
                if line.states[lane] == catalog.SEALED and await self._end_if_drained(queue, line, lane):
                    # The queue is another one now: the next step begins with that.
                    return limits.STEP_SOON_MS
            except StoreError as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return limits.STEP_SOON_MS if more else worker.pause_ms(line)

    async def _tend(self, line: Line, lane: int) -> bool:
        """Looks after one shard, now and then; True when there is more to do at once."""
        if await renew(line, lane):
            return True
        view, now = line.view(lane), line.clock.now()
        if view.tended_ms is not None and now.monotonic_ms - view.tended_ms < limits.TIMELINE_TEND_MS:
            return False
        if await drop_worked_off(line, lane):
            return True
        view.tended_ms = now.monotonic_ms
        return False

    async def _end_if_drained(self, queue: Queue, line: Line, lane: int) -> bool:
        """A drained shard is forgotten. Its own row stays and says that it takes no more puts, to whoever remembers."""
        memory, now, view = self.memory, line.clock.now(), line.view(lane)
        if view.drained_ms is not None and now.monotonic_ms - view.drained_ms < limits.TIMELINE_TEND_MS:
            return False
        view.drained_ms = now.monotonic_ms
        if not await is_drained(line, lane):
            return False
        while await drop_worked_off(line, lane, all_of_it=True):
            pass
        lanes = {number: state for number, state in queue.lanes.items() if number != lane}
        changed = await catalog.replace_queue(memory.store, queue, replace(queue, lanes=lanes), now)
        if changed is None:
            memory.distrust(queue.account, queue.name)
        else:
            memory.remember(changed, now)
        return True


def _decoded(queue: Queue, text: str) -> Receipt | InvalidReceipt:
    if queue.settings.kind != TIMELINE:
        return InvalidReceipt("belongs to an earlier queue of this name")
    try:
        return receipts.decode(queue.incarnation, queue.secret, text)
    except InvalidReceipt as error:
        return error
