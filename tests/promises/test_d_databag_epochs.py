"""D5, R1, R4, R15: epochs of databags: sealed, finished and dropped whole, with nothing lost that comes late."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import ids
from angelhair.engine.schema import BAG_EPOCHS, BAG_MESSAGES
from angelhair.engine.store import Row, Write
from angelhair.model import MessageId
from tests.promises.databags import (
    BLOCKS,
    HIDE,
    NAME,
    block_of,
    create,
    delete,
    drain,
    drain_all,
    epochs,
    put,
    put_many,
    receive,
    rows,
)
from tests.queues import DAY, HOUR, MINUTE, SECOND, World


async def test_d5_what_was_deleted_goes_with_its_epoch_and_serving_passes_over_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BAG_EPOCH_MESSAGES", 20)
    server = world.server()
    incarnation = await create(server, history_ms=HOUR)
    for _ in range(3):
        await put_many(server, 400)
        assert len(await drain_all(server, 100)) == 400
    await server.work(NAME, 20 * SECOND)
    found = [await epochs(world, incarnation, block) for block in BLOCKS]
    assert not any(each.sealed for each in found)
    assert any(each.over for each in found)
    assert any([await rows(world, incarnation, block, 0) for block in BLOCKS]), "kept for its history"
    await server.work(NAME, HOUR, every_ms=10 * MINUTE)
    await server.work(NAME, 20 * SECOND)
    found = [await epochs(world, incarnation, block) for block in BLOCKS]
    assert not any(each.sealed or each.over for each in found)
    assert not any([await rows(world, incarnation, block, 0) for block in BLOCKS if found[block].open > 0])
    await put(server, b"after")
    assert await drain(server) == [b"after"]


async def test_d5_an_old_epoch_is_sealed_however_few_lie_in_it(world: World) -> None:
    server = world.server()
    incarnation = await create(server, history_ms=0, dedup_window_ms=SECOND)
    (message,) = await put(server, b"one")
    await delete(server, message)
    await server.work(NAME, limits.BAG_EPOCH_AGE_MS + MINUTE, every_ms=10 * SECOND)
    found = await epochs(world, incarnation, block_of(message))
    assert (found.open, found.sealed, found.over) == (1, (), ())
    assert await rows(world, incarnation, block_of(message), 0) == []
    others = [await epochs(world, incarnation, block) for block in BLOCKS if block != block_of(message)]
    assert {each.open for each in others} == {0}, "an empty one need not go"


async def test_d5_deletes_of_what_never_was_do_no_harm_and_are_bounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BAG_EPOCH_MESSAGES", 50)
    server = world.server()
    incarnation = await create(server, history_ms=0, dedup_window_ms=SECOND)
    await put(server, b"there")
    never = [MessageId(0, ids.make(number % 256, 0, 1_000_000 + number, b"s" * 16)) for number in range(500)]
    for first in range(0, 500, 50):
        assert await delete(server, *never[first : first + 50]) == [None] * 50
    later = [MessageId(0, ids.make(5, 40_000, number, b"s" * 16)) for number in range(10)]
    assert await delete(server, *later) == [None] * 10, "of an epoch that there is not"
    assert await drain(server) == [b"there"]
    await server.work(NAME, 50 * SECOND)
    found = await epochs(world, incarnation, 0)
    assert found.open > 0 and (found.sealed, found.over) == ((), ())


async def test_r4_a_delete_of_a_message_in_an_epoch_that_the_server_has_not_heard_of_counts(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    await delete(other, MessageId(0, ids.make(0, 0, 1, b"s" * 16)))  # From now on it remembers the epochs.
    await server.engine.purge(world.account, NAME)
    (message,) = await put(server, b"new")
    assert await delete(other, message) == [None]
    assert await drain(server) == []


async def test_retention_ends_what_nobody_deletes_and_not_by_a_clock_that_is_wrong(world: World) -> None:
    server = world.server()
    incarnation = await create(server, retention_ms=DAY, history_ms=0)
    (message,) = await put(server, b"old")
    fast = world.server(ahead_ms=30 * DAY)
    await fast.work(NAME, 20 * SECOND)
    assert [given.body for given in await receive(fast)] == [b"old"], "R5"
    await server.work(NAME, 2 * DAY, every_ms=HOUR)
    assert await receive(server) == []
    assert await rows(world, incarnation, block_of(message), 0) == []


async def test_r1_a_put_that_comes_late_is_admitted_to_a_sealed_epoch(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server)

    async def seal_all() -> None:
        from angelhair.engine.databag import epochs as epochs_of
        from angelhair.engine.kinds.databag import Databag

        bag = await Databag(other.engine.memory).bag(await other.engine.find_queue(world.account, NAME))
        for block in BLOCKS:
            (found,) = await epochs_of.load(bag, [block])
            assert await epochs_of.seal(bag, block, found)

    server.store.next("write", BAG_MESSAGES, seal_all)
    (message,) = await put(server, b"late")
    found = await epochs(world, incarnation, block_of(message))
    assert found.open == 1 and found.sealed[0].admitted == 1
    assert await drain(server) == [b"late"]


async def test_r4_what_lands_late_where_nothing_was_left_is_served_and_its_epoch_goes(world: World) -> None:
    """Of a put whose server died nobody knows the outcome, and nobody admits it. Naive: that a sealed epoch is empty is
    remembered for ever, so it is not served, and its epoch is never finished."""
    server = world.server()
    incarnation = await create(server, retention_ms=None, history_ms=0, dedup_window_ms=SECOND)
    found = await put(server, *[b"kept"] * 40)
    # Not the last of its block: what lies before it is known to be over, and who put there is told that it is.
    kept = next(each for each in found if ids.slice_of(each.number) % ids.BLOCK_SLICES < ids.BLOCK_SLICES // 2)
    block, slice_ = block_of(kept), ids.slice_of(kept.number)
    await delete(server, MessageId(0, kept.number ^ 1), *(each for each in found if each != kept))
    await server.work(NAME, limits.BAG_EPOCH_AGE_MS + MINUTE, every_ms=MINUTE)
    assert [each.number for each in (await epochs(world, incarnation, block)).sealed] == [0]
    assert [each.body for each in await receive(server)] == [b"kept"]
    await delete(server, kept)
    assert [await receive(server) for _ in range(4)] == [[]] * 4, "nothing is left, and that is remembered"

    queue = await server.engine.find_queue(world.account, NAME)
    number = ids.make(slice_ + ids.BLOCK_SLICES // 2, 0, 10**9, queue.secret)
    row = Row(number, {"body": b"late", "enqueued_at": server.engine.clock.now().wall_ms})
    await world.store.write([Write(places.bag_messages(incarnation, block, 0), [row])])
    await server.work(NAME, MINUTE, every_ms=10 * SECOND)
    assert await drain_all(server) == [b"late"]
    await server.work(NAME, MINUTE, every_ms=10 * SECOND)
    assert (await epochs(world, incarnation, block)).sealed == ()


async def test_r1_a_put_that_meets_a_finished_epoch_is_put_again(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server, history_ms=0, dedup_window_ms=SECOND)

    async def purge() -> None:
        await other.engine.purge(world.account, NAME)

    server.store.next("write", BAG_MESSAGES, purge)
    (message,) = await put(server, b"late")
    assert ids.epoch_of(message.number, 1) == 1
    assert await drain(server) == [b"late"]
    await other.work(NAME, 40 * SECOND)
    found = [await epochs(world, incarnation, block) for block in BLOCKS]
    assert all((each.sealed, each.over) == ((), ()) for each in found)


async def test_r1_an_epoch_is_not_finished_over_what_has_just_been_admitted(world: World) -> None:
    """The finisher has read the epoch and found all of it deleted; then a putter that slept writes and admits."""
    server, sleeper = world.server(), world.server()
    incarnation = await create(server, retention_ms=None)
    (first,) = await put(server, b"first")
    block = block_of(first)
    await delete(server, first)
    world.wait(limits.BAG_EPOCH_AGE_MS + SECOND)

    from angelhair.engine.databag import epochs as epochs_of
    from angelhair.engine.kinds.databag import Databag

    bag = await Databag(sleeper.engine.memory).bag(await sleeper.engine.find_queue(world.account, NAME))
    number = ids.make(block * 256 + 7, 0, 10**9, bag.secret)

    async def admit() -> None:
        from angelhair.engine.databag.put import _confirm

        await sleeper.store.write([Write(bag.messages(block, 0), [Row(number, {"body": b"late", "enqueued_at": 1})])])
        (found,) = await epochs_of.load(bag, [block])
        assert await _confirm(bag, block, 0, found)

    def finishing(change: object) -> bool:
        values = change.rows[0].values or {}  # type: ignore[attr-defined]
        return bool(epochs_of.parse(values).over)

    server.store.next("change", BAG_EPOCHS, admit, when=finishing)
    await server.work(NAME, 10 * SECOND)
    found = await epochs(world, incarnation, block)
    assert found.sealed[0].admitted == 1 and not found.over
    world.wait(HIDE)
    assert b"late" in await drain(server)
