"""Queues for tests: several servers on one store, in a time that passes only when a test says so.

The same world stands on memory, on SQLite and on the real Cassandra. Its store says the world's time when it is asked
for the time; on Cassandra, which has a clock of its own, a thin wrapper says it instead. So years can pass in a test
there too; only what Cassandra itself times (the TTL of idempotency keys, write times) is on its own clock.

One store serves a whole session. Every test has an account of its own on it, so that tests never see each other.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine import catalog, places
from angelhair.engine.engine import Engine
from angelhair.engine.marks import Marks
from angelhair.engine.store import Partition, Row, Slice, Span, Store
from angelhair.errors import AngelhairError
from angelhair.model import Ask, Delivery, MessageId, NewMessage, QueueSettings, WantedChange
from angelhair.stores.memory import MemoryStore
from angelhair.stores.sqlite import open_store
from tests.faults import FaultyStore

START_MS = 1_700_000_000_000
"""When every world begins: some second in November 2023."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
YEAR = 365 * DAY

BUSY_STEPS = 200
"""Steps that a worker may take without a pause before a test calls it restless."""


class Dial:
    """The world's time: the true one, which no server has to believe."""

    def __init__(self) -> None:
        self.wall_ms = START_MS

    def now(self) -> Moment:
        return Moment(self.wall_ms, self.wall_ms)

    def now_ms(self) -> int:
        return self.wall_ms


class ServerClock:
    """One server's two clocks: a wall clock that may be wrong, and one that only measures waiting."""

    def __init__(self, dial: Dial, ahead_ms: int = 0) -> None:
        self._dial = dial
        self.ahead_ms = ahead_ms
        self.slept_ms = 0
        """How long the machine was suspended: its monotonic clock stood still meanwhile."""

    def now(self) -> Moment:
        true_ms = self._dial.wall_ms
        return Moment(true_ms + self.ahead_ms, true_ms - START_MS - self.slept_ms)


class TimedStore:
    """A store that lives in the world's time instead of its own."""

    def __init__(self, store: Store, dial: Dial) -> None:
        self._store = store
        self._dial = dial
        self.read, self.write, self.change = store.read, store.write, store.change
        self.drop, self.close = store.drop, store.close

    async def time_ms(self) -> int:
        return self._dial.wall_ms


class Identities:
    """Tokens that never repeat, within a run and between runs."""

    def __init__(self) -> None:
        self._end = uuid.uuid4().hex[:16]
        self._numbers = itertools.count(1)

    def fresh(self) -> str:
        return f"{next(self._numbers):016x}{self._end}"

    def secret(self) -> bytes:
        return bytes.fromhex(self.fresh())


@dataclass
class Session:
    """One store for all tests of a run, and the loop that it belongs to."""

    name: str
    store: Store
    dial: Dial
    run: Callable[[Coroutine[Any, Any, Any]], Any]
    identities: Identities = field(default_factory=Identities)


_keyspaces: list[str] = []


@contextmanager
def open_session(name: str, folder: Path) -> Iterator[Session]:
    dial = Dial()

    async def opening() -> Store:
        if name == "memory":
            return MemoryStore(dial.now_ms)
        if name == "sqlite":
            return await open_store(folder / "queues.db", clock=dial)
        from cluster.testing import connected_store, fresh_keyspace, shared_cluster

        # Schema changes take seconds: whoever comes first makes the keyspace, the others share it.
        if not _keyspaces:
            _keyspaces.append(await fresh_keyspace(shared_cluster()))
        return TimedStore(await connected_store(shared_cluster(), _keyspaces[0]), dial)

    with asyncio.Runner() as runner:
        store = runner.run(opening())
        try:
            yield Session(name, store, dial, runner.run)
        finally:
            runner.run(store.close())


class World:
    """One test's world: an account, a time, and as many servers as it wants."""

    def __init__(self, session: Session) -> None:
        self.name = session.name
        self.store = session.store
        self.dial = session.dial
        self.dial.wall_ms = START_MS
        self.identities = session.identities
        self.account = f"account-{session.identities.fresh()}"
        self.servers: list[Server] = []
        self.incarnations: set[str] = set()

    def server(self, *, ahead_ms: int = 0, store: Store | None = None) -> Server:
        server = Server(self, ServerClock(self.dial, ahead_ms), FaultyStore(store or self.store))
        self.servers.append(server)
        return server

    def wait(self, milliseconds: int) -> None:
        self.dial.wall_ms += milliseconds

    async def work(self, queue: str, milliseconds: int, servers: Sequence[Server], every_ms: int = SECOND) -> None:
        """Time passes while the servers do the queue's background work."""
        end_ms = self.dial.wall_ms + milliseconds
        while True:
            for server in servers:
                await server.step(queue)
            if self.dial.wall_ms >= end_ms:
                return
            self.dial.wall_ms = min(end_ms, self.dial.wall_ms + every_ms)

    # --- the truth ------------------------------------------------------------------------------------------------

    async def queue(self, name: str) -> catalog.Queue:
        queue = await catalog.load(self.store, self.account, name)
        assert queue is not None, f"there is no queue {name}"
        return queue

    async def marks(self, name: str, lane: int = 0) -> Marks:
        """Read by a server that remembers nothing."""
        engine = Engine(self.store, self.identities, ServerClock(self.dial))
        return (await engine.marks(self.account, name))[lane]

    async def bucket(self, name: str, bucket: int, lane: int = 0) -> tuple[Slice, dict[int, Row]]:
        """A bucket's states with their flags, and its bodies by id."""
        incarnation = (await self.queue(name)).incarnation
        states, bodies = await self.store.read(
            [Span(places.states(incarnation, lane, bucket)), Span(places.bodies(incarnation, lane, bucket))]
        )
        return states, {int(row.key): row for row in bodies.rows}

    async def dump(self) -> dict[tuple[str, str], tuple[dict[str, Any], dict[Any, dict[str, Any]]]]:
        """All of this world's that lies in the partitions which any of its servers has ever named."""
        partitions: dict[Partition, None] = {}
        for server in self.servers:
            partitions.update(server.store.touched)
        ordered = [item for item in partitions if item.key == self.account or item.key[:32] in self.incarnations]
        slices = await self.store.read([Span(partition) for partition in ordered]) if ordered else []
        return {
            (partition.table.name, partition.key): (
                dict(found.flags), {row.key: _said(row.values) for row in found.rows}
            )
            for partition, found in zip(ordered, slices, strict=True)
            if found.rows or any(value is not None for value in found.flags.values())
        }


