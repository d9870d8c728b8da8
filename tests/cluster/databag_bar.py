"""The bar for databags, played on servers that share one store: 1,000 partitions, eight consumers over HTTP; first
while nothing happens, then with one server killed -9 and another one added under load (A1, D2, D3, D7)."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from angelhair import AsyncClient
from angelhair.client import Message
from angelhair.engine.databag.cut import cut
from angelhair.engine.store import Store
from angelhair.errors import StoreError
from bench.processes import Running
from tests.cluster.databag_watch import Received, Watch, number_of

PARTITIONS = 1_000
CONSUMERS = 8
PRODUCERS = 2

BATCH = 100
"""What a consumer takes at a time, and deletes at a time."""

PUT_BATCH = 500

PAUSE_SECONDS = 0.05
"""After an error of the store, and between two looks at what has come about."""

LATE_BATCHES = 2
"""Batches whose delete is dated before they were served, so that there is something to count."""

SHOWN_COMPLAINTS = 5

TOP_UPS, TOP_UP = 5, 4
"""Times that about every partition is served once more, so that the servers count what they served last; and what is
put for each partition then."""


@dataclass(frozen=True)
class Bar:
    messages: int
    """In each of the two plays."""
    visibility_seconds: float = 6.0
    """While nothing happens: longer than any batch takes on a busy machine, or it would be served twice."""
    short_seconds: float = 3.0
    """While a server dies: what its consumers were about to be given comes back after that."""
    put_seconds: float = 6.0
    """Over which messages are put while a server dies and another one comes."""
    patience_seconds: float = 120.0
    """For all of a play's messages to be delivered and deleted."""


@dataclass
class Report:
    queue: str
    messages: int
    put_seconds: float
    seconds: float
    """From the first put to the last delete."""
    delivered_again: int
    """To a consumer that had seen it, or another."""
    servings: int
    """Locks that were seen in the store."""
    shown: int
    """Messages that were served although they had been deleted, by the rows in the store."""
    counted: int
    """And by the servers."""
    by_server: list[int]
    complaints: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"databag: {self.messages:,} messages in {self.seconds:.1f} s, put in {self.put_seconds:.1f} s; "
            f"{self.delivered_again} delivered again; {self.servings:,} locks seen in the store; {self.shown} "
            f"served after their delete, {self.counted} counted; by server {self.by_server}"
        )


class Play:
    """Producers and consumers at several servers, and what they were told."""

    def __init__(self, queue: str, bar: Bar, watch: Watch) -> None:
        self.queue = queue
        self._bar = bar
        self.watch = watch
        self.clients: list[AsyncClient] = []
        self.gone: set[int] = set()
        self.wanted = 0
        """Bodies are the numbers below."""
        self.confirmed: set[str] = set()
        self.bodies: set[int] = set()
        """Those that were delivered."""
        self.seen: Counter[str] = Counter()
        self.deleted: set[str] = set()
        self.answers: list[Received] = []
        self.put_all = False
        self.put_seconds = 0.0

    def join(self, server: Running) -> None:
        self.clients.append(AsyncClient(server.url, retry=None))

    async def close(self) -> None:
        for client in self.clients:
            await client.close()

    @property
    def done(self) -> bool:
        return self.put_all and self.confirmed <= self.deleted

    def _server_for(self, number: int) -> int:
        living = [server for server in range(len(self.clients)) if server not in self.gone]
        return living[number % len(living)]

    async def put(self, count: int, seconds: float = 0.0) -> None:
        """So many more, evenly over so much time."""
        first, self.wanted = self.wanted, self.wanted + count
        began = time.monotonic()
        portions = iter(range(first, first + count, PUT_BATCH))

        async def produce(number: int) -> None:
            for start in portions:
                due = began + seconds * (start - first) / count
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self._put_surely(number, range(start, min(start + PUT_BATCH, first + count)))

        await asyncio.gather(*(produce(number) for number in range(PRODUCERS)))
        self.put_seconds += time.monotonic() - began

    async def _put_surely(self, number: int, bodies: Sequence[int]) -> None:
        """What was not confirmed is put again: if it was there after all it is two messages."""
        while bodies:
            client = self.clients[self._server_for(number)]
            outcomes = await client.put_many(self.queue, [str(body) for body in bodies])
            self.confirmed.update(outcome.id for outcome in outcomes if outcome.id is not None)
            bodies = [body for body, outcome in zip(bodies, outcomes, strict=True) if outcome.id is None]
            if bodies:
                number += 1
                await asyncio.sleep(PAUSE_SECONDS)

    async def consume(self, number: int, late_batches: int = 0) -> None:
        while not self.done:
            server = self._server_for(number)
            asked = time.time()
            try:
                given = await self.clients[server].receive(self.queue, BATCH, wait=1)
            except StoreError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            numbers = tuple(number_of(message.id) for message in given)
            self.answers.append(Received(asked, time.time(), server, numbers))
            self.seen.update(message.id for message in given)
            self.bodies.update(int(message.text) for message in given)
            if given and late_batches:
                late_batches -= 1
                await self.watch.delete_late(numbers)
                self.deleted.update(message.id for message in given)
            else:
                await self._delete_surely(number, given)

    async def _delete_surely(self, number: int, messages: Sequence[Message]) -> None:
        left = list(messages)
        while left:
            failures = await self.clients[self._server_for(number)].ack_many(left)
            failed = {failure.receipt.receipt for failure in failures}
            self.deleted.update(message.id for message in left if message.receipt not in failed)
            left = [message for message in left if message.receipt in failed]
            if left:
                await asyncio.sleep(PAUSE_SECONDS)

    async def until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            await asyncio.sleep(PAUSE_SECONDS)

    async def run(self, producing: Coroutine[Any, Any, None] | None = None, late_batches: int = 0) -> None:
        """Until all that is put is delivered and deleted."""
        try:
            async with asyncio.timeout(self._bar.patience_seconds), asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self.watch.go_on())
                if producing is not None:
                    tasks.create_task(producing)
                late = [late_batches, *[0] * (CONSUMERS - 1)]
                await asyncio.wait([tasks.create_task(self.consume(*each)) for each in enumerate(late)])
                watching.cancel()
        except TimeoutError:
            left = len(self.confirmed - self.deleted)
            seconds = self._bar.patience_seconds
            raise AssertionError(f"{left} messages were not delivered and deleted in {seconds:g} s") from None
        await self.watch.look()

    def report(self, seconds: float, deleted: Mapping[int, int | None]) -> Report:
        by_server: Counter[int] = Counter()
        for answer in self.answers:
            by_server[answer.server] += len(answer.numbers)
        undeleted = [identity for identity in self.confirmed if deleted.get(number_of(identity)) is None]
        complaints = self.watch.served_while_locked(self.answers)[:SHOWN_COMPLAINTS]
        if undeleted:
            complaints.append(f"{len(undeleted)} confirmed messages are not deleted in the store, as {undeleted[0]}")
        if self.bodies != set(range(self.wanted)):
            complaints.append(f"{self.wanted - len(self.bodies)} messages were never delivered")
        again = sum(self.seen.values()) - len(self.seen)
        return Report(
            self.queue, self.wanted, self.put_seconds, seconds, again, len(self.watch.servings),
            self.watch.shown(deleted), self.watch.counted, [by_server[server] for server in range(len(self.clients))],
            complaints,
        )


