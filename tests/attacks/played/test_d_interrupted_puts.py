"""Puts to a databag while others are faster, epochs end and stores fail (D5, R1, A1): what is confirmed comes, once;
and who cannot know what became of a message hears just that."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BAG_EPOCHS, BAG_MESSAGES, SEQUENCES
from angelhair.engine.store import Span
from angelhair.errors import OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import DATABAG, NewMessage
from tests.faults import UNAVAILABLE
from tests.promises.databags import (
    NAME,
    block_of,
    create,
    delete,
    drain,
    drain_all,
    epochs,
    put,
    receive,
    seal,
)
from tests.queues import SECOND, Server, World, succeeded

pytestmark = pytest.mark.usefixtures("buried")

OFTEN = 100
"""As often as it takes until somebody gives up."""


def written(server: Server) -> set[int]:
    """Blocks to which this server has written messages, or has tried to."""
    return {int(part.key.split(".")[1]) for part in server.store.touched if part.table is BAG_MESSAGES}


async def put_one(server: Server, body: bytes = b"m") -> object:
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(body)])
    return outcome


# --- serials --------------------------------------------------------------------------------------------------------


async def test_a1_two_servers_that_take_serials_at_once_put_two_messages(world: World) -> None:
    """Naive: the same serials twice, and of two messages with one id a blind write leaves one."""
    server, other = world.server(), world.server()
    await create(server)

    async def be_faster() -> None:
        await put(other, b"faster")

    server.store.next("change", SEQUENCES, be_faster)
    await put(server, b"slower")
    assert sorted(await drain(server)) == [b"faster", b"slower"]


async def test_a_put_that_gets_no_serials_did_not_happen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BAG_SERIALS", 1)
    server, other = world.server(), world.server()
    await create(server)

    async def be_faster() -> None:
        await put(other, b"faster")

    rule = server.store.next("change", SEQUENCES, be_faster, times=OFTEN)
    outcome = await put_one(server, b"never")
    assert isinstance(outcome, Unavailable) and written(server) == set()
    server.store.heal()
    assert await drain_all(server) == [b"faster"] * rule.happened


async def test_r6_who_remembers_a_databag_that_is_gone_hears_so_and_writes_nothing(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    await server.engine.stats(world.account, NAME)
    await other.engine.delete_queue(world.account, NAME)
    with pytest.raises(QueueNotFound):
        await put(server, b"late")
    assert not any("body" in row for _, rows in (await world.dump()).values() for row in rows.values())


# --- the look after the write ---------------------------------------------------------------------------------------


async def test_r1_a_put_that_cannot_look_whether_it_will_be_read_is_unknown(world: World) -> None:
    server = world.server()
    await create(server)
    await delete(server, *await put(server, b"first"))
    server.store.next("read", BAG_EPOCHS, UNAVAILABLE, times=limits.READ_ATTEMPTS)
    assert isinstance(await put_one(server), OutcomeUnknown)
    assert await drain_all(server) == [b"m"], "it was written, and comes once"


@pytest.mark.parametrize("tries", [limits.READ_ATTEMPTS - 1, 1])
async def test_r1_a_look_that_fails_is_tried_again_before_anybody_is_told(world: World, tries: int) -> None:
    server = world.server()
    await create(server)
    await delete(server, *await put(server, b"first"))
    server.store.next("read", BAG_EPOCHS, UNAVAILABLE, times=tries)
    await put(server, b"m")
    assert await drain(server) == [b"m"]


async def test_r1_a_put_that_cannot_be_admitted_is_unknown(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server)

    async def seal_all() -> None:
        await seal(other)

    server.store.next("write", BAG_MESSAGES, seal_all)
    server.store.next("change", BAG_EPOCHS, UNAVAILABLE, times=OFTEN)
    assert isinstance(await put_one(server), OutcomeUnknown)
    server.store.heal()
    (block,) = written(server)
    assert (await epochs(world, incarnation, block)).sealed[0].admitted == 0
    assert await drain_all(world.server()) == [b"m"], "nobody has finished its epoch"


async def test_r1_a_put_is_admitted_though_the_epochs_change_once_more(world: World) -> None:
    server, other = world.server(), world.server()
    incarnation = await create(server)

    async def seal_all() -> None:
        await seal(other)

    server.store.next("write", BAG_MESSAGES, seal_all)
    server.store.next("change", BAG_EPOCHS, seal_all)
    (message,) = await put(server, b"late")
    found = await epochs(world, incarnation, block_of(message))
    assert (found.open, [tuple(each) for each in found.sealed]) == (2, [(0, 1), (1, 0)])
    assert await drain(server) == [b"late"]


async def test_r1_a_put_whose_epochs_change_all_the_time_is_unknown_and_comes_once(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)

    async def seal_all() -> None:
        await seal(other)

    async def seal_again() -> None:
        await seal(other, *written(server))

    server.store.next("write", BAG_MESSAGES, seal_all)
    rule = server.store.next("change", BAG_EPOCHS, seal_again, times=OFTEN)
    assert isinstance(await put_one(server, b"late"), OutcomeUnknown)
    assert rule.happened == limits.ADMIT_ROUNDS
    server.store.heal()
    assert await drain_all(server) == [b"late"]


async def test_r1_a_put_into_a_databag_that_is_purged_all_the_time_is_unknown(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)

    async def purge() -> None:
        await other.engine.purge(world.account, NAME)

    rule = server.store.next("write", BAG_MESSAGES, purge, times=OFTEN)
    assert isinstance(await put_one(server), OutcomeUnknown)
    assert rule.happened == limits.PUT_ROUNDS
    server.store.heal()
    await put(server, b"after")
    assert await drain_all(server) == [b"after"]


async def test_r1_of_a_large_group_each_message_has_its_own_outcome(world: World) -> None:
    """Those that lie in other blocks do not share the fate of one whose write fails."""
    server = world.server()
    await create(server)
    await delete(server, *await put(server, b"first"))
    before = written(server)
    lost: list[str] = []

    def of_one_block(write: object) -> bool:
        key = write.partition.key  # type: ignore[attr-defined]
        lost[:] = lost or [key]
        return lost == [key]

    server.store.next("write", BAG_MESSAGES, UNAVAILABLE, when=of_one_block, times=OFTEN)
    count = 3 * limits.BAG_PUT_MESSAGES
    outcomes = await server.put_outcomes(NAME, [NewMessage(b"%d" % number) for number in range(count)])
    server.store.heal()
    failed = {number for number, outcome in enumerate(outcomes) if isinstance(outcome, Unavailable)}
    assert len(failed) == limits.BAG_PUT_MESSAGES and len(written(server) - before) >= 1
    assert {int(body) for body in await drain_all(server)} == set(range(count)) - failed


async def test_a_message_keeps_where_it_came_from(world: World) -> None:
    server = world.server()
    await create(server)
    messages = [NewMessage(b"plain", origin="shop/orders/7"), NewMessage(b"keyed", key="k", origin="shop/orders/8")]
    assert not any(isinstance(outcome, Exception) for outcome in await server.put_outcomes(NAME, messages))
    peeked = {each.body: each.origin for each in await server.engine.peek(world.account, NAME, 10)}
    given = {each.body: each.origin for each in await receive(server)}
    assert peeked == given == {b"plain": "shop/orders/7", b"keyed": "shop/orders/8"}


# --- a databag that is deleted under it -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, "bucketed", DATABAG])
async def test_r6_a_put_whose_databag_is_deleted_after_it_wrote(world: World, kind: str | None) -> None:
    """It may have been given before that; so it is unknown, unless the new queue has taken it."""
    server, other = world.server(), world.server()
    await create(server)
    await put(server, b"before")

    async def delete_it() -> None:
        await other.engine.delete_queue(world.account, NAME)
        if kind is not None:
            await other.create(NAME, kind=kind)

    server.store.next("write", BAG_MESSAGES, delete_it)
    outcome = await put_one(server, b"under way")
    if kind == DATABAG:
        succeeded(outcome)
        assert await drain(other) == [b"under way"]
    else:
        assert isinstance(outcome, OutcomeUnknown)
    if kind == "bucketed":
        assert await other.receive(NAME, 10) == []
        assert await other.put(NAME, b"new") == [0], "no ids were taken from it"


async def test_r6_a_put_to_a_databag_that_is_made_again_all_the_time_is_unknown(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    await put(server, b"before")

    async def make_again() -> None:
        await other.engine.delete_queue(world.account, NAME)
        await create(other)

    rule = server.store.next("write", BAG_MESSAGES, make_again, times=OFTEN)
    assert isinstance(await put_one(server), OutcomeUnknown)
    assert rule.happened == limits.RECEIVE_ROUNDS
    server.store.heal()
    await put(server, b"after")
    assert await drain_all(server) == [b"after"]


@pytest.mark.parametrize("made_again", [False, True])
async def test_r6_a_sync_that_finds_another_databag_of_the_name_goes_to_that(world: World, made_again: bool) -> None:
    """What is remembered of the queue is not old; only the sync is due."""
    server, other = world.server(), world.server()
    await create(server)
    await put(server, b"before")
    world.wait(limits.BAG_SYNC_MS - SECOND)
    await server.engine.find_queue(world.account, NAME)
    await other.engine.delete_queue(world.account, NAME)
    if made_again:
        await create(other)
    world.wait(2 * SECOND)
    if made_again:
        await put(server, b"new")
        assert await drain_all(other) == [b"new"]
    else:
        with pytest.raises(QueueNotFound):
            await put(server, b"new")


# --- deletes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bucketed", DATABAG])
async def test_r6_a_delete_whose_databag_was_made_again(world: World, kind: str) -> None:
    """As a databag it deletes by id what never was there; another kind knows no such receipts."""
    server, other = world.server(), world.server()
    await create(server)
    (message,) = await put(server, b"before")
    world.wait(limits.BAG_STATE_AGE_MS)
    await other.engine.delete_queue(world.account, NAME)
    await other.create(NAME, kind=kind)
    await other.put(NAME, b"new")
    (outcome,) = await delete(server, message)
    assert (type(outcome).__name__ if outcome else None) == ("InvalidReceipt" if kind == "bucketed" else None)
    assert [given.body for given in await other.receive(NAME, 10)] == [b"new"]


async def test_r6_a_delete_in_a_databag_that_is_gone_says_so(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    (message,) = await put(server, b"before")
    world.wait(limits.BAG_STATE_AGE_MS)
    await other.engine.delete_queue(world.account, NAME)
    with pytest.raises(QueueNotFound):
        await delete(server, message)


async def test_r6_a_delete_in_a_databag_that_is_made_again_all_the_time_did_not_happen(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    (message,) = await put(server, b"before")
    world.wait(limits.BAG_STATE_AGE_MS)

    async def make_again() -> None:
        await other.engine.delete_queue(world.account, NAME)
        await create(other)
        await put(other, b"new")

    rule = server.store.next("read", BAG_EPOCHS, make_again, times=OFTEN)
    (outcome,) = await delete(server, message)
    assert isinstance(outcome, Unavailable) and rule.happened == limits.RECEIVE_ROUNDS
    server.store.heal()
    assert await drain_all(server) == [b"new"]


async def test_a_delete_that_cannot_learn_where_its_message_lies_did_not_happen(world: World) -> None:
    server = world.server()
    await create(server)
    (message,) = await put(server, b"m")
    world.wait(limits.BAG_STATE_AGE_MS)
    server.store.next("read", BAG_EPOCHS, UNAVAILABLE)
    (outcome,) = await delete(server, message)
    assert isinstance(outcome, Unavailable)
    assert await drain_all(server) == [b"m"]


# --- purges ---------------------------------------------------------------------------------------------------------


def of_block(block: int) -> object:
    return lambda item: isinstance(item, Span) or item.rows[0].key == block


async def test_a_purge_takes_all_though_epochs_end_meanwhile(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server)
    await put(server, *(b"%d" % number for number in range(100)))

    async def seal_it() -> None:
        await seal(other, 5)

    server.store.next("change", BAG_EPOCHS, seal_it, when=of_block(5))  # type: ignore[arg-type]
    await server.engine.purge(world.account, NAME)
    assert await drain_all(world.server()) == []


async def test_a_purge_whose_first_block_changes_all_the_time_is_unknown(world: World) -> None:
    """A try that was refused may have been done after all, before others changed the block again."""
    server, other = world.server(), world.server()
    await create(server)
    await put(server, *(b"%d" % number for number in range(100)))

    async def seal_it() -> None:
        await seal(other, 0)

    rule = server.store.next("change", BAG_EPOCHS, seal_it, when=of_block(0), times=OFTEN)  # type: ignore[arg-type]
    with pytest.raises(OutcomeUnknown):
        await server.engine.purge(world.account, NAME)
    assert rule.happened == limits.ADMIT_ROUNDS
    server.store.heal()
    assert len(await drain_all(server)) == 100
