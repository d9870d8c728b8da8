"""What receipts do over REST: good, repeated, stale, forged, foreign; one by one and in lists."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from tests.wire.rest.calls import Rest, in_time, refused

Make = Callable[..., Rest]


def forged(receipt: str) -> str:
    """The receipt of the message before or after, signed by nobody."""
    raw = bytearray(base64.urlsafe_b64decode(receipt))
    raw[20] ^= 1
    return base64.urlsafe_b64encode(raw).decode()


def damaged(receipt: str) -> list[str]:
    length = len(receipt)
    return [receipt[:-1], receipt + "A", receipt[:-1] + "*", "A" * length, "x", receipt.swapcase(), "ä" * length]


# --- acks -------------------------------------------------------------------------------------------------------------


def test_ack_and_again(make: Make) -> None:
    queue = make()
    queue.put()
    (message,) = queue.receive(visibility=3600)
    for _ in range(3):
        answer = queue.ack(message["receipt"])
        assert (answer.status_code, answer.content) == (204, b"")
    assert queue.receive() == []


def test_stale_receipt(make: Make) -> None:
    queue = make(visibility_timeout=3600)
    queue.put()
    (first,) = queue.receive(visibility=0)
    (second,) = queue.receive()
    assert (first["id"], first["receipt"] != second["receipt"]) == (second["id"], True)
    refused(queue.ack(first["receipt"]), 409, "stale_receipt")
    refused(queue.call("PATCH", f"/message/{first['receipt']}", json={"visibility": 0}), 409, "stale_receipt")
    assert queue.show()["statistics"]["in_flight"] == 1
    assert queue.ack(second["receipt"]).status_code == 204
    refused(queue.ack(first["receipt"]), 409, "stale_receipt")


def test_a_receipt_is_good_after_its_time_as_long_as_nobody_else_has_the_message(make: Make) -> None:
    queue = make()
    queue.put()
    (message,) = queue.receive(visibility=0)
    assert queue.ack(message["receipt"]).status_code == 204
    assert queue.receive() == []


def test_forged_receipts(make: Make) -> None:
    queue = make(visibility_timeout=3600)
    queue.put()
    (message,) = queue.receive()
    for receipt in [forged(message["receipt"]), *damaged(message["receipt"])]:
        refused(queue.ack(receipt), 400, "invalid_receipt", "receipt")
        change = queue.call("PATCH", f"/message/{receipt}", json={"visibility": 0})
        refused(change, 400, "invalid_receipt", "receipt")
    assert queue.show()["statistics"]["in_flight"] == 1


def test_foreign_receipt(make: Make) -> None:
    mine, yours = make(), make()
    mine.put()
    yours.put()
    (message,) = mine.receive(visibility=3600)
    yours.receive(visibility=3600)
    assert "another queue" in refused(yours.ack(message["receipt"]), 400, "invalid_receipt", "receipt")
    assert yours.show()["statistics"]["in_flight"] == 1
    assert mine.ack(message["receipt"]).status_code == 204


def test_ack_of_a_message_that_is_long_gone(make: Make) -> None:
    """Its bucket has been dropped. It was settled, perhaps by this very receipt: that is what was asked for."""
    queue = make(bucket_size=1, repair_timeout=0.1, history=0)
    queue.put()
    (message,) = queue.receive()
    assert queue.ack(message["receipt"]).status_code == 204
    for _ in in_time():
        if queue.call("GET", "/pointers").json()["lanes"][0]["dropped"] > 0:
            break
        queue.put()
        for other in queue.receive(10):
            assert queue.ack(other["receipt"]).status_code == 204
        queue.server.step(queue.name)
    assert queue.ack(message["receipt"]).status_code == 204
    answer = queue.call("POST", "/acks", json={"receipts": [message["receipt"]]})
    assert answer.json() == {"acked": 1, "failed": []}
    refused(queue.call("PATCH", f"/message/{message['receipt']}", json={"visibility": 1}), 409, "stale_receipt")


# --- lists of acks ----------------------------------------------------------------------------------------------------


def test_a_list_of_acks(make: Make) -> None:
    queue, other = make(visibility_timeout=3600), make()
    for _ in range(3):
        queue.put()
    other.put()
    (stale,) = queue.receive(1, visibility=0)
    good = [message["receipt"] for message in queue.receive(3)]
    (foreign,) = other.receive()
    bad = [stale["receipt"], foreign["receipt"], forged(good[0]), "", "ä"]
    answer = queue.call("POST", "/acks", json={"receipts": [*good, *bad, good[0]]})
    assert answer.status_code == 200
    assert answer.json()["acked"] == 4
    assert [(item["receipt"], item["code"]) for item in answer.json()["failed"]] == [
        (bad[0], "stale_receipt"), *((receipt, "invalid_receipt") for receipt in bad[1:])
    ]
    assert all(item["message"] for item in answer.json()["failed"])
    assert queue.show()["statistics"]["in_flight"] == 0


def test_a_thousand_acks_and_not_one_more(make: Make) -> None:
    queue = make()
    assert queue.call("PUT", "/messages", json=[{"body": ""}] * 1000).status_code == 201
    receipts = [message["receipt"] for message in queue.receive(1000, visibility=3600)]
    assert queue.call("POST", "/acks", json={"receipts": receipts}).json() == {"acked": 1000, "failed": []}
    refused(queue.call("POST", "/acks", json={"receipts": [*receipts, "x"]}), 400, "invalid_request", "receipts")


@pytest.mark.parametrize(("body", "field"), [
    ({"receipts": []}, "receipts"), ({}, "receipts"), ({"receipts": "x"}, "receipts"),
    ({"receipts": [5]}, "receipts[0]"),
    ({"receipts": ["x", None]}, "receipts[1]"), ({"receipts": ["x"], "all": True}, "all"), (["x"], "body"),
])
def test_bad_lists_of_acks(make: Make, body: object, field: str) -> None:
    refused(make().call("POST", "/acks", json=body), 400, "invalid_request", field)


# --- changes ----------------------------------------------------------------------------------------------------------


def test_extend_and_release(make: Make) -> None:
    queue = make(visibility_timeout=0.05)
    queue.put()
    (message,) = queue.receive()
    change = f"/message/{message['receipt']}"
    answer = queue.call("PATCH", change, json={"visibility": 3600})
    assert (answer.status_code, answer.content) == (204, b"")
    assert queue.receive(wait=0.2) == []
    assert queue.call("PATCH", change, json={"visibility": 0}).status_code == 204
    (again,) = queue.receive()
    assert (again["id"], again["deliveries"]) == (message["id"], 2)
    refused(queue.call("PATCH", change, json={"visibility": 1}), 409, "stale_receipt")


@pytest.mark.parametrize(("change", "body"), [
    ({"body": "new, grüße"}, {"body": "new, grüße"}), ({"body": ""}, {"body": ""}),
    ({"body_base64": "/w=="}, {"body_base64": "/w=="}), ({"body_base64": "bmV3"}, {"body": "new"}),
])
def test_rewrite(make: Make, change: dict[str, str], body: dict[str, str]) -> None:
    queue = make()
    queue.put(b"old", headers={"content-type": "text/x-note"})
    (message,) = queue.receive()
    answer = queue.call("PATCH", f"/message/{message['receipt']}", json={**change, "visibility": 0})
    assert answer.status_code == 204
    (again,) = queue.receive()
    assert {name: again[name] for name in again.keys() & {"body", "body_base64"}} == body
    assert again["content_type"] == "text/x-note"


@pytest.mark.parametrize(("change", "field"), [
    ({}, "body"), ({"visibility": -1}, "visibility"), ({"visibility": None}, "visibility"),
    ({"visibility": 3_153_600_001}, "visibility"),
    ({"body": "x", "body_base64": "eA=="}, "body"), ({"body": 1}, "body"), ({"body_base64": "?"}, "body_base64"),
    ({"delay": 1}, "delay"), ([], "body"),
])
def test_bad_changes(make: Make, change: object, field: str) -> None:
    queue = make(visibility_timeout=3600)
    queue.put()
    (message,) = queue.receive()
    refused(queue.call("PATCH", f"/message/{message['receipt']}", json=change), 400, "invalid_request", field)
    assert queue.show()["statistics"]["in_flight"] == 1


def test_rewrite_with_too_large_a_body(make: Make) -> None:
    queue = make()
    queue.put()
    (message,) = queue.receive()
    answer = queue.call("PATCH", f"/message/{message['receipt']}", json={"body": "x" * (8 * 1024 * 1024 + 1)})
    refused(answer, 413, "body_too_large", "body")


def test_change_after_ack(make: Make) -> None:
    queue = make()
    queue.put()
    (message,) = queue.receive(visibility=3600)
    assert queue.ack(message["receipt"]).status_code == 204
    refused(queue.call("PATCH", f"/message/{message['receipt']}", json={"body": "too late"}), 409, "stale_receipt")