def make(server: Running, visibility_seconds: float) -> str:
    queue = f"bar-{uuid.uuid4().hex[:8]}"
    server.create_queue(
        queue, kind="databag", min_partitions=PARTITIONS, max_partitions=PARTITIONS,
        visibility_timeout=visibility_seconds,
    )
    return queue


def partitions_of(server: Running, queue: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.call("GET", f"/queues/{queue}"))["partitions"]
    return found


@asynccontextmanager
async def playing(
    servers: Sequence[Running], store: Store, bar: Bar, visibility_seconds: float
) -> AsyncIterator[Play]:
    queue = make(servers[0], visibility_seconds)
    play = Play(queue, bar, await Watch.over(store, queue))
    for server in servers:
        play.join(server)
    try:
        yield play
    finally:
        await play.close()


def failed(wanted: Mapping[str, bool]) -> list[str]:
    return [what for what, holds in wanted.items() if not holds]


async def play_quietly(servers: Sequence[Running], store: Store, bar: Bar) -> Report:
    """Nobody dies, no time-out passes: every message is delivered once, and nothing is counted."""
    async with playing(servers, store, bar, bar.visibility_seconds) as play:
        began = time.monotonic()
        await play.put(bar.messages)
        play.put_all = True
        await play.run()
        report = play.report(time.monotonic() - began, await play.watch.deleted())
    shown = [partitions_of(server, play.queue) for server in servers]
    locks = play.watch.servings.values()
    runs = {(run.first, run.last) for run in cut(PARTITIONS)}
    report.complaints += failed({
        "no consumer saw a message twice": report.delivered_again == 0,
        "the store shows no duplicate": report.shown == 0,
        "no duplicate is counted, whichever server is asked": {each["duplicates"] for each in shown} == {0},
        f"{PARTITIONS} partitions are in force everywhere": {each["count"] for each in shown} == {PARTITIONS},
        "what is locked is a partition": {(each.first, each.last) for each in locks} <= runs,
        "locks last for the time-out": {each.duration_ms for each in locks} == {round(bar.visibility_seconds * 1_000)},
        "the store had a lock for whatever was given": set().union(*(each.given for each in locks))
        == {number for answer in play.answers for number in answer.numbers},
        "every server has served": all(report.by_server),
    })
    return report


async def play_incidents(servers: Sequence[Running], add: Callable[[], Running], store: Store, bar: Bar) -> Report:
    """One is killed -9 and one is added, while messages are put and taken: nothing is lost, and what was served after
    its delete is counted."""
    async with playing(servers, store, bar, bar.short_seconds) as play:

        async def change_servers() -> None:
            await play.until(lambda: len(play.bodies) >= bar.messages // 4)
            servers[0].process.kill()
            play.gone.add(0)
            play.join(await asyncio.to_thread(add))

        async def produce() -> None:
            await asyncio.gather(change_servers(), play.put(bar.messages, bar.put_seconds))
            for _ in range(TOP_UPS):
                await play.until(lambda: play.confirmed <= play.deleted)
                await play.watch.look()
                if play.watch.shown(await play.watch.deleted()) <= play.watch.counted:
                    break
                await play.put(TOP_UP * PARTITIONS)
            play.put_all = True

        began = time.monotonic()
        await play.run(produce(), LATE_BATCHES)
        report = play.report(time.monotonic() - began, await play.watch.deleted())
    shown = [partitions_of(server, play.queue) for server in servers[1:]]
    report.complaints += failed({
        "there was something to count": report.shown > 0,
        f"{report.shown} served after their delete are shown, {report.counted} counted": report.shown <= report.counted,
        # Who deletes a message that came again leaves the later time in its row.
        "no more is counted than was shown at any time": report.counted <= report.shown + report.delivered_again,
        "whoever is asked says the same": {each["duplicates"] for each in shown} == {report.counted},
        "the one that was killed had served, and so has the one that came": all(report.by_server),
    })
    return report
