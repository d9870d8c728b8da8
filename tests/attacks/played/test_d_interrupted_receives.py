"""Receives of a databag while others are faster and answers get lost (D3, D4, A2): what one got no other gets before
its time is over, and what nobody got is not hidden."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.databag import ids
from angelhair.engine.schema import BAG_EPOCHS, BAG_LOCKS, BAG_MESSAGES, POINTERS
from angelhair.errors import QueueNotFound, Unavailable
from angelhair.model import Ask, MessageId
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.promises.databags import (
    HIDE,
    NAME,
    block_of,
    create,
    delete,
    drain_all,
    locks,
    put,
    put_in,
    put_many,
    receive,
    seal,
)
from tests.queues import DAY, HOUR, SECOND, Server, World

pytestmark = pytest.mark.usefixtures("buried")

FINE = {"min_partitions": limits.BAG_SLICES, "max_partitions": limits.BAG_SLICES}
"""Each slice is a partition."""

COARSE = {"min_partitions": limits.BAG_BLOCKS, "max_partitions": limits.BAG_BLOCKS}
"""Each block is one."""


async def number(server: Server) -> int:
    return (await server.engine.partitions(server.world.account, NAME)).partitions


async def in_slices(server: Server, *bodies: bytes, block: int = 3) -> None:
    """Messages of one block, each in a slice of its own."""
    found = await put_in(server, block, *bodies)
    while len({ids.slice_of(each.number) for each in found}) < len(bodies):
        await delete(server, *found)
        found = await put_in(server, block, *bodies)


async def locks_taken(server: Server) -> int:
    """A receive of one message; how many conditional writes it took to lock that."""

    async def pass_on() -> None:
        "It goes on as if nothing had been."

    rule = server.store.next("change", BAG_LOCKS, pass_on, times=limits.BAG_ROUNDS)
    assert len(await receive(server, 1)) == 1
    server.store.heal()
    return rule.happened


# --- locks ----------------------------------------------------------------------------------------------------------


async def test_d3_a_lock_whose_answer_was_lost_is_ours(world: World) -> None:
    """Naive: refused, so another has it; and nobody gets the message until the lock is over."""
    server, other = world.server(), world.server()
    await create(server)
    await put(server, b"m")
    server.store.next("change", BAG_LOCKS, LOSE_ANSWER)
    assert [given.body for given in await receive(server)] == [b"m"]
    assert await receive(server) == [] and await receive(other) == []
    world.wait(HIDE)
    assert [given.body for given in await receive(other)] == [b"m"]


async def test_d3_what_could_not_be_locked_is_not_given_and_not_hidden(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server)
    await put(server, b"m")
    server.store.next("change", BAG_LOCKS, UNAVAILABLE, times=limits.BAG_ROUNDS)
    (outcome,) = await server.engine.receive(world.account, NAME, [Ask(1)])
    assert isinstance(outcome, Unavailable)
    assert await locks(world, incarnation) == {}
    server.store.heal()
    assert [given.body for given in await receive(server)] == [b"m"]
    assert await receive(other) == []


async def test_d3_a_block_that_cannot_be_locked_keeps_nobody_from_the_others(world: World) -> None:
    server = world.server()
    incarnation = await create(server, **COARSE)
    await put_in(server, 2, b"two")
    await put_in(server, 9, b"nine")

    def of_nine(change: object) -> bool:
        return change.partition.key == f"{incarnation}.9"  # type: ignore[attr-defined]

    server.store.next("change", BAG_LOCKS, UNAVAILABLE, when=of_nine, times=limits.BAG_ROUNDS)
    assert [given.body for given in await receive(server)] == [b"two"]
    server.store.heal()
    assert [given.body for given in await receive(server)] == [b"nine"]
    assert await receive(server) == []


async def test_a2_what_was_locked_for_so_long_that_it_is_over_is_locked_again_before_it_is_given(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    await put(server, b"m")

    async def sleep() -> None:
        world.wait(HIDE)

    rule = server.store.next("change", BAG_LOCKS, sleep, after=True)
    (given,) = await receive(server)
    assert rule.happened == 1 and given.visible_at_ms == world.dial.wall_ms + HIDE
    world.wait(HIDE - SECOND)
    assert await receive(other) == [], "its time has begun when it was given"


async def test_d3_newer_locks_that_were_read_while_ours_was_confirmed_stay(world: World) -> None:
    """Another has locked a neighbour meanwhile, and somebody on this server has seen that."""
    server, other = world.server(), world.server()
    await create(server, **FINE)
    await in_slices(server, b"one", b"two", b"three")

    async def another_is_served() -> None:
        assert len(await receive(other, 1)) == 1
        await server.engine.stats(world.account, NAME)

    server.store.next("change", BAG_LOCKS, another_is_served, after=True)
    assert len(await receive(server, 1)) == 1
    assert await locks_taken(server) == 1, "it knows of both"
    for each in (server, other, world.server()):
        assert await receive(each) == []
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.visible, stats.in_flight) == (0, 3)
    world.wait(HIDE)
    assert sorted(await drain_all(server)) == [b"one", b"three", b"two"]


async def test_d3_locks_that_were_read_before_ours_do_not_undo_it(world: World) -> None:
    """Somebody on this server has read the locks and sleeps; meanwhile another receive here takes one."""
    server = world.server()
    await create(server, **FINE)
    await in_slices(server, b"one", b"two")

    async def receive_here() -> None:
        assert len(await receive(server, 1)) == 1

    server.store.next("read", BAG_LOCKS, receive_here, after=True)
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.visible, stats.in_flight) == (1, 1)
    assert await locks_taken(server) == 1, "what it knows is not older than before"
    assert await receive(server) == []


async def test_r6_who_has_not_seen_the_locks_of_a_deleted_databag_hears_that_it_is_gone(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    await put(server, b"m")
    await other.engine.delete_queue(world.account, NAME)
    with pytest.raises(QueueNotFound):
        await receive(server)


async def test_d3_of_two_locks_that_overlap_the_later_counts_for_who_sees_both_at_once(world: World) -> None:
    server = world.server()
    incarnation = await create(server, min_partitions=32, max_partitions=32)
    first = ids.BLOCK_SLICES // 2
    while ids.slice_of((message := (await put_in(server, 0, b"m"))[0]).number) < first:
        await delete(server, message)
    assert len(await receive(server)) == 1
    world.wait(HIDE)
    await server.engine.change_queue(world.account, NAME, {"min_partitions": 16, "max_partitions": 16})
    world.wait(limits.BAG_SYNC_MS)
    assert len(await receive(server)) == 1
    assert {key: row["serving"] for key, row in (await locks(world, incarnation)).items()} == {0: 2, first: 1}
    await server.engine.change_queue(world.account, NAME, {"min_partitions": 32, "max_partitions": 32})
    assert await receive(world.server()) == [], "the earlier one is over, and lies behind the later in the store"
    world.wait(HIDE)
    assert [given.body for given in await receive(world.server())] == [b"m"]


async def raced(world: World, times: int) -> tuple[Server, list[MessageId], list[MessageId]]:
    """A server that knows where messages are, and another that is faster so many times, by one message each; what that
    one has got, and what is there."""
    server, other = world.server(), world.server()
    await create(server, **FINE)
    messages = await put_in(server, 7, *[b"m"] * limits.BAG_PUT_MESSAGES)
    given: list[MessageId] = []

    async def be_faster() -> None:
        given.extend(each.id for each in await receive(other, 1))

    # So that each of its looks finds something from now on: else the first is at too few.
    (known,) = await receive(server, 1)
    assert await delete(server, known.id) == [None]
    server.store.next("change", BAG_LOCKS, be_faster, times=times)
    return server, given, [message for message in messages if message != known.id]


async def test_a1_a_receive_that_others_are_faster_than_each_time_gets_nothing_and_loses_nothing(world: World) -> None:
    server, given, messages = await raced(world, limits.BAG_ROUNDS)
    assert await receive(server, 1) == []
    assert len(given) == limits.BAG_ROUNDS
    while found := await receive(server):
        given += [each.id for each in found]
    assert len(given) == len(set(given)), "no message came twice within its time"
    assert await delete(server, *given) == [None] * len(given)
    world.wait(HIDE)
    assert len(await drain_all(server)) == len(messages) - len(given)


async def test_a_receive_that_is_served_in_its_last_round_has_nothing_to_wait_for(world: World) -> None:
    server, given, messages = await raced(world, limits.BAG_ROUNDS - 1)
    (found,) = await receive(server, 1)
    assert len(given) == limits.BAG_ROUNDS - 1 and found.id in set(messages) - set(given)
    assert server.engine.due_in_ms(world.account, NAME) is None


# --- looks ----------------------------------------------------------------------------------------------------------


async def test_d7_what_was_deleted_here_while_it_was_read_is_not_given(world: World) -> None:
    """The delete is confirmed before the answer of the read arrives: naive, the row says that it is there."""
    server = world.server()
    await create(server)
    (message,) = await put(server, b"m")

    async def delete_it() -> None:
        assert await delete(server, message) == [None]

    server.store.next(
        "read", BAG_MESSAGES, delete_it, after=True,
        when=lambda span: span.partition.key.split(".")[1] == str(block_of(message)),
    )
    assert await receive(server) == []
    world.wait(HIDE)
    assert await receive(server) == []


async def test_d3_neighbours_that_are_too_many_for_one_look_are_served_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BAG_GROUP_PARTITIONS", 2)
    server = world.server()
    await create(server, min_partitions=128, max_partitions=128)
    await put_many(server, 100)
    assert sorted(map(int, await drain_all(server))) == list(range(100))


async def test_r5_who_does_not_know_the_time_waits_as_long_as_the_locks_last(world: World) -> None:
    wrong = world.server(ahead_ms=DAY)
    await create(wrong, **COARSE)
    await put_in(wrong, 4, b"one", b"two")
    assert len(await receive(wrong, 1)) == 1
    world.wait(SECOND)
    assert await receive(wrong, 1) == []
    assert wrong.engine.due_in_ms(world.account, NAME) == HIDE - SECOND
    world.wait(HIDE - SECOND)
    assert len(await receive(wrong, 1)) == 1


# --- looking at it --------------------------------------------------------------------------------------------------


async def test_a_peek_passes_over_pages_of_what_is_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BAG_LOOK_ROWS", 2)
    server = world.server()
    await create(server)
    messages = await put_in(server, 1, *(b"%02d" % each for each in range(limits.BAG_PUT_MESSAGES)))
    last = max(messages)
    await delete(server, *(message for message in messages if message != last))
    (peeked,) = await server.engine.peek(world.account, NAME, 1)
    assert peeked.id == last


@pytest.mark.parametrize("sealed", [False, True], ids=["of one epoch", "of two"])
async def test_what_is_counted_of_many_is_stretched_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, sealed: bool
) -> None:
    server = world.server()
    await create(server)
    await put(server, *[b"m"] * 400)
    if sealed:
        # The first epochs use up what may be read; of the second nothing is seen.
        await seal(server)
        await put(server, *[b"m"] * 400)
    exact = await server.engine.stats(world.account, NAME)
    count = 800 if sealed else 400
    assert (exact.visible, exact.exact) == (count, True)
    monkeypatch.setattr(limits, "BAG_COUNTED", 10)
    stretched = await server.engine.stats(world.account, NAME)
    assert not stretched.exact and 0.6 * count < stretched.visible < 1.7 * count


async def test_a_look_at_epochs_that_ended_meanwhile_does_not_undo_what_is_known(world: World) -> None:
    """Somebody on this server has read the epochs and sleeps; meanwhile all are purged here."""
    server = world.server()
    await create(server)
    await put(server, b"before")

    async def purge_here() -> None:
        await server.engine.purge(world.account, NAME)

    world.wait(limits.BAG_STATE_AGE_MS)
    server.store.next("read", BAG_EPOCHS, purge_here, after=True)
    await server.engine.stats(world.account, NAME)
    writes = server.store.next("write", BAG_MESSAGES, UNAVAILABLE, when=_into_the_first_epoch)
    await put(server, b"after")
    assert writes.happened == 0, "it goes where it will be read, at once"
    assert await drain_all(server) == [b"after"]


def _into_the_first_epoch(write: object) -> bool:
    return bool(write.partition.key.split(".")[2] == "0")  # type: ignore[attr-defined]


# --- the number of partitions ---------------------------------------------------------------------------------------


async def test_d4_two_servers_that_see_messages_wait_double_the_number_once(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, min_partitions=16, max_partitions=64, visibility_timeout_ms=HOUR)
    await put_many(server, 500)
    for each in (server, other):
        while await receive(each, 1):
            "Until all is locked, and each has seen that messages wait."
    world.wait(limits.BAG_SYNC_MS)

    async def be_faster() -> None:
        assert await number(other) == 32

    server.store.next("change", POINTERS, be_faster)
    assert await number(server) == 16, "not before it knows what the other has made of it"
    world.wait(limits.BAG_SYNC_MS)
    assert {await number(server), await number(world.server())} == {32}


async def test_d4_it_is_not_halved_for_who_has_not_heard_yet_that_another_left_messages_behind(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, min_partitions=16, max_partitions=64, visibility_timeout_ms=HOUR)
    await put_many(server, 500)
    while await number(server) < 64:
        while await receive(server, 1):
            "Until all is locked, and messages wait."
        world.wait(limits.BAG_SYNC_MS)
    await server.engine.purge(world.account, NAME)
    world.wait(HOUR)
    await number(server)
    for _ in range(8):
        assert await receive(server, 1) == []
    await put_in(other, 6, *[b"m"] * limits.BAG_PUT_MESSAGES)
    taken = 0
    while await receive(other, 1):
        taken += 1
    assert taken <= 64 // limits.BAG_BLOCKS, "more messages than partitions: some of them wait"
    world.wait(limits.BAG_SYNC_MS)
    assert await number(server) == 64
