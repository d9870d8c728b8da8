"""R16: what was published reaches every queue that was subscribed, in spite of what happens on the way."""

from __future__ import annotations

import itertools

import pytest

from angelhair import limits
from angelhair.engine.schema import BODIES, GROUPS, LOGS, STATES, TOPICS
from angelhair.engine.store import Change
from angelhair.engine.topics.postings import FIFO_OUTBOX, OUTBOX, hidden_account
from angelhair.engine.topics.values import BY_GROUP, Publication, Published
from angelhair.errors import InvalidRequest, OutcomeUnknown, TopicNotFound, Unavailable
from angelhair.model import NewMessage
from tests.faults import UNAVAILABLE
from tests.promises.topics import NEWS, Topics
from tests.queues import SECOND, World


async def test_r16_a_publication_reaches_every_subscribed_queue_and_no_other(world: World) -> None:
    """R16"""
    topics = Topics(world)
    await topics.make("a", "b")
    await topics.server.create("c")
    first, second = await topics.publish("one", "two")
    assert first.id != second.id and len(first.id) == 32
    assert await topics.spread() == 2
    assert [await topics.bodies(queue) for queue in "abc"] == [["one", "two"], ["one", "two"], []]
    assert (await topics.left(), topics.told.done) == (0, 2)


async def test_r16_who_subscribes_or_ends_it_meanwhile_gets_what_was_published_before_that(world: World) -> None:
    """R16: who is subscribed is read when it is published, and not when it is spread."""
    topics, other = Topics(world), Topics(world)
    await topics.make("a", "b")
    await other.publish("first")
    await topics.unsubscribe("a")
    await topics.server.create("c")
    await topics.subscribe("c")
    await other.publish("second")
    await other.spread()
    assert [await topics.bodies(queue) for queue in "abc"] == [["first"], ["first", "second"], ["second"]]


async def test_r16_a_server_that_dies_half_way_leaves_it_to_another(world: World) -> None:
    """R16, R10: another spreads it to all, each queue gets it once more at most, however often that happens."""
    topics = Topics(world)
    await topics.make("a", "b")
    await topics.publish("one")
    dying = Topics(world)

    # It has put, and comes no further.
    dying.server.store.next("change", STATES, UNAVAILABLE, when=_is_ack, times=100)
    assert await dying.fanout.step(world.account, OUTBOX) == 1
    others = [Topics(world) for _ in range(3)]
    for other in others:
        assert await other.spread() == 0, "it is the first server's alone"
        world.wait(limits.OUTBOX_VISIBILITY_MS)
        other.server.store.next("change", STATES, UNAVAILABLE, when=_is_ack, times=100)
        assert await other.spread(OUTBOX) == 1
        other.server.store.heal()
    world.wait(limits.OUTBOX_VISIBILITY_MS)
    assert await topics.spread() == 1
    assert await topics.left() == 0
    for queue in "ab":
        assert await topics.bodies(queue) == ["one", "one"]


async def test_r16_one_queue_that_cannot_be_written_to_holds_nobody_up(world: World) -> None:
    """R16: the others have theirs, once; it is tried again with growing pauses and not lost."""
    topics = Topics(world)
    await topics.make("good", "bad")
    bad = (await world.queue("bad")).incarnation
    topics.server.engine.joined = None
    await topics.publish("one", "two")
    away = topics.server.store.next(
        "write", BODIES, UNAVAILABLE, when=lambda write: write.partition.key.startswith(bad), times=10**6
    )
    tried_at = []
    for second in range(40):
        if await topics.spread():
            tried_at.append(second)
        world.wait(SECOND)
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried_at)]
    assert len(pauses) >= 3 and pauses == sorted(pauses) and pauses[-1] >= 4 * pauses[0] >= 4
    assert set(topics.told.waiting) == {("one", "bad"), ("two", "bad")} and away.happened
    await topics.publish("three")
    topics.server.store.heal()
    world.wait(limits.FANOUT_PAUSE_MAXIMUM_MS)
    await topics.spread()
    assert sorted(await topics.bodies("bad")) == ["one", "three", "two"]
    assert await topics.bodies("good") == ["one", "two", "three"]
    assert await topics.left() == 0


async def test_r16_what_is_not_confirmed_is_said_to_be_so(world: World) -> None:
    """R16"""
    topics = Topics(world)
    await topics.make("a")
    await topics.publish("first")
    topics.server.store.next("read", TOPICS, UNAVAILABLE)
    with pytest.raises(Unavailable):
        await topics.publish("not read")
    topics.server.engine.joined = None
    topics.server.store.next("write", BODIES, "never sent", times=100)
    with pytest.raises(OutcomeUnknown):
        await topics.publish("not known")
    topics.server.store.heal()
    await topics.spread()
    assert await topics.bodies("a") == ["first"]


