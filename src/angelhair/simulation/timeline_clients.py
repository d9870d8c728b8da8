"""Simulated clients of a timeline: producers, consumers with and without a name, and an operator who meddles."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from angelhair.errors import AngelhairError
from angelhair.model import Ask, Delivery, NewMessage, QueueSettings
from angelhair.simulation.clients import REQUEST_TIMEOUT_MS
from angelhair.simulation.clocks import EPOCH_US
from angelhair.simulation.history import Changed, Cleared
from angelhair.simulation.network import NoAnswer, ask
from angelhair.simulation.scheduler import MICROSECONDS_PER_MILLISECOND
from angelhair.simulation.servers import ACCOUNT, judged
from angelhair.simulation.timeline_history import DuePut, TimelineHistory
from angelhair.simulation.timeline_servers import TimelineServer
from angelhair.simulation.timeline_variation import (
    HOUR_MS,
    HOURS,
    LATE,
    NOW,
    SECOND_MS,
    SOON,
    YEAR_MS,
    TimelineVariation,
)
from angelhair.simulation.world import World

T = TypeVar("T")
DEAD = "dead"
"""The queue of dead letters."""
RESHAPED_MOST = 6
"""How often the number of shards is changed: each change leaves some behind that every consumer has to look after."""
FAR_SPOTS = 3
"""Messages that are due in hours or years gather around so few moments: each is one more leap."""


class Consumer:
    """One that works on a timeline, for as long as it lives."""

    __slots__ = ("alive", "frozen", "home", "name")

    def __init__(self, name: str | None, home: str) -> None:
        self.name = name
        self.home = home
        """The server that it talks to."""
        self.alive = True
        self.frozen = False
        """It does nothing at all, not even touch its locks."""


class TimelineClients:
    """They share one process that nothing ever happens to."""

    def __init__(
        self, world: World, servers: dict[str, TimelineServer], history: TimelineHistory, queue: str,
        variation: TimelineVariation,
    ) -> None:
        self.world = world
        self.process = world.start("clients", skew_us=0)
        self.servers = servers
        self.history = history
        self.queue = queue
        self.variation = variation
        self.settings = variation.settings
        self.random = world.random
        self.draining = False
        self._bodies = 0
        self._names = 0
        self._reshaped = 0

    async def request(self, work: Callable[[TimelineServer], Coroutine[Any, Any, T]], home: str | None = None) -> T:
        """To that server, or any. Raises what it answered, or `NoAnswer`."""
        self.history.operations += 1
        name = home if home in self.servers else self.random.choice(list(self.servers))
        server = self.servers[name]
        return await ask(
            self.world.faults, self.process, self.world.processes[name], lambda: work(server), REQUEST_TIMEOUT_MS
        )

    # ---- producers

    async def produce(self, messages: int) -> None:
        base = self.variation.base
        while messages > 0:
            count = min(messages, self.random.choice(base.put_sizes))
            messages -= count
            await self._put([self._message() for _ in range(count)])
            await self.process.sleep(self.random.uniform(0, 2 * base.rest_ms))

    def _message(self) -> tuple[NewMessage, int]:
        """And in how many milliseconds from now it is due; below 0 for what should have been done before."""
        self._bodies += 1
        message = NewMessage(b"m%d" % self._bodies)
        when = self.random.choice(self.variation.dues)
        if when == NOW:
            return message, 0
        spot = self.random.randint(1, FAR_SPOTS)
        if when == LATE:
            offset_ms = -self.random.choice((1, SECOND_MS, 90 * SECOND_MS, HOUR_MS, YEAR_MS))
        elif when == SOON:
            offset_ms = self.random.randint(0, self.random.choice((SECOND_MS, 10 * SECOND_MS, 60 * SECOND_MS)))
            if self.random.random() < 0.3:
                return message._replace(delay_ms=offset_ms), offset_ms
        else:
            offset_ms = spot * (2 * HOUR_MS if when == HOURS else YEAR_MS) - self.world.now_ms
            offset_ms += self.random.randint(0, SECOND_MS)
        due_ms = (EPOCH_US + self.world.now_us) // MICROSECONDS_PER_MILLISECOND + offset_ms
        return message._replace(due_ms=due_ms), offset_ms

    async def _put(self, batch: list[tuple[NewMessage, int]]) -> None:
        now_us = self.world.now_us
        records = [
            DuePut(
                self.queue, message.body.decode(), None, message.delay_ms or 0, now_us,
                due_us=now_us + offset_ms * MICROSECONDS_PER_MILLISECOND, by_delay=message.due_ms is None,
            )
            for message, offset_ms in batch
        ]
        self.history.puts.extend(records)
        messages = [message for message, _ in batch]
        try:
            await self.request(lambda server: server.put(self.queue, messages, records))
        except AngelhairError as error:
            for record in records:
                record.ended_us, record.outcome = self.world.now_us, judged(error)
        except NoAnswer:
            # The server may be at it still; what it answers in the end, it writes down itself.
            return

    # ---- consumers

    async def consume(self, named: bool) -> None:
        """One life after the other."""
        while not self.draining:
            name = self._new_name() if named else None
            rounds = 0
            while not self.draining:
                consumer = Consumer(name, self.random.choice(list(self.servers)))
                if named:
                    self.process.spawn(self._keep(consumer))
                await self._live(consumer)
                consumer.alive = False
                rounds += 1
                await self.process.sleep(self.random.choice((0, self.settings.lock_ms, 3 * self.settings.lock_ms)))
                if rounds > 1 and self.random.random() < 0.5:
                    # Another one, and not the same that was started again.
                    break

    def _new_name(self) -> str:
        self._names += 1
        return f"consumer-{self._names}"

    async def _keep(self, consumer: Consumer) -> None:
        """Touches the locks, whatever the handlers are at."""
        while consumer.alive:
            if not consumer.frozen:
                await self._touch(consumer)
            await self.process.sleep(self.settings.lock_ms / 4)

    async def _touch(self, consumer: Consumer) -> None:
        name = consumer.name
        assert name is not None
        try:
            await self.request(lambda server: server.touch(self.queue, name), consumer.home)
        except (AngelhairError, NoAnswer):
            if self.random.random() < 0.3:
                consumer.home = self.random.choice(list(self.servers))

    async def _live(self, consumer: Consumer) -> None:
        base = self.variation.base
        while not self.draining:
            if self.random.random() < self.variation.wandering:
                consumer.home = self.random.choice(list(self.servers))
            found = await self._receive(self.queue, self.random.choice((1, 1, 2, 3, 10)), consumer)
            self.random.shuffle(found)
            for delivery in found:
                if not await self._treat(consumer, delivery, self.random.choice(self.variation.tempers)):
                    return
            if self.random.random() < self.variation.lives:
                if consumer.name is not None and self.random.random() < 0.7:
                    await self._leave(consumer)
                return
            await self.process.sleep(self.random.uniform(0, 2 * base.rest_ms))

    async def _leave(self, consumer: Consumer) -> None:
        name = consumer.name
        assert name is not None
        consumer.alive = False
        try:
            await self.request(lambda server: server.leave(self.queue, name), consumer.home)
        except (AngelhairError, NoAnswer):
            pass

    async def _receive(self, queue: str, messages: int, consumer: Consumer | None) -> list[Delivery]:
        hidden_ms = self.settings.visibility_timeout_ms
        wanted = Ask(messages, None, consumer=None if consumer is None else consumer.name)
        home = None if consumer is None else consumer.home
        try:
            found = await self.request(lambda server: server.receive(queue, wanted, hidden_ms), home)
        except (AngelhairError, NoAnswer):
            return []
        self.history.heard.update((queue, delivery.body.decode()) for delivery in found)
        return found

    async def _treat(self, consumer: Consumer, delivery: Delivery, temper: str) -> bool:
        """Whether the consumer lives on."""
        hidden_ms, lock_ms = self.settings.visibility_timeout_ms, self.settings.lock_ms
        if temper == "die":
            return False
        if temper == "forget":
            return True
        if temper in ("extend", "release", "aside"):
            visibility_ms = {"extend": 2 * hidden_ms, "release": 0, "aside": lock_ms + 5_000}[temper]
            await self._change(consumer, delivery, visibility_ms)
            if temper != "extend":
                return True
        elif temper == "late":
            await self.process.sleep(hidden_ms * self.random.uniform(0.9, 1.5))
        elif temper in ("hang", "freeze"):
            consumer.frozen = temper == "freeze"
            await self.process.sleep(lock_ms * self.random.uniform(0.7, 2.5))
            consumer.frozen = False
        elif temper == "slow":
            await self.process.sleep(self.random.uniform(0, self.variation.base.rest_ms * 3))
        for _ in range(2 if temper == "twice" else 1):
            await self._ack(self.queue, delivery, consumer.home)
        return True

    async def _change(self, consumer: Consumer, delivery: Delivery, visibility_ms: int) -> None:
        record = Changed(self.queue, delivery.receipt, visibility_ms, self.world.now_us)
        self.history.changes.append(record)
        try:
            await self.request(lambda server: server.change(record), consumer.home)
        except (AngelhairError, NoAnswer):
            return

    async def _ack(self, queue: str, delivery: Delivery, home: str | None) -> None:
        try:
            await self.request(lambda server: server.ack(queue, delivery), home)
        except (AngelhairError, NoAnswer):
            return

    # ---- the end

    async def drain(self, queue: str, home: str | None, named: bool = False) -> None:
        """Takes and acks whatever comes until it is told to stop, of one server or of all in turn."""
        consumer = Consumer(self._new_name() if named else None, home or next(iter(self.servers)))
        if named:
            self.process.spawn(self._keep(consumer))
        turn = 0
        while self.draining:
            names = list(self.servers)
            if home is None and not named:
                consumer.home = names[turn % len(names)]
                turn += 1
            found = await self._receive(queue, 10, consumer)
            for delivery in found:
                await self._ack(queue, delivery, consumer.home)
            await self.process.sleep(20 if found else 300)

    # ---- an operator

    async def operate(self, deeds: tuple[str, ...], rest_ms: int) -> None:
        while not self.draining:
            await self.process.sleep(self.random.uniform(0.5, 1.5) * rest_ms)
            if self.draining:
                return
            try:
                await self._do(self.random.choice(deeds))
            except (AngelhairError, NoAnswer):
                continue

    async def _do(self, deed: str) -> None:
        if deed == "lanes" and self._reshaped < RESHAPED_MOST:
            self._reshaped += 1
            lanes = self.random.randint(1, 4)
            await self.request(lambda server: server.engine.change_queue(ACCOUNT, self.queue, {"lanes": lanes}))
        elif deed == "look":
            for verb in ("stats", "shards"):
                await self.request(lambda server, verb=verb: getattr(server.engine, verb)(ACCOUNT, self.queue))  # type: ignore[misc]
            await self.request(lambda server: server.engine.peek(ACCOUNT, self.queue, 20))
        elif deed == "redrive":
            destination = self.random.choice((None, self.queue))
            await self.request(lambda server: server.engine.redrive(ACCOUNT, DEAD, destination, 10))
        elif deed == "delete":
            cleared = Cleared(self.queue, self.world.now_us, None, True)
            self.history.cleared.append(cleared)
            await self.request(lambda server: server.engine.delete_queue(ACCOUNT, self.queue))
            cleared.ended_us = self.world.now_us
            await self.make_queue(self.queue, self.settings)

    async def make_queue(self, queue: str, settings: QueueSettings) -> None:
        """Creates a queue and does not give up."""
        while True:
            try:
                await self.request(lambda server: server.engine.create_queue(ACCOUNT, queue, settings))
                return
            except (AngelhairError, NoAnswer):
                await self.process.sleep(300)
