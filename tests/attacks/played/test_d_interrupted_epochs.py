"""Epochs of databags that are finished, counted and dropped while others do the same, clocks are wrong and stores fail
(D5, D7, R5, R14, R15): what is left half done another goes on with, and nothing that waits goes with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.databag import epochs as epochs_of
from angelhair.engine.databag import ids
from angelhair.engine.databag.epochs import Sealed
from angelhair.engine.kinds.databag import Databag
from angelhair.engine.schema import BAG_EPOCHS, BAG_LOCKS, BAG_MESSAGES, SEQUENCES
from angelhair.engine.store import Change, Span, Write
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
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
    put_in,
    put_many,
    receive,
    rows,
    seal,
)
from tests.queues import DAY, HOUR, MINUTE, SECOND, Server, World

pytestmark = pytest.mark.usefixtures("buried")

BLOCK = 5
SHORT = {"history_ms": 0, "dedup_window_ms": SECOND, "retention_ms": None}
"""A finished epoch may go some twenty seconds later: that much clocks may differ."""


async def ends(server: Server, block: int = BLOCK) -> None:
    """Something has passed through the block's open epoch, which is sealed now."""
    await delete(server, *await put_in(server, block, b"passes"))
    await seal(server, block)


async def tend(server: Server, times: int = 1) -> None:
    """As often as this the server looks after its blocks, which is every few seconds."""
    for _ in range(times):
        server.world.wait(limits.BAG_TEND_MS)
        await server.step(NAME)


async def finished(world: World, server: Server) -> str:
    """A databag with an epoch that is finished and whose history is over, and one message in a later one."""
    incarnation = await create(server, **SHORT)
    await ends(server)
    await put_in(server, BLOCK, b"waits")
    await tend(server)
    found = await epochs(world, incarnation, BLOCK)
    assert [(each.first, each.last, each.dropping) for each in found.over] == [(0, 0, 0)]
    world.wait(MINUTE)
    return incarnation


async def gone(world: World, incarnation: str) -> bool:
    found = await epochs(world, incarnation, BLOCK)
    return found.over == () and await rows(world, incarnation, BLOCK, 0) == []


def drops(change: Change) -> bool:
    """Says of an epoch of the block that it is being dropped."""
    values = change.rows[0].values or {}
    return change.rows[0].key == BLOCK and any(each.dropping for each in epochs_of.parse(values).over)


def forgets(change: Change) -> bool:
    values = change.rows[0].values or {}
    return change.rows[0].key == BLOCK and not epochs_of.parse(values).over


# --- dropping -------------------------------------------------------------------------------------------------------


