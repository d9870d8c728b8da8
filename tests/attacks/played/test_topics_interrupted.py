"""R6, R16: topics and subscriptions while others change them all the time, or the store fails half way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.schema import SUBSCRIPTIONS, TOPICS
from angelhair.engine.store import Span
from angelhair.engine.topics.values import TopicRewritten, TopicSettings, queue_endpoint
from angelhair.errors import OutcomeUnknown, TopicNotFound, Unavailable
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.promises.topics import NEWS, Topics
from tests.queues import World

FOR_EVER = 1_000


async def subscribed_now(topics: Topics) -> list[str]:
    return [one.endpoint for one in await topics.verbs.subscriptions(topics.world.account, NEWS)]


async def test_r06_a_name_that_others_take_and_free_all_the_time_is_not_taken_and_leaves_nothing(world: World) -> None:
    """R6: every try has begun an incarnation, and none of them may stay behind where nobody would bury it."""
    topics, other = Topics(world), Topics(world)

    async def freed() -> None:
        if (await other.verbs.list(world.account))[0]:
            await other.verbs.delete(world.account, NEWS)

    async def taken() -> None:
        await other.verbs.create(world.account, NEWS, TopicSettings())

    topics.server.store.next("read", TOPICS, freed, times=FOR_EVER)
    topics.server.store.next("change", TOPICS, taken, times=FOR_EVER)
    with pytest.raises(Unavailable):
        await topics.verbs.create(world.account, NEWS, TopicSettings())
    begun = [partition for partition in topics.server.store.touched if partition.table is SUBSCRIPTIONS]
    assert len(begun) == limits.PUT_ROUNDS
    for left in await world.store.read([Span(partition) for partition in begun]):
        assert not left.rows and left.flags.get("edits") is None
    topics.server.store.heal()
    await freed()
    await topics.make("a")
    await topics.publish("one")
    await topics.spread()
    assert await topics.bodies("a") == ["one"]


async def test_r06_who_was_slower_to_make_a_topic_is_given_the_one_that_is_there(world: World) -> None:
    """R6: and what it had begun itself is gone."""
    topics, other = Topics(world), Topics(world)

    async def faster() -> None:
        await other.make("a")

    topics.server.store.next("change", TOPICS, faster)
    found, new = await topics.verbs.create(world.account, NEWS, TopicSettings())
    assert not new and found == await other.verbs.find(world.account, NEWS)
    mine = [partition for partition in topics.server.store.touched if partition.table is SUBSCRIPTIONS]
    slices = await world.store.read([Span(partition) for partition in mine])
    lives = [partition for partition, left in zip(mine, slices, strict=True) if left.flags.get("edits") is not None]
    assert lives == [places.subscriptions(found.incarnation)]
    await topics.publish("one")
    await topics.spread()
    assert await topics.bodies("a") == ["one"]


async def test_a_topic_that_could_not_be_begun_is_none(world: World) -> None:
    topics = Topics(world)
    topics.server.store.next("change", SUBSCRIPTIONS, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await topics.make()
    assert await topics.verbs.list(world.account) == ([], False)
    with pytest.raises(TopicNotFound):
        await topics.publish("one")
    assert (await topics.verbs.create(world.account, NEWS, TopicSettings()))[1], "it is made now"


@pytest.mark.parametrize("lost", [False, True])
async def test_a_topic_that_others_change_all_the_time_is_not_said_to_be_changed(world: World, lost: bool) -> None:
    """Where a try's answer was lost, it is not said either that nothing happened."""
    topics, other = Topics(world), Topics(world)
    await topics.make()
    times = 0

    async def faster() -> None:
        nonlocal times
        times += 1
        await other.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({}, {"times": times}))

    if lost:
        topics.server.store.next("change", TOPICS, "never sent")
    topics.server.store.next("change", TOPICS, faster, times=FOR_EVER)
    with pytest.raises(OutcomeUnknown if lost else Unavailable):
        await topics.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({"content_dedup": True}, {}))
    found = await other.verbs.find(world.account, NEWS)
    assert (found.notes, found.settings.content_dedup) == ({"times": limits.PUT_ROUNDS}, False)


async def test_what_is_not_there_is_neither_changed_nor_deleted(world: World) -> None:
    topics = Topics(world)
    for asking in (
        topics.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({}, {})),
        topics.verbs.delete(world.account, NEWS),
    ):
        with pytest.raises(TopicNotFound):
            await asking
    assert await topics.verbs.list(world.account) == ([], False)


async def test_a_change_of_a_topic_that_did_not_happen_is_said_not_to_have(world: World) -> None:
    topics = Topics(world)
    made = await topics.make()
    topics.server.store.next("change", TOPICS, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await topics.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({}, {"a": 1}))
    assert await topics.verbs.find(world.account, NEWS) == made


# --- graves -----------------------------------------------------------------------------------------------------------


