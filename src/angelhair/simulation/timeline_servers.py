"""Simulated servers with a timeline: engine and batching, unchanged, and the loops around them."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.batching.batching import Batching
from angelhair.engine.engine import Engine
from angelhair.engine.timeline.consumer import Share
from angelhair.errors import AngelhairError, InvalidRequest, QueueNotFound, StoreError, Unavailable
from angelhair.model import Ask, Delivery, DueId, NewMessage, WantedChange
from angelhair.simulation.history import REFUSED, UNKNOWN, Changed, Delivered, Settled
from angelhair.simulation.process import Process
from angelhair.simulation.servers import ACCOUNT, BURY_SHARE, judged
from angelhair.simulation.timeline_history import DuePut, Given, TimelineHistory
from angelhair.simulation.timeline_inspection import ShardWitness, told
from angelhair.simulation.world import World

AWAY_MS = 1_000


class TimelineServer:
    """What one incarnation of a server process runs. It writes down what it answers, when it answers."""

    def __init__(
        self, world: World, process: Process, queues: Sequence[str], history: TimelineHistory, witness: ShardWitness
    ) -> None:
        self._world = world
        self._process = process
        self._history = history
        self._witness = witness
        self.engine = Engine(process.store, world.identities, process.clock)
        self.batching = Batching(self.engine, process.runtime)
        for queue in queues:
            process.spawn(self._work(queue))
        process.spawn(self._bury())

    async def _work(self, queue: str) -> None:
        while True:
            try:
                pause_ms = await self.engine.step(ACCOUNT, queue)
            except (StoreError, QueueNotFound):
                pause_ms = AWAY_MS
            await self._process.sleep(pause_ms)

    async def _bury(self) -> None:
        while True:
            await self._process.sleep(1_000)
            if self._world.random.random() < BURY_SHARE:
                try:
                    await self.engine.bury_step()
                except StoreError:
                    continue

    # --- what clients ask for -----------------------------------------------------------------------------------------

    async def put(self, queue: str, messages: list[NewMessage], records: list[DuePut]) -> None:
        """What the server answers counts, whether its producer still waits for it or not."""
        self._history.putting += 1
        try:
            outcomes = await self.batching.put(ACCOUNT, queue, messages)
        finally:
            self._history.putting -= 1
        for record, outcome in zip(records, outcomes, strict=True):
            record.ended_us = self._world.now_us
            record.outcome = judged(outcome)
            record.id = str(outcome) if isinstance(outcome, DueId) else None

    async def touch(self, queue: str, consumer: str) -> Share:
        return await self.engine.touch_consumer(ACCOUNT, queue, consumer)

    async def leave(self, queue: str, consumer: str) -> None:
        await self.engine.leave_consumer(ACCOUNT, queue, consumer)

    async def receive(self, queue: str, ask: Ask, visibility_ms: int) -> list[Delivery]:
        asked_us, halts = self._world.now_us, self._process.halts
        deliveries = await self.batching.receive(ACCOUNT, queue, ask)
        for delivery in deliveries:
            plain = (
                queue, self._process.label, str(delivery.id), delivery.body.decode(), delivery.deliveries,
                delivery.receipt, asked_us, self._world.now_us, visibility_ms, delivery.origin or "",
            )
            if not isinstance(delivery.id, DueId):
                self._history.deliveries.append(Delivered(*plain))
                continue
            shard, fence = told(delivery.receipt, delivery.id)
            given = Given(
                *plain, shard=shard, fence=fence, consumer=ask.consumer, skew_us=self._process.clock.worst_skew_us,
                steady=halts == self._process.halts and not self._process.clock.stood_still,
            )
            self._history.deliveries.append(given)
            self._witness.give(given)
        return deliveries

    async def ack(self, queue: str, delivery: Delivery) -> AngelhairError | None:
        """Begun is as good as done: the checkpoint may pass the message before anybody hears of it."""
        body = delivery.body.decode()
        record = Settled(queue, delivery.receipt, self._world.now_us, 0, UNKNOWN)
        self._history.acks.append(record)
        self._history.settling[body] += 1
        try:
            (outcome,) = await self.batching.ack(ACCOUNT, queue, [delivery.receipt])
        except AngelhairError as error:
            outcome = error
        record.ended_us, record.outcome = self._world.now_us, judged(outcome)
        record.denied = isinstance(outcome, Unavailable)
        if record.outcome == REFUSED:
            self._history.settling[body] -= 1
        if isinstance(outcome, InvalidRequest) and not self._history.cleared:
            self._history.bad_receipts.append(f"{delivery.receipt}: {outcome}")
        return outcome

    async def change(self, record: Changed) -> None:
        wanted = WantedChange(record.receipt, record.visibility_ms)
        (outcome,) = await self.batching.change(ACCOUNT, record.queue, [wanted])
        record.outcome = judged(outcome)
        if outcome is not None:
            raise outcome
