"""Purges, erasing and redrive of queues that are made again, or whose messages wait elsewhere (A10, R6, R7, R9)."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import DUES, QUEUES, SHARDS
from angelhair.engine.store import Span
from angelhair.errors import InvalidRequest, OutcomeUnknown, Unavailable
from angelhair.model import DATABAG, HIDDEN, NewMessage, QueueSettings
from tests.faults import UNAVAILABLE
from tests.promises import fifo
from tests.promises.test_delay_line import line, soon
from tests.queues import HOUR, MINUTE, SECOND, World

pytestmark = pytest.mark.usefixtures("buried")

OFTEN = 100
"""As often as it takes until somebody gives up."""


async def test_r6_a_purge_of_a_queue_that_is_made_again_meanwhile_leaves_one_that_works(world: World) -> None:
    """The line of the old one goes first; what the catalog says after that is another queue."""
    server, other = world.server(), world.server()
    await server.create("orders")
    await server.put("orders", b"old")

    async def make_again() -> None:
        await other.engine.delete_queue(world.account, "orders")
        await other.create("orders")
        await other.put("orders", b"before the purge ends")

    rule = server.store.next("read", QUEUES, make_again, when=lambda span: span.partition.key.startswith(HIDDEN))
    await server.engine.purge(world.account, "orders")
    assert rule.happened == 1
    assert await world.server().receive("orders", 10) == [], "all that was put before it ended is gone"
    await server.put("orders", b"after")
    assert [each.body for each in await soon(world, other, seconds=10)] == [b"after"]


async def test_a_purge_that_cannot_look_at_its_queue_after_its_line_is_gone_is_unknown(world: World) -> None:
    server = world.server()
    await server.create("orders")
    await server.put("orders", b"now")
    await server.put("orders", b"later", delay_ms=HOUR)

    async def fail() -> None:
        server.store.next(
            "read", QUEUES, UNAVAILABLE, when=lambda span: span.partition.key == world.account, times=OFTEN
        )

    server.store.next("change", QUEUES, fail, after=True, when=lambda item: item.partition.key.startswith(HIDDEN))
    with pytest.raises(OutcomeUnknown):
        await server.engine.purge(world.account, "orders")
    server.store.heal()
    assert await line(world) is None
    assert [each.body for each in await server.drain("orders")] == [b"now"], "half of it has happened"
    world.wait(HOUR)
    assert await soon(world, server, seconds=10) == []


async def test_a_queue_that_a_server_keeps_for_itself_is_purged_without_a_line(world: World) -> None:
    server = world.server()
    hidden = HIDDEN + world.account
    await server.create("orders")
    await server.put("orders", b"later", delay_ms=HOUR)
    await server.engine.create_queue(hidden, "outbox", QueueSettings())
    await server.engine.put(hidden, "outbox", [NewMessage(b"m")])
    await server.engine.purge(hidden, "outbox")
    assert (await server.engine.stats(hidden, "outbox")).visible == 0
    world.wait(HOUR)
    assert [each.body for each in await soon(world, server, seconds=10)] == [b"later"], "that of another is not touched"


async def test_a10_what_waits_in_the_delay_line_cannot_be_erased_and_comes(world: World) -> None:
    server = world.server()
    await server.create("orders")
    (told,) = await server.put_outcomes("orders", [NewMessage(b"later", delay_ms=HOUR)])
    assert await server.engine.erase(world.account, "orders", told) is False  # type: ignore[arg-type]
    world.wait(HOUR)
    assert [(each.id, each.body) for each in await soon(world, server, seconds=10)] == [(told, b"later")]


async def test_r9_all_parts_of_a_line_that_are_worked_off_go_without_a_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was there when they fell due, so all are handed over at once; each drop reaches one part."""
    monkeypatch.setattr(limits, "TIMELINE_INDEX_PARTS", 1)
    server = world.server()
    await server.create("orders")
    for minute in range(6):
        await server.put("orders", b"%d" % minute, delay_ms=HOUR + minute * MINUTE)
    world.wait(HOUR + 5 * MINUTE)
    found: list[bytes] = []
    for _ in range(10):
        await server.step("orders")
        found += [each.body for each in await server.drain("orders")]
        world.wait(SECOND)
    assert found == [b"%d" % minute for minute in range(6)]
    parts = sorted((part for part in server.store.touched if part.table is DUES), key=lambda part: part.key)
    left = [len(part.rows) for part in await world.store.read([Span(part) for part in parts])]
    assert len(parts) >= 6 and sum(left) == left[-1], "only the part that is not over is there"


async def test_a11_a_line_that_cannot_be_read_keeps_no_lane_from_its_work(world: World) -> None:
    server = world.server()
    await server.create("orders", bucket_size=2, repair_timeout_ms=SECOND)
    await server.put("orders", b"later", delay_ms=HOUR)
    await server.put("orders", count=6)
    assert len(await server.drain("orders")) == 6
    # One that has just begun looks into the line at once.
    worker = world.server()
    worker.store.next("read", SHARDS, UNAVAILABLE, times=OFTEN)
    failed = 0
    for _ in range(30):
        world.wait(SECOND)
        try:
            await worker.step("orders")
        except Unavailable:
            failed += 1
    assert failed > 1 and (await world.marks("orders")).repair >= 2, "its buckets were looked after"
    worker.store.heal()
    world.wait(HOUR)
    assert [each.body for each in await soon(world, worker, seconds=10)] == [b"later"]


async def test_a_databag_moves_nothing_and_says_what_to_do(world: World) -> None:
    server = world.server()
    await server.create("bag", kind=DATABAG)
    await server.create("orders")
    await server.put("bag", b"m")
    with pytest.raises(InvalidRequest, match="receive them"):
        await server.engine.redrive(world.account, "bag", "orders", 10)
    assert [each.body for each in await server.receive("bag", 10)] == [b"m"]
    assert await server.receive("orders") == []


# --- queues in order ------------------------------------------------------------------------------------------------


async def test_r12_where_no_message_is_as_a_fifo_queue_wants_it_nothing_is_written(world: World) -> None:
    server = world.server()
    await fifo.make(server)
    before = await world.dump()
    outcomes = await server.put_outcomes(fifo.QUEUE, [NewMessage(b"1"), NewMessage(b"2", group="g")])
    assert [type(outcome) for outcome in outcomes] == [InvalidRequest] * 2
    assert await world.dump() == before
    assert await fifo.put(server, "first") == [0]


async def test_r7_dead_letters_whose_queue_is_gone_stay_and_keep_no_other_group(world: World) -> None:
    server = world.server()
    await fifo.make(server, "dead")
    for name in ("gone", fifo.QUEUE):
        await fifo.make(server, name, max_deliveries=1, dead_letter_queue="dead", visibility_timeout_ms=SECOND)
        await fifo.put(server, name, name=name, group=name)
        await server.receive(name)
        world.wait(SECOND)
        await server.receive(name)
        await server.work(name)
    assert (await server.engine.stats(world.account, "dead")).visible == 2
    await server.engine.delete_queue(world.account, "gone")
    assert await server.engine.redrive(world.account, "dead", None, 10) == 1
    assert fifo.bodies(await server.drain(fifo.QUEUE)) == [fifo.QUEUE]
    assert fifo.bodies(await server.receive("dead", 10)) == ["gone"]
