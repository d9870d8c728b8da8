"""A10, R7, R9: a long delay is waited for in the delay line. It costs no bucket anything, and what was confirmed comes:
once it is due, under the id that its producer was given, whoever dies on the way."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine import catalog
from angelhair.engine.delays import line_of
from angelhair.engine.schema import DUES, KEYS, SEQUENCES, SHARDS
from angelhair.engine.store import Span
from angelhair.errors import OutcomeUnknown, QueueNotFound, Unavailable
from angelhair.model import Delivery, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.queues import DAY, HOUR, MINUTE, SECOND, Server, World, numbers


async def line(world: World, name: str = "orders") -> catalog.Queue | None:
    incarnation = (await world.queue(name)).incarnation
    return await catalog.load(world.store, *line_of(world.account, incarnation))


async def soon(world: World, server: Server, name: str = "orders", seconds: int = 60) -> list[Delivery]:
    """All that comes within that time, each acked."""
    got: list[Delivery] = []
    for _ in range(seconds):
        await server.step(name)
        got += await server.drain(name)
        world.wait(SECOND)
    return got


async def test_a10_only_long_delays_wait_in_the_line(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders", delay_ms=limits.DELAY_LINE_MS)
    assert await line(world) is None
    await server.put("orders", delay_ms=limits.DELAY_LINE_MS + 1)
    there = await line(world)
    assert there is not None
    assert there.settings.expire_after_ms is None
    assert await server.engine.list_queues(world.account) == (["orders"], False)


async def test_a10_it_comes_when_it_is_due_and_not_before(world: World) -> None:
    server = world.server()
    await server.create("orders")
    assert await server.put("orders", b"now", b"later", delay_ms=None) == [0, 1]
    await server.put("orders", b"tomorrow", delay_ms=DAY)
    assert [item.body for item in await server.drain("orders")] == [b"now", b"later"]
    world.wait(DAY - 1)
    assert await server.receive("orders", 10) == []
    world.wait(1)
    (got,) = await server.receive("orders", 10)
    assert (got.body, got.deliveries) == (b"tomorrow", 1)
    assert await server.ack("orders", got) == [None]
    assert await soon(world, server) == []


async def test_a10_it_is_what_its_producer_was_told(world: World) -> None:
    """Naive: put it again as a new message. Its id, its date and its priority would be others."""
    server = world.server()
    await server.create("orders", priorities=3)
    put_at_ms = world.dial.wall_ms
    fields = {"attributes": '{"colour":"blue"}', "priority": 2, "group": "tenant", "delay_ms": HOUR}
    (told,) = await server.put_outcomes("orders", [NewMessage(b"a", **fields)])
    await server.put("orders", b"b", count=1)
    world.wait(HOUR)
    await server.step("orders")
    (peeked,) = [item for item in await server.engine.peek(world.account, "orders", 10) if item.body == b"a"]
    first, second = await server.receive("orders", 10)
    assert (first.body, first.priority, first.attributes) == (b"a", 2, '{"colour":"blue"}')
    assert (first.id, first.enqueued_at_ms, first.origin) == (told, put_at_ms, None)
    assert (peeked.id, peeked.enqueued_at_ms, peeked.origin) == (told, put_at_ms, None)
    assert second.body == b"b"


async def test_a10_a_queue_whose_own_delay_is_long(world: World) -> None:
    server = world.server()
    await server.create("orders", delay_ms=2 * HOUR)
    await server.put("orders", b"as the queue says")
    await server.put("orders", b"at once", delay_ms=0)
    assert [item.body for item in await server.drain("orders")] == [b"at once"]
    assert await line(world) is not None
    world.wait(2 * HOUR)
    assert [item.body for item in await soon(world, server)] == [b"as the queue says"]


async def test_a10_a_server_that_starts_later_finds_it(world: World) -> None:
    """Naive: remember in the server that took it what there is to hand over."""
    server = world.server()
    await server.create("orders")
    await server.put("orders", b"later", delay_ms=HOUR)
    world.wait(HOUR)
    late = world.server()
    assert [item.body for item in await late.take("orders", 10)] == [b"later"]


async def test_a14_a_bucket_of_long_delays_is_finished_and_nothing_behind_it_is_kept(world: World) -> None:
    """Naive: an invisible row in its bucket. For months nothing behind it could be dropped."""
    server = world.server()
    settings = {"bucket_size": 4, "repair_timeout_ms": 5 * SECOND, "history_ms": 0, "retention_ms": None}
    await server.create("orders", **settings)
    await server.put("orders", count=6)
    waiting = await server.put("orders", count=4, delay_ms=60 * DAY)
    assert await server.put("orders", count=7) == [6, 7, 8, 9, 10, 11, 12]
    assert len(await server.drain("orders")) == 13
    for _ in range(6):
        await server.work("orders", 10 * SECOND)
        await server.receive("orders")
    marks = await world.marks("orders")
    assert (marks.repair, marks.dropped) == (3, 3)
    world.wait(60 * DAY)
    got = await soon(world, server)
    assert sorted(numbers(got)) == sorted(waiting)
    await server.put("orders", count=8)
    await server.drain("orders")
    world.wait(limits.DELAY_LINE_WINDOW_MS)
    await server.work("orders", MINUTE)
    assert (await world.marks("orders")).dropped >= 4


async def test_r9_what_is_handed_over_is_dropped_from_the_line(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders", count=5, delay_ms=HOUR)
    there = await line(world)
    assert there is not None

    async def rows() -> int:
        dues = [key for server in world.servers for key in server.store.touched if key.table is DUES]
        mine = [partition for partition in dues if partition.key.startswith(there.incarnation)]
        return sum(len(part.rows) for part in await world.store.read([Span(each) for each in dict.fromkeys(mine)]))

    assert await rows() == 5
    world.wait(HOUR)
    assert len(await soon(world, server)) == 5
    world.wait(HOUR)
    for _ in range(5):
        await server.work("orders", 2 * MINUTE, every_ms=5 * SECOND)
    assert await rows() == 0


async def test_a10_retention_counts_from_when_it_is_due(world: World) -> None:
    server = world.server()
    await server.create("orders", retention_ms=DAY)
    await server.put("orders", b"kept", delay_ms=30 * DAY)
    world.wait(30 * DAY)
    await server.step("orders")
    world.wait(DAY - MINUTE)
    assert [item.body for item in await server.receive("orders", 10)] == [b"kept"]


# --- keys -------------------------------------------------------------------------------------------------------------


async def test_r10_two_puts_with_one_key_and_a_long_delay_are_one(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    first = await server.put("orders", b"once", key="k", delay_ms=HOUR)
    assert await other.put("orders", b"once", key="k", delay_ms=HOUR) == first
    assert await other.put("orders", b"once", key="k", delay_ms=0) == first
    assert await server.drain("orders") == []
    world.wait(HOUR)
    assert numbers(await soon(world, server)) == first


@pytest.mark.parametrize("happening", [LOSE_ANSWER, NEVER_SENT])
async def test_r10_a_put_that_nobody_knows_of_is_completed_by_the_next_with_its_key(
    world: World, happening: str
) -> None:
    """Naive: a key that names no place in the line. The second put would be a second message."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"makes the line", delay_ms=DAY)
    server.store.next("write", DUES, happening, times=limits.WRITE_ATTEMPTS)
    (outcome,) = await server.put_outcomes("orders", [NewMessage(b"once", key="k", delay_ms=HOUR)])
    assert isinstance(outcome, OutcomeUnknown)
    (number,) = await other.put("orders", b"once", key="k", delay_ms=HOUR)
    assert await server.put("orders", b"once", key="k", delay_ms=HOUR) == [number]
    world.wait(HOUR)
    assert numbers(await soon(world, other)) == [number]


