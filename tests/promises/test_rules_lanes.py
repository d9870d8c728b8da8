"""R11 lanes, R13 receipts, R14 dropping, R17 separate partitions."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine.schema import BODIES, LEASES, SEQUENCES, STATES
from angelhair.engine.store import Change, Partition
from angelhair.errors import InvalidReceipt, OutcomeUnknown
from angelhair.model import MessageId, NewMessage
from tests.faults import UNAVAILABLE
from tests.promises.steps import finish_around
from tests.queues import SECOND, World

# --- R11: lanes -------------------------------------------------------------------------------------------------------


async def test_r11_sealed_lane_takes_no_puts_and_is_read_to_its_end(world: World) -> None:
    """Naive: drop the lane from the list. A server that did not hear of it puts there; nobody reads it."""
    server, stale = world.server(), world.server()
    await server.create("orders", lanes=4, bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    for _ in range(8):
        await stale.put("orders")
    await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    lanes = set()
    for _ in range(8):
        (outcome,) = await stale.put_outcomes("orders", [NewMessage(b"-")])
        assert isinstance(outcome, MessageId)
        lanes.add(outcome.lane)
    assert lanes == {0}
    assert len(await server.drain("orders")) == 16
    for _ in range(6):
        await server.work("orders", 5 * SECOND)
        await server.drain("orders")
    assert list((await world.queue("orders")).lanes) == [0]
    await server.engine.change_queue(world.account, "orders", {"lanes": 2})
    assert list((await world.queue("orders")).lanes) == [0, 4]


async def test_r11_lane_sealed_in_the_catalog_only(world: World) -> None:
    """Who sealed it died before the sequence row knew. A put that still got through is read before the lane ends."""
    server, stale = world.server(), world.server()
    await server.create("orders", lanes=2, bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    await stale.put("orders", count=1)
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=100)
    with pytest.raises(OutcomeUnknown):
        await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    put = [await stale.put_outcomes("orders", [NewMessage(b"-")]) for _ in range(4)]
    assert {outcome.lane for (outcome,) in put if isinstance(outcome, MessageId)} == {0, 1}
    other = world.server()
    got = len(await other.drain("orders"))
    for _ in range(6):
        await other.work("orders", 5 * SECOND)
        got += len(await other.drain("orders"))
    assert got == 5
    assert list((await world.queue("orders")).lanes) == [0]


async def test_r11_two_change_the_lanes_at_once(world: World) -> None:
    """Naive: last writer wins. Every lane that was made is known, and none is made twice."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders")
    await asyncio.gather(
        *(server.engine.change_queue(world.account, "orders", {"lanes": 2 + n}) for n, server in enumerate(servers))
    )
    queue = await world.queue("orders")
    assert len(queue.open_lanes) == queue.settings.lanes
    assert queue.lanes_made >= 4
    for _ in range(12):
        await servers[0].put("orders")
    got = await servers[1].drain("orders")
    assert len(got) == 12


# --- R13, R14, R17 ----------------------------------------------------------------------------------------------------


async def test_r13_extending_does_not_change_the_receipt(world: World) -> None:
    """Naive: the receipt carries the revision. Every heartbeat would make it stale."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    for _ in range(5):
        assert await server.extend("orders", delivery, 10 * SECOND) is None
        world.wait(5 * SECOND)
    assert await server.ack("orders", delivery) == [None]


async def test_r13_receipts_belong_to_one_incarnation(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    await server.engine.delete_queue(world.account, "orders")
    await server.create("orders")
    await server.put("orders")
    (fresh,) = await server.receive("orders")
    assert [type(item) for item in await server.ack("orders", delivery, fresh)] == [InvalidReceipt, type(None)]


async def test_r13_receipt_of_a_newer_incarnation_than_remembered(world: World) -> None:
    """Naive: call it forged. The server remembers the old queue; the receipt makes it look again."""
    stale, other = world.server(), world.server()
    await stale.create("orders")
    await stale.put("orders")
    await other.engine.delete_queue(world.account, "orders")
    await other.create("orders")
    await other.put("orders")
    (delivery,) = await other.receive("orders")
    assert await stale.ack("orders", delivery) == [None]


async def test_r14_floor_then_bodies_then_states(world: World) -> None:
    """Naive: drop first. A reader between the two would find an old bucket that looks new."""
    server = world.server()
    await server.create("orders", bucket_size=2, history_ms=0)
    await server.put("orders", count=4)
    await server.drain("orders")
    seen: list[tuple[str, int]] = []

    async def see_bodies() -> None:
        seen.append(("bodies", (await world.marks("orders")).floor))

    async def see_states() -> None:
        seen.append(("states", (await world.marks("orders")).floor))

    server.store.next("drop", BODIES, see_bodies)
    server.store.next("drop", STATES, see_states)
    await server.work("orders", 5 * SECOND)
    assert seen == [("bodies", 2), ("states", 2)]
    assert (await world.marks("orders")).dropped == 2


@pytest.mark.parametrize("claiming", [True, False], ids=["before its claim", "before its opening"])
async def test_r14_server_that_slept_through_the_drop_delivers_nothing(world: World, claiming: bool) -> None:
    """Naive: claim what one remembers. A dropped bucket looks like one that was never claimed from."""
    server, sleeper = world.server(), world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND, history_ms=0)
    await server.put("orders", count=4)
    asleep = sleeper.store.next(
        "change", STATES, lambda: finish_around(server), when=lambda change: bool(change.rows) is claiming
    )
    assert await sleeper.receive("orders", 4) == []
    assert asleep.happened == 1
    assert (await world.marks("orders")).dropped == 2
    assert [key for key in await world.dump() if key[0] == "bodies"] == []
    assert not any(rows for (table, _), (_, rows) in (await world.dump()).items() if table == "states")
    assert await sleeper.receive("orders", 4) == []


async def test_r17_puts_receives_and_leases_do_not_share_a_partition(world: World) -> None:
    """Naive: one row for everything. Paxos would line up puts behind receives."""
    server = world.server()
    await server.create("orders", bucket_size=2)
    changed: list[Partition] = []

    def note(change: Change) -> bool:
        changed.append(change.partition)
        return False

    server.store.next("change", None, UNAVAILABLE, when=note)
    await server.put("orders", count=4)
    by_put, changed[:] = set(changed), []
    await server.receive("orders", 4)
    by_receive, changed[:] = set(changed), []
    await server.step("orders")
    by_lease = {partition for partition in changed if partition.table is LEASES}
    assert by_put and by_receive and by_lease
    assert not by_put & by_receive
    assert not by_lease & (by_put | by_receive)
