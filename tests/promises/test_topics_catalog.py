"""R6, R16: topics and subscriptions are made, changed and ended once, whatever the store answers and however late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from angelhair import limits
from angelhair.batching.topics import on_their_way
from angelhair.engine import accounts, places
from angelhair.engine.schema import SUBSCRIPTIONS, TOPICS
from angelhair.engine.store import Span
from angelhair.engine.topics.postings import OUTBOX, targets_of
from angelhair.engine.topics.values import (
    CONFIRMED,
    PENDING,
    QUEUE,
    NewSubscription,
    Publication,
    TopicRewritten,
    TopicSettings,
    queue_endpoint,
)
from angelhair.errors import (
    InvalidRequest,
    OutcomeUnknown,
    SubscriptionNotFound,
    TopicExists,
    TopicNotFound,
    Unavailable,
)
from tests.faults import ARRIVE_LATE, LOSE_ANSWER, UNAVAILABLE
from tests.promises.topics import NEWS, Topics
from tests.queues import World


async def test_a_topic_is_made_once_and_found_by_everybody(world: World) -> None:
    topics, other = Topics(world), Topics(world)
    made, new = await topics.verbs.create(world.account, NEWS, TopicSettings(), {"tags": {"a": "b"}})
    again, newer = await other.verbs.create(world.account, NEWS, TopicSettings(), {"tags": {}})
    assert (new, newer) == (True, False) and again == made == await other.verbs.find(world.account, NEWS)
    with pytest.raises(TopicExists) as refused:
        await other.verbs.create(world.account, NEWS, TopicSettings(kind="fifo", content_dedup=True))
    assert refused.value.differing == ("kind", "content_dedup")
    assert (await other.verbs.list(world.account)) == ([NEWS], False)
    with pytest.raises(TopicNotFound):
        await topics.verbs.find("another-account", NEWS)
    assert (await other.verbs.list("another-account")) == ([], False)


async def test_a_topic_is_changed_by_what_it_is(world: World) -> None:
    """Two who change it at once lose nothing of each other's."""
    topics, other = Topics(world), Topics(world)
    await topics.make()

    async def meanwhile() -> None:
        await other.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({}, {**topic.notes, "b": 2}))

    topics.server.store.next("change", TOPICS, meanwhile)
    await topics.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten(
        {"content_dedup": True}, {**topic.notes, "a": 1}))
    found = await other.verbs.find(world.account, NEWS)
    assert (found.notes, found.settings.content_dedup, found.version) == ({"a": 1, "b": 2}, True, 3)
    for changes in ({"kind": "fifo"}, {"colour": 1}):
        with pytest.raises(InvalidRequest):
            await topics.verbs.rewrite(world.account, NEWS, lambda topic, new=changes: TopicRewritten(new, {}))
    long = TopicRewritten({}, {"x": "x" * limits.NOTES_BYTES})
    with pytest.raises(InvalidRequest):
        await topics.verbs.rewrite(world.account, NEWS, lambda topic: long)


@pytest.mark.parametrize("table", [TOPICS, SUBSCRIPTIONS])
@pytest.mark.parametrize("verb", ["create", "subscribe", "unsubscribe", "delete"])
async def test_r06_a_lost_answer_is_asked_for_again(world: World, table: object, verb: str) -> None:
    """R6"""
    topics = Topics(world)
    await topics.server.create("a")
    if verb != "create":
        await topics.make()
    if verb in ("unsubscribe", "delete"):
        await topics.subscribe("a")
    topics.server.store.next("change", table, LOSE_ANSWER)  # type: ignore[arg-type]
    if verb == "create":
        await topics.make()
    elif verb == "subscribe":
        await topics.subscribe("a")
    elif verb == "unsubscribe":
        await topics.unsubscribe("a")
    else:
        await topics.verbs.delete(world.account, NEWS)
    topics.server.store.heal()
    names, _ = await topics.verbs.list(world.account)
    assert names == ([] if verb == "delete" else [NEWS])
    if names:
        subscribed = [one.endpoint for one in await topics.verbs.subscriptions(world.account, NEWS)]
        assert subscribed == ([queue_endpoint(world.account, "a")] if verb == "subscribe" else [])


