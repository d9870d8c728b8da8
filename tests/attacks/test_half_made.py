"""A queue, a topic, an access key that is made, and seen in part (row 19 of docs/cassandra.md)."""

from __future__ import annotations

import asyncio

import pytest

from angelhair.engine import accounts
from angelhair.engine.accounts import Key
from angelhair.engine.schema import ACCESS_KEYS, QUEUES, SUBSCRIPTIONS, TOPICS
from angelhair.engine.topics.values import QUEUE, NewSubscription, Publication, TopicSettings, queue_endpoint
from angelhair.errors import AngelhairError
from angelhair.model import MessageId, NewMessage, QueueSettings
from angelhair.settings import ACCOUNT
from tests.attacks.half_committed import HalfCommitted
from tests.attacks.minority import dates
from tests.attacks.worlds import new_world, played, server


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_queue_that_is_made_and_seen_in_part_can_be_made(near: bool) -> None:
    """Whoever made it died. Names are listed by their status alone; who then looks it up finds no settings."""
    clock, store = new_world()
    half = HalfCommitted(store, QUEUES)
    maker, other = server(half.writer(), clock), server(half.seen(), clock)
    with pytest.raises(asyncio.CancelledError):
        await maker.create_queue("shop", "jobs", QueueSettings())
    if near:
        half.near = dates
    names, _ = await other.list_queues("shop")
    try:
        await other.find_queue("shop", "jobs")
    except AngelhairError:
        pass
    await other.list_dead_letter_sources("shop", "dead")
    await other.create_queue("shop", "jobs", QueueSettings())
    (confirmed,) = await other.put("shop", "jobs", [NewMessage(b"one")])
    assert isinstance(confirmed, MessageId), names


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_topic_that_is_made_and_seen_in_part_can_be_made(near: bool) -> None:
    clock, store = new_world()
    half = HalfCommitted(store, TOPICS)
    maker, other = server(half.writer(), clock), server(half.seen(), clock)
    with pytest.raises(asyncio.CancelledError):
        await maker.topics.create("shop", "news", TopicSettings())
    if near:
        half.near = dates
    await other.topics.list("shop")
    await other.topics.create("shop", "news", TopicSettings())
    await other.topics.find("shop", "news")


@pytest.mark.parametrize("near", [False, True])
@played
async def test_an_access_key_that_is_made_and_seen_in_part_hinders_no_other(near: bool) -> None:
    """A server asks for the keys' version now and then, and for as little as it can beside it."""
    _, store = new_world()
    await accounts.create_key(store, Key("B", "secret", ACCOUNT, None, None, True, 0))
    half = HalfCommitted(store, ACCESS_KEYS)
    with pytest.raises(asyncio.CancelledError):
        await accounts.create_key(half.writer(), Key("A", "secret", ACCOUNT, None, None, True, 0))
    if near:
        half.near = dates
    seen = half.seen()
    await accounts.keys_version(seen)
    keys = await accounts.read_keys(seen)
    assert "B" in [key.id for key in keys.keys]


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_subscription_that_is_made_and_seen_in_part_stops_no_publication(near: bool) -> None:
    """Whether a topic lives is asked by its first subscription's version alone."""
    clock, store = new_world()
    half = HalfCommitted(store, SUBSCRIPTIONS, lambda change: bool(change.rows))
    maker, other = server(half.writer(), clock), server(half.seen(), clock)
    await other.topics.create("shop", "news", TopicSettings())
    with pytest.raises(asyncio.CancelledError):
        await maker.topics.subscribe("shop", "news", NewSubscription(QUEUE, queue_endpoint("shop", "jobs")))
    if near:
        half.near = dates
    await other.topics.find("shop", "news")
    prepared = await other.topics.prepare("shop", "news", [Publication(b"one")])
    assert prepared is not None