class Server:
    """One engine with a memory of its own; short ways to say what tests say often."""

    def __init__(self, world: World, clock: ServerClock, store: FaultyStore) -> None:
        self.world = world
        self.clock = clock
        self.store = store
        self.engine = Engine(store, world.identities, clock)

    async def create(self, name: str, **settings: Any) -> catalog.Queue:
        queue, _ = await self.engine.create_queue(self.world.account, name, QueueSettings(**settings))
        self.world.incarnations.add(queue.incarnation)
        return queue

    async def graves(self) -> set[str]:
        """Incarnations that wait to be buried, everybody's."""
        (found,) = await self.store.read([Span(places.GRAVEYARD)])
        return {str(row.key) for row in found.rows}

    async def put_outcomes(self, name: str, messages: Iterable[NewMessage]) -> list[MessageId | AngelhairError]:
        return await self.engine.put(self.world.account, name, list(messages))

    async def put(self, name: str, *bodies: bytes, count: int = 1, **fields: Any) -> list[int]:
        """Puts messages that must be confirmed; their numbers."""
        messages = [NewMessage(body, **fields) for body in bodies or [b"-"] * count]
        return [succeeded(outcome).number for outcome in await self.put_outcomes(name, messages)]

    async def receive(self, name: str, count: int = 1, hide_ms: int | None = None) -> list[Delivery]:
        (outcome,) = await self.engine.receive(self.world.account, name, [Ask(count, hide_ms)])
        return succeeded(outcome)

    async def ack(self, name: str, *deliveries: Delivery) -> list[AngelhairError | None]:
        return await self.engine.ack(self.world.account, name, [delivery.receipt for delivery in deliveries])

    async def extend(self, name: str, delivery: Delivery, hide_ms: int) -> AngelhairError | None:
        (outcome,) = await self.engine.change(self.world.account, name, [WantedChange(delivery.receipt, hide_ms)])
        return outcome

    async def take(self, name: str, count: int = 1) -> list[Delivery]:
        """Receives and acks."""
        deliveries = await self.receive(name, count)
        if deliveries:
            assert await self.ack(name, *deliveries) == [None] * len(deliveries)
        return deliveries

    async def drain(self, name: str, count: int = 1_000) -> list[Delivery]:
        """Takes until there is nothing more."""
        taken: list[Delivery] = []
        while found := await self.take(name, count):
            taken += found
        return taken

    async def step(self, name: str) -> None:
        """Background work until it wants a pause."""
        for _ in range(BUSY_STEPS):
            if await self.engine.step(self.world.account, name) > limits.STEP_SOON_MS:
                return
        raise AssertionError("the worker never rests")

    async def work(self, name: str, milliseconds: int = 0, every_ms: int = SECOND) -> None:
        await self.world.work(name, milliseconds, [self], every_ms)

    async def bury(self) -> None:
        """Drops all that deleted queues held."""
        for _ in range(BUSY_STEPS):
            if not await self.engine.bury_step():
                return
        raise AssertionError("the graveyard never empties")


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """A column that is not there and one that is None are the same thing."""
    return {name: value for name, value in values.items() if value is not None}


def succeeded(outcome: Any) -> Any:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def numbers(deliveries: Iterable[Delivery]) -> list[int]:
    return [delivery.id.number for delivery in deliveries]


# --- fixtures, for the conftest of each folder ----------------------------------------------------------------------

STORES = ["memory", "sqlite", pytest.param("cassandra", marks=pytest.mark.cassandra)]


@pytest.fixture(scope="session", params=STORES)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(request.param, tmp_path_factory.mktemp("queues")) as opened:
        yield opened


@pytest.fixture
def world(session: Session) -> World:
    return World(session)


def run_in_session(function: pytest.Function) -> bool | None:
    """Runs an `async def` test on the loop of its session."""
    if not inspect.iscoroutinefunction(function.obj):
        return None
    arguments = {name: function.funcargs[name] for name in inspect.signature(function.obj).parameters}
    session: Session = function.funcargs["session"]
    session.run(function.obj(**arguments))
    return True
