"""R7: moves between queues are one primitive. R10: so are de-duplication and idempotency."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, KEYS, POINTERS, SEQUENCES, STATES
from angelhair.errors import OutcomeUnknown, StaleReceipt, Unavailable
from angelhair.model import NewMessage, WantedChange
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.promises.steps import finish_around
from tests.queues import HOUR, MINUTE, SECOND, Server, World, numbers

# --- R7: transfer -----------------------------------------------------------------------------------------------------


async def exhausted(server: Server, **settings: object) -> None:
    """One poison message in `orders` that has used up its deliveries."""
    await server.create("coffin", bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    await server.create(
        "orders", bucket_size=4, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue="coffin", **settings
    )
    await server.put("orders", b"poison", attributes='{"a":1}')
    await server.receive("orders")
    server.world.wait(2 * SECOND)
    assert await server.receive("orders") == []


async def settle_moves(world: World, server: Server) -> None:
    await world.work("orders", 2 * MINUTE, [server], every_ms=8 * SECOND)


@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE, ARRIVE_LATE])
@pytest.mark.parametrize(("verb", "table"), [("change", STATES), ("write", BODIES), ("change", SEQUENCES)])
async def test_r07_moved_once_whatever_fails(world: World, verb: str, table: object, fault: str) -> None:
    """Naive: copy, then delete. Every step fails in every way; the message arrives once, and only there."""
    server = world.server()
    await exhausted(server)
    server.store.next(verb, table, fault, times=limits.SETTLE_ATTEMPTS + 1)  # type: ignore[arg-type]
    try:
        await server.step("orders")
    except (Unavailable, OutcomeUnknown):
        pass
    server.store.heal()
    await settle_moves(world, server)
    await server.store.land()
    await settle_moves(world, server)
    assert await server.receive("orders") == []
    (arrived,) = await server.drain("coffin")
    assert (arrived.body, arrived.attributes, arrived.deliveries) == (b"poison", '{"a":1}', 1)
    assert arrived.origin == f"{world.account}/orders/0-0"


async def test_r07_target_bucket_finished_while_the_mover_slept(world: World) -> None:
    """Naive: write at the reserved id and call it done. Its bucket was finished and dropped meanwhile."""
    server, other = world.server(), world.server()
    await exhausted(server)

    async def finish_target() -> None:
        await other.put("coffin", count=4)
        await other.drain("coffin")
        for _ in range(4):
            await other.work("coffin", 3 * SECOND)
            await other.drain("coffin")

    server.store.next("write", BODIES, finish_target)
    await server.step("orders")
    assert (await world.marks("coffin")).dropped >= 1
    assert [item.body for item in await server.drain("coffin")] == [b"poison"]
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values.get("settled") == "dead"


async def test_r07_target_deleted_on_the_way_gives_the_message_back(world: World) -> None:
    """Naive: a message that is moving to a queue that is no more stays there for ever."""
    server, other = world.server(), world.server()
    await exhausted(server)
    server.store.next("write", BODIES, UNAVAILABLE, times=100)
    await server.step("orders")
    server.store.heal()
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values.get("settled") == "moving"
    await other.engine.delete_queue(world.account, "coffin")
    got: list[bytes] = []
    for _ in range(30):
        await world.work("orders", 5 * SECOND, [other])
        got += [item.body for item in await other.receive("orders", 1, HOUR)]
        if got:
            break
    assert got == [b"poison"]


async def test_r07_mover_that_overslept_does_not_settle_what_was_given_back(world: World) -> None:
    """Naive: settle the source blindly. The target was deleted while the mover slept, and the message given back."""
    server, other = world.server(), world.server()
    await exhausted(server)
    got: list[bytes] = []

    async def give_back() -> None:
        await other.engine.delete_queue(world.account, "coffin")
        for _ in range(30):
            await world.work("orders", 5 * SECOND, [other])
            got.extend(item.body for item in await other.receive("orders", 1, HOUR))
            if got:
                return

    settling = server.store.next(
        "change", STATES, give_back,
        when=lambda change: any((row.values or {}).get("settled") == "dead" for row in change.rows),
    )
    await server.step("orders")
    assert settling.happened == 1
    assert got == [b"poison"]
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values.get("settled") is None


async def test_r07_rewritten_body_travels(world: World) -> None:
    """Naive: move what was put, not what it was changed to."""
    server = world.server()
    await server.create("elsewhere")
    await server.create("orders")
    await server.put("orders", b"as put")
    (delivery,) = await server.receive("orders")
    (outcome,) = await server.engine.change(world.account, "orders", [WantedChange(delivery.receipt, 0, b"as changed")])
    assert outcome is None
    assert [item.body for item in await server.engine.peek(world.account, "orders", 5)] == [b"as changed"]
    assert await server.engine.redrive(world.account, "orders", "elsewhere", 10) == 1
    assert [item.body for item in await server.receive("elsewhere")] == [b"as changed"]
    assert [type(item) for item in await server.ack("orders", delivery)] == [StaleReceipt]


async def test_r07_redrive_of_messages_never_delivered(world: World) -> None:
    """They have no state row yet; the move makes one, and no reader can claim them any more."""
    server, reader = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders", bucket_size=4)
    await server.put("orders", count=10)
    assert numbers(await reader.receive("orders", 1, HOUR)) == [0]
    assert await server.engine.redrive(world.account, "orders", "elsewhere", 5) == 5
    assert sorted(numbers(await reader.receive("orders", 10, HOUR))) == [6, 7, 8, 9]
    assert len(await server.drain("elsewhere")) == 5


async def test_r07_redrive_races_with_consumers(world: World) -> None:
    """Naive: move what was seen. What was claimed, moved or settled meanwhile is left out, the rest goes."""
    server, consumer = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders", bucket_size=8, visibility_timeout_ms=HOUR)
    await server.put("orders", count=6)

    async def consume() -> None:
        await consumer.take("orders", 2)

    server.store.next("change", STATES, consume)
    assert await server.engine.redrive(world.account, "orders", "elsewhere", 10) == 4
    assert len(await server.drain("elsewhere")) == 4
    assert await server.receive("orders", 10) == []


async def test_r07_redrive_to_a_queue_that_was_made_again(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("elsewhere")
    await server.create("orders")
    await server.put("orders")
    await server.put("elsewhere", b"old")
    await other.engine.delete_queue(world.account, "elsewhere")
    await other.create("elsewhere")
    moved = 0
    for _ in range(3):
        moved += await server.engine.redrive(world.account, "orders", "elsewhere", 10)
    assert moved == 1
    assert numbers(await other.receive("elsewhere", 10)) == [0]


# --- R10: one mechanism for de-duplication ----------------------------------------------------------------------------


async def test_r10_same_key_is_one_message(world: World) -> None:
    """Naive: check, then put. Several servers put the same key at once."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders", repair_timeout_ms=SECOND, bucket_size=4)
    given = await asyncio.gather(*(server.put("orders", b"once", key="k") for server in servers for _ in range(2)))
    assert len({number for group in given for number in group}) == 1
    world.wait(5 * SECOND)
    got = []
    for _ in range(3):
        got += await servers[0].drain("orders")
        await servers[0].work("orders", 5 * SECOND)
    assert [item.body for item in got] == [b"once"]


