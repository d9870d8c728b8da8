"""Timelines that are made again, drained and moved from while something is in the way (W1 to W9, R6, R7, R8): who
cannot know hears that, and nothing is lost or moved by who holds its shard no more."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, DUES
from angelhair.engine.store import Row, Span
from angelhair.errors import InvalidReceipt, InvalidRequest, OutcomeUnknown
from angelhair.model import TIMELINE, Delivery, NewMessage
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, put, receive, take, touch
from tests.queues import MINUTE, SECOND, Server, World

pytestmark = pytest.mark.usefixtures("buried")

DEAD = "dead"
LOCK = 10 * SECOND
OFTEN = 100
"""As often as it takes until somebody gives up."""


async def rows_there(server: Server) -> list[Row]:
    """Of all parts that this server has touched."""
    parts = [Span(partition) for partition in server.store.touched if partition.table is DUES]
    return [row for found in await server.world.store.read(parts) for row in found.rows]


# --- puts -----------------------------------------------------------------------------------------------------------


async def test_where_no_message_is_as_a_timeline_wants_it_nothing_is_written(world: World) -> None:
    server = world.server()
    await create(server)
    outcomes = await server.put_outcomes(NAME, [NewMessage(b"1", key="k"), NewMessage(b"2", group="g")])
    assert [type(outcome) for outcome in outcomes] == [InvalidRequest] * 2
    assert await rows_there(server) == []


@pytest.mark.parametrize("kind", [TIMELINE, "bucketed"])
async def test_r6_a_put_to_a_timeline_that_is_made_again_all_the_time_or_as_another_kind_is_unknown(
    world: World, kind: str
) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1)

    async def make_again() -> None:
        await other.engine.delete_queue(world.account, NAME)
        await other.create(NAME, kind=kind)

    rule = server.store.next("write", DUES, make_again, after=True, times=OFTEN)
    (outcome,) = await server.put_outcomes(NAME, [NewMessage(b"lost sight of")])
    assert isinstance(outcome, OutcomeUnknown)
    assert rule.happened == (limits.RECEIVE_ROUNDS if kind == TIMELINE else 1)
    server.store.heal()
    await server.put(NAME, b"after")
    world.wait(MINUTE)
    assert bodies(await server.receive(NAME, 10)) == [b"after"]


# --- receipts -------------------------------------------------------------------------------------------------------


async def test_a3_a_receipt_of_a_timeline_whose_name_has_another_kind_by_now_is_invalid(world: World) -> None:
    """The server remembers an older timeline than the one that gave the message."""
    server, other = world.server(), world.server()
    await create(server, lanes=1, producer_delay_ms=0)
    await other.engine.delete_queue(world.account, NAME)
    await create(other, lanes=1, producer_delay_ms=0)
    await put(other, b"-")
    world.wait(SECOND)
    (delivery,) = await receive(other)
    await other.engine.delete_queue(world.account, NAME)
    await other.create(NAME)
    await other.put(NAME, b"new")
    (outcome,) = await server.engine.ack(world.account, NAME, [delivery.receipt])
    assert isinstance(outcome, InvalidReceipt)
    assert bodies(await server.receive(NAME, 10)) == [b"new"]


# --- shards that take no more ---------------------------------------------------------------------------------------


async def test_r8_a_shard_that_is_given_up_goes_with_all_of_its_parts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody comes back to it: what one drop does not reach would lie there for ever."""
    monkeypatch.setattr(limits, "TIMELINE_INDEX_PARTS", 1)
    server = world.server()
    await create(server, lanes=2, granularity="minute", expire_after_ms=None)
    wanted = [b"%d" % minute for minute in range(6)]
    for minute, body in enumerate(wanted):
        await put(server, body, in_ms=DELAY + minute * MINUTE)
        await put(server, body, in_ms=DELAY + minute * MINUTE + SECOND)
    world.wait(DELAY + len(wanted) * MINUTE)
    found: list[bytes] = []
    while some := await take(server):
        found += some
    assert sorted(found) == sorted(2 * wanted)
    await server.engine.change_queue(world.account, NAME, {"lanes": 1})
    await put(server, b"last", in_ms=DELAY)
    # Its consumer has gone on to now, and says goodbye; nothing has been dropped so far.
    await server.engine.release_leases()
    assert len(await rows_there(server)) == 2 * len(wanted) + 1
    for _ in range(30):
        world.wait(SECOND)
        await server.step(NAME)
        found += await take(server)
    queue = await world.queue(NAME)
    assert found[2 * len(wanted) :] == [b"last"] and len(queue.lanes) == 1
    left = {part.key for part in server.store.touched if part.table is DUES}
    gone = [Span(part) for part in server.store.touched if part.table is DUES and part.key.split(".")[1] == "1"]
    assert len(left) > len(gone) > 1 and not any(part.rows for part in await world.store.read(gone))


# --- dead letters ---------------------------------------------------------------------------------------------------


async def given_too_often(server: Server, kind: str = "bucketed") -> Delivery:
    """A message that consumer `a` had once, and that is to be moved to the dead letters next; its delivery."""
    await server.create(DEAD, kind=kind)
    await create(server, lanes=1, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue=DEAD, lock_ms=LOCK)
    await put(server, b"poison", in_ms=DELAY)
    server.world.wait(DELAY)
    (delivery,) = await receive(server, consumer="a")
    server.world.wait(SECOND)
    assert await receive(server, consumer="a") == []
    return delivery


async def dead(server: Server) -> int:
    stats = await server.engine.stats(server.world.account, NAME)
    return int(stats.dead)


async def test_w9_who_may_have_lost_its_shard_moves_no_dead_letters(world: World) -> None:
    """It says goodbye after its lock was over, and another holds the shard: that one moves it, or gives it again."""
    server, other = world.server(), world.server()
    await given_too_often(server)
    world.wait(LOCK)
    await touch(other, "b")
    world.wait(LOCK)
    assert (await touch(other, "b")).lanes == (0,)
    await server.engine.leave_consumer(world.account, NAME, "a")
    assert await dead(server) == 0
    found: list[bytes] = []
    for _ in range(10):
        found += bodies(await receive(other, consumer="b"))
        world.wait(SECOND)
        await other.step(NAME)
    assert found == [b"poison"] and await dead(other) == 1


async def test_r7_an_ack_while_its_message_is_moved_to_the_dead_letters_counts_and_it_is_not_given_again(
    world: World,
) -> None:
    server = world.server()
    delivery = await given_too_often(server)
    outcomes: list[object] = []

    async def ack_it() -> None:
        outcomes.extend(await ack(server, delivery))

    server.store.next("write", BODIES, ack_it)
    await server.step(NAME)
    assert outcomes == [None]
    for _ in range(5):
        world.wait(LOCK // 4)
        assert await receive(server, consumer="a") == []
        await server.step(NAME)
    assert await dead(server) == 1, "it had arrived there before, and is there once"


async def test_dead_letters_in_a_timeline_are_counted_too(world: World) -> None:
    server = world.server()
    await given_too_often(server, kind=TIMELINE)
    assert await dead(server) == 0
    await server.step(NAME)
    assert await dead(server) == 1
    world.wait(MINUTE)
    assert bodies(await server.take(DEAD, 10)) == [b"poison"]
    # Its checkpoint passes what was processed.
    await server.engine.release_leases()
    assert await dead(server) == 0
