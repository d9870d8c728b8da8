"""A2: a delivered message is invisible until its time-out passes or it is acked, within the stated clock error."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import STATES
from angelhair.errors import AngelhairError, NotInFlight, OutcomeUnknown, StaleReceipt
from angelhair.model import WantedChange
from tests.faults import LOSE_ANSWER
from tests.queues import DAY, HOUR, SECOND, World, numbers


async def test_a02_hidden_for_exactly_its_time_out(world: World) -> None:
    """Naive: round times to the wake index's slots, or look only when the index says so."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    assert delivery.visible_at_ms == world.dial.wall_ms + 10 * SECOND
    world.wait(10 * SECOND - 1)
    assert await server.receive("orders") == []
    world.wait(1)
    assert numbers(await server.receive("orders")) == [0]


async def test_a02_hidden_from_every_server(world: World) -> None:
    """Naive: hide in the memory of one server."""
    servers = [world.server() for _ in range(3)]
    await servers[0].create("orders", visibility_timeout_ms=10 * SECOND)
    await servers[0].put("orders", count=3)
    await servers[0].receive("orders", 3)
    for _ in range(9):
        for server in servers:
            assert await server.receive("orders", 3) == []
        world.wait(SECOND)
    world.wait(3 * SECOND)
    assert numbers(await servers[1].receive("orders", 3)) == [0, 1, 2]


async def test_a02_extended_released_and_shortened(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders", count=3)
    long, short, released = await server.receive("orders", 3)
    assert await server.extend("orders", long, HOUR) is None
    assert await server.extend("orders", short, 3 * SECOND) is None
    assert await server.extend("orders", released, 0) is None
    assert numbers(await server.receive("orders", 3)) == [2]
    world.wait(5 * SECOND)
    assert numbers(await other.receive("orders", 3, HOUR)) == [1]
    world.wait(20 * SECOND)
    assert numbers(await server.receive("orders", 3, HOUR)) == [2]
    world.wait(HOUR)
    assert 0 in numbers(await server.receive("orders", 3, HOUR))


async def test_a02_change_of_unknown_outcome_is_settled(world: World) -> None:
    """Naive: report an error for an extension that holds, or success for one that does not."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders")
    (delivery,) = await server.receive("orders")
    server.store.next("change", STATES, LOSE_ANSWER)
    assert await server.extend("orders", delivery, HOUR) is None
    world.wait(30 * SECOND)
    assert await server.receive("orders") == []


async def test_a02_two_changes_of_one_message_in_one_request(world: World) -> None:
    """Naive: put both into one conditional write, which names a row twice."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders", b"old")
    (delivery,) = await server.receive("orders")
    wishes = [
        WantedChange(delivery.receipt, HOUR),
        WantedChange(delivery.receipt, body=b"new"),
        WantedChange(delivery.receipt, SECOND),
    ]
    assert await server.engine.change(world.account, "orders", wishes) == [None, None, None]
    world.wait(2 * SECOND)
    (again,) = await server.receive("orders")
    assert (again.body, again.deliveries) == (b"new", 2)


@pytest.mark.parametrize("fault", [None, LOSE_ANSWER])
async def test_a02_a_change_of_what_is_in_flight_only(world: World, fault: str | None) -> None:
    """Naive, when the answer was lost: read the message again, and take one's own release for the end of its time."""
    server = world.server()
    await server.create("orders", visibility_timeout_ms=10 * SECOND)
    await server.put("orders")
    (delivery,) = await server.receive("orders")

    async def hide(visibility_ms: int, in_flight: bool = True) -> AngelhairError | None:
        if fault is not None:
            server.store.next("change", STATES, fault)
        wanted = WantedChange(delivery.receipt, visibility_ms, in_flight=in_flight)
        (outcome,) = await server.engine.change(world.account, "orders", [wanted])
        server.store.heal()
        return outcome

    assert await hide(20 * SECOND) is None
    world.wait(19 * SECOND)
    assert await hide(0) is None
    assert isinstance(await hide(HOUR), NotInFlight)
    # It is as visible as before; and a consumer who may be late is still allowed to take it back.
    assert await hide(5 * SECOND, in_flight=False) is None
    assert await server.receive("orders") == []
    world.wait(5 * SECOND)
    assert isinstance(await hide(HOUR), NotInFlight)
    assert numbers(await server.receive("orders")) == [0]
    stale = await hide(HOUR)
    assert isinstance(stale, StaleReceipt) and not isinstance(stale, NotInFlight)


async def test_a02_a_release_that_was_overtaken_is_not_denied(world: World) -> None:
    """Naive: say that the receipt is stale and nothing was changed, though it was this release that made it so."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=HOUR)
    await server.put("orders")
    (delivery,) = await server.receive("orders")

    async def taken() -> None:
        world.wait(2 * SECOND)
        assert numbers(await other.receive("orders")) == [0]

    server.store.next("change", STATES, LOSE_ANSWER)
    server.store.next("change", STATES, taken)
    assert isinstance(await server.extend("orders", delivery, 0), OutcomeUnknown)
    assert isinstance(await server.extend("orders", delivery, 0), StaleReceipt)


async def test_a02_each_ask_has_its_own_visibility(world: World) -> None:
    server = world.server()
    await server.create("orders", visibility_timeout_ms=HOUR)
    await server.put("orders", count=2)
    assert numbers(await server.receive("orders", 1, 5 * SECOND)) == [0]
    assert numbers(await server.receive("orders", 1)) == [1]
    world.wait(6 * SECOND)
    assert numbers(await server.receive("orders", 2)) == [0]


async def test_a02_acked_is_never_visible_again(world: World) -> None:
    """Naive: an ack that only removes the message from memory."""
    server, other = world.server(), world.server()
    await server.create("orders", visibility_timeout_ms=SECOND)
    await server.put("orders", count=2)
    first, _ = await server.receive("orders", 2)
    assert await server.ack("orders", first) == [None]
    world.wait(DAY)
    await server.step("orders")
    world.wait(2 * SECOND)
    assert numbers(await other.receive("orders", 10)) == [1]
    assert isinstance(await server.extend("orders", first, HOUR), StaleReceipt)
