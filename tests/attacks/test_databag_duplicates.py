"""Attacks on the count of duplicates of databags (D7): what the store shows, and nobody looks at."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.catalog import load
from angelhair.engine.databag import ids
from angelhair.engine.databag.lock import given_ids
from angelhair.engine.engine import Engine
from angelhair.engine.schema import BAG_MESSAGES
from angelhair.engine.store import Span, Store
from angelhair.model import DATABAG, Ask, MessageId, NewMessage, QueueSettings
from tests.attacks.worlds import SteppedClock, new_world, played, server
from tests.faults import FaultyStore

SECOND_MS = 1_000
HIDE_MS = 30 * SECOND_MS


async def create(engine: Engine) -> None:
    settings = QueueSettings(
        kind=DATABAG, min_partitions=16, max_partitions=16, visibility_timeout_ms=HIDE_MS
    )
    await engine.create_queue("shop", "bag", settings)


async def put(engine: Engine, body: bytes) -> MessageId:
    (outcome,) = await engine.put("shop", "bag", [NewMessage(body)])
    assert isinstance(outcome, MessageId)
    return outcome


async def receive(engine: Engine) -> list[MessageId]:
    (found,) = await engine.receive("shop", "bag", [Ask(10)])
    assert isinstance(found, list)
    return [delivery.id for delivery in found]


async def duplicates(engine: Engine) -> int:
    return (await engine.partitions("shop", "bag")).duplicates


def block_of(message: MessageId) -> int:
    return ids.block_of(ids.slice_of(message.number))


async def shown(store: Store) -> int:
    """How many the store shows, by the rows of locks and of messages as they lie there."""
    queue = await load(store, "shop", "bag")
    assert queue is not None
    count = 0
    for block in range(limits.BAG_BLOCKS):
        (locks,) = await store.read([Span(places.bag_locks(queue.incarnation, block))])
        for row in locks.rows:
            for number in given_ids(row.values.get("given")):
                (found,) = await store.read([Span(places.bag_messages(queue.incarnation, block, 0), number, number)])
                deleted, served_at = found.rows[0].values.get("deleted"), row.values.get("served_at")
                count += isinstance(deleted, int) and isinstance(served_at, int) and deleted < served_at
    return count


async def serve_block(engine: Engine, clock: SteppedClock, block: int) -> None:
    """Something else of the block is put and served: the lock's row is overwritten."""
    clock.ms += HIDE_MS + SECOND_MS
    while block_of(await put(engine, b"next")) != block:
        pass
    while await receive(engine):
        pass


@played
async def test_d7_what_is_served_from_an_epoch_that_was_just_finished_is_counted() -> None:
    """A server has read a message, and is about to lock. Its delete is confirmed elsewhere, all that was put about then
    is deleted by that, and the epoch is finished: no lock's row names anything of it yet. Then the lock is taken, and
    the message given. Nobody looks at it again: an epoch that is finished counts as looked at."""
    clock, store = new_world()
    worker, faulty = server(store, clock), FaultyStore(store)
    late = server(faulty, clock)
    await create(worker)
    message = await put(worker, b"once")
    clock.ms += limits.BAG_EPOCH_AGE_MS

    async def deleted_and_finished() -> None:
        assert await worker.ack("shop", "bag", [str(message)]) == [None]
        clock.ms += 5
        await worker.step("shop", "bag")

    faulty.next(
        "read", BAG_MESSAGES, deleted_and_finished, after=True,
        when=lambda span: span.partition.key.split(".")[1] == str(block_of(message)),
    )
    assert await receive(late) == [message], "served after its delete was confirmed"
    assert await shown(store) == 1
    await serve_block(late, clock, block_of(message))
    clock.ms += limits.BAG_EPOCH_AGE_MS
    for _ in range(10):
        await worker.step("shop", "bag")
        clock.ms += 10 * SECOND_MS
    assert await duplicates(worker) == 1
