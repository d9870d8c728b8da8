"""Attacks on the count of duplicates of databags (D7): what the store shows is counted, whoever died in between."""

from __future__ import annotations

from angelhair import limits
from angelhair.engine.schema import BAG_MESSAGES
from tests.attacks.test_databag_duplicates import (
    HIDE_MS,
    SECOND_MS,
    block_of,
    create,
    duplicates,
    put,
    receive,
    serve_block,
    shown,
)
from tests.attacks.worlds import HOUR_MS, SkewedClock, new_world, played, server
from tests.faults import FaultyStore


@played
async def test_d7_what_was_served_from_an_epoch_that_was_just_finished_is_counted_after_a_restart() -> None:
    """As in `test_databag_duplicates`: a message is read, deleted elsewhere, its epoch finished, and then it is locked
    and given. The store shows it: the lock's row names it, with a later time than that of its delete, which stays in
    the store for a day. But which epochs ended just now servers remember, and nobody writes down. All of them are
    deployed anew in the next seconds; whoever overwrites the lock's row then takes the epoch for one that somebody has
    counted."""
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
    new = server(store, clock)
    await serve_block(new, clock, block_of(message))
    clock.ms += limits.BAG_EPOCH_AGE_MS
    for _ in range(10):
        await new.step("shop", "bag")
        clock.ms += 10 * SECOND_MS
    assert await duplicates(new) == 1


@played
async def test_d7_it_is_counted_also_where_nothing_is_served_any_more() -> None:
    """The same, and then nobody asks: no serving overwrites the lock's row. The last moment at which the store shows it
    is when the epoch goes, with the time of the delete."""
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
    new = server(store, clock)
    for _ in range(30):
        clock.ms += HOUR_MS
        await new.step("shop", "bag")
    assert await duplicates(new) == 1


@played
async def test_d7_what_is_served_twice_and_after_its_delete_is_one_duplicate() -> None:
    """A server's clock is four seconds ahead, which is less than the clock error of all promises. It serves a message,
    and its lock says that it ends four seconds later than it does. Another watches it to its end, reads the message,
    and before it locks the message is deleted. It gives it: a second delivery, so one duplicate. It is counted when it
    is locked, as one that is served twice within a time-out; and again when that lock's row is overwritten, as one that
    was served after its delete."""
    clock, store = new_world()
    ahead, third, faulty = server(store, SkewedClock(clock, 4 * SECOND_MS)), server(store, clock), FaultyStore(store)
    late = server(faulty, clock)
    await create(ahead)
    message = await put(ahead, b"once")
    assert await receive(ahead) == [message]
    assert await receive(late) == [], "it has seen the lock"
    clock.ms += HIDE_MS

    async def deleted() -> None:
        assert await third.ack("shop", "bag", [str(message)]) == [None]
        clock.ms += 5

    faulty.next(
        "read", BAG_MESSAGES, deleted, after=True,
        when=lambda span: span.partition.key.split(".")[1] == str(block_of(message)),
    )
    assert await receive(late) == [message], "the second delivery, and the last"
    assert await duplicates(third) == 1
    await serve_block(late, clock, block_of(message))
    assert await duplicates(third) == 1
