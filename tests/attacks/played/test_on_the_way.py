"""Moves and erasing that are met by others on the way: purges, deletions, other servers, a store that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from angelhair.engine.schema import POINTERS, SEQUENCES, STATES
from angelhair.engine.store import Change
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import MessageId, NewMessage
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.queues import HOUR, MINUTE, SECOND, Server, World, numbers

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


def goes_on(change: Change) -> bool:
    return any((row.values or {}).get("moving_before") is not None for row in change.rows)


def voids(change: Change) -> bool:
    return any((row.values or {}).get("settled") == "void" for row in change.rows)


async def half_moved(world: World, other: Server) -> None:
    """A message is in its dead-letter queue, and its source does not know: who moved it died."""
    failing = world.server()
    await other.create("dead", **SETTINGS)
    await other.create("orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND, **SETTINGS)
    await other.put("orders", b"who")
    assert numbers(await failing.receive("orders")) == [0]
    failing.store.next(
        "change", STATES, NEVER_SENT, times=1000,
        when=lambda change: any((row.values or {}).get("settled") == "dead" for row in change.rows),
    )
    await world.work("orders", 5 * SECOND, [failing])
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values["settled"] == "moving"


async def settled(world: World) -> object:
    states, _ = await world.bucket("orders", 0)
    return states.rows[0].values["settled"]


async def test_r7_one_that_is_given_out_while_its_move_goes_on_is_not_moved_again(world: World) -> None:
    """A receive had read the marks before the purge, and claims before the void."""
    other, receiver = world.server(), world.server()
    await half_moved(world, other)
    at_claim, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        at_claim.set()
        await go_on.wait()

    receiver.store.next("change", STATES, hold, when=lambda change: bool(change.rows))
    receiving = asyncio.create_task(receiver.receive("dead"))
    await asyncio.wait_for(at_claim.wait(), 10)
    await other.engine.purge(world.account, "dead")
    got: list[MessageId] = []

    async def let_claim() -> None:
        go_on.set()
        got.extend(delivery.id for delivery in await receiving)

    other.store.next("change", STATES, let_claim, when=voids)
    await world.work("orders", 3 * MINUTE, [other])
    assert await settled(world) == "dead"
    assert got == [MessageId(0, 0)]
    assert await other.drain("dead") == []


@pytest.mark.parametrize("happening", ["another", "lost"])
async def test_r7_a_move_that_cannot_go_on_is_left_to_others(world: World, happening: str) -> None:
    other, faster = world.server(), world.server()
    await half_moved(world, other)
    await other.engine.purge(world.account, "dead")
    tasks: dict[str, Callable[[], Awaitable[None]]] = {
        "another": lambda: world.work("orders", 3 * MINUTE, [faster]),
    }
    other.store.next("change", STATES, tasks.get(happening, NEVER_SENT), when=goes_on, times=10)  # type: ignore[arg-type]
    await world.work("orders", 3 * MINUTE, [other])
    other.store.heal()
    await world.work("orders", 5 * MINUTE, [other, faster])
    assert await settled(world) == "dead"
    assert [delivery.body for delivery in await other.drain("dead")] == [b"who"]


@pytest.mark.parametrize("sealed", [False, True])
async def test_r7_a_target_that_goes_meanwhile_gives_the_message_back(world: World, sealed: bool) -> None:
    other, operator = world.server(), world.server()
    await half_moved(world, other)
    await other.engine.purge(world.account, "dead")

    async def meanwhile() -> None:
        if sealed:
            await operator.engine.change_queue(world.account, "dead", {"lanes": 2})
        await operator.engine.delete_queue(world.account, "dead")

    other.store.next("change", SEQUENCES, meanwhile)
    await world.work("orders", 3 * MINUTE, [other])
    got = []
    for _ in range(3):
        # Where it could go is looked for once more, before it is delivered on.
        got += [delivery.body for delivery in await other.drain("orders")]
        await world.work("orders", 2 * SECOND, [other])
    assert got == [b"who"]


async def test_erasing_what_is_dropped_or_on_the_move(world: World) -> None:
    other = world.server()
    await half_moved(world, other)
    with pytest.raises(Unavailable, match="erase it there"):
        await other.engine.erase(world.account, "orders", MessageId(0, 0))
    await other.create("gone", **{**SETTINGS, "history_ms": 0})
    await other.put("gone", b"a", b"b", b"c")
    await other.drain("gone")
    await world.work("gone", MINUTE, [other])
    assert (await world.marks("gone")).floor == 1
    assert not await other.engine.erase(world.account, "gone", MessageId(0, 0))


async def test_erasing_meets_others(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=SECOND, **SETTINGS)
    await server.put("orders", b"a", b"b")

    async def claim() -> None:
        assert numbers(await other.receive("orders", 1)) == [0]

    server.store.next("change", STATES, claim)
    assert await server.engine.erase(world.account, "orders", MessageId(0, 0))

    async def again() -> None:
        world.wait(2 * SECOND)
        await other.receive("orders", 1)

    server.store.next("change", STATES, again, times=1000)
    with pytest.raises(OutcomeUnknown, match="too many servers"):
        await server.engine.erase(world.account, "orders", MessageId(0, 1))
    server.store.heal()
    server.store.next("change", POINTERS, UNAVAILABLE, times=1000)
    await server.put("orders", b"c")
    with pytest.raises(Unavailable):
        await server.engine.erase(world.account, "orders", MessageId(0, 2))
    server.store.heal()
    world.wait(2 * SECOND)
    assert {delivery.body for delivery in await other.receive("orders", 10)} == {b"b", b"c"}


async def test_a_writer_below_the_mark_looks_and_leaves_what_was_not_erased(world: World) -> None:
    sleeper, other = world.server(), world.server()
    await other.create("orders", **SETTINGS)
    reserved = await sleeper.engine.reserve(world.account, "orders", 1)
    await other.put("orders", b"erased")
    assert await other.engine.erase(world.account, "orders", MessageId(0, 1))
    assert await sleeper.engine.put_reserved(reserved, [NewMessage(b"kept")]) == [MessageId(0, 0)]
    _, bodies = await world.bucket("orders", 0)
    assert [bodies[number].values["body"] for number in (0, 1)] == [b"kept", b""]