async def test_r14_an_epoch_that_cannot_be_dropped_is_dropped_later_and_keeps_no_other_block(world: World) -> None:
    server = world.server()
    incarnation = await finished(world, server)
    await ends(server, BLOCK + 1)
    server.store.next("drop", BAG_MESSAGES, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await server.step(NAME)
    found = await epochs(world, incarnation, BLOCK)
    assert [each.dropping for each in found.over] == [1], "whoever comes next knows what is to be done"
    assert (await epochs(world, incarnation, BLOCK + 1)).over != (), "the next block had its turn"
    await tend(world.server())
    assert await gone(world, incarnation)
    assert await drain_all(server) == [b"waits"]


@pytest.mark.parametrize("when", [drops, forgets], ids=["before it is marked", "before it is forgotten"])
async def test_r14_two_that_drop_an_epoch_at_once_do_no_harm(world: World, when: object) -> None:
    server, other = world.server(), world.server()
    incarnation = await finished(world, server)

    async def be_faster() -> None:
        await other.step(NAME)

    rule = server.store.next("change", BAG_EPOCHS, be_faster, when=when)  # type: ignore[arg-type]
    await tend(server)
    assert rule.happened == 1
    await tend(server)
    assert await gone(world, incarnation)
    assert await drain_all(server) == [b"waits"]


async def test_r5_who_does_not_know_the_time_drops_nothing(world: World) -> None:
    server, wrong = world.server(), world.server(ahead_ms=30 * DAY)
    incarnation = await finished(world, server)
    await tend(wrong, 2)
    found = await epochs(world, incarnation, BLOCK)
    assert [(each.first, each.dropping) for each in found.over] == [(0, 0)]
    assert await rows(world, incarnation, BLOCK, 0) != []
    await tend(server)
    assert await gone(world, incarnation)


async def test_r6_what_a_deleted_databag_held_is_dropped_though_the_store_fails_at_first(world: World) -> None:
    server = world.server()
    incarnation = await create(server)
    await put_many(server, 50)
    await server.engine.delete_queue(world.account, NAME)
    server.store.next("drop", BAG_MESSAGES, UNAVAILABLE, when=lambda part: part.key.startswith(incarnation))
    with pytest.raises(Unavailable):
        await server.bury()
    assert incarnation in await server.graves()
    await server.bury()
    left = {key for key in await world.dump() if key[1].startswith(incarnation) and key[0] != "sequences"}
    assert left == set()


@pytest.mark.parametrize("lost", [LOSE_ANSWER, NEVER_SENT])
async def test_r6_a_databag_is_made_though_nobody_knows_what_became_of_its_first_rows(world: World, lost: str) -> None:
    """Those may still be on their way: so it begins again, under another incarnation, and nothing is left of them."""
    server = world.server()
    rule = server.store.next("change", SEQUENCES, lost)
    incarnation = await create(server)
    assert rule.happened == 1
    await put(server, b"m")
    assert await drain(server) == [b"m"]
    made = [part.key for part in server.store.touched if part.table is BAG_EPOCHS]
    assert len(made) == 2
    found = dict(zip(made, await world.store.read([Span(places.bag_epochs(each)) for each in made]), strict=True))
    assert [each for each in made if found[each].rows] == [incarnation]


# --- finishing ------------------------------------------------------------------------------------------------------


async def test_d5_a_long_epoch_is_finished_over_several_steps_and_not_before_all_of_it_was_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BAG_FINISH_ROWS", 2)
    monkeypatch.setattr(limits, "BAG_FINISH_PAGES", 3)
    server = world.server()
    incarnation = await create(server, **SHORT)
    messages = await put_in(server, BLOCK, *[b"m"] * limits.BAG_PUT_MESSAGES)
    *others, last = sorted(messages)
    await delete(server, *others)
    await seal(server, BLOCK)
    await tend(server, 6)
    assert [each.number for each in (await epochs(world, incarnation, BLOCK)).sealed] == [0]
    await delete(server, last)
    fresh = world.server()
    await tend(fresh)
    assert [each.number for each in (await epochs(world, incarnation, BLOCK)).sealed] == [0], "six rows of twenty"
    await tend(fresh, 4)
    assert (await epochs(world, incarnation, BLOCK)).sealed == ()


async def test_a1_epochs_that_are_finished_between_others_take_nothing_of_those_along(world: World) -> None:
    server = world.server()
    incarnation = await create(server, **{**SHORT, "history_ms": HOUR})
    for body in (b"first", b"second"):
        await put_in(server, BLOCK, body)
        await seal(server, BLOCK)
        await ends(server)
    await tend(server, 4)
    found = await epochs(world, incarnation, BLOCK)
    assert [each.number for each in found.sealed] == [0, 2]
    assert [(each.first, each.last) for each in found.over] == [(1, 1), (3, 3)]
    world.wait(HOUR)
    await tend(server, 2)
    assert (await epochs(world, incarnation, BLOCK)).over == ()
    assert sorted(await drain_all(server)) == [b"first", b"second"]


async def test_r5_who_does_not_know_the_time_gives_no_place_up(world: World) -> None:
    """The place of a message with a key, of whom nobody has heard for long, by a clock that is wrong."""
    server, wrong = world.server(), world.server(ahead_ms=60 * DAY)
    incarnation = await create(server, **SHORT)

    def has_a_body(write: Write) -> bool:
        return any("body" in row.values for row in write.rows)

    server.store.next("write", BAG_MESSAGES, NEVER_SENT, when=has_a_body, times=limits.WRITE_ATTEMPTS)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"m", key="k")])
    assert isinstance(outcome, OutcomeUnknown)
    (block,) = [block for block in BLOCKS if await rows(world, incarnation, block, 0)]
    await seal(server, block)
    await tend(wrong, 3)
    assert (await epochs(world, incarnation, block)).sealed == (Sealed(0),)
    world.wait(31 * DAY)
    await tend(server, 2)
    assert (await epochs(world, incarnation, block)).sealed == ()


