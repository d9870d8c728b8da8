"""D4: what can be set of a databag, when that is in force, and what cannot be had of it."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.errors import InvalidReceipt, InvalidRequest
from angelhair.model import DATABAG, NewMessage, QueueSettings
from tests.promises.databags import HIDE, NAME, create, drain_all, put, put_many, receive
from tests.queues import World


async def test_d4_settings_are_stored_at_once_and_in_force_at_the_next_sync(world: World) -> None:
    server = world.server()
    await create(server, min_partitions=100, max_partitions=200)
    seen = await server.engine.partitions(world.account, NAME)
    assert (seen.partitions, seen.sync_ms) == (100, limits.BAG_SYNC_MS)
    await server.engine.change_queue(world.account, NAME, {"min_partitions": 50, "visibility_timeout_ms": 1_000})
    assert (await world.queue(NAME)).settings.min_partitions == 50
    seen = await server.engine.partitions(world.account, NAME)
    assert (seen.partitions, seen.min_partitions, seen.visibility_timeout_ms) == (100, 100, HIDE)
    world.wait(limits.BAG_SYNC_MS)
    seen = await server.engine.partitions(world.account, NAME)
    assert (seen.partitions, seen.min_partitions, seen.visibility_timeout_ms) == (50, 50, 1_000)
    await server.engine.change_queue(world.account, NAME, {"min_partitions": 10, "max_partitions": 20})
    world.wait(limits.BAG_SYNC_MS)
    assert (await server.engine.partitions(world.account, NAME)).partitions == 10, "lowering either bound works"


async def test_d4_the_number_grows_when_all_is_locked_and_shrinks_when_most_is_empty(world: World) -> None:
    server = world.server()
    await create(server, min_partitions=16, max_partitions=100)
    await put_many(server, 500)
    while await receive(server, 1):
        pass
    for partitions in (32, 64, 100, 100):
        world.wait(limits.BAG_SYNC_MS)
        while await receive(server, 1):
            pass
        assert (await server.engine.partitions(world.account, NAME)).partitions == partitions
    world.wait(limits.BAG_SYNC_MS)
    await drain_all(server)
    for _ in range(10):
        world.wait(limits.BAG_SYNC_MS)
        for _ in range(3):
            assert await receive(server) == []
    assert (await server.engine.partitions(world.account, NAME)).partitions == 16


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"min_partitions": 20, "max_partitions": 10}, "min_partitions"),
        ({"min_partitions": 0}, "min_partitions"),
        ({"max_partitions": 0}, "max_partitions"),
        ({"max_partitions": 10**9}, "max_partitions"),
        ({"max_partitions": "many"}, "max_partitions"),
        ({"lanes": 2}, "lanes"),
        ({"delay_ms": 5}, "delay"),
        ({"max_deliveries": 3}, "max_deliveries"),
        ({"archive": True}, "archive"),
    ],
)
async def test_d4_what_cannot_be_is_refused_and_says_why(world: World, settings: dict[str, object], field: str) -> None:
    server = world.server()
    with pytest.raises(InvalidRequest) as refused:
        await create(server, **settings)
    assert refused.value.field == field
    await create(server, min_partitions=16, max_partitions=64)
    with pytest.raises(InvalidRequest):
        await server.engine.change_queue(world.account, NAME, settings)


async def test_d4_a_most_below_the_usual_least_is_enough(world: World) -> None:
    server = world.server()
    await create(server, max_partitions=10)
    settings = (await world.queue(NAME)).settings
    assert (settings.min_partitions, settings.max_partitions) == (10, 10)
    assert await server.create(NAME, kind=DATABAG, visibility_timeout_ms=HIDE, max_partitions=10)
    with pytest.raises(InvalidRequest, match="set both"):
        await server.engine.change_queue(world.account, NAME, {"max_partitions": 5})
    await server.engine.change_queue(world.account, NAME, {"max_partitions": 2_000})
    settings = (await world.queue(NAME)).settings
    assert (settings.min_partitions, settings.max_partitions) == (10, 2_000), "what nobody changes stays"


async def test_what_a_databag_cannot_do_is_refused(world: World) -> None:
    server = world.server()
    await create(server)
    (message,) = await put(server, b"m")
    for bad in (NewMessage(b"x", delay_ms=5), NewMessage(b"x", group="g")):
        (outcome,) = await server.put_outcomes(NAME, [bad])
        assert isinstance(outcome, InvalidRequest)
    (given,) = await receive(server)
    with pytest.raises(InvalidRequest):
        await server.extend(NAME, given, 5)
    for call in (server.engine.marks, server.engine.retire, server.engine.shards):
        with pytest.raises(InvalidRequest):
            await call(world.account, NAME)
    outcomes = await server.engine.ack(world.account, NAME, ["nonsense", "1-5", f"0-{1 << 63}", str(message)])
    assert [type(outcome) for outcome in outcomes[:3]] == [InvalidReceipt] * 3 and outcomes[3] is None


async def test_settings_of_a_databag_survive_the_store(world: World) -> None:
    settings = QueueSettings(kind=DATABAG, min_partitions=3, max_partitions=5).validated()
    assert QueueSettings.from_text(settings.to_text()) == settings
    assert places.bag_locks("i", 3).key == "i.3"
