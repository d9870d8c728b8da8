"""D7, R10: puts to a databag with one key within its window are one message, whoever dies on the way."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.databag.epochs import Sealed
from angelhair.engine.schema import BAG_MESSAGES, KEYS
from angelhair.engine.store import Change, Write
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE, FaultyStore
from tests.promises.databags import NAME, block_of, create, delete, drain, drain_all, epochs, put, receive, rows
from tests.queues import DAY, HOUR, MINUTE, SECOND, Server, World, succeeded

WINDOW = 5 * MINUTE


async def put_key(server: Server, key: str, body: bytes = b"m") -> MessageId:
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(body, key=key)])
    return succeeded(outcome)


def holds_a_place(write: Write) -> bool:
    return any("held_at" in row.values for row in write.rows)


def has_a_body(write: Write) -> bool:
    return any("body" in row.values for row in write.rows)


def commits(change: Change) -> bool:
    return any(row.values is not None and row.values.get("status") == "committed" for row in change.rows)


async def dies_in_between(world: World, verb: str, when: object) -> tuple[FaultyStore, Server]:
    """A server whose put ends there, with nobody to know how."""
    faulty = FaultyStore(world.store)
    server = world.server(store=faulty)
    table = KEYS if verb == "change" else BAG_MESSAGES
    faulty.next(verb, table, NEVER_SENT, when=when, times=100)  # type: ignore[arg-type]
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"m", key="k")])
    assert isinstance(outcome, OutcomeUnknown)
    faulty.heal()
    return faulty, server


async def end_epochs(world: World, server: Server) -> None:
    """Something was deleted in every block; all epochs are sealed, and finished if they can be."""
    for block in range(limits.BAG_BLOCKS):
        while block_of(message := (await put(server, b"passes"))[0]) != block:
            await delete(server, message)
        await delete(server, message)
    await server.work(NAME, limits.BAG_EPOCH_AGE_MS + MINUTE, every_ms=10 * SECOND)


async def test_r10_one_key_is_one_message_within_the_window(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    first = await put_key(server, "k", b"first")
    assert await put_key(other, "k", b"second") == first
    again, another, plain = await server.put_outcomes(
        NAME, [NewMessage(b"third", key="k"), NewMessage(b"else", key="j"), NewMessage(b"plain")]
    )
    assert again == first and len({first, another, plain}) == 3
    assert sorted(await drain(other, 100)) == [b"else", b"first", b"plain"]
    assert await put_key(server, "k") == first, "remembered after it was deleted"
    assert await drain_all(server) == []


async def test_r10_equal_keys_of_one_batch_are_one_message(world: World) -> None:
    server = world.server()
    await create(server)
    outcomes = await server.put_outcomes(NAME, [NewMessage(b"%d" % number, key="k") for number in range(5)])
    assert len(set(outcomes)) == 1
    assert await drain(server) == [b"0"]


async def test_r10_when_the_window_is_over_the_key_is_another_message(world: World) -> None:
    server = world.server()
    await create(server, dedup_window_ms=WINDOW)
    first = await put_key(server, "k", b"first")
    world.wait(WINDOW - SECOND)
    assert await put_key(server, "k", b"late") == first
    world.wait(2 * SECOND)
    second = await put_key(server, "k", b"second")
    assert second != first
    assert sorted(await drain(server)) == [b"first", b"second"]


@pytest.mark.parametrize(
    ("verb", "when"),
    [("write", holds_a_place), ("write", has_a_body), ("change", commits)],
    ids=["before its place", "before its body", "before its commit"],
)
async def test_r10_a_put_that_died_is_completed_by_the_next(world: World, verb: str, when: object) -> None:
    server = world.server()
    await create(server)
    await dies_in_between(world, verb, when)
    message = await put_key(server, "k", b"m")
    assert await put_key(server, "k", b"m") == message
    assert await drain_all(server) == [b"m"]


async def test_r10_what_is_not_sure_to_stay_is_not_served(world: World) -> None:
    server = world.server()
    await create(server)
    await dies_in_between(world, "write", has_a_body)
    assert await receive(server) == []
    stats = await server.engine.stats(world.account, NAME)
    assert (stats.visible, stats.in_flight) == (0, 0)
    assert await server.engine.peek(world.account, NAME, 10) == []


@pytest.mark.parametrize("lost", [LOSE_ANSWER, ARRIVE_LATE])
async def test_r10_a_lost_answer_is_settled(world: World, lost: str) -> None:
    faulty = FaultyStore(world.store)
    server = world.server(store=faulty)
    await create(server)
    faulty.next("change", KEYS, lost)
    message = await put_key(server, "k")
    faulty.next("change", KEYS, lost, when=commits)
    assert await put_key(server, "k") == message
    await faulty.land()
    assert await drain_all(server) == [b"m"]


async def test_r10_a_key_that_was_never_written_did_not_happen(world: World) -> None:
    faulty = FaultyStore(world.store)
    server = world.server(store=faulty)
    await create(server)
    faulty.next("change", KEYS, UNAVAILABLE, times=10)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"m", key="k")])
    assert isinstance(outcome, Unavailable) and not isinstance(outcome, OutcomeUnknown)
    assert await drain_all(world.server()) == []


async def test_r10_a_place_that_is_held_keeps_its_epoch_and_the_key_its_id(world: World) -> None:
    server = world.server()
    incarnation = await create(server, dedup_window_ms=HOUR)
    faulty = FaultyStore(world.store)
    sleeper = world.server(store=faulty)

    async def time_passes() -> None:
        await end_epochs(world, server)

    # While it sleeps before its body, its epoch becomes old and is sealed; not finished.
    faulty.next("write", BAG_MESSAGES, time_passes, when=has_a_body)
    message = await put_key(sleeper, "k", b"slept")
    found = await epochs(world, incarnation, block_of(message))
    assert found.open == 1 and found.sealed == (Sealed(0, admitted=1),)
    assert await put_key(server, "k", b"other") == message
    assert await drain_all(server) == [b"slept"]


async def test_r10_a_key_moves_on_when_its_epoch_is_finished_and_the_sleeper_follows(world: World) -> None:
    server = world.server()
    incarnation = await create(server, dedup_window_ms=HOUR)
    faulty = FaultyStore(world.store)
    sleeper = world.server(store=faulty)
    ids: list[MessageId] = []

    async def purged_and_put_by_another() -> None:
        await server.engine.purge(world.account, NAME)
        ids.append(await put_key(server, "k", b"other"))

    faulty.next("write", BAG_MESSAGES, purged_and_put_by_another, when=has_a_body)
    message = await put_key(sleeper, "k", b"slept")
    assert [message] == ids, "one key, one id"
    world.wait(limits.BAG_STATE_AGE_MS)
    assert await drain_all(sleeper) == [b"other"]
    left = [
        row for block in range(limits.BAG_BLOCKS) for row in await rows(world, incarnation, block, 0)
        if row.values.get("deleted") is None
    ]
    assert left == [], "where the sleeper wrote it is void"


async def test_r10_a_place_that_nobody_came_back_to_is_given_up_when_its_key_is_long_gone(world: World) -> None:
    server = world.server()
    incarnation = await create(server, dedup_window_ms=WINDOW, history_ms=0)
    await dies_in_between(world, "write", has_a_body)
    (block,) = [block for block in range(limits.BAG_BLOCKS) if await rows(world, incarnation, block, 0)]
    await end_epochs(world, server)
    await server.work(NAME, HOUR, every_ms=MINUTE)
    assert (await epochs(world, incarnation, block)).sealed == (Sealed(0),), "whoever began it may sleep for so long"
    await server.work(NAME, 31 * DAY, every_ms=12 * HOUR)
    found = await epochs(world, incarnation, block)
    assert (found.sealed, found.over) == ((), ())
    assert await drain_all(server) == []


async def test_r10_a_place_whose_key_is_another_message_by_now_is_void(world: World) -> None:
    server = world.server()
    incarnation = await create(server, dedup_window_ms=WINDOW, history_ms=0)
    await dies_in_between(world, "write", has_a_body)
    (block,) = [block for block in range(limits.BAG_BLOCKS) if await rows(world, incarnation, block, 0)]
    world.wait(WINDOW + SECOND)
    await put_key(server, "k", b"new")
    # It may lie in the very same block and epoch, and would rightly keep that: it goes first.
    assert await drain_all(server) == [b"new"]
    await end_epochs(world, server)
    assert 0 not in (await epochs(world, incarnation, block)).read, "it keeps no epoch"
    assert await drain_all(server) == []


async def test_r10_who_sleeps_longer_than_the_window_has_put_if_nobody_took_the_key(world: World) -> None:
    server = world.server()
    await create(server, dedup_window_ms=WINDOW)
    faulty = FaultyStore(world.store)
    sleeper = world.server(store=faulty)

    async def time_passes() -> None:
        await end_epochs(world, server)

    faulty.next("write", BAG_MESSAGES, time_passes, when=has_a_body)
    slept = await put_key(sleeper, "k", b"slept")
    assert await put_key(server, "k", b"new") != slept
    assert sorted(await drain_all(server)) == [b"new", b"slept"]


async def test_r10_an_epoch_stays_as_long_as_a_key_may_name_something_in_it(world: World) -> None:
    server = world.server()
    incarnation = await create(server, dedup_window_ms=HOUR, history_ms=0)
    message = await put_key(server, "k")
    await delete(server, message)
    await end_epochs(world, server)
    found = await epochs(world, incarnation, block_of(message))
    assert [(each.first, each.last, each.dropping) for each in found.over] == [(0, 0, 0)]
    await server.work(NAME, 2 * HOUR, every_ms=MINUTE)
    assert (await epochs(world, incarnation, block_of(message))).over == ()
