"""Simulated clients: producers, consumers of every temper, and an operator who meddles."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from angelhair.engine.ledger import Run
from angelhair.engine.runs import Bodies
from angelhair.errors import AngelhairError, InvalidRequest
from angelhair.model import FIFO, Ask, Delivery, NewMessage, QueueSettings
from angelhair.simulation.fair_variation import FLOOD
from angelhair.simulation.history import Changed, Cleared, History, Put
from angelhair.simulation.network import NoAnswer, ask
from angelhair.simulation.process import Process
from angelhair.simulation.servers import ACCOUNT, Server, judged
from angelhair.simulation.variation import Variation
from angelhair.simulation.world import World

T = TypeVar("T")

REQUEST_TIMEOUT_MS = 8_000


class Clients:
    """All clients of a world: they share one process that nothing ever happens to."""

    def __init__(
        self,
        world: World,
        servers: dict[str, Server],
        history: History,
        queue: str,
        variation: Variation,
    ) -> None:
        self.world = world
        self.process: Process = world.start("clients", skew_us=0)
        self.servers = servers
        self.history = history
        self.queue = queue
        self.settings = variation.settings
        self.keyed_share = variation.keyed_share
        self.keys_in_runs = variation.keys_in_runs
        self.groups = variation.groups
        self.runs_in_order = variation.runs_in_order
        self.tenants = variation.tenants
        self.random = world.random
        self.draining = False
        self._bodies = 0

    async def request(self, work: Callable[[Server], Coroutine[Any, Any, T]]) -> T:
        """One request to any server. Raises what the server answered, or `NoAnswer`."""
        self.history.operations += 1
        name = self.random.choice(list(self.servers))
        server = self.servers[name]
        return await ask(
            self.world.faults, self.process, self.world.processes[name], lambda: work(server), REQUEST_TIMEOUT_MS
        )

    # ---- producers

    async def produce(
        self, messages: int, sizes: tuple[int, ...], delays_ms: tuple[int, ...], rest_ms: int
    ) -> None:
        while messages > 0:
            count = min(messages, self.random.choice(sizes))
            messages -= count
            await self._put(count, delays_ms)
            await self.process.sleep(self.random.uniform(0, 2 * rest_ms))

    async def _put(self, count: int, delays_ms: tuple[int, ...]) -> None:
        keyed = self.random.random() < self.keyed_share
        if self.settings.kind == FIFO:
            if keyed and count > 1 and self.runs_in_order:
                await self._put_run_in_order(count)
                return
            await self._put_in_order(count, self.random.randint(2, 4) if keyed else 1)
            return
        if keyed and count > 1:
            await self._put_run(count, delays_ms)
            return
        batch = []
        for _ in range(count):
            self._bodies += 1
            delay = self.random.choice(delays_ms)
            message = NewMessage(b"m%d" % self._bodies, delay_ms=delay, key=f"k{self._bodies}" if keyed else None)
            batch.append(self._of_a_tenant(message) if self.tenants else message)
        for _ in range(self.random.randint(2, 4) if keyed else 1):
            await self._put_once(batch)

    def _of_a_tenant(self, message: NewMessage) -> NewMessage:
        """Most are of one of them. Priorities beyond what the queue has are asked for, too."""
        group = FLOOD if self.random.random() < 0.75 else f"t{self.random.randrange(self.tenants)}"
        return message._replace(group=group, priority=self.random.randint(0, self.settings.priorities))

    async def _put_in_order(self, count: int, tries: int) -> None:
        """To a fifo queue: each has a group and a key."""
        batch = []
        for _ in range(count):
            self._bodies += 1
            group = f"g{self.random.randrange(self.groups)}"
            batch.append(NewMessage(b"m%d" % self._bodies, key=f"k{self._bodies}", group=group))
        for _ in range(tries):
            await self._put_once(batch)

    async def _put_once(self, batch: list[NewMessage]) -> None:
        records = [
            Put(
                self.queue, message.body.decode(), message.key, self._delay_ms(message), self.world.now_us,
                group=message.group or "", priority=message.priority,
            )
            for message in batch
        ]
        await self._ask_to_put(records, lambda server: server.put(self.queue, batch, records))

    def _delay_ms(self, message: NewMessage) -> int:
        return self.settings.delay_ms if message.delay_ms is None else message.delay_ms

    async def _ask_to_put(self, records: list[Put], put: Callable[[Server], Coroutine[Any, Any, Any]]) -> None:
        self.history.puts.extend(records)
        try:
            await self.request(put)
        except AngelhairError as error:
            for record in records:
                record.ended_us, record.outcome = self.world.now_us, judged(error)
        except NoAnswer:
            # The server may be at it still; what it answers in the end, it writes down itself.
            return

    async def _put_run(self, count: int, delays_ms: tuple[int, ...]) -> None:
        """Messages that are put once, tried several times; the tries may meet, and any may end half way."""
        writer, first = f"w{self._bodies}", self._bodies + 1
        self._bodies += count
        delay_ms = self.random.choice(delays_ms)
        batch: Sequence[NewMessage]
        batch = [NewMessage(b"m%d" % number, delay_ms=delay_ms) for number in range(first, first + count)]
        if self.keys_in_runs and self.random.random() < 0.7:
            share = self.random.random()
            batch = [
                message._replace(key=f"{writer}.{index}") if self.random.random() < share else message
                for index, message in enumerate(batch)
            ]
        elif not delay_ms and self.random.random() < 0.5:
            batch = Bodies([message.body for message in batch])
        await self._try_run(writer, batch)

    async def _put_run_in_order(self, count: int) -> None:
        """Of a fifo queue: some have a key of their own."""
        writer, first = f"w{self._bodies}", self._bodies + 1
        self._bodies += count
        share = self.random.choice((0, 0.5, 1))
        batch = [
            NewMessage(
                b"m%d" % number, key=f"k{number}" if self.random.random() < share else None,
                group=f"g{self.random.randrange(self.groups)}",
            )
            for number in range(first, first + count)
        ]
        await self._try_run(writer, batch)

    async def _try_run(self, writer: str, batch: Sequence[NewMessage]) -> None:
        run = Run(writer, 0, len(batch), writer, self.settings.dedup_window_ms)
        for _ in range(self.random.randint(2, 4)):
            records = [
                Put(
                    self.queue, message.body.decode(), f"{writer}.{index}", self._delay_ms(message), self.world.now_us,
                    group=message.group or "",
                )
                for index, message in enumerate(batch)
            ]
            await self._ask_to_put(records, partial(self._on_run, run, batch, records))
            await self.process.sleep(self.random.choice((0, 0, 0, 2_000)))

    async def _on_run(self, run: Run, batch: Sequence[NewMessage], records: list[Put], server: Server) -> None:
        await server.put_run(self.queue, run, batch, records)

    # ---- consumers

    async def consume(self, queue: str, rest_ms: int, manners: tuple[str, ...]) -> None:
        while not self.draining:
            messages = self.random.choice((1, 1, 2, 3, 10))
            visibility = self.random.choice((None, None, self.settings.visibility_timeout_ms // 2))
            for delivery in await self._receive(queue, messages, visibility):
                await self._treat(queue, delivery, self.random.choice(manners), rest_ms)
            await self.process.sleep(self.random.uniform(0, 2 * rest_ms))

    async def _receive(self, queue: str, messages: int, visibility_ms: int | None) -> list[Delivery]:
        hidden_ms = self.settings.visibility_timeout_ms if visibility_ms is None else visibility_ms
        try:
            found = await self.request(lambda server: server.receive(queue, Ask(messages, visibility_ms), hidden_ms))
        except (AngelhairError, NoAnswer):
            return []
        for delivery in found:
            self.history.heard.add((queue, delivery.body.decode().partition("~")[0]))
        return found

    async def _treat(self, queue: str, delivery: Delivery, manner: str, rest_ms: int) -> None:
        hidden_ms = self.settings.visibility_timeout_ms
        if manner == "forget":
            return
        if manner == "late":
            await self.process.sleep(hidden_ms * self.random.uniform(0.9, 1.5))
        elif manner in ("extend", "release", "rewrite"):
            visibility = {"extend": 2 * hidden_ms, "release": 0, "rewrite": None}[manner]
            record = Changed(queue, delivery.receipt, visibility, self.world.now_us)
            self.history.changes.append(record)
            body = delivery.body.partition(b"~")[0] + b"~%d" % delivery.deliveries if manner == "rewrite" else None
            try:
                await self.request(lambda server: server.change(record, body))
            except (AngelhairError, NoAnswer):
                pass
            if manner == "release":
                return
        elif manner == "slow":
            await self.process.sleep(self.random.uniform(0, rest_ms * 3))
        for _ in range(2 if manner == "twice" else 1):
            await self._ack(queue, delivery)

    async def _ack(self, queue: str, delivery: Delivery) -> None:
        outcome: Exception | None
        self.history.asked_acks[delivery.receipt] += 1
        try:
            (outcome,) = await self.request(lambda server: server.ack(queue, [delivery.receipt]))
        except (AngelhairError, NoAnswer) as error:
            outcome = error
        if isinstance(outcome, InvalidRequest) and not self.history.cleared:
            self.history.bad_receipts.append(f"{delivery.receipt}: {outcome}")

    async def drain(self, queue: str) -> None:
        """Takes and acks whatever comes until it is told to stop."""
        while self.draining:
            found = await self._receive(queue, 10, None)
            for delivery in found:
                await self._ack(queue, delivery)
            await self.process.sleep(20 if found else 400)

    # ---- an operator

    async def operate(self, deeds: tuple[str, ...], rest_ms: int) -> None:
        while not self.draining:
            await self.process.sleep(self.random.uniform(0.5, 1.5) * rest_ms)
            if self.draining:
                return
            deed = self.random.choice(deeds)
            try:
                await self._do(deed)
            except (AngelhairError, NoAnswer):
                continue

    async def _do(self, deed: str) -> None:
        queue = self.queue
        if deed == "lanes":
            lanes = self.random.randint(1, 3)
            await self.request(lambda server: self._on(server, "change_queue", queue, {"lanes": lanes}))
        elif deed in ("priorities", "fair"):
            value = self.random.randint(1, 4) if deed == "priorities" else self.random.random() < 0.5
            await self.request(lambda server: self._on(server, "change_queue", queue, {deed: value}))
        elif deed == "look":
            await self.request(lambda server: self._on(server, "stats", queue))
            await self.request(lambda server: self._on(server, "peek", queue, 20))
        elif deed == "move back":
            await self.request(lambda server: self._on(server, "move_back", queue, 0, 0))
        elif deed == "redrive":
            await self.request(lambda server: self._on(server, "redrive", "dead", None, 10))
        elif deed in ("purge", "delete"):
            await self._clear(deed)

    async def _clear(self, deed: str) -> None:
        cleared = Cleared(self.queue, self.world.now_us, None, deed == "delete")
        self.history.cleared.append(cleared)
        await self.request(lambda server: self._on(server, "purge" if deed == "purge" else "delete_queue", self.queue))
        cleared.ended_us = self.world.now_us
        if deed == "delete":
            await self.make_queue(self.queue, self.settings)

    async def make_queue(self, queue: str, settings: QueueSettings) -> None:
        """Creates a queue and does not give up."""
        while True:
            try:
                await self.request(lambda server: self._on(server, "create_queue", queue, settings))
                return
            except InvalidRequest:
                # No patience helps against that: the world is not as it was meant.
                raise
            except (AngelhairError, NoAnswer):
                await self.process.sleep(300)

    async def _on(self, server: Server, verb: str, queue: str, *arguments: Any) -> Any:
        return await getattr(server.engine, verb)(ACCOUNT, queue, *arguments)