async def test_r10_a_put_without_delay_that_finds_a_long_one_pending_completes_that(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"makes the line", delay_ms=DAY)
    server.store.next("write", DUES, NEVER_SENT, times=limits.WRITE_ATTEMPTS)
    await server.put_outcomes("orders", [NewMessage(b"once", key="k", delay_ms=HOUR)])
    (number,) = await other.put("orders", b"once", key="k", delay_ms=0)
    got = await soon(world, other)
    assert numbers(got) == [number]


# --- crashes ----------------------------------------------------------------------------------------------------------


async def test_r7_a_crash_between_the_put_and_the_ack(world: World) -> None:
    """Naive: put it once more. The server dies, or loses the store, when the queue has the message and the line does
    not know it yet."""
    server, other = world.server(), world.server()
    await server.create("orders", dedup_window_ms=SECOND)
    await server.put("orders", b"a", b"b", b"c", delay_ms=HOUR)
    world.wait(HOUR)
    # Whatever it is asked from the acks on: the checkpoint never moves.
    server.store.next("change", SHARDS, UNAVAILABLE, times=10_000, when=_checkpoints)
    got = [item.body for item in await server.drain("orders")]
    assert sorted(got) == [b"a", b"b", b"c"]
    world.wait(2 * limits.DELAY_LINE_LOCK_MS)
    assert await soon(world, other, seconds=120) == []
    assert (await other.engine.stats(world.account, "orders")).delayed == 0


def _checkpoints(change: object) -> bool:
    """A key, and not the bound that a line begins with."""
    return any(not str((row.values or {}).get("last", "~")).endswith("~") for row in change.rows)  # type: ignore[attr-defined]