async def test_d5_a_full_epoch_stays_open_where_the_next_would_be_taken_for_the_oldest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id has sixteen bits of its epoch. A message lies in the first, nobody has deleted it, and so many have passed
    since then that the next epoch would have the same bits: all but the last are taken as passed."""
    monkeypatch.setattr(limits, "BAG_EPOCH_MESSAGES", 1)
    server = world.server()
    incarnation = await create(server, **SHORT)
    bag = await Databag(server.engine.memory).bag(await world.queue(NAME))
    (before,) = await epochs_of.load(bag, [BLOCK])
    passed = replace(before.sealed_now(world.dial.wall_ms), open=ids.EPOCHS - 1)
    assert await epochs_of.change(bag, BLOCK, before, passed) is not None
    # One large message counts as all that an epoch takes that far.
    monkeypatch.setattr(limits, "BAG_MESSAGE_BYTES", 1)
    large = await put_in(server, BLOCK, b"-" * ids.EPOCHS)
    found = await epochs(world, incarnation, BLOCK)
    assert (found.open, [each.number for each in found.sealed]) == (ids.EPOCHS - 1, [0])
    await delete(server, *large)
    await put_in(server, BLOCK, b"m")
    assert await drain_all(server) == [b"m"]


# --- counting duplicates --------------------------------------------------------------------------------------------


async def duplicates(server: Server) -> int:
    return (await server.engine.partitions(server.world.account, NAME)).duplicates


async def served_though_deleted(world: World, server: Server, other: Server, *happenings: object) -> MessageId:
    """Another server has read, and is about to lock; in between the delete is confirmed elsewhere."""
    (message,) = await put(server, b"one")

    async def delete_it() -> None:
        assert await delete(server, message) == [None]
        world.wait(1)
        for happening in happenings:
            await happening()  # type: ignore[operator]

    other.store.next(
        "read", BAG_MESSAGES, delete_it, after=True,
        when=lambda span: span.partition.key.split(".")[1] == str(block_of(message)),
    )
    assert [given.body for given in await receive(other)] == [b"one"]
    return message


def counts(change: Change) -> bool:
    """Takes out of a lock's row what was counted of it."""
    return bool(change.rows) and set(change.rows[0].values or {}) == {"given"}


async def test_d7_a_count_whose_answer_is_lost_counts_once_and_the_epoch_ends_later(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server, min_partitions=16, max_partitions=16, **SHORT)
    message = await served_though_deleted(world, server, other)
    await seal(server, block_of(message))
    rule = server.store.next("change", BAG_LOCKS, LOSE_ANSWER, when=counts)
    await tend(server)
    assert rule.happened == 1
    assert [each.number for each in (await epochs(world, incarnation, block_of(message))).sealed] == [0]
    await tend(server, 2)
    assert (await epochs(world, incarnation, block_of(message))).sealed == ()
    assert await duplicates(server) == await duplicates(world.server()) == 1


async def test_d7_a_count_that_meets_a_lock_is_made_again(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server, min_partitions=4_096, max_partitions=4_096, **SHORT)
    message = await served_though_deleted(world, server, other)
    await seal(server, block_of(message))

    async def serve() -> None:
        await put_in(other, block_of(message), b"next")
        assert [given.body for given in await receive(other)] == [b"next"]

    rule = server.store.next("change", BAG_LOCKS, serve, when=counts)
    await tend(server)
    assert rule.happened == 1 and await duplicates(server) == 0
    await tend(server, 2)
    assert (await epochs(world, incarnation, block_of(message))).sealed == ()
    assert await duplicates(server) == 1
    world.wait(HIDE)
    assert await drain_all(server) == [b"next"]


@pytest.mark.parametrize("lost", [False, True], ids=["another locks", "an answer is lost"])
async def test_d7_what_is_served_of_an_epoch_that_was_just_finished_is_counted_once(world: World, lost: bool) -> None:
    server, other, third = world.server(), world.server(), world.server()
    incarnation = await create(server, min_partitions=4_096, max_partitions=4_096, retention_ms=None)

    async def finish() -> None:
        await seal(server)
        await tend(server)

    message = await served_though_deleted(world, server, other, finish)
    assert (await epochs(world, incarnation, block_of(message))).sealed == ()

    async def serve() -> None:
        await put_in(third, block_of(message), b"next")
        assert len(await receive(third)) == 1

    for each in (server, other):
        each.store.next("change", BAG_LOCKS, LOSE_ANSWER if lost else serve, when=counts)
    for _ in range(3):
        await tend(other)
        await tend(server)
    assert await duplicates(server) == await duplicates(world.server()) == 1
