"""Topics through both clients, against a real server."""

from __future__ import annotations

import asyncio

import pytest

from angelhair import AsyncClient, Client
from angelhair.engine.schema import TOPICS
from angelhair.errors import (
    InvalidRequest,
    QueueNotFound,
    SubscriptionNotFound,
    TopicExists,
    TopicNotFound,
    Unavailable,
)
from tests.client.server import Served
from tests.faults import LOSE_ANSWER, UNAVAILABLE


def test_a_topic_from_its_making_to_its_end(server: Served) -> None:
    with Client(server.url) as client:
        made = client.create_topic("news")
        assert (made.name, made.kind, made.queues) == ("news", "standard", None)
        assert client.create_topic("news") == made
        with pytest.raises(TopicExists) as exists:
            client.create_topic("news", content_dedup=True)
        assert exists.value.differing == ("content_dedup",)
        client.create_queue("readers")
        client.subscribe("news", "readers")
        client.subscribe("news", "readers")
        assert client.topic("news").queues == ("readers",)
        first = client.publish("news", "hello", content_type="text/plain")
        assert client.publish("news", "again", key="k") == client.publish("news", "again", key="k") != first
        got = [message for _ in range(2) for message in client.receive("readers", 1, wait=30)]
        assert sorted(message.text for message in got) == ["again", "hello"]
        client.unsubscribe("news", "readers")
        assert list(client.topics("ne")) == ["news"]
        client.delete_topic("news")
        with pytest.raises(TopicNotFound) as gone:
            client.publish("news", "late")
        assert gone.value.name == "news"
        client.delete_queue("readers")


def test_refusals_are_the_engines(server: Served) -> None:
    with Client(server.url) as client:
        client.create_topic("refusals")
        with pytest.raises(QueueNotFound) as missing:
            client.subscribe("refusals", "nowhere")
        assert missing.value.name == "nowhere"
        with pytest.raises(SubscriptionNotFound):
            client.unsubscribe("refusals", "nowhere")
        for name in ("", "..", "a/b", "~x"):
            with pytest.raises(InvalidRequest):
                client.publish(name, "x")
        with pytest.raises(InvalidRequest):
            client.publish("refusals", "x", content_type="schön")
        client.create_topic("order.fifo", kind="fifo", content_dedup=True)
        with pytest.raises(InvalidRequest) as refused:
            client.publish("order.fifo", "x")
        assert refused.value.field == "group"


def test_what_is_lost_on_the_way_is_repeated_and_happens_once(server: Served) -> None:
    with Client(server.url) as client:
        client.create_topic("lossy")
        server.faults.next("change", TOPICS, LOSE_ANSWER, times=2)
        client.delete_topic("lossy")
    with Client(server.url, retry=None) as once:
        server.faults.next("read", TOPICS, UNAVAILABLE)
        with pytest.raises(Unavailable):
            once.topic("lossy")


def test_the_same_on_asyncio(server: Served) -> None:
    async def play() -> list[str]:
        async with AsyncClient(server.url) as client:
            await client.create_topic("async-news")
            await client.create_queue("async-readers")
            await client.subscribe("async-news", "async-readers")
            await client.publish("async-news", b"hello")
            got = await client.receive("async-readers", 1, wait=30)
            names = [name async for name in client.topics("async-")]
            await client.delete_topic("async-news")
            return [*names, *(message.text for message in got)]

    assert asyncio.run(play()) == ["async-news", "hello"]
