"""Simulated servers: the engine and its batching, unchanged, and a loop that takes the background steps."""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.batching.batching import Batching
from angelhair.engine.engine import Engine, PutOutcome
from angelhair.engine.ledger import Run
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueNotFound, StoreError, Unavailable
from angelhair.model import Ask, Delivery, MessageId, NewMessage, WantedChange
from angelhair.simulation.history import CONFIRMED, REFUSED, UNKNOWN, Changed, Delivered, History, Put, Settled
from angelhair.simulation.process import Process
from angelhair.simulation.world import World

ACCOUNT = "account"
BURY_SHARE = 0.1
"""How often a step also drops what deleted queues held."""


class Server:
    """What one incarnation of a server process runs. It writes down what it answers, when it answers."""

    def __init__(self, world: World, process: Process, queues: tuple[str, ...], history: History) -> None:
        self._world = world
        self._process = process
        self._queues = queues
        self._history = history
        self.engine = Engine(process.store, world.identities, process.clock)
        self.batching = Batching(self.engine, process.runtime)
        process.spawn(self._background())

    async def _background(self) -> None:
        while True:
            pause_ms = 1_000
            for queue in self._queues:
                try:
                    pause_ms = min(pause_ms, await self.engine.step(ACCOUNT, queue))
                except (StoreError, QueueNotFound):
                    continue
            if self._world.random.random() < BURY_SHARE:
                try:
                    await self.engine.bury_step()
                except StoreError:
                    pass
            await self._process.sleep(pause_ms)

    async def put(self, queue: str, messages: list[NewMessage], records: list[Put]) -> list[PutOutcome]:
        """What the server answers counts, whether its producer still waits for it or not."""
        self._history.putting += 1
        try:
            outcomes = await self.batching.put(ACCOUNT, queue, messages)
        finally:
            self._history.putting -= 1
        for record, outcome in zip(records, outcomes, strict=True):
            record.ended_us = self._world.now_us
            record.outcome = judged(outcome)
            record.id = str(outcome) if isinstance(outcome, MessageId) else None
        return outcomes

    async def put_run(self, queue: str, run: Run, messages: Sequence[NewMessage], records: list[Put]) -> None:
        self._history.putting += 1
        try:
            begun = await self.engine.begin_run(ACCOUNT, queue, run)
            if begun is not None:
                await self.engine.finish_run(begun, messages)
        finally:
            self._history.putting -= 1
        for record in records:
            record.ended_us, record.outcome = self._world.now_us, CONFIRMED

    async def receive(self, queue: str, ask: Ask, visibility_ms: int) -> list[Delivery]:
        asked_us = self._world.now_us
        deliveries = await self.batching.receive(ACCOUNT, queue, ask)
        for delivery in deliveries:
            body = delivery.body.decode().partition("~")[0]
            self._history.deliveries.append(
                Delivered(
                    queue, self._process.label, str(delivery.id), body, delivery.deliveries, delivery.receipt,
                    asked_us, self._world.now_us, visibility_ms, delivery.origin or "", delivery.group or "",
                    delivery.priority,
                )
            )
        return deliveries

    async def ack(self, queue: str, receipts: list[str]) -> list[AngelhairError | None]:
        started_us = self._world.now_us
        outcomes = await self.batching.ack(ACCOUNT, queue, receipts)
        for receipt, outcome in zip(receipts, outcomes, strict=True):
            denied = isinstance(outcome, Unavailable)
            self._history.acks.append(Settled(queue, receipt, started_us, self._world.now_us, judged(outcome), denied))
        return outcomes

    async def change(self, record: Changed, body: bytes | None) -> None:
        wanted = WantedChange(record.receipt, record.visibility_ms, body)
        (outcome,) = await self.batching.change(ACCOUNT, record.queue, [wanted])
        record.outcome = judged(outcome)
        if outcome is not None:
            raise outcome


def judged(outcome: object) -> str:
    """What an outcome says about whether the thing happened."""
    if isinstance(outcome, OutcomeUnknown):
        return UNKNOWN
    return REFUSED if isinstance(outcome, Exception) else CONFIRMED