async def test_r06_a_topic_that_is_deleted_and_made_again_sees_none_of_the_old_subscriptions(world: World) -> None:
    """R6, R16: and what was published before the end still arrives."""
    topics, stale = Topics(world), Topics(world)
    await topics.make("a")
    await stale.publish("before")
    await topics.verbs.delete(world.account, NEWS)
    with pytest.raises(TopicNotFound):
        await stale.publish("between")
    await topics.make()
    await stale.publish("after")
    await stale.spread()
    assert await topics.bodies("a") == ["before"]
    assert await stale.verbs.subscriptions(world.account, NEWS) == []


async def test_r16_a_queue_that_is_gone_loses_its_own_messages_only(world: World) -> None:
    """R16: they go to the subscription's dead letters, if it has such; else they are dropped, and that is said."""
    topics = Topics(world)
    await topics.make("a", "b")
    for name in ("c", "rest"):
        await topics.server.create(name)
    await topics.subscribe("c", dead_letter_queue="rest")
    for name in ("b", "c"):
        await topics.server.engine.delete_queue(world.account, name)
    await topics.publish("one")
    await topics.spread()
    assert (await topics.bodies("a"), await topics.bodies("rest")) == (["one"], ["one"])
    assert topics.told.gone == [("one", "b")]
    assert await topics.left() == 0


async def test_r10_a_publication_with_a_key_is_one_within_the_window(world: World) -> None:
    """R10"""
    topics, other = Topics(world), Topics(world)
    await topics.make("a")
    (first,) = await topics.publish("one", key="k")
    (again,) = await other.publish("one", key="k")
    (third,) = await other.publish("one", key="other")
    assert again.id == first.id != third.id
    await topics.spread()
    assert await topics.bodies("a") == ["one", "one"]


async def test_publications_without_subscribers_are_confirmed_and_cost_no_put(world: World) -> None:
    topics = Topics(world)
    await topics.make()
    (one,) = await topics.publish("one")
    assert one.id
    assert await topics.spread() == 0


async def test_what_cannot_be_read_stays_and_is_in_nobodys_way(world: World) -> None:
    topics = Topics(world)
    await topics.make("a")
    await topics.publish("one")
    hidden = hidden_account(world.account)
    for body in (b"", b"\x00\x00\x00\x02{}", b"nonsense"):
        await topics.server.engine.put(hidden, OUTBOX, [NewMessage(body)])
    await topics.spread()
    assert await topics.bodies("a") == ["one"]
    assert len(topics.told.unread) == 3 and await topics.left() == 3


async def test_an_outbox_is_no_queue_that_anybody_can_name_or_see(world: World) -> None:
    topics = Topics(world)
    await topics.make("a")
    await topics.publish("one")
    names, _ = await topics.server.engine.list_queues(world.account)
    assert names == ["a"]
    for account in ("~", "~~a", "-", "~-x"):
        with pytest.raises(InvalidRequest):
            await topics.server.engine.find_queue(account, OUTBOX)
    with pytest.raises(InvalidRequest):
        await topics.verbs.create(hidden_account(world.account), NEWS, (await topics.verbs.find(
            world.account, NEWS)).settings)


async def test_bad_publications_are_refused_before_anything_is_written(world: World) -> None:
    topics = Topics(world)
    await topics.make("a")
    publish = topics.publishing.publish
    for publication in (
        Publication(b"x" * (limits.PUBLICATION_BYTES + 1)),
        Publication("text"),  # type: ignore[arg-type]
        Publication(b"", attributes="\ud800"),
        Publication(b"", bodies={"queue": "x" * (limits.PUBLICATION_BYTES + 1)}),
    ):
        with pytest.raises(InvalidRequest):
            await publish(world.account, NEWS, [publication])
    for count in (0, limits.BATCH_MESSAGES + 1):
        with pytest.raises(InvalidRequest):
            await publish(world.account, NEWS, [Publication(b"")] * count)
    with pytest.raises(TopicNotFound):
        await publish(world.account, "nowhere", [Publication(b"")])
    assert await topics.spread() == 0


def _is_ack(change: Change) -> bool:
    return any(row.values is not None and row.values.get("settled") for row in change.rows)


