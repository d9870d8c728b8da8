"""`Unavailable` means that it provably did not happen."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES, LEASES, POINTERS, SEQUENCES, STATES
from angelhair.errors import OutcomeUnknown, QueueNotFound, StoreError, Unavailable
from angelhair.model import NewMessage, WantedChange
from tests.faults import LOSE_ANSWER, UNAVAILABLE, Between
from tests.queues import DAY, HOUR, MINUTE, SECOND, World


async def test_delete_queue(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"m")
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=1000)
    with pytest.raises(StoreError) as raised:
        await server.engine.delete_queue(world.account, "orders")
    with pytest.raises(QueueNotFound):
        await other.put("orders", b"n")
    assert isinstance(raised.value, OutcomeUnknown), repr(raised.value)


async def test_change_queue(world: World) -> None:
    server = world.server()
    await server.create("orders", lanes=2)
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=1000)
    with pytest.raises(StoreError) as raised:
        await server.engine.change_queue(world.account, "orders", {"lanes": 1})
    assert (await world.queue("orders")).settings.lanes == 1
    assert isinstance(raised.value, OutcomeUnknown), repr(raised.value)


async def test_purge(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", lanes=2)
    for _ in range(4):
        await server.put("orders", b"m")
    server.store.next(
        "change", POINTERS, UNAVAILABLE, times=1000, when=lambda change: change.partition.key.endswith(".1")
    )
    with pytest.raises(StoreError) as raised:
        await server.engine.purge(world.account, "orders")
    left = await other.drain("orders")
    assert len(left) == 2  # half of them is gone
    assert isinstance(raised.value, OutcomeUnknown), repr(raised.value)


async def test_move_back(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=1, repair_timeout_ms=SECOND, history_ms=HOUR)
    await server.put("orders", b"a", b"b")
    await server.drain("orders")
    await world.work("orders", MINUTE, [server])
    assert (await world.marks("orders")).repair >= 1

    async def blind() -> None:
        server.store.next("read", POINTERS, UNAVAILABLE, times=1000)

    server.store.next("change", POINTERS, blind)
    with pytest.raises(StoreError) as raised:
        await server.engine.move_back(world.account, "orders", 0, 0)
    assert (await world.marks("orders")).repair == 0
    assert isinstance(raised.value, OutcomeUnknown), repr(raised.value)


async def test_archived_up_to(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=1, repair_timeout_ms=SECOND, history_ms=HOUR, archive=True)
    await server.put("orders", b"a", b"b")
    await server.drain("orders")
    await world.work("orders", MINUTE, [server])

    async def blind() -> None:
        server.store.next("read", POINTERS, UNAVAILABLE, times=1000)

    server.store.next("change", POINTERS, blind)
    with pytest.raises(StoreError) as raised:
        await server.engine.archived_up_to(world.account, "orders", 0, 1)
    assert (await world.marks("orders")).archived == 1
    assert isinstance(raised.value, OutcomeUnknown), repr(raised.value)


async def test_redrive(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("to")
    await server.create("orders", bucket_size=1)
    await server.put("orders", b"a", b"b")
    server.store.next(
        "change",
        STATES,
        UNAVAILABLE,
        times=1000,
        when=lambda change: change.partition.key.endswith(".1") and bool(change.rows),
    )
    with pytest.raises(StoreError) as raised:
        await server.engine.redrive(world.account, "orders", "to", 10)
    assert len(await other.drain("to")) == 1
    assert isinstance(raised.value, OutcomeUnknown), repr(raised.value)


async def test_change_of_a_body(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders", b"old")
    (delivery,) = await server.receive("orders")

    async def meanwhile() -> None:
        assert await other.extend("orders", delivery, 5 * SECOND) is None
        server.store.next("read", STATES, UNAVAILABLE, times=1000)

    server.store.next("change", STATES, LOSE_ANSWER)
    server.store.next("change", STATES, meanwhile)
    (outcome,) = await server.engine.change(world.account, "orders", [WantedChange(delivery.receipt, body=b"new")])
    world.wait(20 * SECOND)
    (again,) = await other.receive("orders")
    assert again.body == b"new"
    assert isinstance(outcome, OutcomeUnknown), repr(outcome)


class Closing(Between):
    armed = False
    writes = 0

    async def _pass(self, verb, items):
        if self.armed and verb == "write" and any(item.partition.table is BODIES for item in items):
            self.writes += 1
            if self.writes == 2:
                raise Unavailable("the store is closed")
        return await super()._pass(verb, items)


async def test_put_of_one_with_a_key_and_one_without(world: World) -> None:
    """SQLite's store raises when it is closed: between the two halves of the put."""
    closing = Closing(world.store)
    server, other = world.server(store=closing), world.server()
    await server.create("orders")
    closing.armed = True
    try:
        outcome = (await server.put_outcomes("orders", [NewMessage(b"k", key="k"), NewMessage(b"p")]))[0]
    except StoreError as error:
        outcome = error
    assert [d.body for d in await other.drain("orders")] == [b"k"]
    assert not isinstance(outcome, Unavailable), repr(outcome)


async def test_a12_a_lease_that_cannot_be_read_keeps_no_server_from_its_share(world: World) -> None:
    first, second = world.server(), world.server()
    await first.create("orders", lanes=4)
    await world.work("orders", 5 * SECOND, [first])
    second.store.next("read", LEASES, UNAVAILABLE, times=10**9, when=lambda span: span.partition.key.endswith(".0"))
    for _ in range(120):
        for server in (first, second):
            try:
                await server.engine.step(world.account, "orders")
            except StoreError:
                pass
        world.wait(SECOND)
    now = second.clock.now()
    held = [key for key, worker in second.engine.memory.workers.items() if worker.lease.held(now)]
    assert held


async def test_cost_of_a_step_with_a_wrong_clock_does_not_grow_with_the_square_of_lanes(world: World) -> None:
    first, wrong = world.server(), world.server(ahead_ms=DAY)
    lanes = 32
    await first.create("orders", lanes=lanes)
    await world.work("orders", 20 * SECOND, [first, wrong])
    reads = 0
    real = wrong.store.real.read

    async def read(spans):
        nonlocal reads
        reads += sum(span.partition.table is LEASES for span in spans)
        return await real(spans)

    class Counting(Between):
        async def read(self, spans):
            return await read(spans)

    wrong.store.real = Counting(wrong.store.real)
    await wrong.engine.step(world.account, "orders")
    assert reads <= 4 * lanes, reads
