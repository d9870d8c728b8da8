"""D1, D4, D5: databags through the REST door: settings, batches, deletes by id, and what is in force where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from angelhair import limits
from tests.wire.rest.calls import Rest

Make = Callable[..., Rest]


@pytest.fixture
def databag(make: Make) -> Rest:
    return make(kind="databag", visibility_timeout=30)


def put(rest: Rest, count: int) -> list[str]:
    answer = rest.call("PUT", "/messages", json=[{"body": f"m{number}"} for number in range(count)])
    assert answer.status_code in (200, 201), answer.text
    return [each["id"] for each in answer.json()["messages"]]


def receive(rest: Rest, count: int = 10) -> list[dict[str, Any]]:
    answer = rest.call("GET", f"/messages/{count}")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["messages"])


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("field", "")


def test_a_databag_says_what_it_is_and_how_it_is_cut(make: Make) -> None:
    rest = make(kind="databag", min_partitions=20, max_partitions=50)
    shown = rest.show()
    assert shown["kind"] == "databag"
    assert (shown["settings"]["min_partitions"], shown["settings"]["max_partitions"]) == (20, 50)
    assert {"min_partitions", "max_partitions", "visibility_timeout"} <= set(shown["changeable"])
    assert shown["partitions"] == {
        "count": 20, "min_partitions": 20, "max_partitions": 50, "visibility_timeout": 30,
        "sync": limits.BAG_SYNC_MS / 1000, "locked": 0, "epochs": limits.BAG_BLOCKS, "duplicates": 0,
    }


def test_other_queues_have_no_partitions(make: Make) -> None:
    assert make().show()["partitions"] is None


def test_messages_are_put_served_and_deleted_by_their_ids(databag: Rest) -> None:
    answer = databag.call("PUT", "/message", content=b"hello")
    assert answer.status_code in (200, 201)
    identity = answer.json()["id"]
    (message,) = receive(databag)
    assert (message["id"], message["receipt"], message["body"]) == (identity, identity, "hello")
    assert receive(databag) == []
    assert databag.show()["partitions"]["locked"] == 1
    for _ in range(2):
        assert databag.call("DELETE", f"/message/{identity}").status_code == 204
    assert databag.show()["statistics"]["visible"] == 0 == databag.show()["statistics"]["in_flight"]


def test_batches_go_in_come_out_and_are_deleted(databag: Rest) -> None:
    identities = put(databag, 100)
    assert len(set(identities)) == 100
    found: list[dict[str, Any]] = []
    while some := receive(databag, 10):
        found += some
    assert {message["id"] for message in found} <= set(identities) and len(found) >= 50
    answer = databag.call("POST", "/acks", json={"receipts": identities})
    assert answer.json() == {"acked": 100, "failed": []}
    assert databag.show()["statistics"]["visible"] == 0


WHOLE = "expected a whole number"


@pytest.mark.parametrize(
    ("settings", "field", "reason"),
    [
        ({"min_partitions": 60, "max_partitions": 50}, "min_partitions", "60 is more than max_partitions, which is 50"),
        ({"max_partitions": 999}, "max_partitions", "999 is less than min_partitions, which is 1000"),
        ({"min_partitions": 5_000, "max_partitions": 5_000}, "min_partitions", f"{WHOLE} of at most 4,096"),
        *[
            ({name: value}, name, f"{WHOLE}{expected}")
            for name in ("min_partitions", "max_partitions")
            for value, expected in (
                (0, " of at least 1"), (-1, " of at least 1"), (10**9, " of at most 4,096"), ("many", ", got text"),
                (7.5, ", got a number"), (None, ", got null"), (True, ", got true or false"),
            )
        ],
        *[
            ({"visibility_timeout": value}, "visibility_timeout", f"expected a number{expected}")
            for value, expected in (
                (-1, " of at least 0"), (10**10, " of at most 3,153,600,000"), ("soon", ", got text"),
                (None, ", got null"), (True, ", got true or false"),
            )
        ],
    ],
)
def test_d04_settings_that_cannot_be_are_refused_with_the_reason(
    databag: Rest, settings: dict[str, Any], field: str, reason: str
) -> None:
    before = databag.show()["settings"]
    answer = databag.call("PATCH", "", json=settings)
    assert refused(answer) == (400, field), answer.text
    assert reason in answer.json()["message"], answer.text
    assert databag.show()["settings"] == before


@pytest.mark.parametrize("most", [1, 10, 999, 1_000, 2_000, 4_096])
def test_d04_the_most_alone_is_enough_for_a_new_one(make: Make, most: int) -> None:
    rest = make(kind="databag", max_partitions=most)
    shown = rest.show()
    assert (shown["settings"]["min_partitions"], shown["settings"]["max_partitions"]) == (min(1_000, most), most)
    assert shown["partitions"]["count"] == min(1_000, most)
    for settings in ({"max_partitions": most}, {"min_partitions": min(1_000, most), "max_partitions": most}):
        assert rest.call("PUT", "", json={"kind": "databag", **settings}).status_code == 200, "it is the same again"
    assert rest.call("PUT", "", json={"kind": "databag", "max_partitions": 3}).status_code == 409


def test_d04_a_change_of_one_bound_that_contradicts_the_other_says_what_to_set(databag: Rest) -> None:
    answer = databag.call("PATCH", "", json={"max_partitions": 10})
    assert answer.status_code == 400 and "10 is less than min_partitions, which is 1000: set both" in answer.text
    assert databag.call("PATCH", "", json={"min_partitions": 10, "max_partitions": 10}).status_code == 200
    answer = databag.call("PATCH", "", json={"min_partitions": 11})
    assert answer.status_code == 400 and "11 is more than max_partitions, which is 10: set both" in answer.text


def test_a_time_out_that_is_hardly_any_is_not_none(databag: Rest) -> None:
    """With 0 nothing is locked at all, which is another thing to ask for."""
    answer = databag.call("PATCH", "", json={"visibility_timeout": 0.0001})
    assert answer.json()["settings"]["visibility_timeout"] == 0.001
    assert databag.call("PATCH", "", json={"visibility_timeout": 0}).json()["settings"]["visibility_timeout"] == 0


def test_settings_are_stored_at_once_and_shown_beside_those_in_force(databag: Rest) -> None:
    databag.show()
    answer = databag.call("PATCH", "", json={"min_partitions": 16, "max_partitions": 32, "visibility_timeout": 5})
    assert answer.status_code == 200, answer.text
    shown = databag.show()
    assert (shown["settings"]["min_partitions"], shown["settings"]["visibility_timeout"]) == (16, 5)
    in_force = shown["partitions"]
    assert (in_force["count"], in_force["visibility_timeout"]) == (1_000, 30), "until the next sync"


def test_what_a_databag_does_not_do_is_refused(databag: Rest) -> None:
    (identity,) = put(databag, 1)
    assert databag.call("PATCH", f"/message/{identity}", json={"visibility": 5}).status_code == 400
    assert databag.call("PUT", "/message?delay=5", content=b"x").status_code == 400
    assert refused(databag.call("PUT", "/messages", json=[{"body": "x", "delay": 5}] * 2)) == (400, "delay")
    some = databag.call("PUT", "/messages", json=[{"body": "x", "delay": 5}, {"body": "y"}])
    assert some.status_code == 207 and [set(each) for each in some.json()["messages"]] == [{"error"}, {"id"}]
    assert databag.call("DELETE", "/message/0-99999999999999999999").status_code == 400
    assert databag.call("PATCH", "", json={"max_deliveries": 3}).status_code == 400
