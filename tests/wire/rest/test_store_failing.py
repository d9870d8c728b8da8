"""The store fails: 503 when it provably did not happen, 504 when nobody can tell, and never the one for the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from angelhair.engine.schema import BODIES, POINTERS, QUEUES, SEQUENCES, STATES
from angelhair.engine.store import Table
from tests.faults import LOSE_ANSWER, NEVER_SENT, UNAVAILABLE
from tests.wire.rest.calls import Rest, refused

Make = Callable[..., Rest]


def fail(queue: Rest, verb: str, table: Table, happening: str, ending: str = "") -> None:
    """From now on, until the test is over."""
    queue.server.store.next(
        verb, table, happening, times=sys.maxsize, when=lambda item: item.partition.key.endswith(ending)
    )


def unavailable(answer: httpx.Response) -> None:
    refused(answer, 503, "unavailable")
    assert answer.headers["retry-after"] == "1"


def unknown(answer: httpx.Response) -> None:
    refused(answer, 504, "outcome_unknown")
    assert "retry-after" not in answer.headers


# --- puts -------------------------------------------------------------------------------------------------------------

PUTS: list[tuple[str, dict[str, Any]]] = [
    ("/message", {"content": b"x"}), ("/messages", {"json": [{"body": "x"}, {"body": "y"}]}),
]


@pytest.mark.parametrize(("rest", "options"), PUTS)
def test_put_that_did_not_happen(make: Make, rest: str, options: dict[str, Any]) -> None:
    queue = make()
    fail(queue, "change", SEQUENCES, UNAVAILABLE)
    unavailable(queue.call("PUT", rest, **options))
    queue.server.store.heal()
    assert queue.receive(10) == []


@pytest.mark.parametrize(("rest", "options"), PUTS)
@pytest.mark.parametrize("happening", [NEVER_SENT, LOSE_ANSWER])
def test_put_that_may_have_happened(make: Make, rest: str, options: dict[str, Any], happening: str) -> None:
    queue = make()
    fail(queue, "write", BODIES, happening)
    unknown(queue.call("PUT", rest, **options))
    queue.server.store.heal()
    delivered = len(queue.receive(10))
    assert delivered == (0 if happening == NEVER_SENT else 1 if rest == "/message" else 2)


@pytest.mark.parametrize(("happening", "code"), [(NEVER_SENT, "outcome_unknown"), (UNAVAILABLE, "unavailable")])
def test_a_list_of_which_a_part_failed(make: Make, happening: str, code: str) -> None:
    queue = make(bucket_size=2)
    fail(queue, "write", BODIES, happening, ending=".1")
    answer = queue.call("PUT", "/messages", json=[{"body": str(number)} for number in range(6)])
    assert answer.status_code == 207
    assert answer.json()["queue"] == queue.name
    messages = answer.json()["messages"]
    assert [message.get("id") for message in messages] == ["0-0", "0-1", None, None, "0-4", "0-5"]
    for message in messages[2:4]:
        assert message.keys() == {"error"}
        assert message["error"].keys() == {"code", "message"}
        assert message["error"]["code"] == code
    queue.server.store.heal()
    assert [message["body"] for message in queue.receive(10)] == ["0", "1", "4", "5"]


def test_a_put_with_a_key_can_be_repeated(make: Make) -> None:
    queue = make()
    fail(queue, "write", BODIES, LOSE_ANSWER)
    unknown(queue.call("PUT", "/message", params={"key": "k"}, content=b"once"))
    queue.server.store.heal()
    queue.put(b"once", params={"key": "k"})
    assert [message["body"] for message in queue.receive(10)] == ["once"]


# --- the others -------------------------------------------------------------------------------------------------------


def test_receive(make: Make) -> None:
    queue = make()
    queue.put()
    fail(queue, "change", STATES, UNAVAILABLE)
    unavailable(queue.call("GET", "/messages/1"))
    unavailable(queue.call("GET", "/messages/1?wait=60"))
    queue.server.store.heal()
    assert len(queue.receive()) == 1


def test_ack(make: Make) -> None:
    queue = make(visibility_timeout=3600)
    queue.put()
    (message,) = queue.receive()
    for happening, check in ((UNAVAILABLE, unavailable), (NEVER_SENT, unknown)):
        fail(queue, "change", STATES, happening)
        check(queue.ack(message["receipt"]))
        check(queue.call("POST", "/acks", json={"receipts": [message["receipt"]]}))
        check(queue.call("PATCH", f"/message/{message['receipt']}", json={"visibility": 9}))
        queue.server.store.heal()
    assert queue.show()["statistics"]["in_flight"] == 1
    assert queue.ack(message["receipt"]).status_code == 204


def test_acks_of_which_a_part_failed(make: Make) -> None:
    queue = make(bucket_size=1, visibility_timeout=3600)
    for _ in range(2):
        queue.put()
    receipts = [message["receipt"] for message in queue.receive(2)]
    fail(queue, "change", STATES, NEVER_SENT, ending=".1")
    answer = queue.call("POST", "/acks", json={"receipts": receipts})
    assert answer.status_code == 200
    assert answer.json()["acked"] == 1
    assert [(item["receipt"], item["code"]) for item in answer.json()["failed"]] == [(receipts[1], "outcome_unknown")]


def test_queues(make: Make, client: httpx.Client, name: str) -> None:
    queue = make()
    for happening, check in ((UNAVAILABLE, unavailable), (NEVER_SENT, unknown)):
        fail(queue, "change", QUEUES, happening)
        check(client.put(f"/queues/{name}"))
        check(queue.call("PATCH", json={"delay": 1}))
        check(queue.call("DELETE"))
        queue.server.store.heal()
    assert client.put(f"/queues/{name}").status_code == 201
    assert queue.show()["settings"]["delay"] == 0


def test_looking(make: Make, client: httpx.Client) -> None:
    queue = make()
    fail(queue, "read", POINTERS, UNAVAILABLE)
    for rest in ("", "/peek/1", "/pointers", "/buckets"):
        unavailable(queue.call("GET", rest))
    unavailable(queue.call("POST", "/purge"))
    unavailable(queue.call("POST", "/repair", json={"lane": 0, "bucket": 0}))
    unavailable(queue.call("POST", "/redrive"))
    fail(queue, "read", QUEUES, UNAVAILABLE)
    unavailable(client.get("/queues"))
