"""Directed attacks, for what seeds bring about too seldom to wait for. Each says whether the engine withstood it."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace

from angelhair import limits
from angelhair.clock import Moment
from angelhair.engine.engine import Engine
from angelhair.engine.ledger import Run
from angelhair.engine.schema import BAG_MESSAGES, KEYS, LEDGER, STATES
from angelhair.errors import AngelhairError, StoreError
from angelhair.model import DATABAG, Ask, Delivery, MessageId, NewMessage, QueueSettings, WantedChange
from angelhair.stores.memory import MemoryStore
from tests.faults import NEVER_SENT, FaultyStore

ACCOUNT, QUEUE, DEAD = "account", "work", "dead"
SETTINGS = QueueSettings(
    bucket_size=2, repair_timeout_ms=limits.REPAIR_TIMEOUT_MINIMUM_MS, visibility_timeout_ms=1_000, retention_ms=None
)
SECONDS = 90
"""How long a server works on its own: longer than it takes until everything that can be found is found."""


PROMPTLY_SECONDS = 20
"""Several times the time-out of a claim, and less than the worker's own pauses between two looks."""


class Dial:
    """A clock that the attack turns."""

    def __init__(self) -> None:
        self.now_ms = 1_750_000_000_000

    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)


class Counting:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def fresh(self) -> str:
        return f"{next(self._numbers):032x}"

    def secret(self) -> bytes:
        return bytes.fromhex(self.fresh())


class World:
    """Two servers on one store. The second one's machine is suspended, clocks and all, while the first one works."""

    def __init__(self) -> None:
        self.dial, self.second_dial, identities = Dial(), Dial(), Counting()
        self.store = FaultyStore(MemoryStore(lambda: self.dial.now_ms))
        self.first = Engine(self.store, identities, self.dial)
        self.second = Engine(self.store, identities, self.second_dial)
        self.delivered: set[bytes] = set()

    async def take(self, server: Engine) -> list[Delivery]:
        (found,) = await server.receive(ACCOUNT, QUEUE, [Ask(10)])
        assert not isinstance(found, AngelhairError)
        self.delivered |= {delivery.body for delivery in found}
        return found

    async def work(self, server: Engine, seconds: int) -> None:
        """The server takes its background steps, and its consumers ack whatever they get."""
        for _ in range(seconds):
            self.dial.now_ms += 1_000
            await server.step(ACCOUNT, QUEUE)
            found = await self.take(server)
            if found:
                await server.ack(ACCOUNT, QUEUE, [delivery.receipt for delivery in found])


async def late_put_meets_finish() -> bool:
    """R1: a put that slept wakes up between the last look into its bucket and the write that finishes it.

    The body has to land after the worker's look, and its admission before the worker's next write: milliseconds.
    """
    world = World()
    worker, sleeper = world.first, world.second
    await worker.create_queue(ACCOUNT, QUEUE, SETTINGS)
    reservation = await sleeper.reserve(ACCOUNT, QUEUE, 1)
    await worker.put(ACCOUNT, QUEUE, [NewMessage(b"1"), NewMessage(b"2"), NewMessage(b"3")])
    answers: list[object] = []

    async def wake_up() -> None:
        answers.extend(await sleeper.put_reserved(reservation, [NewMessage(b"late")]))

    world.store.next("change", STATES, wake_up, when=lambda change: "finished" in change.set_flags)
    await world.work(worker, SECONDS)
    assert len(answers) == 1 and isinstance(answers[0], MessageId), "nothing was finished, or the put was refused"
    assert {b"1", b"2", b"3"} <= world.delivered
    return b"late" in world.delivered


async def key_meets_the_end_of_its_epoch() -> bool:
    """R1, R10: a put with a key has named an id, and before anything is written there its epoch is finished.

    Seeds bring that about by purges, and of what is purged nobody can say whether it was lost.
    """
    world = World()
    worker, sleeper = world.first, world.second
    await worker.create_queue(ACCOUNT, QUEUE, QueueSettings(kind=DATABAG, visibility_timeout_ms=1_000))

    async def purge() -> None:
        await worker.purge(ACCOUNT, QUEUE)

    world.store.next("write", BAG_MESSAGES, purge)
    (answer,) = await sleeper.put(ACCOUNT, QUEUE, [NewMessage(b"late", key="key")])
    assert isinstance(answer, MessageId)
    await world.work(worker, PROMPTLY_SECONDS)
    return b"late" in world.delivered


async def death_with_a_claim() -> bool:
    """R3: a server claims a message, closes its bucket and is never heard of again; nobody else has business there.

    Seeds nearly always give the survivors a reason of their own to look into it. Here the worker is kept busy by older
    buckets in which nothing happens, and would come to look long after the claim's time-out.
    """
    world = World()
    survivor, mortal = world.first, world.second
    await survivor.create_queue(ACCOUNT, QUEUE, replace(SETTINGS, bucket_size=1))
    older = limits.LOW_BUCKETS + 4
    await survivor.put(ACCOUNT, QUEUE, [NewMessage(b"older") for _ in range(older)])
    hidden = 0
    while hidden < older:
        (found,) = await survivor.receive(ACCOUNT, QUEUE, [Ask(older, 86_400_000)])
        assert isinstance(found, list) and found
        hidden += len(found)
    await survivor.put(ACCOUNT, QUEUE, [NewMessage(b"claimed"), NewMessage(b"and")])
    claimed = await world.take(mortal)
    assert {delivery.body for delivery in claimed} == {b"claimed", b"and"}
    assert (await mortal.marks(ACCOUNT, QUEUE))[0].reader > older
    world.delivered.clear()
    await world.work(survivor, PROMPTLY_SECONDS)
    return b"claimed" in world.delivered


