"""W3, W5, W8: timelines through the REST door: settings, due times, consumers that share the shards, a look at them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.identities import RandomIdentities
from angelhair.model import Ask
from angelhair.settings import ACCOUNT
from tests.wire.rest.calls import Rest, in_time

Make = Callable[..., Rest]
UUID_ID = re.compile(r"\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def timeline(make: Make) -> Rest:
    return make(kind="timeline", producer_delay=0, shards=2, lock=2)


def refused(answer: httpx.Response) -> tuple[int, str, str]:
    said = answer.json()
    return answer.status_code, said["code"], said.get("field", "")


def touch(rest: Rest, consumer: str) -> dict[str, Any]:
    answer = rest.call("PUT", f"/consumers/{consumer}")
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said.keys() == {"consumer", "shards", "lock", "left"}
    return dict(said)


def shards(rest: Rest) -> list[dict[str, Any]]:
    answer = rest.call("GET", "/shards")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["shards"])


def held(rest: Rest, consumer: str) -> list[int]:
    return [each["shard"] for each in touch(rest, consumer)["shards"]]


# --- queues -----------------------------------------------------------------------------------------------------------


def test_a_timeline_has_six_shards_and_says_what_it_is(make: Make) -> None:
    rest = make(kind="timeline")
    shown = rest.show()
    assert shown["kind"] == "timeline"
    of_timelines = ("shards", "granularity", "producer_delay", "expire_after", "lock")
    assert [shown["settings"][name] for name in of_timelines] == [6, "minute", 60, 30 * 86_400, 10]
    assert {"shards", "producer_delay", "expire_after", "lock"} < set(shown["changeable"])
    assert shown["fixed"] == ["kind", "granularity"]
    assert list(shown["settings"]) == [
        "kind", "visibility_timeout", "delay", "max_deliveries", "dead_letter_queue", *of_timelines,
    ], "and none of what it does not have"
    assert rest.call("PUT", json=shown["settings"]).status_code == 200, "what it says of itself can be sent back"
    assert [shard["shard"] for shard in shards(rest)] == list(range(6))


def test_settings_of_timelines_are_read_changed_and_refused(client: httpx.Client, name: str, make: Make) -> None:
    path = f"/queues/{name}"
    wanted = {"kind": "timeline", "shards": 3, "granularity": "hour", "producer_delay": 1.5, "expire_after": None}
    assert client.put(path, json=wanted).status_code == 201
    assert client.put(path, json=wanted).status_code == 200
    other = client.put(path, json={**wanted, "shards": 4, "producer_delay": 2})
    assert (other.status_code, other.json()["differing"]) == (409, ["shards", "producer_delay"])
    changed = client.patch(path, json={"shards": 5, "lock": 4})
    assert changed.status_code == 200
    assert (changed.json()["settings"]["shards"], changed.json()["settings"]["lock"]) == (5, 4)
    assert refused(client.patch(path, json={"granularity": "day"})) == (400, "invalid_request", "granularity")
    assert refused(client.patch(path, json={"lanes": 2})) == (400, "invalid_request", "lanes")
    assert client.delete(path).status_code == 204
    for wrong, field in (
        ({"kind": "timeline", "lanes": 3}, "lanes"), ({"shards": 3}, "shards"),
        ({"kind": "timeline", "shards": limits.SHARDS_MAXIMUM + 1}, "shards"),
        ({"kind": "timeline", "granularity": "week"}, "granularity"), ({"kind": "timeline", "lock": 0.5}, "lock"),
        ({"kind": "timeline", "archive": True}, "archive"),
    ):
        assert refused(client.put(path, json=wrong)) == (400, "invalid_request", field), wrong
    assert refused(client.put(f"{path}.fifo", json={"kind": "timeline"})) == (400, "invalid_request", "kind")
    assert refused(make().call("PATCH", json={"shards": 2})) == (400, "invalid_request", "shards")


@pytest.mark.parametrize(
    ("kind", "said"), [("bucketed", {"shards": 6}), ("databag", {"shards": 6}), ("timeline", {"lanes": 1})]
)
def test_what_a_kind_counts_by_another_name_may_be_said_with_its_default(
    client: httpx.Client, name: str, kind: str, said: dict[str, int]
) -> None:
    """As any other setting that it does not have; and it stays without effect."""
    path = f"/queues/{name}"
    plain = client.put(path, json={"kind": kind})
    assert plain.status_code == 201
    again = client.put(path, json={"kind": kind, **said})
    assert (again.status_code, again.json()["settings"]) == (200, plain.json()["settings"])
    changed = client.patch(path, json=said)
    assert (changed.status_code, changed.json()["settings"]) == (200, plain.json()["settings"])


def test_a_dead_letter_queue_of_the_usual_kind_is_as_it_should_be(make: Make) -> None:
    dead = make()
    assert make(kind="timeline", max_deliveries=2, dead_letter_queue=dead.name).show()["warnings"] == []
    fifo = f"{dead.name}.fifo"
    assert dead.client.put(f"/queues/{fifo}").status_code == 201
    (warning,) = make(kind="timeline", max_deliveries=2, dead_letter_queue=fifo).show()["warnings"]
    assert "of the kind fifo" in warning
    timeline = make(kind="timeline")
    (warning,) = make(kind="timeline", max_deliveries=2, dead_letter_queue=timeline.name).show()["warnings"]
    assert warning.endswith("is of the kind timeline: no redrive moves messages from there")
    assert dead.client.delete(f"/queues/{fifo}").status_code == 204


# --- messages ---------------------------------------------------------------------------------------------------------


def test_what_is_due_comes_in_order_and_what_is_not_stays(make: Make) -> None:
    rest = make(kind="timeline", producer_delay=0, shards=1)
    now = datetime.now(UTC)
    late = rest.put("late", params={"due": "2020-01-01T00:00:00Z"})
    assert UUID_ID.fullmatch(late)
    rest.put("in two seconds", params={"due": (now + timedelta(seconds=2)).isoformat()})
    rest.put("in one second", params={"due": str((now + timedelta(seconds=1)).timestamp())})
    rest.put("in years", params={"due": "2030-01-01T00:00:00Z"})
    rest.put("tomorrow", params={"delay": 86_400})
    found: list[dict[str, Any]] = []
    for _ in in_time():
        found += rest.receive(10, wait=5)
        if len(found) == 3:
            break
    assert [each["body"] for each in found] == ["late", "in one second", "in two seconds"]
    assert found[0]["id"] == late and found[0]["due"] == "2020-01-01T00:00:00.000Z"
    assert datetime.now(UTC) >= now + timedelta(seconds=2)
    assert all(rest.ack(each["receipt"]).status_code == 204 for each in found)
    assert rest.ack(found[0]["receipt"]).status_code == 204, "again is as good as once"
    assert rest.receive(10) == []
    assert rest.show()["statistics"]["delayed"] == 2


def test_dead_letters_go_back_into_the_timeline(make: Make) -> None:
    dead = make()
    rest = make(kind="timeline", producer_delay=0, shards=1, max_deliveries=1, dead_letter_queue=dead.name)
    rest.put("unlucky")
    for _ in in_time():
        if rest.receive(1, visibility=0):
            break
    for _ in in_time():
        rest.receive(1)
        if rest.call("GET", "/dead/1").json()["messages"]:
            break
    assert rest.call("PATCH", json={"max_deliveries": None}).status_code == 200
    assert dead.call("POST", "/redrive").json() == {"moved": 1}
    for _ in in_time():
        if found := rest.receive(1, wait=1):
            break
    assert [(each["body"], each["deliveries"]) for each in found] == [("unlucky", 1)]
    assert rest.ack(found[0]["receipt"]).status_code == 204
    assert dead.call("POST", "/redrive", json={"destination": rest.name}).json() == {"moved": 0}
    back = rest.call("POST", "/redrive", json={"destination": dead.name})
    assert refused(back) == (400, "invalid_request", "kind")
    assert "receive them, put them where they belong" in back.json()["message"]


def test_many_are_put_with_due_times_of_their_own(timeline: Rest) -> None:
    items = [
        {"body": "a", "due": "2020-01-01T00:00:00Z"}, {"body": "b", "due": 1_577_836_801.5}, {"body": "c", "delay": 0},
        {"body": "d"}, {"body": "e", "delay": 1_000},
    ]
    answer = timeline.call("PUT", "/messages", json=items)
    assert answer.status_code == 201
    assert all(UUID_ID.fullmatch(each["id"]) for each in answer.json()["messages"])
    bodies: set[str] = set()
    for _ in in_time():
        bodies |= {each["body"] for each in timeline.receive(10, wait=1)}
        if len(bodies) == 4:
            break
    assert bodies == {"a", "b", "c", "d"}


def test_what_a_timeline_cannot_do_is_said(timeline: Rest) -> None:
    for parameters, field in (({"key": "k"}, "key"), ({"group": "g"}, "group"), ({"priority": 1}, "priority")):
        answer = timeline.call("PUT", "/message", content="x", params=parameters)
        assert refused(answer) == (400, "invalid_request", field)
    too_late = timeline.call("PUT", "/message", content="x", params={"due": "2099-01-01T00:00:00Z"})
    assert refused(too_late) == (400, "invalid_request", "due")
    assert "January 2038" in too_late.json()["message"] and "expire_after of null" in too_late.json()["message"]
    too_long = timeline.call("PUT", "/message", content="x", params={"delay": 30 * 365 * 86_400})
    assert refused(too_long) == (400, "invalid_request", "delay"), "what was given"
    too_early = timeline.call("PUT", "/message", content="x", params={"due": "1960-01-01T00:00:00Z"})
    assert refused(too_early) == (400, "invalid_request", "due")
    assert "from 1970 on" in too_early.json()["message"]
    both = timeline.call("PUT", "/message", content="x", params={"due": "2020-01-01T00:00:00Z", "delay": 1})
    assert refused(both) == (400, "invalid_request", "due")
    for method, rest in (("POST", "/purge"), ("GET", "/buckets"), ("GET", "/pointers")):
        assert refused(timeline.call(method, rest)) == (400, "invalid_request", "kind"), rest


def test_what_other_queues_cannot_do_is_said(make: Make) -> None:
    rest = make()
    for method, path in (("PUT", "/consumers/ann"), ("DELETE", "/consumers/ann"), ("GET", "/shards")):
        assert refused(rest.call(method, path))[:2] == (400, "invalid_request"), path
    answer = rest.call("GET", "/messages/1?consumer=ann")
    assert refused(answer) == (400, "invalid_request", "consumer"), "naive: it is read, and heeded by nobody"
    assert rest.put("later", params={"due": "2099-01-01T00:00:00Z"}), "a delay, as ever"
    nobody = Rest(rest.client, rest.server, "there-is-none")
    for method, path in (
        ("PUT", "/consumers/ann"), ("DELETE", "/consumers/ann"), ("GET", "/shards"),
        ("GET", "/messages/1?consumer=ann"),
    ):
        assert refused(nobody.call(method, path))[:2] == (404, "queue_not_found")


@pytest.mark.parametrize("consumer", ["-ann", "a%20b", "~ann", "a" * 100])
def test_names_of_consumers_are_names(timeline: Rest, consumer: str) -> None:
    assert refused(timeline.call("PUT", f"/consumers/{consumer}")) == (400, "invalid_request", "consumer")
    answer = timeline.call("GET", f"/messages/1?consumer={consumer}")
    assert refused(answer) == (400, "invalid_request", "consumer")


# --- consumers --------------------------------------------------------------------------------------------------------


def test_w05_a_consumer_gets_what_is_in_its_shards_and_acks_in_any_order(timeline: Rest) -> None:
    """W5"""
    share = touch(timeline, "ann")
    assert [each["shard"] for each in share["shards"]] == [0, 1]
    assert all(each["fence"] >= 1 for each in share["shards"])
    assert share["lock"] == 2 and 0 < share["left"] <= 2
    put = {timeline.put(str(number), params={"due": 1_577_836_800 + number}) for number in range(6)}
    found: list[dict[str, Any]] = []
    for _ in in_time():
        found += timeline.receive(10, consumer="ann", wait=1)
        if len(found) == 6:
            break
    assert {each["id"] for each in found} == put
    for each in reversed(found):
        assert timeline.ack(each["receipt"]).status_code == 204
    seen = shards(timeline)
    assert [(each["lock"], each["consumer"], each["state"]) for each in seen] == [("held", "ann", "open")] * 2
    assert {each["shard"]: each["fence"] for each in seen} == {each["shard"]: each["fence"] for each in share["shards"]}
    assert timeline.call("DELETE", "/consumers/ann").status_code == 204
    seen = shards(timeline)
    assert [(each["lock"], each["consumer"]) for each in seen] == [("free", None)] * 2
    assert all(each["last"] is not None and each["lag"] is None for each in seen), "the goodbye wrote a checkpoint"
    assert timeline.receive(10, consumer="bob") == []


def test_w08_consumers_share_and_take_over(timeline: Rest) -> None:
    """W8"""
    assert held(timeline, "ann") == [0, 1]
    for _ in in_time():
        ann, bob = held(timeline, "ann"), held(timeline, "bob")
        if (len(ann), len(bob)) == (1, 1):
            break
        time.sleep(0.1)
    assert sorted(ann + bob) == [0, 1]
    assert held(timeline, "cid") == [], "a third for two shards waits"
    began = time.monotonic()
    for _ in in_time():
        # Bob is not heard of any more.
        if len(held(timeline, "ann")) + len(held(timeline, "cid")) == 2:
            break
        time.sleep(0.1)
    assert time.monotonic() - began < 2 + 5


def test_w09_a_receipt_of_a_lock_that_was_lost_settles_nothing(timeline: Rest) -> None:
    """W9"""
    touch(timeline, "ann")
    timeline.put("once", params={"due": "2020-01-01T00:00:00Z"})
    (first,) = timeline.receive(1, consumer="ann", wait=20)
    assert timeline.call("DELETE", "/consumers/ann").status_code == 204
    for _ in in_time():
        if len(held(timeline, "bob")) == 2:
            break
        time.sleep(0.1)
    assert refused(timeline.ack(first["receipt"]))[:2] == (409, "stale_receipt")
    (again,) = timeline.receive(1, consumer="bob", wait=20)
    assert (again["id"], again["body"]) == (first["id"], "once")
    assert timeline.ack(again["receipt"]).status_code == 204


def test_extended_released_and_set_aside(make: Make) -> None:
    rest = make(kind="timeline", producer_delay=0, shards=1, lock=3, visibility_timeout=1)
    touch(rest, "ann")
    rest.put("x", params={"due": "2020-01-01T00:00:00Z"})
    (first,) = rest.receive(1, consumer="ann", wait=20)
    assert rest.call("PATCH", f"/message/{first['receipt']}", json={"visibility": 3}).status_code == 204
    assert rest.call("PATCH", f"/message/{first['receipt']}", json={"visibility": 0}).status_code == 204
    (second,) = rest.receive(1, consumer="ann", wait=20)
    assert (second["id"], second["deliveries"]) == (first["id"], 2)
    assert refused(rest.ack(first["receipt"]))[:2] == (409, "stale_receipt")
    began = time.monotonic()
    assert rest.call("PATCH", f"/message/{second['receipt']}", json={"visibility": 4}).status_code == 204
    (third,) = rest.receive(1, consumer="ann", wait=20)
    assert time.monotonic() - began >= 3.5
    assert third["id"] != first["id"], "it was written again, to then"
    assert (third["deliveries"], third["due"]) == (3, "2020-01-01T00:00:00.000Z")
    body = rest.call("PATCH", f"/message/{third['receipt']}", json={"body": "y"})
    assert refused(body) == (400, "invalid_request", "body")
    assert rest.ack(third["receipt"]).status_code == 204


def test_a_message_that_fails_too_often_goes_to_the_dead_letters(make: Make) -> None:
    dead = make()
    rest = make(kind="timeline", producer_delay=0, shards=1, max_deliveries=2, dead_letter_queue=dead.name)
    rest.put("poison", params={"due": "2020-01-01T00:00:00Z"})
    for _ in range(2):
        (message,) = rest.receive(1, wait=20)
        assert rest.call("PATCH", f"/message/{message['receipt']}", json={"visibility": 0}).status_code == 204
    found: list[dict[str, Any]] = []
    for _ in in_time():
        assert rest.receive(1) == []
        found = dead.receive(1)
        if found:
            break
        time.sleep(0.1)
    assert found[0]["body"] == "poison" and found[0]["origin"]["queue"] == rest.name


def test_a_waiting_receive_wakes_when_something_falls_due(timeline: Rest) -> None:
    """Not only when something is put: it was put long before."""
    touch(timeline, "ann")
    due = time.time() + 1.5
    timeline.put("now", params={"due": f"{due:.3f}"})
    (message,) = timeline.receive(1, consumer="ann", wait=20)
    late = time.time() - due
    assert message["body"] == "now"
    assert 0 <= late < limits.POLL_MOST_SECONDS + 1.5


def test_receives_of_two_consumers_do_not_wait_for_each_other(timeline: Rest) -> None:
    """Each waits for its own shards: a message for one must not wake the other in its place."""
    for _ in in_time():
        both = held(timeline, "ann"), held(timeline, "bob")
        if [len(each) for each in both] == [1, 1]:
            break
        time.sleep(0.1)
    found: dict[str, list[Any]] = {}

    def wait(consumer: str) -> None:
        with httpx.Client(base_url=timeline.server.url, timeout=60) as client:
            mine = Rest(client, timeline.server, timeline.name)
            found[consumer] = mine.receive(1, consumer=consumer, wait=20)

    waiting = [threading.Thread(target=wait, args=(consumer,)) for consumer in ("ann", "bob")]
    for thread in waiting:
        thread.start()
    timeline.server.until(lambda: timeline.server.service.polling.waiting >= 2)
    began = time.monotonic()
    second = int(time.time()) + 1
    for number in range(2):
        timeline.put(str(number), params={"due": second + number})
    for thread in waiting:
        thread.join()
    assert {each["body"] for each in found["ann"] + found["bob"]} == {"0", "1"}
    assert len(found["ann"]) == len(found["bob"]) == 1
    assert time.monotonic() - began < 8


def test_a_server_that_stops_writes_down_how_far_its_consumers_are(timeline: Rest) -> None:
    """W6: otherwise every restart would have up to a window of each shard processed again."""
    touch(timeline, "ann")
    for number in range(20):
        timeline.put(str(number), params={"due": 1_577_836_800 + number})
    found: list[dict[str, Any]] = []
    for _ in in_time():
        found += timeline.receive(20, consumer="ann", wait=1)
        if len(found) == 20:
            break
    receipts = [each["receipt"] for each in found]
    assert timeline.call("POST", "/acks", json={"receipts": receipts}).json()["acked"] == 20
    service = timeline.server.service
    timeline.server.run(service.engine.release_leases())
    another = Engine(service.store, RandomIdentities(), service.clock)

    async def look() -> list[Any]:
        await another.touch_consumer(ACCOUNT, timeline.name, "bob")
        assert {shard.consumer for shard in await another.shards(ACCOUNT, timeline.name)} == {"bob"}, "at once"
        return await another.receive(ACCOUNT, timeline.name, [Ask(100, consumer="bob")])

    assert timeline.server.run(look()) == [[]]
