"""D1, R16: topics through the REST door: statuses as for queues, and what is published arrives."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from angelhair import limits
from angelhair.engine.schema import SUBSCRIPTIONS, TOPICS
from tests.faults import NEVER_SENT, UNAVAILABLE
from tests.wire.rest.calls import Rest
from tests.wire.server import RunningServer

Make = Callable[..., Rest]


@pytest.fixture
def topic(name: str) -> str:
    return f"/topics/{name.replace('queue', 'topic')}"


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_d01_a_topic_is_made_shown_listed_and_deleted(client: httpx.Client, topic: str) -> None:
    """D1"""
    name = topic.rpartition("/")[2]
    made = client.put(topic)
    assert made.status_code == 201
    assert made.json() | {"created_at": "", "changed_at": ""} == {
        "name": name, "kind": "standard", "content_dedup": False, "dedup_scope": "topic", "created_at": "",
        "changed_at": "",
    }
    again = client.put(topic, json={"kind": "standard"})
    assert (again.status_code, again.json()) == (200, made.json())
    shown = client.get(topic)
    assert shown.status_code == 200
    assert shown.json() == made.json() | {"queues": [], "others": 0}
    assert name in client.get("/topics", params={"prefix": name}).json()["topics"]
    answer = client.put(topic, json={"content_dedup": True})
    assert refused(answer) == (409, "topic_exists") and answer.json()["differing"] == ["content_dedup"]
    assert client.delete(topic).status_code == 204
    assert [refused(client.request(method, topic)) for method in ("GET", "DELETE")] == [(404, "topic_not_found")] * 2
    assert client.put(topic).status_code == 201
    assert client.delete(topic).status_code == 204


def test_a_topic_is_fifo_if_its_name_says_so_and_no_other_is(client: httpx.Client, topic: str) -> None:
    for path, kind in ((topic, "fifo"), (f"{topic}.fifo", "standard")):
        answer = client.put(path, json={"kind": kind})
        assert refused(answer) == (400, "invalid_request") and answer.json()["field"] == "kind"
        assert client.get(path).status_code == 404
    assert client.put(f"{topic}.fifo").json()["kind"] == "fifo"
    assert client.put(f"{topic}.fifo", json={"kind": "fifo"}).status_code == 200
    assert client.delete(f"{topic}.fifo").status_code == 204


def test_a_list_of_topics_comes_in_pages(client: httpx.Client, topic: str) -> None:
    name = topic.rpartition("/")[2]
    for letter in "abc":
        assert client.put(f"{topic}.{letter}").status_code == 201
    first = client.get("/topics", params={"prefix": f"{name}.", "limit": 2}).json()
    assert first == {"topics": [f"{name}.a", f"{name}.b"], "next": f"{name}.b"}
    rest = client.get("/topics", params={"prefix": f"{name}.", "after": first["next"]}).json()
    assert rest == {"topics": [f"{name}.c"], "next": None}


def test_d01_what_is_published_reaches_the_queues_that_are_subscribed(
    client: httpx.Client, make: Make, topic: str
) -> None:
    """D1, R16: at once, also for who waits for it."""
    queues = [make(), make()]
    client.put(topic)
    for queue in queues:
        assert client.put(f"{topic}{queue.path}").status_code == 201
        assert client.put(f"{topic}{queue.path}").status_code == 200
    answer = client.put(f"{topic}/message", content=b"\x00hello", headers={"Content-Type": "text/odd"})
    assert answer.status_code == 201 and answer.json()["topic"] == topic.rpartition("/")[2]
    assert len(answer.json()["id"]) == 32
    for queue in queues:
        (message,) = queue.receive(10, wait=30)
        assert (message["body"], message["content_type"]) == ("\x00hello", "text/odd")
        assert queue.ack(message["receipt"]).status_code == 204
    assert client.get(topic).json()["queues"] == sorted(queue.name for queue in queues)
    ended = queues.pop()
    assert client.delete(f"{topic}{ended.path}").status_code == 204
    assert refused(client.delete(f"{topic}{ended.path}")) == (404, "subscription_not_found")
    client.put(f"{topic}/message", content=b"second")
    assert [message["body"] for message in queues[0].receive(10, wait=30)] == ["second"]
    assert ended.receive(10) == []


def test_r10_publications_with_one_key_are_one(client: httpx.Client, make: Make, topic: str) -> None:
    """R10"""
    queue = make()
    client.put(topic)
    client.put(f"{topic}{queue.path}")
    ids = {client.put(f"{topic}/message", content=b"x", params={"key": "k"}).json()["id"] for _ in range(3)}
    assert len(ids) == 1
    assert len(queue.receive(10, wait=30)) == 1
    client.put(f"{topic}/message", content=b"y")
    assert [message["body"] for message in queue.receive(10, wait=30)] == ["y"]


def test_a_fifo_topic_needs_a_group_and_feeds_fifo_queues_in_order(
    server: RunningServer, client: httpx.Client, make: Make, topic: str, name: str
) -> None:
    plain = make()
    assert client.put(f"/queues/{name}.fifo").status_code == 201
    standard, topic = topic, f"{topic}.fifo"
    assert client.put(topic, json={"content_dedup": True}).status_code == 201
    answer = client.put(f"{topic}/message", content=b"x")
    assert refused(answer) == (400, "invalid_request") and answer.json()["field"] == "group"
    assert client.put(f"{topic}/queues/{name}.fifo").status_code == 201
    assert client.put(f"{topic}{plain.path}").status_code == 201
    for body in "123":
        assert client.put(f"{topic}/message", content=body, params={"group": "g"}).status_code == 201
    order = Rest(client, server, f"{name}.fifo")
    got: list[str] = []
    while len(got) < 3:
        for message in order.receive(10, wait=30):
            got.append(message["body"])
            order.ack(message["receipt"])
    assert got == ["1", "2", "3"]
    client.put(standard)
    assert refused(client.put(f"{standard}/queues/{name}.fifo")) == (400, "invalid_request")
    assert client.delete(order.path).status_code == 204


def test_what_is_not_there_is_said(client: httpx.Client, make: Make, topic: str) -> None:
    queue = make()
    for method, path in (("PUT", queue.path), ("DELETE", queue.path), ("PUT", "/message")):
        assert refused(client.request(method, f"{topic}{path}")) == (404, "topic_not_found")
    client.put(topic)
    assert refused(client.put(f"{topic}/queues/nowhere")) == (404, "queue_not_found")
    assert refused(client.delete(f"{topic}{queue.path}")) == (404, "subscription_not_found")


def test_bad_input_is_named(client: httpx.Client, topic: str) -> None:
    client.put(topic)
    for method, path, options, field in (
        ("PUT", "/topics/-x", {}, "topic"),
        ("PUT", f"/topics/{'x' * 257}", {}, "topic"),
        ("PUT", topic, {"json": {"kind": "odd"}}, "kind"),
        ("PUT", topic, {"json": {"colour": 1}}, "colour"),
        ("PUT", f"{topic}/queues/~x", {}, "queue"),
        ("PUT", f"{topic}/message", {"params": {"delay": "1"}}, "delay"),
        ("PUT", f"{topic}/message", {"params": {"key": ""}}, "key"),
        ("GET", "/topics", {"params": {"limit": "0"}}, "limit"),
        ("GET", "/topics", {"params": {"prefix": "/"}}, "prefix"),
    ):
        answer = client.request(method, path, **options)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json().get("field")) == (400, field), (method, path, answer.text)
    answer = client.put(f"{topic}/message", content=b"x" * (limits.PUBLICATION_BYTES + 1))
    assert refused(answer) == (413, "body_too_large")


def test_a_store_that_fails_is_said_to(server: RunningServer, client: httpx.Client, topic: str) -> None:
    server.store.next("read", TOPICS, UNAVAILABLE, times=100)
    assert refused(client.put(topic)) == (503, "unavailable")
    server.store.heal()
    server.store.next("change", TOPICS, NEVER_SENT, times=100)
    assert refused(client.put(topic)) == (504, "outcome_unknown")
    server.store.heal()
    assert client.put(topic).status_code == 201
    server.store.next("read", SUBSCRIPTIONS, UNAVAILABLE, times=100)
    assert refused(client.put(f"{topic}/message", content=b"x")) == (503, "unavailable")
