"""A1, R7, R16: what comes to a databag from elsewhere: publications, dead letters, what is moved."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import BAG_MESSAGES, DUES, STATES
from angelhair.engine.topics.postings import FIFO_OUTBOX, OUTBOX
from angelhair.model import DATABAG, TIMELINE, NewMessage
from tests.faults import UNAVAILABLE
from tests.promises import timelines
from tests.promises.databags import NAME, create, receive
from tests.promises.test_topics import _is_ack
from tests.promises.topics import Topics
from tests.queues import SECOND, World

FIRST_TRY = limits.FANOUT_PAUSE_MAXIMUM_MS + limits.OUTBOX_VISIBILITY_MS
"""After this, whatever is tried again has been."""


async def test_messages_of_others_may_be_moved_to_a_databag(world: World) -> None:
    """R7: it reserves no ids, and is put to as any other."""
    server = world.server()
    await create(server)
    await server.create("orders")
    await server.put("orders", b"one", b"two")
    assert await server.engine.redrive(world.account, "orders", NAME, 10) == 2
    found = await receive(server)
    assert sorted(given.body for given in found) == [b"one", b"two"]
    assert await server.receive("orders", 10) == []


async def test_r16_a_publication_reaches_a_databag(world: World) -> None:
    topics = Topics(world)
    await topics.make("other")
    await create(topics.server)
    await topics.subscribe(NAME)
    await topics.publish("one", "two")
    await topics.spread()
    assert sorted(given.body for given in await receive(topics.server)) == [b"one", b"two"]
    assert (await topics.bodies("other"), topics.told.gone) == (["one", "two"], [])


@pytest.mark.parametrize("kind", [DATABAG, TIMELINE])
async def test_a1_r16_a_publication_that_failed_at_first_reaches_every_kind(world: World, kind: str) -> None:
    """Naive: what is spread again carries a key, which a timeline refuses, and what was refused is dropped."""
    topics = Topics(world)
    await topics.make()
    await topics.server.create(NAME, **_settings(kind))
    await topics.subscribe(NAME)
    await topics.publish("one")
    topics.server.store.next("write", BAG_MESSAGES if kind == DATABAG else DUES, UNAVAILABLE, times=1_000)
    await topics.spread()
    topics.server.store.heal()
    assert topics.told.waiting == [("one", NAME)]
    for _ in range(3):
        world.wait(FIRST_TRY)
        await topics.spread()
    assert [given.body for given in await receive(topics.server)] == [b"one"]
    assert (await topics.left(), topics.told.gone) == (0, [])


async def test_r16_r10_however_many_servers_die_half_way_a_databag_gets_it_once_more_at_most(world: World) -> None:
    topics = Topics(world)
    await topics.make()
    await create(topics.server)
    await topics.subscribe(NAME)
    await topics.publish("one")
    for _ in range(3):
        dying = Topics(world)
        # It has put, and comes no further.
        dying.server.store.next("change", STATES, UNAVAILABLE, when=_is_ack, times=100)
        assert await dying.spread(OUTBOX) == 1
        world.wait(FIRST_TRY)
    assert await topics.spread() == 1
    assert await topics.left() == 0
    assert [given.body for given in await receive(topics.server)] == [b"one", b"one"]


@pytest.mark.parametrize("kind", [DATABAG, TIMELINE])
@pytest.mark.parametrize("fifo", [False, True])
async def test_a1_r16_whose_publication_it_is_means_nothing_to_who_has_no_groups(
    world: World, kind: str, fifo: bool
) -> None:
    """Naive: the group goes along, the queue refuses it, and the publication is dropped."""
    topics = Topics(world)
    await topics.make(fifo=fifo)
    await topics.server.create(NAME, **_settings(kind))
    await topics.subscribe(NAME)
    await topics.publish("one", group="a tenant", **({"key": "k"} if fifo else {}))
    for _ in range(3):
        await topics.spread()
        world.wait(FIRST_TRY)
    assert [given.body for given in await receive(topics.server)] == [b"one"]
    assert (await topics.left(FIFO_OUTBOX if fifo else OUTBOX), topics.told.gone) == (0, [])


@pytest.mark.parametrize("kind", [DATABAG, TIMELINE])
async def test_r7_what_is_moved_leaves_behind_what_has_no_meaning_there(world: World, kind: str) -> None:
    """Naive: a message with a group or a priority is refused, given back, and never moved."""
    server = world.server()
    await server.create(NAME, **_settings(kind))
    await server.create("orders", priorities=3)
    await server.put_outcomes("orders", [NewMessage(b"one", group="a tenant"), NewMessage(b"two", priority=2)])
    for _ in range(3):
        await server.engine.redrive(world.account, "orders", NAME, 10)
        world.wait(SECOND)
    assert sorted(given.body for given in await receive(server)) == [b"one", b"two"]
    assert await server.receive("orders", 10) == []


async def test_a1_r7_dead_letters_of_a_timeline_that_names_a_databag_for_them_stay_and_come_again(world: World) -> None:
    """Naive: ids are reserved in a lane, which a databag does not have, and the timeline's work ends with an error."""
    server = world.server()
    await create(server)
    await timelines.create(server, lanes=1, visibility_timeout_ms=SECOND, max_deliveries=1, dead_letter_queue=NAME)
    await timelines.put(server, b"poison", in_ms=timelines.DELAY)
    world.wait(timelines.DELAY)
    came = 0
    for _ in range(20):
        came += len(await timelines.receive(server))
        world.wait(SECOND)
        await server.step(timelines.NAME)
    assert came > 1
    assert await receive(server) == []
    assert (await server.engine.stats(world.account, timelines.NAME)).dead == 0


def _settings(kind: str) -> dict[str, object]:
    return {"kind": kind} if kind == DATABAG else {"kind": kind, "lanes": 1, "producer_delay_ms": 0}
