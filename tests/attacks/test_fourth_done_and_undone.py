"""A first try was made and its answer lost, and somebody undid it. Neither `Unavailable` ("provably did not happen")
nor a `RequestError` ("nothing was changed", errors.py) is true of that. `OutcomeUnknown` is, as it is said already
where a topic was deleted meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from angelhair.engine import accounts
from angelhair.engine.accounts import Key
from angelhair.engine.schema import ACCESS_KEYS, ACCOUNTS, QUEUES, SUBSCRIPTIONS, TOPICS
from angelhair.engine.store import Table
from angelhair.engine.topics.values import (
    QUEUE,
    NewSubscription,
    TopicSettings,
    queue_endpoint,
)
from angelhair.errors import InvalidRequest, OutcomeUnknown
from angelhair.identities import RandomIdentities
from angelhair.model import QueueSettings
from angelhair.settings import ACCOUNT
from tests.attacks.worlds import new_world, played, server
from tests.faults import LOSE_ANSWER, UNAVAILABLE, FaultyStore

Verb = Callable[[], Awaitable[object]]


async def _told(store: FaultyStore, table: Table, verb: Verb, undone: Verb) -> None:
    lost = store.next("change", table, LOSE_ANSWER)

    async def meanwhile() -> None:
        await undone()

    undoing = store.next("change", table, meanwhile)
    with pytest.raises(OutcomeUnknown):
        await verb()
    assert (lost.happened, undoing.happened) == (1, 1)


@played
async def test_a_queue_that_was_changed_and_deleted_was_changed() -> None:
    clock, store = new_world()
    way = FaultyStore(store)
    one, other = server(way, clock), server(store, clock)
    await one.create_queue("shop", "jobs", QueueSettings())
    await _told(
        way, QUEUES,
        lambda: one.change_queue("shop", "jobs", {"visibility_timeout_ms": 1_000}),
        lambda: other.delete_queue("shop", "jobs"),
    )


@played
async def test_a_subscription_that_was_changed_and_ended_was_changed() -> None:
    """Publications went by its new filter for a while."""
    clock, store = new_world()
    way = FaultyStore(store)
    one, other = server(way, clock).topics, server(store, clock).topics
    await one.create("shop", "news", TopicSettings())
    made, _ = await one.subscribe("shop", "news", NewSubscription(QUEUE, queue_endpoint("shop", "jobs")))
    await _told(
        way, SUBSCRIPTIONS,
        lambda: one.rewrite_subscription("shop", "news", made.id, lambda was: replace(was, raw=True)),
        lambda: other.unsubscribe("shop", "news", made.id),
    )


@played
async def test_a_key_that_was_enabled_and_deleted_was_enabled() -> None:
    """Requests that it signed were accepted for a while."""
    _, store = new_world()
    way = FaultyStore(store)
    await accounts.create_key(store, Key("B", "secret", ACCOUNT, None, None, True, 0))
    await accounts.enable_key(store, "B", False)
    await _told(
        way, ACCESS_KEYS, lambda: accounts.enable_key(way, "B", True), lambda: accounts.delete_key(store, "B")
    )


@played
async def test_a_queue_that_was_made_and_deleted_and_is_another_one_now_was_made() -> None:
    """What was put there for a while was confirmed. Then the store says no to a read."""
    clock, store = new_world()
    way = FaultyStore(store)
    one, other = server(way, clock), server(store, clock)

    async def undone() -> None:
        await other.delete_queue("shop", "jobs")
        await other.create_queue("shop", "jobs", QueueSettings(visibility_timeout_ms=1_000))
        way.next("read", QUEUES, UNAVAILABLE)

    await _told(way, QUEUES, lambda: one.create_queue("shop", "jobs", QueueSettings()), undone)


@played
async def test_a_topic_that_was_made_and_deleted_and_is_another_one_now_was_made() -> None:
    clock, store = new_world()
    way = FaultyStore(store)
    one, other = server(way, clock).topics, server(store, clock).topics

    async def undone() -> None:
        await other.delete("shop", "news")
        await other.create("shop", "news", TopicSettings())
        way.next("read", TOPICS, UNAVAILABLE)

    await _told(way, TOPICS, lambda: one.create("shop", "news", TopicSettings()), undone)


@played
async def test_an_account_that_was_deleted_and_cannot_be_brought_back_was_deleted() -> None:
    """A server that had not heard that its last key is gone made a queue in it meanwhile: the account is brought back,
    and the store says no to that. It is gone, its queue is not, and nobody is told so."""
    clock, store = new_world()
    way = FaultyStore(store)
    other = server(store, clock)
    account = await accounts.create_account(store, "shop", None, RandomIdentities(), clock.now())

    async def meanwhile() -> None:
        await other.create_queue(account.id, "jobs", QueueSettings())
        way.next("change", ACCOUNTS, UNAVAILABLE)

    way.next("change", ACCOUNTS, meanwhile, after=True)
    with pytest.raises(OutcomeUnknown):
        await accounts.delete_account(way, account.id)
    with pytest.raises(InvalidRequest):
        accounts.find_account(await accounts.read_accounts(store), account.id)
