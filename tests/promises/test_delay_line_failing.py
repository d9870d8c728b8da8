"""The delay line where stores fail, servers die and others are faster (A10, R6, R7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from angelhair import limits
from angelhair.engine import catalog
from angelhair.engine.delays import line_of, line_settings
from angelhair.engine.schema import DUES, SEQUENCES
from angelhair.engine.store import Span
from angelhair.errors import OutcomeUnknown, Unavailable
from angelhair.model import NewMessage
from tests.faults import UNAVAILABLE
from tests.promises.test_delay_line import line, soon
from tests.queues import HOUR, World


async def test_r6_a_line_that_was_left_behind_by_a_queue_that_is_gone_is_found(world: World) -> None:
    """Its maker slept through the deletion and the burial, and died before it looked."""
    server, other = world.server(), world.server()
    queue = await server.create("orders")
    await server.create("alive")
    await server.put("alive", b"waits", delay_ms=HOUR)

    async def delete() -> None:
        await other.engine.delete_queue(world.account, "orders")
        await other.bury()

    async def die() -> None:
        raise RuntimeError("killed")

    # The line's lanes are made, and then its row in the catalog, which nobody finds before.
    server.store.next("change", SEQUENCES, delete, after=True)
    server.store.next("write", DUES, die, after=True)
    with pytest.raises(RuntimeError, match="killed"):
        await server.put_outcomes("orders", [NewMessage(b"-", delay_ms=HOUR)])
    hidden, name = line_of(world.account, queue.incarnation)
    left = await catalog.load(world.store, hidden, name)
    assert left is not None
    there = await line(world, "alive")
    assert there is not None
    for _ in range(2):
        assert await other.engine.bury_orphan(there.account, there.name) is False
    assert await other.engine.bury_orphan(hidden, name) is True
    assert await other.engine.bury_orphan(hidden, name) is False
    await other.bury()
    assert await catalog.load(world.store, hidden, name) is None
    dues = [key for key in dict.fromkeys(server.store.touched) if key.table is DUES]
    mine = [Span(partition) for partition in dues if partition.key.startswith(left.incarnation)]
    assert mine and not any(part.rows for part in await world.store.read(mine))
    world.wait(HOUR)
    assert [item.body for item in await soon(world, other, "alive")] == [b"waits"]


async def test_r6_a_line_of_a_queue_that_was_made_again_is_one_that_was_left_behind(world: World) -> None:
    server = world.server()
    queue = await server.create("orders")
    await server.put("orders", b"old", delay_ms=HOUR)
    await server.engine.delete_queue(world.account, "orders")
    await server.create("orders")
    await server.put("orders", b"new", delay_ms=HOUR)
    assert await server.engine.bury_orphan(*line_of(world.account, queue.incarnation)) is True
    world.wait(HOUR)
    assert [item.body for item in await soon(world, server)] == [b"new"]


async def test_a10_a_line_that_cannot_be_made_takes_nothing(world: World) -> None:
    server = world.server()
    await server.create("orders")
    server.store.next("change", SEQUENCES, UNAVAILABLE, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-", delay_ms=HOUR)])
    assert isinstance(outcome, Unavailable)
    server.store.heal()
    world.wait(2 * HOUR)
    assert await soon(world, server) == []


async def test_r6_a_put_that_cannot_look_whether_its_queue_lives_is_unknown(world: World) -> None:
    server = world.server()
    queue = await server.create("orders")
    await server.put("orders", b"makes the line", delay_ms=2 * HOUR)
    server.store.next("read", SEQUENCES, UNAVAILABLE, times=limits.READ_ATTEMPTS,
                      when=lambda span: span.partition.key.startswith(queue.incarnation))
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-", delay_ms=HOUR)])
    assert isinstance(outcome, OutcomeUnknown)
    world.wait(HOUR)
    assert [item.body for item in await soon(world, server)] == [b"-"]


async def test_a10_a_line_of_other_settings_that_another_server_made_serves(world: World) -> None:
    server, other = world.server(), world.server()
    queue = await server.create("orders")
    hidden, name = line_of(world.account, queue.incarnation)

    async def make_it() -> None:
        settings = replace(line_settings(), lanes=2)
        now = other.clock.now()
        await catalog.create(world.store, hidden, name, settings, {"queue": "orders"}, world.identities, now)

    server.store.next("change", SEQUENCES, make_it)
    await server.put("orders", b"-", delay_ms=HOUR)
    there = await line(world)
    assert there is not None and there.settings.lanes == 2
    world.wait(HOUR)
    assert [item.body for item in await soon(world, server)] == [b"-"]


async def test_a_put_into_a_queue_that_is_purged_all_the_time_is_refused(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"makes the line", delay_ms=HOUR)

    async def purge() -> None:
        await other.engine.purge(world.account, "orders")
        await other.put("orders", b"makes it again", delay_ms=HOUR)

    server.store.next("write", DUES, purge, after=True, times=100)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"-", delay_ms=HOUR)])
    assert isinstance(outcome, Unavailable) and "purged" in str(outcome)
    server.store.heal()
    world.wait(HOUR)
    assert [item.body for item in await soon(world, server)] == [b"makes it again"]