async def test_r06_a_creation_that_arrives_when_the_topic_was_deleted_brings_nothing_back(world: World) -> None:
    """R6: neither the topic nor those who were subscribed."""
    topics, other = Topics(world), Topics(world)
    topics.server.store.next("change", TOPICS, ARRIVE_LATE)
    await topics.make("a")
    await other.verbs.delete(world.account, NEWS)
    await other.server.bury()
    await topics.server.store.land()
    with pytest.raises(TopicNotFound):
        await other.verbs.find(world.account, NEWS)
    with pytest.raises(TopicNotFound):
        await other.publish("x")
    await other.make()
    assert await other.verbs.subscriptions(world.account, NEWS) == []


async def test_r16_a_subscription_that_arrives_when_it_was_ended_brings_nothing_back(world: World) -> None:
    """R16"""
    topics, other = Topics(world), Topics(world)
    await topics.make()
    await topics.server.create("a")
    topics.server.store.next("change", SUBSCRIPTIONS, ARRIVE_LATE)
    await topics.subscribe("a")
    await other.unsubscribe("a")
    await topics.server.store.land()
    assert await other.verbs.subscriptions(world.account, NEWS) == []
    topics.server.store.next("change", SUBSCRIPTIONS, ARRIVE_LATE)
    await topics.subscribe("a")
    await other.verbs.delete(world.account, NEWS)
    await other.server.bury()
    await topics.server.store.land()
    await other.make()
    assert await other.verbs.subscriptions(world.account, NEWS) == []


