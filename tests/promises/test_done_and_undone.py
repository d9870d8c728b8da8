"""A first try was made and its answer lost; somebody undid it; and the next try meets a store that says no. That does
not say that nothing happened: found by seed 1125 of topics, whose publications reached who was said not to be
subscribed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from angelhair.engine import accounts
from angelhair.engine.accounts import Key
from angelhair.engine.schema import ACCESS_KEYS, QUEUES, SUBSCRIPTIONS, TOPICS
from angelhair.engine.store import Table
from angelhair.engine.topics.values import TopicRewritten
from angelhair.errors import OutcomeUnknown
from angelhair.settings import ACCOUNT
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.promises.topics import NEWS, Topics
from tests.queues import Server, World

Verb = Callable[[], Awaitable[object]]


async def _told(server: Server, table: Table, verb: Verb, undone: Verb) -> None:
    lost = server.store.next("change", table, LOSE_ANSWER)

    async def meanwhile() -> None:
        await undone()

    server.store.next("change", table, meanwhile)
    denied = server.store.next("change", table, UNAVAILABLE)
    with pytest.raises(OutcomeUnknown):
        await verb()
    assert (lost.happened, denied.happened) == (1, 1)


async def test_a_subscription_that_was_ended_meanwhile_was_one(world: World) -> None:
    topics, other = Topics(world), Topics(world)
    await topics.make()
    await topics.server.create("a")
    await _told(topics.server, SUBSCRIPTIONS, lambda: topics.subscribe("a"), lambda: other.unsubscribe("a"))


async def test_what_a_topic_said_for_a_while_is_not_denied(world: World) -> None:
    topics, other = Topics(world), Topics(world)
    await topics.make()
    await _told(
        topics.server, TOPICS,
        lambda: topics.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({}, {"a": 1})),
        lambda: other.verbs.rewrite(world.account, NEWS, lambda topic: TopicRewritten({}, {})),
    )


async def test_how_a_queue_was_for_a_while_is_not_denied(world: World) -> None:
    server, other = world.server(), world.server()
    await server.create("orders")

    def change(where: Server, visibility_ms: int) -> Verb:
        return lambda: where.engine.change_queue(world.account, "orders", {"visibility_timeout_ms": visibility_ms})

    await _told(server, QUEUES, change(server, 1_000), change(other, 2_000))


async def test_a_key_that_was_good_for_a_while_is_not_denied(world: World) -> None:
    server = world.server()
    key = Key(
        f"AHKI{world.identities.fresh()[:16]}", "the secret", ACCOUNT, None, None, True, world.dial.wall_ms
    )
    await accounts.create_key(world.store, key)
    await _told(
        server, ACCESS_KEYS,
        lambda: accounts.enable_key(server.store, key.id, False),
        lambda: accounts.enable_key(world.store, key.id, True),
    )
    await accounts.delete_key(world.store, key.id)
