"""Puts over REST: one message, byte for byte, or a list of them."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from angelhair import limits
from angelhair.model import FIFO, QueueSettings
from angelhair.settings import ACCOUNT
from tests.wire.rest.calls import Rest, refused, spoken
from tests.wire.server import RunningServer

Make = Callable[..., Rest]

LARGEST = bytes(range(256)) * (limits.BODY_BYTES // 256)
FAR_AHEAD_SECONDS = 3600


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


# --- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [
    "hello", "", "grüße, 世界 👋", '{"a": "\\u0000"}', "\x00\r\n\t\x7f", "\ufeffmarked", "a\u2028b",
])
def test_text_comes_back_as_it_was(make: Make, body: str) -> None:
    queue = make()
    assert queue.put(body.encode()) == "0-0"
    (message,) = queue.receive()
    assert message["body"] == body
    assert "body_base64" not in message


@pytest.mark.parametrize("body", [b"\xff", b"\x80text", b"\xed\xa0\x80", bytes(range(256)), b"\xc3"])
def test_bytes_come_back_in_base64(make: Make, body: bytes) -> None:
    """Also what only looks like UTF-8: half of a surrogate pair, half of a character."""
    queue = make()
    queue.put(body)
    (message,) = queue.receive()
    assert base64.b64decode(message["body_base64"], validate=True) == body
    assert "body" not in message


def test_largest_body(make: Make) -> None:
    queue = make()
    queue.put(LARGEST)
    (message,) = queue.receive()
    assert base64.b64decode(message["body_base64"]) == LARGEST


def test_one_byte_too_many(make: Make) -> None:
    queue = make()
    refused(queue.call("PUT", "/message", content=LARGEST + b"-"), 413, "body_too_large", "body")
    assert queue.receive() == []


def test_answer_names_id_and_queue(make: Make) -> None:
    queue = make()
    answer = queue.call("PUT", "/message", content=b"x")
    assert (answer.status_code, answer.json()) == (201, {"id": "0-0", "queue": queue.name})
    assert queue.call("PUT", "/message", content=b"x").json()["id"] == "0-1"


# --- content types --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", ["text/plain", "application/json; charset=utf-8", "image/png", "x", '"\\'])
def test_content_type_is_kept(make: Make, content_type: str) -> None:
    queue = make()
    queue.put(b"-", headers={"content-type": content_type})
    assert queue.receive()[0]["content_type"] == content_type


def test_no_content_type(make: Make) -> None:
    queue = make()
    queue.put(b"-")
    queue.put(b"-", headers={"content-type": ""})
    assert [message["content_type"] for message in queue.receive(2)] == [None, None]


@pytest.mark.parametrize("content_type", ["x" * (limits.CONTENT_TYPE_LENGTH + 1), b"text/\xe4", "text/\tplain"])
def test_bad_content_type(make: Make, content_type: str | bytes) -> None:
    queue = make()
    answer = queue.call("PUT", "/message", content=b"-", headers={b"content-type": content_type})
    refused(answer, 400, "invalid_request", "content_type")


# --- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [
    {"delay": FAR_AHEAD_SECONDS}, {"delay": "3.6e3"}, {"due": soon(FAR_AHEAD_SECONDS).isoformat()},
    {"due": soon(FAR_AHEAD_SECONDS).strftime("%Y-%m-%dt%H:%M:%Sz")}, {"due": f"{time.time() + FAR_AHEAD_SECONDS:.3f}"},
])
def test_not_yet(make: Make, parameters: dict[str, Any]) -> None:
    queue = make()
    queue.put(b"later", params=parameters)
    queue.put(b"now")
    assert [message["body"] for message in queue.receive(10)] == ["now"]
    assert queue.show()["statistics"]["delayed"] == 1


@pytest.mark.parametrize("parameters", [
    {"delay": 0}, {"delay": "-0"}, {"delay": 0.0001}, {"due": "1970-01-01T00:00:00Z"}, {"due": 0},
    {"due": "1999-12-31T23:59:59.999-23:59"},
    {"due": soon(-1).isoformat()},
])
def test_the_past_is_now(make: Make, parameters: dict[str, Any]) -> None:
    """In a queue with a delay of its own, too: what the message says goes first."""
    queue = make(delay=FAR_AHEAD_SECONDS)
    queue.put(b"now", params=parameters)
    assert [message["body"] for message in queue.receive()] == ["now"]


def test_delay_of_the_queue(make: Make) -> None:
    queue = make(delay=FAR_AHEAD_SECONDS)
    queue.put()
    assert queue.receive() == []
    assert queue.show()["statistics"]["delayed"] == 1


def test_a_short_delay_ends(make: Make) -> None:
    queue = make()
    queue.put(b"later", params={"delay": 0.2})
    (message,) = queue.receive(wait=30)
    put_at, seen_at = (datetime.fromisoformat(message[name]) for name in ("enqueued_at", "first_delivered_at"))
    assert seen_at - put_at >= timedelta(milliseconds=200)


@pytest.mark.parametrize(("query", "field"), [
    ("delay=-1", "delay"), ("delay=", "delay"), ("delay=soon", "delay"), ("delay=3153600001", "delay"),
    ("delay=1e400", "delay"),
    ("delay=nan", "delay"), ("delay=inf", "delay"), ("delay=1_0", "delay"), ("delay=%D9%A1", "delay"),
    ("delay=+1", "delay"),
    ("delay=1&delay=2", "delay"), ("delay", "delay"), ("due=", "due"), ("due=tomorrow", "due"), ("due=-1", "due"),
    ("due=4102444801", "due"), ("due=2026-02-30T00:00:00Z", "due"), ("due=2026-11-15", "due"),
    ("due=2026-11-15T13:00:00", "due"),
    ("due=2100-01-01T00:00:00Z", "due"), ("due=1969-12-31T23:59:59Z", "due"), ("due=2026-11-15T24:00:00Z", "due"),
    ("due=2026-11-15T13:00:00%2B24:00", "due"), ("due=20261115T130000Z", "due"), ("delay=1&due=5", "due"),
    ("key=", "key"), ("key=" + "k" * (limits.KEY_LENGTH + 1), "key"), ("key=a&key=b", "key"), ("wait=1", "wait"),
    ("Delay=1", "Delay"), ("delay=1;due=5", "delay"),
])
def test_bad_parameters(make: Make, query: str, field: str) -> None:
    queue = make()
    refused(queue.call("PUT", f"/message?{query}", content=b"x"), 400, "invalid_request", field)
    assert queue.call("GET", "/pointers").json()["lanes"][0]["next_id"] == 0


def test_a_plus_in_a_url_is_explained(make: Make) -> None:
    answer = make().call("PUT", "/message?due=2026-11-15T13:00:00+01:00")
    assert "%2B" in refused(answer, 400, "invalid_request", "due")


# --- keys -------------------------------------------------------------------------------------------------------------


def test_one_key_one_message(make: Make) -> None:
    queue = make()
    first = queue.put(b"first", params={"key": "order 47/11?&ä"})
    assert queue.put(b"second", params={"key": "order 47/11?&ä"}) == first
    assert queue.put(b"third", params={"key": "order 4712"}) != first
    again, new = {"body": "fourth", "key": "order 47/11?&ä"}, {"body": "fifth", "key": "5"}
    batch = queue.call("PUT", "/messages", json=[again, new])
    assert batch.json()["messages"][0] == {"id": first}
    assert [message["body"] for message in queue.receive(10)] == ["first", "third", "fifth"]


def test_unencoded_utf8_in_a_url(make: Make) -> None:
    """Not allowed in HTTP, and not guessed at: a key that was taken for another would lose a message."""
    queue = make()
    head = f"PUT {queue.path}/message?key=ä HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = spoken(queue.server, head.encode())
    refused(answer, 400, "malformed_request")


# --- lists ------------------------------------------------------------------------------------------------------------


def test_a_list_of_messages(make: Make) -> None:
    queue = make()
    answer = queue.call("PUT", "/messages", json=[
        {"body": "text", "content_type": "text/plain"}, {"body_base64": "/wA="}, {"body": ""}, {"body_base64": ""},
        {"body": "later", "delay": 600}, {"body": "much later", "due": "2099-12-31T23:59:59Z"},
        {"body": "past", "due": 17},
    ])
    assert answer.status_code == 201
    ids = [message["id"] for message in answer.json()["messages"]]
    # What is due in years waits in the line, and has no number.
    waiting = ids.pop(5)
    assert ids == [f"0-{number}" for number in range(6)]
    assert re.fullmatch(r"0-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", waiting)
    assert answer.json() == {"messages": [{"id": each} for each in [*ids[:5], waiting, ids[5]]], "queue": queue.name}
    found = [
        (message["id"], message.get("body", message.get("body_base64")), message["content_type"])
        for message in queue.receive(10)
    ]
    assert found == [
        ("0-0", "text", "text/plain"), ("0-1", "/wA=", None), ("0-2", "", None), ("0-3", "", None),
        ("0-5", "past", None),
    ]
    assert queue.show()["statistics"]["delayed"] == 2


def test_a_thousand_and_not_one_more(make: Make) -> None:
    queue = make()
    answer = queue.call("PUT", "/messages", json=[{"body": str(number)} for number in range(1000)])
    assert answer.status_code == 201
    assert [message["body"] for message in queue.receive(1000)] == [str(number) for number in range(1000)]
    refused(queue.call("PUT", "/messages", json=[{"body": "x"}] * 1001), 400, "invalid_request", "body")
    refused(queue.call("PUT", "/messages", json=[]), 400, "invalid_request", "body")


@pytest.mark.parametrize(("item", "field"), [
    ({}, "[1].body"), ({"body": "x", "body_base64": ""}, "[1].body"), ({"body": 5}, "[1].body"),
    ({"body": None}, "[1].body"),
    ({"body_base64": "eA"}, "[1].body_base64"), ({"body_base64": "e A=="}, "[1].body_base64"),
    ({"body_base64": "_w=="}, "[1].body_base64"),
    ({"body": "x", "delay": -1}, "[1].delay"), ({"body": "x", "delay": "1"}, "[1].delay"),
    ({"body": "x", "due": "now"}, "[1].due"),
    ({"body": "x", "due": "2026-11-15T13:00:00Z\n"}, "[1].due"), ({"body": "x", "due": -1}, "[1].due"),
    ({"body": "x", "due": 1, "delay": 1}, "[1].due"), ({"body": "x", "key": ""}, "[1].key"),
    ({"body": "x", "key": "k" * 513}, "[1].key"),
    ({"body": "x", "content_type": ""}, "[1].content_type"), ({"body": "x", "content_type": "ä"}, "[1].content_type"),
    ({"body": "x", "content_type": "a\nb"}, "[1].content_type"),
    ({"body": "x", "content_type": "a\n"}, "[1].content_type"), ({"body": "x", "colour": 1}, "[1].colour"),
    ("x", "[1]"), (None, "[1]"),
])
def test_one_bad_message_refuses_the_list(make: Make, item: object, field: str) -> None:
    queue = make()
    refused(queue.call("PUT", "/messages", json=[{"body": "good"}, item]), 400, "invalid_request", field)
    assert queue.receive() == []


@pytest.mark.parametrize("item", [
    {"body": "x" * (limits.BODY_BYTES + 1)}, {"body": "ä" * (limits.BODY_BYTES // 2 + 1)},
    {"body_base64": base64.b64encode(LARGEST + b"-").decode()},
], ids=["text", "umlauts", "base64"])
def test_one_body_of_a_list_too_large(make: Make, item: dict[str, str]) -> None:
    queue = make()
    field = f"[1].{next(iter(item))}"
    refused(queue.call("PUT", "/messages", json=[{"body": "good"}, item]), 413, "body_too_large", field)
    assert queue.receive() == []


def test_lists_are_json(make: Make) -> None:
    queue = make()
    refused(queue.call("PUT", "/messages", content=b'[{"body": "x"}'), 400, "malformed_json")
    refused(queue.call("PUT", "/messages", content=b'{"body": "x"}'), 400, "invalid_request", "body")
    refused(queue.call("PUT", "/messages", content=b'[{"body": "\\ud800"}]'), 400, "malformed_json")
    refused(queue.call("PUT", "/messages", content=b'[{"body": "\xff"}]'), 400, "malformed_json")
    refused(queue.call("PUT", "/messages?delay=5", json=[{"body": "x"}]), 400, "invalid_request", "delay")


def test_a_request_that_nobody_should_read(server: RunningServer) -> None:
    """The HTTP server's own bound, before any door sees the request."""
    length = limits.HTTP_BODY_BYTES + 1
    answer = spoken(server, f"PUT /queues/a/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
    refused(answer, 413, "body_too_large")


# --- groups and priorities --------------------------------------------------------------------------------------------


def test_the_most_urgent_first_and_each_says_how_urgent_it_is(make: Make) -> None:
    queue = make(priorities=3)
    path = f"{queue.path}/message"
    for priority in (0, 2, 1):
        assert queue.client.put(path, params={"priority": priority}, content=b"%d" % priority).status_code == 201
    items = [{"body": "batch 1", "priority": 1}, {"body": "batch 9", "priority": 9}, {"body": "batch"}]
    assert queue.client.put(f"{queue.path}/messages", json=items).status_code == 201
    seen = queue.client.get(f"{queue.path}/peek/10").json()["messages"]
    assert [(message["body"], message.get("priority", 0)) for message in seen] == [
        ("2", 2), ("batch 9", 2), ("1", 1), ("batch 1", 1), ("0", 0), ("batch", 0),
    ]
    found = queue.client.get(f"{queue.path}/messages/6").json()["messages"]
    assert [message.get("priority", 0) for message in found] == [2, 2, 1, 1, 0, 0]


def test_the_group_comes_back_beside_the_content_type(make: Make) -> None:
    queue = make()
    headers = {"Content-Type": "text/plain"}
    queue.client.put(f"{queue.path}/message", params={"group": "g 1"}, content=b"a", headers=headers)
    queue.client.put(f"{queue.path}/messages", json=[{"body": "b", "group": "g 2"}, {"body": "c"}])
    found = queue.client.get(f"{queue.path}/messages/3").json()["messages"]
    assert [(message.get("group"), message["content_type"]) for message in found] == [
        ("g 1", "text/plain"), ("g 2", None), (None, None),
    ]


def test_a_fifo_queue_takes_messages_with_group_and_key_and_keeps_their_order(
    server: RunningServer, client: httpx.Client, name: str
) -> None:
    server.run(server.service.create_queue(ACCOUNT, name, QueueSettings(kind=FIFO)))
    queue = Rest(client, server, name)
    for number in range(3):
        queue.put(b"%d" % number, params={"group": "g", "key": f"k{number}"})
    queue.put(b"once more", params={"group": "g", "key": "k2"})
    for wrong, field in (
        ({"group": "g"}, "key"), ({"key": "k"}, "group"), ({"group": "g", "key": "k9", "priority": "1"}, "priority"),
    ):
        assert refused(queue.call("PUT", "/message", content=b"x", params=wrong), 400, "invalid_request", field)
    found = client.get(f"{queue.path}/messages/10").json()["messages"]
    assert [(message["body"], message["group"]) for message in found] == [("0", "g"), ("1", "g"), ("2", "g")]
    client.delete(queue.path)


@pytest.mark.parametrize(("queue", "status", "code"), [
    ("there-is-none", 404, "queue_not_found"), ("%60x", 400, "invalid_request"),
])
def test_a_list_of_several_priorities_to_no_queue_is_refused_as_any_other(
    client: httpx.Client, queue: str, status: int, code: str
) -> None:
    """Naive: each priority is put for itself, and so is each told, behind a 207."""
    items = [{"body": "a", "priority": 7}, {"body": "b"}, {"body": "c", "delay": 86_400}]
    for some in (items, items[:1]):
        refused(client.put(f"/queues/{queue}/messages", json=some), status, code, "queue" if status == 400 else None)