async def test_what_is_not_known_is_not_denied(world: World) -> None:
    topics = Topics(world)
    topics.server.store.next("change", TOPICS, "never sent", times=100)
    with pytest.raises(OutcomeUnknown):
        await topics.make()
    topics.server.store.heal()
    await topics.make("a")
    topics.server.store.next("change", SUBSCRIPTIONS, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await topics.unsubscribe("a")
    topics.server.store.next("change", SUBSCRIPTIONS, "never sent", times=100)
    with pytest.raises(OutcomeUnknown):
        await topics.unsubscribe("a")


async def test_r06_a_deletion_that_was_begun_is_finished_by_others(world: World) -> None:
    """R6: by who makes the topic again, or by who buries it."""
    for end in ("made", "buried"):
        topics, other = Topics(world), Topics(world)
        await topics.make(topic=end)
        incarnation = (await topics.verbs.find(world.account, end)).incarnation
        topics.server.store.next("change", TOPICS, UNAVAILABLE)
        with pytest.raises(OutcomeUnknown):
            await topics.verbs.delete(world.account, end)
        with pytest.raises(TopicNotFound):
            await other.verbs.find(world.account, end)
        if end == "made":
            await other.make(topic=end)
            assert (await other.verbs.find(world.account, end)).incarnation != incarnation
        else:
            world.wait(limits.GRAVE_PATIENCE_MS)
            await other.server.bury()
            assert end not in (await other.verbs.list(world.account))[0]
        await other.server.bury()
        (left,) = await world.store.read([Span(places.subscriptions(incarnation))])
        assert not left.rows and left.flags.get("edits") is None


async def test_subscriptions_are_unique_bounded_and_changed_by_what_they_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Topics(world)
    await topics.make("a")
    first = await topics.subscribe("a")
    assert first == await topics.subscribe("a", raw=False), "as it was at first"
    changed = await topics.verbs.rewrite_subscription(
        world.account, NEWS, first.id, lambda one: replace(one, raw=False, notes={"x": 1})
    )
    assert (changed.version, changed.raw) == (2, False)
    assert await topics.verbs.find_subscription(world.account, NEWS, first.id) == changed
    monkeypatch.setattr(limits, "SUBSCRIPTIONS", 1)
    with pytest.raises(InvalidRequest):
        await topics.subscribe("b")
    assert not await topics.verbs.unsubscribe(world.account, NEWS, "nobody")
    for ask in (topics.verbs.find_subscription(world.account, NEWS, "nobody"),
                topics.verbs.rewrite_subscription(world.account, NEWS, "nobody", lambda one: one)):
        with pytest.raises(SubscriptionNotFound):
            await ask


async def test_nothing_is_sent_to_who_has_not_confirmed(world: World) -> None:
    topics = Topics(world)
    await topics.make("a")
    await topics.server.create("b")
    pending = await topics.subscribe("b", status=PENDING)
    await topics.publish("one")
    await topics.verbs.rewrite_subscription(
        world.account, NEWS, pending.id, lambda one: replace(one, status=CONFIRMED)
    )
    await topics.publish("two")
    await topics.spread()
    assert (await topics.bodies("a"), await topics.bodies("b")) == (["one", "two"], ["two"])


@pytest.mark.parametrize(
    "wrong",
    [
        NewSubscription("pigeon", "x"), NewSubscription(QUEUE, ""), NewSubscription(QUEUE, "no-name"),
        NewSubscription(QUEUE, "~a/outbox"), NewSubscription(QUEUE, "a/b", filter_scope="odd"),
        NewSubscription(QUEUE, "a/b", dead_letter_queue="-"), NewSubscription(QUEUE, "a/b", status="odd"),
        NewSubscription("https", "https://" + "x" * limits.ENDPOINT_LENGTH),
        NewSubscription(QUEUE, "a/b", notes={"x": "x" * limits.SUBSCRIPTION_BYTES}),
    ],
    ids=lambda wrong: wrong.endpoint[:20] or wrong.protocol,
)
async def test_bad_subscriptions_are_refused(world: World, wrong: NewSubscription) -> None:
    topics = Topics(world)
    await topics.make()
    with pytest.raises(InvalidRequest):
        await topics.verbs.subscribe(world.account, NEWS, wrong)


async def test_an_account_with_topics_or_publications_on_their_way_is_not_deleted(world: World) -> None:
    """A1: nobody would spread what it has published to queues of others."""
    topics = Topics(world)
    await topics.server.create("a")
    shop = await accounts.create_account(world.store, "shop", None, world.identities, topics.server.clock.now())
    engine = topics.server.engine
    await engine.topics.create(shop.id, NEWS, TopicSettings())
    wanted = NewSubscription(QUEUE, queue_endpoint(world.account, "a"))
    await engine.topics.subscribe(shop.id, NEWS, wanted)
    await topics.publishing.publish(shop.id, NEWS, [Publication(b"x")])
    with pytest.raises(InvalidRequest, match="has topics, 'news' among them"):
        await accounts.delete_account(world.store, shop.id)
    await engine.topics.delete(shop.id, NEWS)
    assert await on_their_way(engine, shop.id) == 1
    assert await topics.fanout.step(shop.id, OUTBOX) == 1
    assert await on_their_way(engine, shop.id) == 0
    await accounts.delete_account(world.store, shop.id)
    assert await topics.bodies("a") == ["x"]


async def test_what_happened_before_the_topic_was_deleted_is_not_denied(world: World) -> None:
    """A subscription whose answer was lost was one, until the topic ended: that is not said to have been refused."""
    topics, other = Topics(world), Topics(world)
    await topics.server.create("a")
    for verb in ("subscribe", "rewrite"):
        await topics.make()

        async def deleted() -> None:
            await other.verbs.delete(world.account, NEWS)

        table = SUBSCRIPTIONS if verb == "subscribe" else TOPICS
        topics.server.store.next("change", table, LOSE_ANSWER)
        topics.server.store.next("change", table, deleted)
        asking = (
            topics.subscribe("a") if verb == "subscribe"
            else topics.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({}, {"a": 1}))
        )
        with pytest.raises(OutcomeUnknown):
            await asking


async def test_r16_a_queue_whose_subscription_ends_and_begins_while_it_is_read_is_sent_to_once(world: World) -> None:
    """R16: a read in several pages may meet both."""
    topics = Topics(world)
    await topics.make("a", "b")
    first = await topics.subscribe("a")
    later = replace(first, id="another", created_at_ms=first.created_at_ms + 1)
    for read in ([first, later], [later, first]):
        assert [target.subscription for target in targets_of(read)] == ["another"]
    assert len(targets_of(await topics.verbs.subscriptions(world.account, NEWS))) == 2