async def test_many_publications_go_in_portions_and_stop_at_the_first_that_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PUBLISH_MESSAGES", 2)
    topics = Topics(world)
    await topics.make("a")
    await topics.publish("0")

    async def away() -> None:
        topics.server.store.next("read", TOPICS, UNAVAILABLE)

    topics.server.store.next("read", TOPICS, away, after=True)
    wanted = [Publication(b"%d" % number) for number in range(5)]
    outcomes = await topics.publishing.publish(world.account, NEWS, wanted)
    assert [type(outcome) for outcome in outcomes] == [Published, Published, *[Unavailable] * 3]
    await topics.spread()
    assert await topics.bodies("a") == ["0", "0", "1"]


# --- fifo -------------------------------------------------------------------------------------------------------------


async def test_r16_a_fifo_topic_keeps_the_order_of_each_group_in_each_queue(world: World) -> None:
    """R12, R16"""
    topics, other = Topics(world), Topics(world)
    await topics.make("a", "b", fifo=True)
    await topics.server.create("plain")
    await topics.subscribe("plain")
    numbers = []
    for number in range(6):
        server = (topics, other)[number % 2]
        (one,) = await server.publish(str(number), group=f"g{number % 2}", key=str(number))
        assert one.place is not None
        numbers.append(one.place.number)
    assert numbers == sorted(numbers)
    while await topics.spread() or await other.spread():
        continue
    for queue in ("a", "b"):
        delivered = await topics.server.drain(queue)
        for group in ("g0", "g1"):
            found = [delivery.body.decode() for delivery in delivered if delivery.group == group]
            assert found == [str(number) for number in range(6) if number % 2 == int(group[1])]
    assert sorted(await topics.bodies("plain")) == list("012345")


@pytest.mark.parametrize("most", [1, 10**6])
async def test_r16_nothing_of_a_group_overtakes_what_could_not_be_put(
    world: World, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R12, R16: what follows it waits, in the same step and in later ones; other groups go on."""
    monkeypatch.setattr(limits, "FANOUT_BYTES", most)
    topics = Topics(world)
    await topics.make("a", fifo=True)
    for body in ("1", "2", "3"):
        await topics.publish(body, group="g", key=body)
    incarnation = (await world.queue("a")).incarnation
    topics.server.store.next(
        "change", LOGS, UNAVAILABLE, when=lambda change: change.partition.key.startswith(incarnation)
    )
    await topics.spread()
    await topics.publish("other", group="h", key="other")
    await topics.spread()
    assert await topics.bodies("a") == ["other"]
    world.wait(limits.OUTBOX_VISIBILITY_MS)
    for _ in range(5):
        await topics.spread()
        world.wait(limits.FANOUT_PAUSE_MAXIMUM_MS)
    assert await topics.bodies("a") == ["1", "2", "3"]
    assert await topics.left(FIFO_OUTBOX) == 0


async def test_r10_a_fifo_topic_dedups_by_key_by_content_and_by_group(world: World) -> None:
    """R10"""
    topics = Topics(world)
    await topics.make("a", fifo=True, content_dedup=True)
    await topics.make(topic="by-group", fifo=True, dedup_scope=BY_GROUP)
    await topics.subscribe("a", "by-group")
    (first,) = await topics.publish("same", group="g")
    (again,) = await topics.publish("same", group="h")
    (keyed,) = await topics.publish("same", group="g", key="another")
    assert first == again != keyed
    one, two = [(await topics.publish("x", topic="by-group", group=group, key="k"))[0] for group in "gh"]
    assert one != two
    for fields, wrong in (({"group": "g"}, "key"), ({"key": "k"}, "group")):
        with pytest.raises(InvalidRequest) as refused:
            await topics.publish("x", topic="by-group", **fields)
        assert refused.value.field == wrong
    world.wait(limits.OUTBOX_WINDOW_MS + 2 * limits.CLOCK_ERROR_MS + SECOND)
    (later,) = await topics.publish("same", group="g")
    assert later != first


async def test_r16_a_fifo_publication_that_is_spread_again_is_there_once(world: World) -> None:
    """R10, R16"""
    topics = Topics(world)
    await topics.make("a", fifo=True)
    await topics.server.create("plain")
    await topics.subscribe("plain")
    await topics.publish("one", group="g", key="1")
    dying = Topics(world)

    async def comes_no_further() -> None:
        dying.server.store.next("change", GROUPS, UNAVAILABLE, times=100)

    dying.server.store.next("change", LOGS, comes_no_further, after=True)
    await dying.fanout.step(world.account, FIFO_OUTBOX)
    assert await topics.left(FIFO_OUTBOX) == 1
    world.wait(limits.OUTBOX_VISIBILITY_MS)
    await topics.spread()
    assert (await topics.bodies("a"), await topics.bodies("plain")) == (["one"], ["one"])
