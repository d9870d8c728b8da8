"""The verbs of a fifo queue, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from angelhair import limits
from angelhair.engine import ledger
from angelhair.engine.addressing import AckOutcome, by_lane
from angelhair.engine.bucketed.put import PutOutcome
from angelhair.engine.catalog import Queue
from angelhair.engine.counts import Stats
from angelhair.engine.fifo import operate, runs
from angelhair.engine.fifo.ack import ack
from angelhair.engine.fifo.change import change
from angelhair.engine.fifo.lane import Lane, LaneView
from angelhair.engine.fifo.peek import peek
from angelhair.engine.fifo.put import in_lanes, put
from angelhair.engine.fifo.receive import receive, replay
from angelhair.engine.fifo.worker import Worker, step
from angelhair.engine.kinds.fifo_moves import move_exhausted, redrive
from angelhair.engine.kinds.verbs import Verbs
from angelhair.engine.ledger import Run
from angelhair.engine.marks import Marks, QueueGone
from angelhair.engine.puts import ReserveAgain
from angelhair.engine.receipts import Receipt
from angelhair.engine.runs import Begun
from angelhair.engine.settling import begun
from angelhair.engine.waiting import Waiting
from angelhair.errors import InvalidRequest, OutcomeUnknown, StoreError
from angelhair.model import NewMessage, Peeked, WantedChange, validate_fifo_message


class Fifo(Verbs):
    def lane(self, queue: Queue, number: int) -> Lane:
        memory = self.memory
        return Lane(
            memory.store,
            queue.account,
            queue.name,
            queue.incarnation,
            queue.secret,
            queue.settings,
            number,
            memory.server,
            memory.identities,
            memory.clock,
            memory.clock_is_good,
            memory.view(queue, number, LaneView),
        )

    def _lanes(self, queue: Queue) -> list[Lane]:
        return [self.lane(queue, number) for number in range(queue.settings.lanes)]

    # --- messages -------------------------------------------------------------------------------------------------

    async def put_whole(self, queue: Queue, messages: Sequence[NewMessage]) -> list[PutOutcome]:
        outcomes: dict[int, PutOutcome] = {}
        good: list[tuple[int, NewMessage]] = []
        for index, message in enumerate(messages):
            try:
                validate_fifo_message(message)
            except InvalidRequest as error:
                # A bad message concerns nobody but itself.
                outcomes[index] = error
            else:
                good.append((index, message))
        if good:
            outcomes.update(await put(in_lanes(partial(self.lane, queue), queue.settings.lanes, good)))
        return [outcomes[index] for index in range(len(messages))]

    async def receive(self, queue: Queue, group: Sequence[Waiting]) -> None:
        lanes = [self.lane(queue, number) for number in self.memory.lanes_in_turn(queue)]
        failed: StoreError | None = None
        for waiting in group:
            if waiting.ask.attempt is not None and not waiting.deliveries:
                # Everywhere, before anything new is given: the first try may have met other lanes first.
                try:
                    for lane in lanes:
                        await replay(lane, waiting)
                except StoreError as error:
                    waiting.error = error
        open_asks = [waiting for waiting in group if not (waiting.ask.attempt is not None and waiting.deliveries)]
        for lane in lanes:
            wanting = [waiting for waiting in open_asks if waiting.missing > 0 and waiting.error is None]
            if not wanting:
                break
            try:
                await receive(lane, wanting)
            except StoreError as error:
                # Of this lane; others may have messages.
                failed = failed or error
        if failed is not None:
            raise failed

    async def ack(self, queue: Queue, account: str, texts: Sequence[str], in_flight: bool) -> list[AckOutcome]:
        async def run(lane: Lane, group: list[tuple[Receipt, None]]) -> list[AckOutcome]:
            return await ack(lane, [receipt for receipt, _ in group], in_flight)

        return await by_lane(self.memory, account, queue.name, [(text, None) for text in texts], self.lane, run)

    async def change(self, queue: Queue, account: str, changes: Sequence[WantedChange]) -> list[AckOutcome]:
        wanted = [(change.receipt, change) for change in changes]
        return await by_lane(self.memory, account, queue.name, wanted, self.lane, change)

    async def begin_run(self, queue: Queue, run: Run) -> Begun | None:
        entry = await runs.begin(self._lanes(queue), run)
        return None if entry is None else Begun(queue, run, entry, resuming=True)

    async def finish_run(
        self, begun: Begun, messages: Sequence[NewMessage], reserve_again: ReserveAgain, accept: ledger.Accept
    ) -> set[int]:
        queue, run, entry, _ = begun
        try:
            return await runs.finish(self._lanes(queue), run, entry, messages, accept)
        except QueueGone as error:
            raise OutcomeUnknown("the queue was deleted while the messages were being put") from error

    # --- looking and operating ------------------------------------------------------------------------------------

    async def peek(self, queue: Queue, most: int) -> list[Peeked]:
        found: list[Peeked] = []
        for number in queue.read_lanes:
            if len(found) < most:
                found += await peek(self.lane(queue, number), most - len(found))
        return found

    async def stats(self, queue: Queue, most_buckets: int) -> Stats:
        total = Stats()
        for number in queue.read_lanes:
            total.add(await operate.lane_stats(self.lane(queue, number)))
        return total

    async def marks(self, queue: Queue) -> dict[int, Marks]:
        return {number: await operate.marks(self.lane(queue, number)) for number in queue.lanes}

    async def purge(self, queue: Queue) -> None:
        for place, number in enumerate(queue.lanes):
            with begun(place > 0):
                await operate.purge(self.lane(queue, number))

    async def redrive(self, queue: Queue, destination: str | None, most: int) -> int:
        return await redrive(self.memory, queue, destination, most, self.lane)

    # --- background -----------------------------------------------------------------------------------------------

    async def step(self, queue: Queue) -> int:
        """One step of each lane's work; a lane that cannot be read stops no other."""
        memory = self.memory
        pause_ms, first_error = limits.STEP_MS, None
        losing, held = frozenset[str](), -1
        for number in queue.lanes:
            lane = self.lane(queue, number)
            try:
                trusted = memory.clock_is_good(memory.clock.now())
                if trusted and held != memory.lanes_held(queue):
                    held, losing = memory.lanes_held(queue), await memory.losing_holders(queue)
                worker = memory.workers.setdefault((queue.incarnation, number), Worker.of(lane))
                assert isinstance(worker, Worker)
                pause_ms = min(pause_ms, await step(lane, worker, trusted, losing))
                await move_exhausted(memory, lane, self.lane)
            except StoreError as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return pause_ms
