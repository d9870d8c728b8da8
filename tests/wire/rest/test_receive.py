"""Receives over REST: what comes, what does not, and waiting for it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from angelhair import limits
from tests.wire.rest.calls import Rest, refused
from tests.wire.server import PATIENCE_SECONDS, RunningServer

Make = Callable[..., Rest]


def test_what_a_message_carries(make: Make) -> None:
    queue = make(visibility_timeout=60)
    queue.put(b"hello", headers={"content-type": "text/plain"})
    (message,) = queue.receive()
    receipt = message.pop("receipt")
    put_at, seen_at, back_at = (
        datetime.fromisoformat(message.pop(name)) for name in ("enqueued_at", "first_delivered_at", "visible_at")
    )
    assert message == {"id": "0-0", "body": "hello", "content_type": "text/plain", "deliveries": 1, "origin": None}
    assert receipt
    assert put_at <= seen_at
    assert back_at - seen_at == timedelta(seconds=60)


def test_none_is_an_empty_list(make: Make) -> None:
    queue = make()
    answer = queue.call("GET", "/messages/10")
    assert (answer.status_code, answer.json()) == (200, {"messages": []})
    assert queue.receive(10, wait=0) == []
    assert queue.receive(10, wait=0.01) == []


def test_batches_in_order(make: Make) -> None:
    queue = make()
    for number in range(5):
        queue.put(str(number).encode())
    assert [message["body"] for message in queue.receive(2)] == ["0", "1"]
    assert [message["body"] for message in queue.receive(1000)] == ["2", "3", "4"]


@pytest.mark.parametrize("batch", ["0", "1001", "-1", "1.0", "ten", "01", "%C2%B2", "9" * 400, "%20"])
def test_bad_batches(make: Make, batch: str) -> None:
    queue = make()
    for verb in ("messages", "peek", "dead"):
        refused(queue.call("GET", f"/{verb}/{batch}"), 400, "invalid_request", "batch")


def test_visibility(make: Make) -> None:
    """For this delivery only: the next has the queue's own again."""
    queue = make(visibility_timeout=3600)
    queue.put()
    assert queue.receive(visibility=0)[0]["deliveries"] == 1
    (again,) = queue.receive()
    assert again["deliveries"] == 2
    assert queue.receive() == []


@pytest.mark.parametrize(("query", "field"), [
    ("wait=-1", "wait"), ("wait=60.001", "wait"), ("wait=", "wait"), ("wait=1s", "wait"), ("wait=1&wait=1", "wait"),
    ("visibility=-1", "visibility"), ("visibility=3153600001", "visibility"), ("visibility=true", "visibility"),
    ("visiblity=5", "visiblity"), ("delay=1", "delay"),
])
def test_bad_parameters(make: Make, query: str, field: str) -> None:
    queue = make()
    queue.put()
    refused(queue.call("GET", f"/messages/1?{query}"), 400, "invalid_request", field)
    assert queue.receive()[0]["deliveries"] == 1


def test_head_takes_nothing(make: Make) -> None:
    """HEAD would take messages and throw them away, so a receive does not answer it."""
    queue = make()
    queue.put()
    answer = queue.call("HEAD", "/messages/1")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, OPTIONS")
    assert queue.receive()[0]["deliveries"] == 1


# --- waiting ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def only_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again by himself: what comes, comes because somebody was woken."""
    monkeypatch.setattr(limits, "POLL_FIRST_SECONDS", 10 * PATIENCE_SECONDS)


def waiting(pool: ThreadPoolExecutor, queue: Rest, receives: int = 1) -> list[Future[list[dict[str, Any]]]]:
    """Receives that wait, and have found nothing so far."""
    server = queue.server
    before = server.service.polling.waiting
    futures = [pool.submit(queue.receive, 1, wait=PATIENCE_SECONDS) for _ in range(receives)]
    server.until(lambda: server.service.polling.waiting == before + receives)
    return futures


@pytest.mark.usefixtures("only_woken")
def test_a_put_wakes(make: Make) -> None:
    queue = make()
    with ThreadPoolExecutor() as pool:
        (future,) = waiting(pool, queue)
        queue.put(b"at last")
        (message,) = future.result(PATIENCE_SECONDS)
    assert message["body"] == "at last"


@pytest.mark.usefixtures("only_woken")
def test_a_list_wakes_as_many_as_it_has(make: Make) -> None:
    queue = make()
    with ThreadPoolExecutor() as pool:
        futures = waiting(pool, queue, receives=3)
        assert queue.call("PUT", "/messages", json=[{"body": str(number)} for number in range(3)]).status_code == 201
        bodies = [future.result(PATIENCE_SECONDS)[0]["body"] for future in futures]
    assert sorted(bodies) == ["0", "1", "2"]


@pytest.mark.usefixtures("only_woken")
def test_a_release_wakes(make: Make) -> None:
    queue = make(visibility_timeout=3600)
    queue.put(b"taken")
    (held,) = queue.receive()
    with ThreadPoolExecutor() as pool:
        (future,) = waiting(pool, queue)
        assert queue.call("PATCH", f"/message/{held['receipt']}", json={"visibility": 0}).status_code == 204
        (message,) = future.result(PATIENCE_SECONDS)
    assert (message["id"], message["deliveries"]) == (held["id"], 2)


@pytest.mark.parametrize("how", ["delay", "due", "time-out"])
def test_a_due_message_ends_the_wait(make: Make, how: str) -> None:
    queue = make(visibility_timeout=0.3)
    if how == "due":
        queue.put(b"later", params={"due": datetime.now().astimezone().timestamp() + 0.3})
    else:
        queue.put(b"later", params={"delay": 0.3} if how == "delay" else {})
    if how == "time-out":
        assert len(queue.receive()) == 1
    (message,) = queue.receive(wait=PATIENCE_SECONDS)
    assert (message["body"], message["deliveries"]) == ("later", 2 if how == "time-out" else 1)


@pytest.mark.usefixtures("only_woken")
def test_who_leaves_takes_nothing_along(make: Make, server: RunningServer) -> None:
    queue = make(visibility_timeout=3600)
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(f"GET {queue.path}/messages/1?wait=60 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        server.until(lambda: server.service.polling.waiting == 1)
    server.until(lambda: server.service.polling.waiting == 0)
    queue.put(b"for somebody else")
    assert [message["deliveries"] for message in queue.receive()] == [1]


def test_waiting_for_an_unknown_queue(client: httpx.Client, name: str) -> None:
    refused(client.get(f"/queues/{name}/messages/1?wait=60"), 404, "queue_not_found")
