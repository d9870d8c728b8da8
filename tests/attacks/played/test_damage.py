"""A store that lost a body, or is closed in the middle."""

from __future__ import annotations

from angelhair.engine.store import Span, Write
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable
from angelhair.model import NewMessage
from tests.faults import Between
from tests.queues import HOUR, MINUTE, SECOND, World


class Enough(Exception):
    pass


async def lose_bodies(world, server, bucket=0):
    queue = await world.queue("orders")
    await world.store.drop([server.engine.memory.lane(queue, 0).bodies(bucket)])


async def test_receive_without_end(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=5 * SECOND)
    await server.put("orders", b"a")
    assert len(await server.receive("orders", 1, hide_ms=0)) == 1
    await lose_bodies(world, server)
    calls = 0

    async def count() -> None:
        nonlocal calls
        calls += 1
        if calls > 1000:
            raise Enough

    from angelhair.engine.schema import STATES

    server.store.next("change", STATES, count, times=10**9)
    assert await server.receive("orders", 1, hide_ms=0) == []


async def test_a_bucket_that_lost_a_body_ends_with_its_retention(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=5 * SECOND, retention_ms=MINUTE, history_ms=0)
    await server.put("orders", b"a", b"b", b"c")
    await server.receive("orders", 10)
    await lose_bodies(world, server)
    await world.work("orders", HOUR, [server], every_ms=10 * SECOND)
    assert (await world.marks("orders")).repair >= 1


async def test_a_move_whose_body_is_lost_waits_for_it(world: World) -> None:
    """It may be damage; but it looks like a put that nobody has confirmed yet (tests/attacks/test_half_seen.py). So it
    is not given up: its bucket stays, and when the body comes back it is moved."""
    server = world.server()
    await server.create("dead", bucket_size=2)
    await server.create(
        "orders",
        bucket_size=2,
        repair_timeout_ms=5 * SECOND,
        max_deliveries=1,
        dead_letter_queue="dead",
        visibility_timeout_ms=SECOND,
        history_ms=0,
    )
    await server.put("orders", b"a", b"b", b"c")
    await server.receive("orders", 10)
    bodies = server.engine.memory.lane(await world.queue("orders"), 0).bodies(0)
    (before,) = await world.store.read([Span(bodies)])
    await lose_bodies(world, server)
    await world.work("orders", HOUR, [server], every_ms=10 * SECOND)
    assert (await world.marks("orders")).repair == 0
    assert {delivery.body for delivery in await server.receive("dead", 10)} == {b"c"}
    assert await world.store.write([Write(bodies, before.rows)]) == [None]
    await world.work("orders", HOUR, [server], every_ms=10 * SECOND)
    assert (await world.marks("orders")).repair >= 1
    assert {delivery.body for delivery in await server.receive("dead", 10)} >= {b"a", b"b"}


class Closing(Between):
    writes = 0
    armed = False

    async def _pass(self, verb, items):
        if verb == "write" and self.armed:
            self.writes += 1
            if self.writes == 1:
                await super()._pass(verb, items)
                return [OutcomeUnknown("timed out")] * len(items)
            raise Unavailable("the store is closed")
        return await super()._pass(verb, items)


async def test_put_says_unavailable_though_its_first_write_landed(world: World) -> None:
    closing = Closing(world.store)
    server, other = world.server(store=closing), world.server()
    await server.create("orders", bucket_size=2)
    closing.armed = True
    try:
        (outcome,) = await server.put_outcomes("orders", [NewMessage(b"m")])
    except StoreError as error:
        outcome = error
    closing.armed = False
    assert [d.body for d in await other.receive("orders", 1)] == [b"m"]
    assert isinstance(outcome, OutcomeUnknown), outcome