@pytest.mark.parametrize("table", [SEQUENCES, KEYS])
async def test_r7_what_cannot_be_put_is_tried_again(world: World, table: object) -> None:
    server = world.server()
    queue = await server.create("orders")
    await server.put("orders", b"a", delay_ms=HOUR)
    world.wait(HOUR)
    rule = {"when": lambda item: item.partition.key.startswith(queue.incarnation)}
    server.store.next("change", table, UNAVAILABLE, times=8, **rule)  # type: ignore[arg-type]
    assert [item.body for item in await soon(world, server, seconds=180)] == [b"a"]


async def test_a10_without_its_row_a_put_is_not_confirmed(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders", b"makes the line", delay_ms=DAY)
    server.store.next("write", DUES, UNAVAILABLE, times=100)
    outcomes = await server.put_outcomes("orders", [NewMessage(b"delayed", delay_ms=HOUR), NewMessage(b"plain")])
    assert isinstance(outcomes[0], Unavailable)
    assert not isinstance(outcomes[1], Exception)


# --- purge, delete, stats ---------------------------------------------------------------------------------------------


async def test_what_waits_counts_as_delayed(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", count=7, delay_ms=HOUR)
    await server.put("orders", count=2, delay_ms=MINUTE)
    await server.put("orders", count=1)
    stats = await other.engine.stats(world.account, "orders")
    assert (stats.visible, stats.delayed) == (1, 9)


async def test_a_purge_takes_what_waits(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"gone", count=3, delay_ms=HOUR)
    await other.engine.purge(world.account, "orders")
    assert (await server.engine.stats(world.account, "orders")).delayed == 0
    await server.put("orders", b"stays", delay_ms=HOUR)
    world.wait(HOUR)
    assert [item.body for item in await soon(world, server)] == [b"stays"]
    await server.bury()


async def test_a_purge_takes_what_is_just_being_handed_over(world: World) -> None:
    """Naive: look at the line first and put afterwards. What was purged in between would come back."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"gone", delay_ms=HOUR)
    world.wait(HOUR)
    server.store.next("change", SEQUENCES, lambda: other.engine.purge(world.account, "orders"))
    assert await soon(world, server) == []


@pytest.mark.parametrize("table", [KEYS, SEQUENCES])
async def test_a_purge_after_its_id_was_reserved_takes_it_too(world: World, table: object) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"gone", delay_ms=HOUR)
    world.wait(HOUR)
    purge = lambda: other.engine.purge(world.account, "orders")  # noqa: E731
    server.store.next("change", table, purge, after=True)  # type: ignore[arg-type]
    assert await soon(world, server) == []


async def test_r6_a_queue_made_again_sees_nothing_of_what_waited(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders", b"old", delay_ms=HOUR)
    there = await line(world)
    await server.engine.delete_queue(world.account, "orders")
    await server.create("orders")
    await server.put("orders", b"new", delay_ms=HOUR)
    await server.bury()
    world.wait(HOUR)
    assert [item.body for item in await soon(world, server)] == [b"new"]
    assert there is not None
    assert await catalog.load(world.store, there.account, there.name) is None


async def test_r6_a_server_that_remembers_a_deleted_queue_puts_to_the_new_one(world: World) -> None:
    """Naive: the line of the old one is still there, and takes it."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"old", delay_ms=HOUR)
    await other.engine.delete_queue(world.account, "orders")
    await other.create("orders")
    await server.put("orders", b"new", delay_ms=HOUR)
    world.wait(HOUR)
    assert [item.body for item in await soon(world, other)] == [b"new"]


async def test_r6_a_line_made_for_a_queue_that_is_gone_goes_too(world: World) -> None:
    """The put has its id; before it makes the line the queue is deleted and buried."""
    server, other = world.server(), world.server()
    queue = await server.create("orders")

    async def delete() -> None:
        await other.engine.delete_queue(world.account, "orders")
        await other.bury()

    server.store.next("change", SEQUENCES, delete, after=True)
    with pytest.raises(QueueNotFound):
        await server.put_outcomes("orders", [NewMessage(b"-", delay_ms=HOUR)])
    assert await catalog.load(world.store, *line_of(world.account, queue.incarnation)) is None


async def test_r7_dead_letters_have_the_first_id_as_their_origin(world: World) -> None:
    server = world.server()
    await server.create("dead")
    await server.create("orders", max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND)
    (told,) = await server.put_outcomes("orders", [NewMessage(b"a", delay_ms=HOUR)])
    world.wait(HOUR)
    assert [item.id for item in await server.receive("orders", 10)] == [told]
    for _ in range(10):
        world.wait(SECOND)
        assert await server.receive("orders", 10) == []
        await server.step("orders")
    (dead,) = await server.receive("dead", 10)
    assert dead.origin == f"{world.account}/orders/{told}"