async def test_r06_a_deletion_that_was_only_announced_leaves_the_topic_alive(world: World) -> None:
    """R6, R16: its grave is dug, and its server dies before anything is deleted. Who buries must not
    take it for dead."""
    topics, other = Topics(world), Topics(world)
    await topics.make("a")
    incarnation = (await topics.verbs.find(world.account, NEWS)).incarnation
    topics.server.store.next("change", SUBSCRIPTIONS, UNAVAILABLE)
    with pytest.raises(OutcomeUnknown):
        await topics.verbs.delete(world.account, NEWS)
    assert incarnation in await graves(world)
    await other.server.bury()
    assert incarnation in await graves(world), "whoever dug it may still be at work"
    world.wait(limits.GRAVE_PATIENCE_MS)
    await other.server.bury()
    assert incarnation not in await graves(world)
    await other.publish("one")
    await other.spread()
    assert await other.bodies("a") == ["one"]
    assert await subscribed_now(other) == [queue_endpoint(world.account, "a")]


async def test_r06_subscriptions_that_could_not_be_dropped_are_dropped_later(world: World) -> None:
    """R6: the grave stays until they are."""
    topics = Topics(world)
    made = await topics.make("a")
    await topics.verbs.delete(world.account, NEWS)
    partition = places.subscriptions(made.incarnation)
    rule = topics.server.store.next("drop", SUBSCRIPTIONS, UNAVAILABLE, when=lambda item: item == partition, times=3)
    while rule.times:
        assert await topics.server.engine.bury_step(), "there is more to do"
        (left,) = await world.store.read([Span(partition)])
        assert len(left.rows) == 1 and made.incarnation in await graves(world)
    await topics.server.bury()
    (left,) = await world.store.read([Span(partition)])
    assert not left.rows and made.incarnation not in await graves(world)


async def graves(world: World) -> set[str]:
    (found,) = await world.store.read([Span(places.TOPIC_GRAVEYARD)])
    return {str(row.key) for row in found.rows}


# --- subscriptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("verb", ["subscribe", "change", "unsubscribe"])
async def test_r16_a_subscription_is_not_changed_by_who_is_always_too_late(
    world: World, monkeypatch: pytest.MonkeyPatch, verb: str, lost: bool
) -> None:
    """R16: and who hears that does not hear that it was done; nor that it was not, after an answer that was lost."""
    monkeypatch.setattr(limits, "RESERVE_ROUNDS", 3)
    topics, other = Topics(world), Topics(world)
    await topics.make("a")
    first = await topics.subscribe("a")
    await topics.server.create("b")
    count = 0

    async def faster() -> None:
        nonlocal count
        count += 1
        await other.subscribe(f"other-{count}")

    if lost:
        topics.server.store.next("change", SUBSCRIPTIONS, "never sent")
    topics.server.store.next("change", SUBSCRIPTIONS, faster, times=FOR_EVER)
    asks: dict[str, Callable[[], Awaitable[object]]] = {
        "subscribe": lambda: topics.subscribe("b"),
        "change": lambda: topics.verbs.rewrite_subscription(
            world.account, NEWS, first.id, lambda one: replace(one, raw=False)),
        "unsubscribe": lambda: topics.verbs.unsubscribe(world.account, NEWS, first.id),
    }
    with pytest.raises(OutcomeUnknown if lost else Unavailable):
        await asks[verb]()
    assert sorted(await subscribed_now(other)) == sorted(
        queue_endpoint(world.account, name) for name in ("a", "other-1", "other-2", "other-3")
    )
    assert await other.verbs.find_subscription(world.account, NEWS, first.id) == first


async def test_r06_a_topic_that_is_deleted_while_somebody_subscribes_is_said_to_be_gone(world: World) -> None:
    """R6: nothing was sent yet, so it is sure that nobody was subscribed."""
    topics, other = Topics(world), Topics(world)
    await topics.make()
    await topics.server.create("a")

    async def deleted() -> None:
        await other.verbs.delete(world.account, NEWS)

    topics.server.store.next("read", SUBSCRIPTIONS, deleted, after=True)
    with pytest.raises(TopicNotFound):
        await topics.subscribe("a")
    await other.make()
    assert await subscribed_now(other) == []


async def test_r16_a_subscription_that_others_changed_meanwhile_is_changed_by_what_it_is_then(world: World) -> None:
    """R16: naive, to write what was made of the one that was read first, and lose what others have changed."""
    topics, other = Topics(world), Topics(world)
    await topics.make("a")
    first = await topics.subscribe("a")

    async def faster() -> None:
        await other.verbs.rewrite_subscription(
            world.account, NEWS, first.id, lambda one: replace(one, notes={**one.notes, "other": 1})
        )

    topics.server.store.next("change", SUBSCRIPTIONS, faster)
    await topics.verbs.rewrite_subscription(
        world.account, NEWS, first.id, lambda one: replace(one, notes={**one.notes, "mine": 1})
    )
    found = await other.verbs.find_subscription(world.account, NEWS, first.id)
    assert (found.notes, found.version) == ({"other": 1, "mine": 1}, 3)


async def test_r16_an_unsubscription_whose_answer_is_lost_is_one(world: World) -> None:
    """R16: another changes the topic's subscriptions in between, so the second try finds its own work done."""
    topics, other = Topics(world), Topics(world)
    await topics.make("a", "b")
    first = await topics.subscribe("a")

    async def meanwhile() -> None:
        await other.unsubscribe("b")

    topics.server.store.next("change", SUBSCRIPTIONS, LOSE_ANSWER)
    topics.server.store.next("change", SUBSCRIPTIONS, meanwhile)
    assert await topics.verbs.unsubscribe(world.account, NEWS, first.id)
    assert await subscribed_now(other) == []
