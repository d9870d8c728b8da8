"""The delay line: where messages with a long delay wait, so that no bucket waits for them (A10, R7, R9).

Each bucketed queue has one of its own, made when it is first needed: a hidden timeline, named by the queue's
incarnation. It has no TTL; its time parts are dropped whole when they are behind its checkpoint.

    put         the message is put into the line, with an id that is made of a token (`bucketed/first.py`) and is its
                id for users from then on. When the line has confirmed it, it is confirmed.
    due         whoever holds the line's shard puts the message into the queue, as any put with a key; the key is made
                of its id. Then it is acked in the line. A crash in between has it put again under the same key.
    purge       the line is deleted, then the queue's marks are raised. Who has reserved an id for what is due looks
                whether the line still is; only then the message goes there, below the mark that purges it.
    delete      nobody hands over what waits for a queue that is gone; the line is buried with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from angelhair import limits
from angelhair.engine import catalog
from angelhair.engine.bucketed import wake
from angelhair.engine.bucketed.first import first_id
from angelhair.engine.bucketed.lane import Lane
from angelhair.engine.bucketed.put import Late, Placed, PutElsewhere, PutOutcome, delay_of
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.engine.dedup import Keyed
from angelhair.engine.delays import bury_line, due_message, line_of, line_settings, waiting_message
from angelhair.engine.kinds.timeline import Timeline
from angelhair.engine.kinds.verbs import Verbs
from angelhair.engine.marks import LaneSealed, QueueGone
from angelhair.engine.memory import Memory
from angelhair.engine.puts import Reservation, ReserveAgain, put_keyed, put_reserved
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.routing import route
from angelhair.engine.settling import begun, read_surely
from angelhair.engine.store import Span
from angelhair.engine.timeline.next_due import keeps_worked_off, next_due_in_ms
from angelhair.engine.timeline.put import Putting, put
from angelhair.engine.waiting import Waiting
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueExists, QueueNotFound, StoreError, Unavailable
from angelhair.model import HIDDEN, Ask, Delivery, MessageId, NewMessage

NO_NUMBER = -1
"""In a bucket."""


class DelayLine:
    """Of all queues that a server works for."""

    def __init__(self, memory: Memory, bucketed: Verbs, timeline: Timeline) -> None:
        self._memory = memory
        self._bucketed = bucketed
        self._timeline = timeline
        self._looks: OrderedDict[str, int] = OrderedDict()
        """By incarnation of a queue: when to look into its line again, on our monotonic clock."""
        self._looking: set[str] = set()

    # --- putting ------------------------------------------------------------------------------------------------------

    def putter(self, queue: Queue) -> PutElsewhere:
        return partial(self.put, queue)

    async def put_all(self, queue: Queue, messages: Sequence[NewMessage], reserve: ReserveAgain) -> list[PutOutcome]:
        """Messages that are to wait; an outcome for each. `reserve`: for those whose keys are of messages that wait in
        a bucket."""
        memory = self._memory
        lanes = [memory.lane_for_put(queue, memory.clock.now(), Rank(message.priority)) for message in messages]
        now_ms = await wake.index_time_ms(lanes[0])
        outcomes: dict[int, PutOutcome] = {}
        keyed = {
            index: Keyed(
                lane, Placed(NO_NUMBER, message, now_ms), message.key, self.putter(queue), now_ms, waits_elsewhere=True
            )
            for index, (lane, message) in enumerate(zip(lanes, messages, strict=True))
            if message.key is not None
        }
        if keyed:
            outcomes.update(zip(keyed, await put_keyed(memory, queue, list(keyed.values()), reserve), strict=True))
        by_lane: dict[int, list[int]] = {}
        for index, lane in enumerate(lanes):
            if index not in keyed:
                by_lane.setdefault(lane.number, []).append(index)
        for indices in by_lane.values():
            items = [Late(memory.identities.fresh(), messages[index], now_ms) for index in indices]
            outcomes.update(zip(indices, await self.put(queue, lanes[indices[0]], items), strict=True))
        return [outcomes[index] for index in range(len(messages))]

    async def put(self, queue: Queue, lane: Lane, items: Sequence[Late]) -> list[PutOutcome]:
        """An outcome for each. Raises `QueueGone` when the queue was deleted: nobody hands over what its line holds."""
        try:
            found = await self._put(queue, [waiting_message(lane, item) for item in items])
        except StoreError as error:
            return [error] * len(items)
        if any(isinstance(outcome, MessageId) for outcome in found):
            try:
                await self._check_alive(queue, lane)
            except StoreError as error:
                found = [OutcomeUnknown(str(error)) if isinstance(each, MessageId) else each for each in found]
        # Soon in any case: what this server puts is not all that waits there.
        self._look_in(queue, min(self._patience_ms(), *(delay_of(lane.settings, item.message) for item in items)))
        return [
            first_id(lane.number, item.token) if isinstance(outcome, MessageId) else outcome
            for item, outcome in zip(items, found, strict=True)
        ]

    async def _put(self, queue: Queue, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        perhaps_given = False
        for _ in range(limits.PUT_ROUNDS):
            with begun(perhaps_given):
                line = await self._find(queue)
                if line is None:
                    await self._make(queue)
                    continue
            try:
                return await put(self._timeline.line(line), [Putting(message) for message in messages])
            except (QueueGone, LaneSealed):
                # The queue was purged meanwhile: what was written to the old line nobody will hand over. Somebody may
                # have done so before, if we slept until it was due.
                self._memory.distrust(line.account, line.name)
                perhaps_given = perhaps_given or await self._is_due(messages)
                with begun(perhaps_given):
                    # Also if there is one: a late copy of its creation may have brought back the name alone.
                    await self._make(queue)
        with begun(perhaps_given):
            raise Unavailable("the queue is being purged all the time")

    async def _is_due(self, messages: Sequence[NewMessage]) -> bool:
        """Any of them, for all that is known."""
        try:
            now_ms = await self._memory.store.time_ms()
        except StoreError:
            return True
        return any(message.due_ms is None or message.due_ms <= now_ms for message in messages)

    async def _find(self, queue: Queue) -> Queue | None:
        try:
            return await self._memory.find_queue(*line_of(queue.account, queue.incarnation), self._memory.clock.now())
        except QueueNotFound:
            return None

    async def _make(self, queue: Queue) -> None:
        memory, (account, name) = self._memory, line_of(queue.account, queue.incarnation)
        now, notes = memory.clock.now(), {"queue": queue.name}
        try:
            await catalog.create(memory.store, account, name, line_settings(), notes, memory.identities, now)
        except QueueExists:
            # By another version of ours, with settings of its own: they serve.
            return
        except StoreError as error:
            # Of the line. Nothing was put yet.
            raise Unavailable(str(error)) from error

    async def _check_alive(self, queue: Queue, lane: Lane) -> None:
        """That the queue is the one that is remembered (R6), which no other step of such a put would notice."""
        (found,) = await read_surely(self._memory.store, [Span(lane.sequence)])
        row = found.rows[0].values if found.rows else {}
        if not isinstance(row.get("next"), int) or row.get("deleted"):
            # Who buried its line may have been here before us.
            await bury_line(self._memory.store, queue.account, queue.incarnation)
            raise QueueGone(queue.name)

    # --- handing over -------------------------------------------------------------------------------------------------

    async def step(self, queue: Queue) -> int:
        """Hands over what is due, if it is time to look; in how many milliseconds to come back."""
        if queue.account.startswith(HIDDEN):
            return limits.STEP_MS
        now_ms = self._memory.clock.now().monotonic_ms
        rest_ms = self._looks.get(queue.incarnation, now_ms) - now_ms
        if rest_ms > 0 or queue.incarnation in self._looking:
            return _pace(max(rest_ms, limits.STEP_SOON_MS + 1))
        self._looking.add(queue.incarnation)
        pause_ms = limits.STEP_MS
        try:
            line = await self._find(queue)
            pause_ms = self._patience_ms() if line is None else await self._look(queue, line)
        except (QueueGone, LaneSealed):
            # Of the line: purged meanwhile.
            self._memory.distrust(*line_of(queue.account, queue.incarnation))
        finally:
            self._looking.discard(queue.incarnation)
            self._looks.pop(queue.incarnation, None)
            self._look_in(queue, pause_ms)
        return _pace(pause_ms)

    def _look_in(self, queue: Queue, pause_ms: int) -> None:
        at_ms = self._memory.clock.now().monotonic_ms + pause_ms
        self._looks[queue.incarnation] = min(at_ms, self._looks.get(queue.incarnation, at_ms))
        self._looks.move_to_end(queue.incarnation)
        while len(self._looks) > limits.REMEMBERED_QUEUES:
            self._looks.popitem(last=False)

    @staticmethod
    def _patience_ms() -> int:
        """What others put into a line is not due sooner than this."""
        return max(limits.STEP_MS, min(limits.DELAY_LINE_LOOK_MS, limits.DELAY_LINE_MS // 2))

    async def _look(self, queue: Queue, line: Queue) -> int:
        """Without a lock, as long as nothing is due."""
        due_in_ms = await next_due_in_ms(self._timeline.line(line))
        if due_in_ms is not None and due_in_ms <= 0:
            return await self._hand_over(queue, line)
        if await keeps_worked_off(self._timeline.line(line)):
            # Its checkpoint goes on to now, and then that can be dropped.
            return await self._hand_over(queue, line)
        pause_ms = min(self._patience_ms(), due_in_ms or self._patience_ms())
        if pause_ms >= line.settings.lock_ms:
            await self._timeline.leave_all(line)
        if await self._timeline.step(line) <= limits.STEP_SOON_MS:
            # There is more to be dropped.
            return limits.STEP_SOON_MS
        return pause_ms

    async def _hand_over(self, queue: Queue, line: Queue) -> int:
        waiting = Waiting(Ask(min(limits.DELAY_LINE_MESSAGES, limits.BATCH_MESSAGES)))
        await self._timeline.receive(line, [waiting])
        if waiting.deliveries:
            done = await self._put_due(queue, line, waiting.deliveries)
            if done:
                await self._timeline.ack(line, line.account, [delivery.receipt for delivery in done], False)
                await self._timeline.checkpoint(line)
            return limits.STEP_SOON_MS if len(done) == len(waiting.deliveries) else limits.STEP_MS
        await self._timeline.checkpoint(line)
        await self._timeline.step(line)
        return limits.STEP_MS

    async def _put_due(self, queue: Queue, line: Queue, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Those that are in the queue now."""
        messages = [due_message(delivery, queue.secret) for delivery in deliveries]
        routed = route(self._memory, queue.account, queue.name, messages)
        if routed is None:
            return _arrived(deliveries, await self._put_rank(queue, line, messages, PLAIN))
        outcomes: list[PutOutcome] = []
        try:
            found: dict[Rank, list[PutOutcome] | AngelhairError] = {}
            for rank in routed.parts:
                found[rank] = await self._put_rank(queue, line, routed.messages(rank), rank)
            outcomes = routed.joined(found)
        finally:
            routed.end(outcomes)
        return _arrived(deliveries, outcomes)

    async def _put_rank(
        self, queue: Queue, line: Queue, messages: Sequence[NewMessage], rank: Rank
    ) -> list[PutOutcome]:
        async def reserve(count: int) -> Reservation:
            reservation = await self._bucketed.reserve(queue, lambda: count, rank)
            assert reservation is not None
            if not await catalog.lives(self._memory.store, line):
                # Purged: had it been later, the mark would be above these ids.
                raise QueueGone(line.name)
            return self._with_own_window(reservation)

        try:
            return await put_reserved(self._memory, await reserve(len(messages)), messages, reserve)
        except StoreError as error:
            return [error] * len(messages)
        except (QueueGone, LaneSealed) as error:
            self._memory.distrust(queue.account, queue.name)
            self._memory.distrust(line.account, line.name)
            return [Unavailable(f"the queue or its line has changed: {error}")] * len(messages)

    def _with_own_window(self, reservation: Reservation) -> Reservation:
        """Keys are known for as long as it may take until the line has its acks, whatever the queue's own window."""
        queue = reservation.queue
        queue = replace(queue, settings=replace(queue.settings, dedup_window_ms=limits.DELAY_LINE_WINDOW_MS))
        return Reservation(queue, self._memory.lane(queue, reservation.lane.number), reservation.first)

    # --- looking and operating ----------------------------------------------------------------------------------------

    async def stats(self, queue: Queue, most: int) -> Stats:
        """What waits counts as delayed, also what is due this very moment."""
        line = None if queue.account.startswith(HIDDEN) else await self._find(queue)
        if line is None:
            return Stats()
        try:
            found = await self._timeline.stats(line, most)
        except QueueGone:
            self._memory.distrust(line.account, line.name)
            return Stats()
        return Stats(delayed=found.visible + found.in_flight + found.delayed, exact=found.exact)

    async def purge(self, queue: Queue) -> bool:
        """Before the queue itself is; whether there was anything to purge."""
        if queue.account.startswith(HIDDEN):
            return False
        self._memory.distrust(*line_of(queue.account, queue.incarnation))
        return await bury_line(self._memory.store, queue.account, queue.incarnation)


def _pace(pause_ms: int) -> int:
    """Who works on many queues comes to one in which nothing happens more slowly than it asks for, if it does not ask
    for less than a usual rest."""
    return min(pause_ms, limits.STEP_MS - 1 if pause_ms < limits.STEP_IDLE_MS else limits.STEP_MS)


def _arrived(deliveries: Sequence[Delivery], outcomes: Sequence[PutOutcome]) -> list[Delivery]:
    return [
        delivery for delivery, outcome in zip(deliveries, outcomes, strict=True) if isinstance(outcome, MessageId)
    ]
