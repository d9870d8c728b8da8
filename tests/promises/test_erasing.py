"""What a message says can be erased, wherever it stands; its id is still accounted for."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES, STATES
from angelhair.errors import OutcomeUnknown, StaleReceipt, Unavailable
from angelhair.model import MessageId, NewMessage, WantedChange
from tests.faults import UNAVAILABLE
from tests.queues import HOUR, SECOND, World, numbers

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


async def said(world: World, number: int) -> dict[str, object]:
    states, bodies = await world.bucket("orders", number // 2)
    state = {row.key: row.values for row in states.rows}.get(number, {})
    body = bodies[number].values
    return {
        "body": body.get("body"), "attributes": body.get("attributes"), "changed": state.get("body"),
        "settled": state.get("settled"),
    }


async def test_a_waiting_message_is_given_to_nobody(world: World) -> None:
    """Also not by a server that has read it ahead."""
    first, second = world.server(), world.server()
    await first.create("orders", **SETTINGS)
    await first.put_outcomes("orders", [NewMessage(b"who %d" % number, '{"name": "me"}') for number in range(4)])
    assert numbers(await second.receive("orders", 1)) == [0]
    assert await first.engine.erase(world.account, "orders", MessageId(0, 1))
    assert await said(world, 1) == {"body": b"", "attributes": None, "changed": None, "settled": "erased"}
    assert numbers(await second.receive("orders", 10)) == [2, 3]
    await world.work("orders", 60 * SECOND, [first])
    taken = numbers(await first.drain("orders"))
    assert sorted(taken) == [0, 2, 3]
    await world.work("orders", 30 * SECOND, [first])
    assert (await world.marks("orders")).repair == 2
    assert await first.engine.erase(world.account, "orders", MessageId(0, 1))


async def test_one_in_flight_is_settled_and_its_changed_body_goes(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"who")
    (delivery,) = await server.receive("orders")
    changes = [WantedChange(delivery.receipt, body=b"changed")]
    assert await server.engine.change(world.account, "orders", changes) == [None]
    assert await server.engine.erase(world.account, "orders", MessageId(0, 0))
    assert await said(world, 0) == {"body": b"", "attributes": None, "changed": None, "settled": "erased"}
    (outcome,) = await server.ack("orders", delivery)
    assert isinstance(outcome, StaleReceipt)
    world.wait(HOUR)
    assert await server.receive("orders", 10) == []


async def test_one_in_a_finished_bucket_stays_what_it_was(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"a", b"b")
    await server.drain("orders")
    await server.work("orders", 30 * SECOND)
    assert await server.engine.erase(world.account, "orders", MessageId(0, 1))
    assert await said(world, 1) == {"body": b"", "attributes": None, "changed": None, "settled": "acked"}
    assert (await said(world, 0))["body"] == b"a"


async def test_what_is_not_there_and_what_failed_is_said(world: World) -> None:
    server = world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"who")
    assert not await server.engine.erase(world.account, "orders", MessageId(0, 7))
    server.store.next("change", STATES, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await server.engine.erase(world.account, "orders", MessageId(0, 0))
    assert (await said(world, 0))["settled"] is None
    server.store.next("write", BODIES, UNAVAILABLE, times=100)
    with pytest.raises((Unavailable, OutcomeUnknown)):
        await server.engine.erase(world.account, "orders", MessageId(0, 0))
    server.store.heal()
    assert (await said(world, 0))["body"] == b"who"
    # Half done is done by the next try.
    assert await server.engine.erase(world.account, "orders", MessageId(0, 0))
    assert (await said(world, 0))["body"] == b""
