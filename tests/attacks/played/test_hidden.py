"""Messages that a failed receive forgets."""

from __future__ import annotations

import pytest

from angelhair.engine.schema import BODIES
from angelhair.errors import StoreError
from tests.faults import UNAVAILABLE
from tests.queues import HOUR, SECOND, World


@pytest.mark.parametrize("working", [False, True])
@pytest.mark.parametrize("size", [1, 4])
async def test_a_failed_look_for_new_ones_hides_those_that_are_visible_again(world: World, working, size) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", bucket_size=size, repair_timeout_ms=5 * SECOND, visibility_timeout_ms=20 * SECOND)
    await server.put("orders", *[b"old"] * size)
    assert len(await server.receive("orders", size)) == size
    for _ in range(21):
        if working:
            await server.step("orders")
        await server.receive("orders", size) if _ < 18 else None
        world.wait(SECOND)
    await other.put("orders", b"new")
    server.store.next("read", BODIES, UNAVAILABLE, when=lambda span: span.columns is None, times=1)
    with pytest.raises(StoreError):
        await server.receive("orders", 10)
    server.store.heal()
    got = []
    waited = 0
    for _ in range(120):
        got += [d.body for d in await server.receive("orders", 10, hide_ms=24 * HOUR)]
        if got.count(b"old") == size:
            break
        if working:
            await server.step("orders")
        world.wait(SECOND)
        waited += 1
    assert waited <= 10, (waited, got)


@pytest.mark.parametrize("working", [False, True])
async def test_a_claim_that_was_never_sent_hides_nothing(world: World, working) -> None:
    """The wake row before it could not be written: the claim provably was not made, and nobody has the message."""
    from angelhair.engine.schema import WAKES

    server = world.server()
    await server.create("orders", bucket_size=1, repair_timeout_ms=5 * SECOND, visibility_timeout_ms=20 * SECOND)
    await server.put("orders", b"old", b"x")
    assert len(await server.receive("orders", 2)) == 2
    for _ in range(21):
        if working:
            await server.step("orders")
        if _ < 18:
            await server.receive("orders")
        world.wait(SECOND)
    server.store.next("write", WAKES, UNAVAILABLE, times=1000)
    with pytest.raises(StoreError):
        await server.receive("orders", 10, hide_ms=12 * HOUR)
    server.store.heal()
    waited, got = 0, []
    for _ in range(120):
        got += await server.receive("orders", 10, hide_ms=24 * HOUR)
        if len(got) == 2:
            break
        if working:
            await server.step("orders")
        world.wait(SECOND)
        waited += 1
    assert waited <= 10, (waited, [d.body for d in got])
