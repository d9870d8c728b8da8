"""W5, W6, W8, W9: consumers hold shards by locks that lapse, stick to them, and move their checkpoints."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import SHARDS
from angelhair.engine.timeline.parts import time_of
from angelhair.errors import StaleReceipt
from tests.faults import UNAVAILABLE
from tests.promises.timelines import DELAY, NAME, ack, bodies, create, pass_time, put, receive, shard, take, touch
from tests.queues import MINUTE, SECOND, START_MS, World

LOCK = 10 * SECOND


async def test_w5_a_consumer_sticks_to_its_shards(world: World) -> None:
    server = world.server()
    await create(server)
    first = await touch(server, "a")
    assert first.lanes == (0, 1, 2, 3, 4, 5) and first.lock_ms == LOCK
    for _ in range(20):
        world.wait(3 * SECOND)
        again = await touch(server, "a")
        assert again.fences == first.fences


async def test_w5_when_a_consumer_dies_another_goes_on_from_its_checkpoint(world: World) -> None:
    dying, other = world.server(), world.server()
    incarnation = await create(dying, lanes=1)
    await put(dying, b"one", b"two", b"three", in_ms=DELAY)
    world.wait(DELAY)
    found = sorted(await receive(dying, consumer="a"), key=lambda delivery: delivery.id.number)
    assert len(found) == 3
    assert await ack(dying, found[0]) == [None]
    world.wait(LOCK // 4)
    await touch(dying, "a")
    # From here on it says no word. The other one has to see its lock unmoved for all of its time.
    assert await receive(other, consumer="b") == []
    world.wait(LOCK - 1)
    assert (await touch(other, "b")).lanes == ()
    world.wait(1)
    assert (await touch(other, "b")).lanes == (0,)
    assert bodies(await receive(other, consumer="b")) == bodies(found[1:])
    assert (await shard(world, incarnation))["fence"] == 2


async def test_w5_locks_have_no_ttl(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1)
    await touch(server, "a")
    world.wait(1_000 * LOCK)
    row = await shard(world, incarnation)
    assert (row["consumer"], row["fence"]) == ("a", 1)


async def test_w5_the_same_consumer_on_another_server_has_its_shards_at_once(world: World) -> None:
    first, second = world.server(), world.server()
    await create(first, lanes=2)
    await put(first, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(first, consumer="a")
    assert (await touch(second, "a")).fences == {0: 2, 1: 2}
    (again,) = await receive(second, consumer="a")
    assert again.id == delivery.id
    (outcome,) = await ack(first, delivery)
    # The first server has not heard of it, and believes; but what it says goes nowhere.
    assert outcome is None
    await first.step(NAME)
    world.wait(LOCK // 4)
    # Nor does its background take back what its consumer has taken elsewhere.
    await first.step(NAME)
    assert (await touch(second, "a")).fences == {0: 2, 1: 2}
    assert await ack(second, again) == [None]


async def test_w6_the_checkpoint_moves_only_over_what_is_acked_without_a_gap(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1)
    for number in range(5):
        await put(server, b"%d" % number, in_ms=DELAY + number * SECOND)
    world.wait(DELAY + 5 * SECOND)
    found = await receive(server)
    assert bodies(found) == [b"0", b"1", b"2", b"3", b"4"]

    async def last_ms() -> int:
        world.wait(LOCK // 4)
        await server.step(NAME)
        assert await receive(server) == []
        return time_of(str((await shard(world, incarnation))["last"])) - START_MS - DELAY

    assert await last_ms() < 0
    assert await ack(server, found[3], found[1]) == [None, None]
    assert await last_ms() < 0
    assert await ack(server, found[0]) == [None]
    assert await last_ms() == SECOND
    assert await ack(server, found[4], found[2]) == [None, None]
    assert await last_ms() >= 4 * SECOND


async def test_w6_only_the_holder_moves_the_checkpoint(world: World) -> None:
    asleep, other = world.server(), world.server()
    incarnation = await create(asleep, lanes=1)
    await put(asleep, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(asleep, consumer="a")
    # Suspended: its clock stands still, and so it still believes.
    asleep.clock.slept_ms = -world.dial.wall_ms
    await touch(other, "b")
    world.wait(LOCK)
    asleep.clock.slept_ms += world.dial.wall_ms
    assert (await touch(other, "b")).lanes == (0,)
    before = await shard(world, incarnation)
    assert await ack(asleep, delivery) == [None]
    await asleep.step(NAME)
    await touch(asleep, "a")
    assert {**await shard(world, incarnation), "touched_at": 0} == {**before, "touched_at": 0}
    (again,) = await receive(other, consumer="b")
    assert again.body == b"-"


async def test_w6_an_ack_in_vain_is_told(world: World) -> None:
    server = world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    (delivery,) = await receive(server, consumer="a")
    world.wait(LOCK - LOCK // 4)
    (outcome,) = await ack(server, delivery)
    assert isinstance(outcome, StaleReceipt)


async def test_w8_three_consumers_work_on_all_of_six_shards(world: World) -> None:
    servers = [world.server() for _ in range(3)]
    await create(servers[0], lanes=6)
    for _ in range(6):
        shares = [await touch(server, f"consumer {place}") for place, server in enumerate(servers)]
        world.wait(LOCK // 4)
    assert [len(share.lanes) for share in shares] == [2, 2, 2]
    assert sorted(lane for share in shares for lane in share.lanes) == [0, 1, 2, 3, 4, 5]


async def test_w8_six_consumers_that_start_at_once_have_a_shard_each(world: World) -> None:
    servers = [world.server() for _ in range(6)]
    await create(servers[0], lanes=6)
    for server in servers:
        await touch(server, server.engine.memory.server)
    world.wait(LOCK // 4)
    for _ in range(2):
        shares = [await touch(server, server.engine.memory.server) for server in servers]
    assert [len(share.lanes) for share in shares] == [1] * 6


async def test_w8_a_seventh_consumer_takes_over_what_a_dead_one_leaves(world: World) -> None:
    servers = [world.server() for _ in range(7)]
    await create(servers[0], lanes=6)

    async def touch_all(living: int) -> list[int]:
        return [len((await touch(server, f"consumer {place}")).lanes) for place, server in enumerate(servers[:living])]

    for _ in range(3):
        await touch_all(6)
        world.wait(LOCK // 4)
    assert await touch_all(7) == [1] * 6 + [0]
    # The first dies. The others go on; the seventh has its shard within the time of a lock and a little.
    dead_ms = world.dial.wall_ms
    while True:
        world.wait(SECOND)
        held = [len((await touch(server, f"consumer {place}")).lanes) for place, server in enumerate(servers) if place]
        if held == [1] * 6:
            break
        assert world.dial.wall_ms - dead_ms <= LOCK + 5 * SECOND, held


async def test_w8_four_consumers_of_six_shards_all_have_one(world: World) -> None:
    servers = [world.server() for _ in range(4)]
    await create(servers[0], lanes=6)
    for _ in range(12):
        shares = [await touch(server, f"consumer {place}") for place, server in enumerate(servers)]
        world.wait(LOCK // 4)
    assert sorted(len(share.lanes) for share in shares) == [1, 1, 2, 2]
    fences = [share.fences for share in shares]
    for _ in range(8):
        world.wait(LOCK // 4)
        assert [(await touch(server, f"consumer {place}")).fences for place, server in enumerate(servers)] == fences


async def test_w8_who_wants_few_shards_leaves_the_others_to_others(world: World) -> None:
    few, many = world.server(), world.server()
    await create(few, lanes=6)
    for _ in range(12):
        shares = [await touch(few, "few", 1), await touch(many, "many")]
        world.wait(LOCK // 4)
    assert [len(share.lanes) for share in shares] == [1, 5]


async def test_w8_a_consumer_that_says_goodbye_leaves_its_shards_at_once(world: World) -> None:
    first, second = world.server(), world.server()
    await create(first, lanes=2)
    await put(first, b"a", b"b", in_ms=DELAY)
    world.wait(DELAY)
    assert sorted(await take(first, consumer="a")) == [b"a", b"b"]
    await first.engine.leave_consumer(world.account, NAME, "a")
    assert (await touch(second, "b")).fences == {0: 2, 1: 2}
    assert await receive(second, consumer="b") == []


async def test_w8_a_consumer_that_is_not_heard_of_is_let_go(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=2)
    await touch(server, "a")
    await pass_time(server, LOCK + SECOND)
    assert (await touch(other, "b")).fences == {0: 2, 1: 2}


async def test_w9_who_cannot_touch_gives_nothing_more_and_moves_no_checkpoint(world: World) -> None:
    server = world.server()
    incarnation = await create(server, lanes=1)
    await put(server, *[b"%d" % number for number in range(10)], in_ms=DELAY)
    world.wait(DELAY)
    given = await receive(server, 5, consumer="a")
    assert len(given) == 5
    server.store.next("change", SHARDS, UNAVAILABLE, times=1_000)
    for _ in range(2):
        world.wait(LOCK // 4)
        assert len(await receive(server, 1, consumer="a")) == 1
    world.wait(LOCK // 4)
    before = await shard(world, incarnation)
    assert await receive(server, 1, consumer="a") == []
    for outcome in await ack(server, *given):
        assert isinstance(outcome, StaleReceipt)
    server.store.heal()
    await server.step(NAME)
    row = await shard(world, incarnation)
    assert row["last"] == before["last"], "what was acked in doubt is not passed"
    assert row["fence"] == 2, "it is held again, under another fence"
    assert len(await receive(server, consumer="a")) == 10


async def test_w9_a_receive_that_comes_back_too_late_gives_nothing(world: World) -> None:
    server, other = world.server(), world.server()
    await create(server, lanes=1)
    await put(server, b"-", in_ms=DELAY)
    world.wait(DELAY)
    await touch(server, "a")

    async def sleep() -> None:
        await touch(other, "b")
        world.wait(LOCK)
        assert (await touch(other, "b")).lanes == (0,)

    # Between its look at the shard's row and its answer.
    server.store.next("read", SHARDS, sleep, after=True)
    assert await receive(server, consumer="a") == []
    assert bodies(await receive(other, consumer="b")) == [b"-"]


@pytest.mark.parametrize("acked", [0, 100, 511])
async def test_what_is_processed_again_is_a_window_at_most(world: World, acked: int) -> None:
    first, second = world.server(), world.server()
    await create(first, lanes=1, visibility_timeout_ms=10 * MINUTE)
    for _ in range(2):
        await put(first, *[b"-"] * 1_000, in_ms=DELAY)
    world.wait(DELAY)
    processed = []
    while found := await receive(first, consumer="a"):
        processed += found
        if len(processed) <= acked:
            assert await ack(first, *found) == [None] * len(found)
    assert len(processed) <= limits.TIMELINE_WINDOW + acked
    await touch(second, "b")
    world.wait(LOCK)
    again = await receive(second, consumer="b")
    while found := await receive(second, consumer="b"):
        again += found
    seen = {delivery.id for delivery in processed}
    assert len([delivery for delivery in again if delivery.id in seen]) <= limits.TIMELINE_WINDOW


async def test_a_message_that_is_not_acked_comes_again_after_its_time_out(world: World) -> None:
    server = world.server()
    await create(server, lanes=1, visibility_timeout_ms=5 * SECOND)
    await put(server, b"slow", b"quick", in_ms=DELAY)
    world.wait(DELAY)
    found = {delivery.body: delivery for delivery in await receive(server)}
    assert await ack(server, found[b"quick"]) == [None]
    world.wait(5 * SECOND - 1)
    assert await receive(server) == []
    world.wait(1)
    (again,) = await receive(server)
    assert (again.body, again.deliveries) == (b"slow", 2)
    (outcome,) = await ack(server, found[b"slow"])
    assert isinstance(outcome, StaleReceipt)
    assert await ack(server, again) == [None]
    assert await ack(server, again) == [None], "the same ack again changes nothing"