async def extended_while_it_is_moved() -> bool:
    """R7, R13: the last delivery that is allowed has lapsed, and a server is about to move the message to the dead
    letters; its consumer, on another server, is told that it has ten minutes more."""
    world = World()
    mover, other = world.first, world.second
    await mover.create_queue(ACCOUNT, DEAD, SETTINGS)
    await mover.create_queue(ACCOUNT, QUEUE, replace(SETTINGS, max_deliveries=1, dead_letter_queue=DEAD))
    await mover.put(ACCOUNT, QUEUE, [NewMessage(b"poison")])
    (delivery,) = await world.take(mover)
    answers: list[object] = []

    async def extend() -> None:
        world.second_dial.now_ms = world.dial.now_ms
        answers.extend(await other.change(ACCOUNT, QUEUE, [WantedChange(delivery.receipt, 600_000)]))

    world.store.next("change", STATES, extend, when=lambda change: "moving_to" in (change.rows[0].values or {}))
    await world.work(mover, PROMPTLY_SECONDS)
    assert answers == [None], "nothing was to be moved, or the extension was refused"
    (dead,) = await mover.receive(ACCOUNT, DEAD, [Ask(1)])
    return dead == [] and await other.ack(ACCOUNT, QUEUE, [delivery.receipt]) == [None]


async def late_put_meets_drop() -> bool:
    """R1, R14: a put wakes up when its bucket has been settled without it, finished and dropped."""
    world = World()
    worker, sleeper = world.first, world.second
    await worker.create_queue(ACCOUNT, QUEUE, replace(SETTINGS, history_ms=0))
    reservation = await sleeper.reserve(ACCOUNT, QUEUE, 1)
    await worker.put(ACCOUNT, QUEUE, [NewMessage(b"1"), NewMessage(b"2"), NewMessage(b"3")])
    await world.work(worker, SECONDS)
    assert (await worker.marks(ACCOUNT, QUEUE))[0].dropped > 0
    (answer,) = await sleeper.put_reserved(reservation, [NewMessage(b"late")])
    assert isinstance(answer, MessageId)
    await world.work(worker, SECONDS)
    return b"late" in world.delivered


async def run_tried_again_after_it_was_given_out() -> bool:
    """R10: a writer dies before the ledger says that its run is in the queue; all of it is given out and its buckets
    are finished, and the queue is purged, before the run is tried again. Without the purge the states tell who tries
    to admit it once more."""
    world = World()
    worker, mortal = world.first, world.second
    await worker.create_queue(ACCOUNT, QUEUE, replace(SETTINGS, history_ms=0))
    batch = [NewMessage(b"%d" % number) for number in range(4)]
    run = Run("writer", 0, len(batch), "digest", 86_400_000)
    world.store.next(
        "change", LEDGER, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=1_000
    )
    begun = await mortal.begin_run(ACCOUNT, QUEUE, run)
    assert begun is not None
    with suppress(StoreError):
        await mortal.finish_run(begun, batch)
    world.store.heal()
    await world.work(worker, SECONDS)
    assert world.delivered == {message.body for message in batch}
    assert (await worker.marks(ACCOUNT, QUEUE))[0].repair == 2
    await worker.purge(ACCOUNT, QUEUE)
    world.delivered.clear()
    again = await worker.begin_run(ACCOUNT, QUEUE, run)
    assert again is not None
    await worker.finish_run(again, batch)
    await world.work(worker, SECONDS)
    return not world.delivered


async def purged_between_look_and_claim() -> bool:
    """R10: a message's key is pending; a receive has looked and is about to claim it when the queue is purged, and the
    same put comes again, for which the message is gone."""
    world = World()
    worker, receiver = world.first, world.second
    await worker.create_queue(ACCOUNT, QUEUE, SETTINGS)
    batch = [NewMessage(b"m", key="key")]
    world.store.next(
        "change", KEYS, NEVER_SENT, when=lambda change: change.rows[0].values["status"] == "committed", times=1_000
    )
    await worker.put(ACCOUNT, QUEUE, batch)
    world.store.heal()

    async def meanwhile() -> None:
        await worker.purge(ACCOUNT, QUEUE)
        await worker.put(ACCOUNT, QUEUE, batch)

    world.store.next("change", STATES, meanwhile, when=lambda change: bool(change.rows))
    found = {delivery.id for delivery in await world.take(receiver)}
    for _ in range(PROMPTLY_SECONDS):
        world.dial.now_ms += 1_000
        await worker.step(ACCOUNT, QUEUE)
        found.update(delivery.id for delivery in await world.take(worker))
    return len(found) == 1


async def suspended_putter_meets_sealed_lane() -> bool:
    """R11: a server remembers a lane that was sealed, read to its end and retired while it was suspended."""
    world = World()
    worker, sleeper = world.first, world.second
    await worker.create_queue(ACCOUNT, QUEUE, replace(SETTINGS, lanes=2))
    await sleeper.put(ACCOUNT, QUEUE, [NewMessage(b"1")])
    await sleeper.put(ACCOUNT, QUEUE, [NewMessage(b"2")])
    await worker.change_queue(ACCOUNT, QUEUE, {"lanes": 1})
    await world.work(worker, SECONDS)
    assert world.delivered == {b"1", b"2"}
    for body in (b"3", b"4"):
        (answer,) = await sleeper.put(ACCOUNT, QUEUE, [NewMessage(body)])
        assert isinstance(answer, MessageId)
    await world.work(worker, SECONDS)
    return {b"3", b"4"} <= world.delivered