@pytest.mark.parametrize("table", [KEYS, BODIES, POINTERS])
@pytest.mark.parametrize("fault", [LOSE_ANSWER, NEVER_SENT, UNAVAILABLE])
async def test_r10_whoever_finds_it_pending_completes_it(world: World, table: object, fault: str) -> None:
    """Naive: a key that is marked used before the message is there. Its put dies anywhere; the next completes it."""
    server, other = world.server(), world.server()
    await server.create("orders", repair_timeout_ms=SECOND)
    verb = {KEYS: "change", BODIES: "write", POINTERS: "read"}[table]  # type: ignore[index]
    server.store.next(verb, table, fault, times=100)  # type: ignore[arg-type]
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k")])
    assert isinstance(outcome, Unavailable | OutcomeUnknown)
    if fault == LOSE_ANSWER:
        assert isinstance(outcome, OutcomeUnknown) or table is POINTERS
    (number,) = await other.put("orders", b"once", key="k")
    assert await other.put("orders", b"once", key="k") == [number]
    world.wait(SECOND)
    got = await other.drain("orders")
    assert [item.body for item in got] == [b"once"]


async def test_r10_pending_key_whose_bucket_was_finished(world: World) -> None:
    """Naive: complete the write at an id that nobody reads any more. The key moves on to a new id."""
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND, history_ms=0, dedup_window_ms=HOUR)
    server.store.next("write", BODIES, UNAVAILABLE, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k")])
    assert isinstance(outcome, Unavailable)
    await other.put("orders", count=3)
    await finish_around(other)
    assert (await world.marks("orders")).dropped >= 1
    given = await other.put("orders", b"once", key="k")
    assert given != [0]
    assert await other.put("orders", b"once", key="k") == given
    world.wait(SECOND)
    assert [item.body for item in await other.drain("orders")] == [b"once"]


async def test_r10_window_ends(world: World) -> None:
    """Keys are forgotten after the queue's window, also where the store has not let go of the row yet."""
    server = world.server()
    await server.create("orders", dedup_window_ms=MINUTE)
    assert await server.put("orders", b"1", key="k") == [0]
    world.wait(59 * SECOND)
    assert await server.put("orders", b"1", key="k") == [0]
    world.wait(2 * SECOND)
    assert (await server.put("orders", b"2", key="k"))[0] > 0
    assert [item.body for item in await server.drain("orders")] == [b"1", b"2"]
