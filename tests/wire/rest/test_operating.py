"""What operators do over REST: look without taking, dead letters, marks, buckets, repair."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from angelhair.engine.schema import POINTERS
from tests.wire.rest.calls import Rest, in_time, refused

Make = Callable[..., Rest]


async def _go_on() -> None:
    """Nothing goes wrong: it is only counted."""


def bury(queue: Rest, dead: Rest, *bodies: bytes) -> list[str]:
    """Puts messages that nobody can process; returns their ids once they are dead letters."""
    before = dead.show()["statistics"]["visible"]
    identifiers = [queue.put(body, headers={"content-type": "text/x-bad"}) for body in bodies]
    for _ in in_time():
        if dead.show()["statistics"]["visible"] == before + len(bodies):
            break
        queue.receive(10, visibility=0)
        queue.server.step(queue.name)
    return identifiers


# --- peek -------------------------------------------------------------------------------------------------------------


def test_peek_takes_nothing(make: Make) -> None:
    queue = make()
    queue.put(b"text", headers={"content-type": "text/plain"})
    queue.put(b"\xff")
    queue.put(b"later", params={"delay": 3600})
    for _ in range(2):
        answer = queue.call("GET", "/peek/10")
        assert answer.status_code == 200
        first, second = answer.json()["messages"]
        assert first.pop("enqueued_at") <= second.pop("enqueued_at")
        assert first == {"id": "0-0", "body": "text", "content_type": "text/plain", "deliveries": 0, "origin": None}
        assert second == {"id": "0-1", "body_base64": "/w==", "content_type": None, "deliveries": 0, "origin": None}
    assert len(queue.call("GET", "/peek/1").json()["messages"]) == 1
    assert [message["deliveries"] for message in queue.receive(10)] == [1, 1]
    assert queue.call("GET", "/peek/10").json() == {"messages": []}


# --- dead letters -----------------------------------------------------------------------------------------------------


def test_dead_letters_and_back(make: Make) -> None:
    dead = make()
    queue = make(max_deliveries=2, dead_letter_queue=dead.name)
    first, second = bury(queue, dead, b"one", b"two")
    answer = queue.call("GET", "/dead/10")
    assert answer.status_code == 200
    assert answer.json()["queue"] == dead.name
    assert [(message["body"], message["content_type"], message["origin"]) for message in answer.json()["messages"]] == [
        ("one", "text/x-bad", {"queue": queue.name, "id": first}),
        ("two", "text/x-bad", {"queue": queue.name, "id": second}),
    ]
    assert len(queue.call("GET", "/dead/1").json()["messages"]) == 1
    assert queue.receive(10) == []
    for _ in range(2):
        answer = dead.call("POST", "/redrive", json={"count": 1})
        assert (answer.status_code, answer.json()) == (200, {"moved": 1})
    assert dead.call("POST", "/redrive").json() == {"moved": 0}
    back = queue.receive(10)
    assert [(message["body"], message["origin"]) for message in back] == [("one", None), ("two", None)]


def test_a_redrive_of_the_queue_that_failed_says_which_one_holds_its_dead_letters(make: Make, name: str) -> None:
    """`moved: 0` sounded as if there were none."""
    dead = make(max_deliveries=1, dead_letter_queue=name)
    queue = make(max_deliveries=1, dead_letter_queue=dead.name)
    bury(queue, dead, b"one")
    said = refused(queue.call("POST", "/redrive"), 409, "dead_letters_elsewhere")
    assert said == (f"{queue.name!r} sends its dead letters to {dead.name!r}; "
                    f"POST /queues/{dead.name}/redrive sends them back")
    # Of a chain the second holds what died in the first, and says so when it is empty.
    assert [dead.call("POST", "/redrive").json() for _ in range(2)] == [{"moved": 1}, {"moved": 0}]
    assert queue.call("POST", "/redrive", json={"destination": dead.name}).json() == {"moved": 1}
    assert queue.call("POST", "/redrive", json={"destination": dead.name}).json() == {"moved": 0}


def test_redrive_elsewhere(make: Make) -> None:
    queue, elsewhere = make(), make()
    queue.put(b"moved")
    answer = queue.call("POST", "/redrive", json={"destination": elsewhere.name, "count": 10})
    assert answer.json() == {"moved": 1}
    assert [message["body"] for message in elsewhere.receive(10)] == ["moved"]
    assert queue.call("POST", "/redrive", json={"destination": None}).json() == {"moved": 0}


def test_redrive_refuses(make: Make, name: str) -> None:
    queue = make()
    queue.put()
    refused(queue.call("POST", "/redrive", json={"destination": name}), 404, "queue_not_found")
    for body, field in (
        ({"destination": queue.name}, "destination"), ({"destination": ".x"}, "destination"),
        ({"destination": 5}, "destination"),
        ({"destination": "a\n"}, "destination"), ({"count": 0}, "count"), ({"count": 1001}, "count"),
        ({"count": None}, "count"),
        ({"most": 1}, "most"), ([], "body"),
    ):
        refused(queue.call("POST", "/redrive", json=body), 400, "invalid_request", field)
    assert len(queue.receive()) == 1


def test_no_dead_letter_queue(make: Make, name: str) -> None:
    refused(make().call("GET", "/dead/10"), 404, "no_dead_letter_queue")
    assert name in refused(make(dead_letter_queue=name).call("GET", "/dead/10"), 404, "queue_not_found")


# --- marks, buckets, repair -------------------------------------------------------------------------------------------


def test_pointers(make: Make) -> None:
    queue = make(lanes=2, bucket_size=2)
    names = ("next_id", "reader", "final", "settled", "repair", "floor", "dropped", "purged", "archived")
    zero = dict.fromkeys(names, 0)
    assert queue.call("GET", "/pointers").json() == {"lanes": [{"lane": 0, **zero}, {"lane": 1, **zero}]}
    for _ in range(4):
        queue.put()
    assert sum(lane["next_id"] for lane in queue.call("GET", "/pointers").json()["lanes"]) == 4
    assert queue.call("POST", "/purge").status_code == 204
    assert sum(lane["purged"] for lane in queue.call("GET", "/pointers").json()["lanes"]) == 4


def test_buckets(make: Make) -> None:
    queue = make(bucket_size=2, visibility_timeout=3600)
    assert queue.call("GET", "/buckets").json() == {"lane": 0, "buckets": []}
    for _ in range(4):
        queue.put()
    queue.put(params={"delay": 600})
    (first, _, _) = queue.receive(3)
    assert queue.ack(first["receipt"]).status_code == 204
    answer = queue.call("GET", "/buckets")
    assert answer.status_code == 200
    counts = [
        tuple(bucket[name] for name in ("bucket", "messages", "settled", "visible", "in_flight", "delayed"))
        for bucket in answer.json()["buckets"]
    ]
    assert counts == [(0, 2, 1, 0, 1, 0), (1, 2, 0, 1, 1, 0), (2, 1, 0, 0, 0, 1)]
    assert answer.json()["buckets"][2]["state"] == "open"
    some = queue.call("GET", "/buckets?lane=0&first=1&count=1").json()["buckets"]
    assert [bucket["bucket"] for bucket in some] == [1]
    assert queue.call("GET", "/buckets?first=3").json()["buckets"] == []


@pytest.mark.parametrize(("query", "field"), [
    ("lane=1", "lane"), ("lane=-1", "lane"), ("lane=x", "lane"), ("lane=4294967296", "lane"), ("first=-1", "first"),
    ("first=9223372036854775808", "first"), ("count=0", "count"), ("count=65", "count"), ("limit=1", "limit"),
])
def test_bad_buckets(make: Make, query: str, field: str) -> None:
    refused(make().call("GET", f"/buckets?{query}"), 400, "invalid_request", field)


def test_move_back(make: Make) -> None:
    queue = make(bucket_size=1, repair_timeout=0.1)
    for _ in range(4):
        queue.put()
        for message in queue.receive(10):
            assert queue.ack(message["receipt"]).status_code == 204

    def repair() -> int:
        mark = queue.call("GET", "/pointers").json()["lanes"][0]["repair"]
        assert isinstance(mark, int)
        return mark

    for _ in in_time():
        if repair() >= 3:
            break
        queue.receive()
        queue.server.step(queue.name)
    states = {bucket["bucket"]: bucket["state"] for bucket in queue.call("GET", "/buckets").json()["buckets"]}
    assert [states[bucket] for bucket in range(3)] == ["finished"] * 3
    # The worker moves the mark forward again at once, so it is the move itself that is looked for.
    moved = queue.server.store.next(
        "change", POINTERS, _go_on, times=sys.maxsize,
        when=lambda change: any(row.key == "repair" and row.values == {"value": 1} for row in change.rows),
    )
    answer = queue.call("POST", "/repair", json={"lane": 0, "bucket": 1})
    assert (answer.status_code, answer.json()["lane"]) == (200, 0)
    assert answer.json()["repair"] >= 1
    assert moved.happened == 1
    assert queue.call("POST", "/repair", json={"lane": 0, "bucket": 10**18}).json()["repair"] <= 4


@pytest.mark.parametrize(("body", "field"), [
    ({"lane": 1, "bucket": 0}, "lane"), ({"lane": -1, "bucket": 0}, "lane"), ({"lane": 0, "bucket": -1}, "bucket"),
    ({"lane": 0}, "bucket"), ({"bucket": 0}, "lane"), ({"lane": 0, "bucket": 2**63}, "bucket"),
    ({"lane": 0, "bucket": 1.5}, "bucket"),
    ({"lane": 0, "bucket": 0, "force": True}, "force"),
])
def test_bad_move_back(make: Make, body: object, field: str) -> None:
    refused(make().call("POST", "/repair", json=body), 400, "invalid_request", field)
