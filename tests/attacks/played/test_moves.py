"""Moves that stood still, lanes that were made a moment ago."""

from __future__ import annotations

from collections import Counter

import pytest

from angelhair.engine.schema import BODIES, POINTERS
from angelhair.errors import StoreError
from angelhair.model import MessageId, NewMessage
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.queues import HOUR, MINUTE, SECOND, World, numbers

SETTINGS = {"bucket_size": 2, "repair_timeout_ms": 5 * SECOND, "history_ms": HOUR}


@pytest.mark.parametrize("kept_ms", [MINUTE, HOUR])  # HOUR: the control, which passes
@pytest.mark.parametrize("redrive", [False, True])
async def test_a1_a_move_that_stood_still_longer_than_the_targets_retention(world: World, redrive, kept_ms) -> None:
    """All servers die between the mark `moving` and the target's row; days later others go on with it."""
    dying, other = world.server(), world.server()
    await other.create("dead", retention_ms=kept_ms, **SETTINGS)
    await other.create(
        "orders",
        max_deliveries=None if redrive else 1,
        dead_letter_queue=None if redrive else "dead",
        visibility_timeout_ms=SECOND,
        retention_ms=None,
        **SETTINGS,
    )
    await other.put("orders", b"who")
    dying.store.next("write", BODIES, NEVER_SENT, times=1000)
    if redrive:
        try:
            await dying.engine.redrive(world.account, "orders", "dead", 10)
        except StoreError:
            pass
    else:
        assert numbers(await dying.receive("orders")) == [0]
        world.wait(2 * SECOND)
        await dying.receive("orders")
        await dying.step("orders")
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values["settled"] == "moving"
    world.wait(10 * MINUTE)
    got = Counter()
    for _ in range(180):
        await other.step("orders")
        for name in ("orders", "dead"):
            got.update(d.body for d in await other.take(name))
        world.wait(SECOND)
    states, _ = await world.bucket("orders", 0)
    assert states.rows[0].values["settled"] in ("dead", "moved")
    assert got[b"who"] == 1


async def test_the_visit_to_anothers_lane_that_cannot_be_read_fails_no_receive(world: World) -> None:
    first, second = world.server(), world.server()
    await first.create("orders", lanes=2, bucket_size=100, repair_timeout_ms=5 * SECOND)
    await world.work("orders", 30 * SECOND, [first, second])
    held = [k[1] for k, w in first.engine.memory.workers.items() if w.lease.held(first.clock.now())]
    assert len(held) == 1
    for _ in range(30):
        await first.put("orders", b"m")
    other = 1 - held[0]
    first.store.next(
        "read", POINTERS, UNAVAILABLE, times=10**9, when=lambda span: span.partition.key.endswith(f".{other}")
    )
    failed = 0
    for _ in range(8):
        try:
            assert len(await first.receive("orders", 1)) == 1
        except StoreError:
            failed += 1
        world.wait(SECOND)
    assert failed == 0


async def test_erase_in_a_lane_that_was_made_a_moment_ago(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders", **SETTINGS)
    await server.put("orders", b"m")
    await other.engine.change_queue(world.account, "orders", {"lanes": 2})
    placed = [succeeded for _ in range(2) for succeeded in await other.put_outcomes("orders", [NewMessage(b"who")])]
    (there,) = [each for each in placed if each.lane == 1]
    assert await server.engine.erase(world.account, "orders", there)


async def test_a9_an_erased_id_here_and_there_holds_nothing_up(world: World) -> None:
    """Every other message of a bucket is erased before anybody reads; the rest is new and is there."""
    server = world.server()
    await server.create("orders", bucket_size=100, repair_timeout_ms=10 * MINUTE)
    await server.put("orders", *[b"%d" % n for n in range(100)])
    await server.put("orders", *[b"%d" % n for n in range(100, 200)])
    for number in range(0, 100, 2):
        assert await server.engine.erase(world.account, "orders", MessageId(0, number))
    got = []
    for _ in range(60):
        got += numbers(await server.take("orders", 10))
        world.wait(SECOND)
    assert len(got) == 150, (len(got), (await world.marks("orders")).reader)
