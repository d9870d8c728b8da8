"""Queues over REST: make, show, change, list, purge, delete."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import httpx
import pytest

from angelhair import limits
from angelhair.engine.schema import QUEUES
from tests.faults import UNAVAILABLE
from tests.wire.rest.calls import Rest, refused

Make = Callable[..., Rest]

DEFAULTS = {
    "kind": "bucketed", "bucket_size": 1000, "lanes": 1, "visibility_timeout": 30, "repair_timeout": 60, "delay": 0,
    "retention": 345600, "max_deliveries": None, "dead_letter_queue": None, "history": 86400, "archive": False,
    "dedup_window": 300, "priorities": 1, "fair": True,
}
OF_OTHERS = {
    "dedup_scope": "queue", "shards": None, "granularity": "minute", "producer_delay": 60, "expire_after": 2592000,
    "lock": 10, "min_partitions": 1000, "max_partitions": 4096,
}
"""What queues of this kind do not have, with what may be said of it all the same: as if nothing was said."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

# --- making ---------------------------------------------------------------------------------------------------------


def test_an_empty_body_takes_the_defaults(client: httpx.Client, name: str) -> None:
    made = client.put(f"/queues/{name}")
    assert made.status_code == 201
    said = made.json()
    assert (said["name"], said["kind"], said["settings"]) == (name, "bucketed", DEFAULTS)
    assert sorted(said["changeable"] + said["fixed"]) == sorted(DEFAULTS)
    assert said["fixed"] == ["kind", "bucket_size"]
    assert TIME.fullmatch(said["created_at"]) and said["changed_at"] == said["created_at"]


def test_all_settings_are_kept(client: httpx.Client, name: str) -> None:
    settings = {
        "kind": "bucketed", "bucket_size": 7, "lanes": 3, "visibility_timeout": 0.25, "repair_timeout": 0.1,
        "delay": 1.5,
        "retention": None, "max_deliveries": 4, "dead_letter_queue": "somewhere", "history": 0, "archive": True,
        "dedup_window": 60, "priorities": 4, "fair": False,
    }
    assert client.put(f"/queues/{name}", json=settings).json()["settings"] == settings
    assert client.get(f"/queues/{name}").json()["settings"] == settings


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("timeline", "bucket_size", 500), ("timeline", "retention", None), ("timeline", "history", 0),
        ("timeline", "repair_timeout", 1), ("timeline", "archive", True), ("timeline", "dedup_window", 60),
        ("timeline", "priorities", 2), ("timeline", "fair", False), ("timeline", "dedup_scope", "group"),
        ("bucketed", "granularity", "day"), ("bucketed", "producer_delay", 0), ("bucketed", "expire_after", None),
        ("bucketed", "lock", 20), ("bucketed", "dedup_scope", "group"), ("fifo", "lock", 20), ("fifo", "archive", True),
        ("fifo", "priorities", 2), ("fifo", "fair", False), ("fifo", "repair_timeout", 1),
    ],
)
def test_what_has_no_meaning_for_a_kind_is_refused_by_its_name(
    client: httpx.Client, name: str, kind: str, field: str, value: object
) -> None:
    """Naive: it is taken, kept, and heeded by nobody."""
    path = f"/queues/{name}.fifo" if kind == "fifo" else f"/queues/{name}"
    for tries in range(2):
        message = refused(client.put(path, json={"kind": kind, field: value}), 400, "invalid_request", field)
        assert f"a queue of the kind {kind!r} has no such setting" in message
        if not tries:
            assert client.get(path).status_code == 404, "nothing was made"
            said = client.put(path, json={"kind": kind}).json()
            assert field not in [*said["settings"], *said["changeable"], *said["fixed"]], "nor does it show it"
            assert client.put(path, json=said["settings"]).status_code == 200, "what it says can be sent back"
    if field not in ("bucket_size", "granularity"):
        refused(client.patch(path, json={field: value}), 400, "invalid_request", field)
        unsaid = {field: {**DEFAULTS, **OF_OTHERS}[field]}
        assert client.patch(path, json=unsaid).status_code == 200, "as if nothing was said"


def test_again_with_the_same_settings_is_200(client: httpx.Client, name: str) -> None:
    assert client.put(f"/queues/{name}", json={"delay": 5}).status_code == 201
    assert client.put(f"/queues/{name}", json={"delay": 5}).status_code == 200
    assert client.put(f"/queues/{name}", json={**DEFAULTS, "delay": 5.0}).status_code == 200
    assert client.put(f"/queues/{name}", json={**DEFAULTS, **OF_OTHERS, "delay": 5.0}).status_code == 200


@pytest.mark.parametrize("settings", [{}, {"delay": 6}, {"delay": 5, "retention": None}])
def test_again_with_others_is_409(client: httpx.Client, name: str, settings: dict[str, object]) -> None:
    """Omitted means default, in the second request too."""
    assert client.put(f"/queues/{name}", json={"delay": 5}).status_code == 201
    differing = "retention" if "retention" in settings else "delay"
    answer = client.put(f"/queues/{name}", json=settings)
    message = refused(answer, 409, "queue_exists", differing=[differing])
    assert message == (
        f"queue {name!r} exists with another value of {differing}; what is left out counts as its default. "
        f"PATCH /queues/{name} (angelhair queue set) changes settings"
    )
    assert client.get(f"/queues/{name}").json()["settings"]["delay"] == 5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "heap"), ("kind", None), ("bucket_size", 0), ("bucket_size", 10_001), ("bucket_size", "7"),
        ("bucket_size", 7.5), ("lanes", 0), ("lanes", 65), ("visibility_timeout", -1), ("visibility_timeout", None),
        ("visibility_timeout", True), ("visibility_timeout", 3_153_600_001), ("repair_timeout", 0.0999), ("delay", "5"),
        ("retention", 0.999), ("retention", False), ("max_deliveries", 0), ("max_deliveries", 1_000_001),
        ("dead_letter_queue", ""), ("dead_letter_queue", ".hidden"), ("dead_letter_queue", "x" * 81),
        ("dead_letter_queue", "line\n"), ("history", -0.001), ("archive", 1), ("archive", None), ("dedup_window", 0.5),
        ("dedup_window", 630_720_001), ("visibility", 30), ("name", "x"), ("", 1), ("`", 1),
    ],
)
def test_invalid_settings_are_named(client: httpx.Client, name: str, field: str, value: object) -> None:
    refused(client.put(f"/queues/{name}", json={field: value}), 400, "invalid_request", field)
    refused(client.get(f"/queues/{name}"), 404, "queue_not_found")


def test_a_setting_that_is_given_twice_is_refused(client: httpx.Client, name: str) -> None:
    for body in ('{"delay": 1, "delay": 2}', '{"delay": 1, "lanes": 2.0, "delay": 1}'):
        message = refused(client.put(f"/queues/{name}", content=body), 400, "invalid_request", "delay")
        assert message == "delay: is given more than once"
    assert client.put(f"/queues/{name}").status_code == 201
    answer = client.patch(f"/queues/{name}", content='{"delay": 1, "delay": 1}')
    refused(answer, 400, "invalid_request", "delay")


@pytest.mark.parametrize(("body", "message"), [
    ('{"kind": "heap"}', "kind: must be 'bucketed' or 'fifo' or 'timeline' or 'databag', not 'heap'"),
    ('{"delay": 1e12}', "delay: is not as it should be: expected a number of at most 3,153,600,000"),
    ('{"repair_timeout": 0.05}', "repair_timeout: is not as it should be: expected a number of at least 0.1"),
])
def test_a_refusal_says_what_would_do(client: httpx.Client, name: str, body: str, message: str) -> None:
    assert client.put(f"/queues/{name}", content=body).json()["message"] == message


def test_a_name_is_refused_in_the_same_words_wherever_it_stands(client: httpx.Client, name: str) -> None:
    in_path = client.put("/queues/-x").json()["message"]
    in_body = client.put(f"/queues/{name}", json={"dead_letter_queue": "-x"}).json()["message"]
    assert in_path.removeprefix("queue: ") == in_body.removeprefix("dead_letter_queue: ")


def test_a_change_without_a_body(make: Make) -> None:
    answer = make().call("PATCH")
    assert refused(answer, 400, "malformed_json") == "the body is empty; a JSON object is wanted"


def test_json_ends_with_a_newline(client: httpx.Client, name: str) -> None:
    """A terminal shows one answer a line."""
    for path in ("/", f"/queues/{name}", "/queues", "/nothing", "/health/live", "/openapi.json"):
        assert client.get(path).text.endswith("}\n"), path
    assert client.put(f"/queues/{name}").text.endswith("}\n")


@pytest.mark.parametrize("body", ["[]", "null", '"orders"', "5"])
def test_settings_are_an_object(client: httpx.Client, name: str, body: str) -> None:
    refused(client.put(f"/queues/{name}", content=body), 400, "invalid_request", "body")


def test_whole_numbers_may_have_a_point(client: httpx.Client, name: str) -> None:
    """JSON has one kind of number; some clients write all of them so."""
    made = client.put(f"/queues/{name}", content='{"bucket_size": 50.0, "max_deliveries": 3.0, "delay": 2.0}')
    assert made.status_code == 201
    settings = made.json()["settings"]
    assert (settings["bucket_size"], settings["max_deliveries"], settings["delay"]) == (50, 3, 2)


def test_a_queue_is_not_its_own_dead_letter_queue(client: httpx.Client, name: str) -> None:
    answer = client.put(f"/queues/{name}", json={"dead_letter_queue": name})
    refused(answer, 400, "invalid_request", "dead_letter_queue")


@pytest.mark.parametrize("bad", ["-a", ".a", "a b", "a%2Fb", "%C3%A4", "a%00", "x" * 81, "a%0A", "%E2%80%AE"])
@pytest.mark.parametrize(("method", "rest"), [
    ("PUT", ""), ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("PUT", "/message"), ("GET", "/messages/1"),
    ("POST", "/purge"),
    ("GET", "/peek/1"), ("GET", "/pointers"), ("GET", "/buckets"), ("GET", "/dead/1"), ("POST", "/redrive"),
])
def test_bad_names(client: httpx.Client, bad: str, method: str, rest: str) -> None:
    content = b"{}" if method == "PATCH" else b""
    refused(client.request(method, f"/queues/{bad}{rest}", content=content), 400, "invalid_request", "queue")


def test_a_name_says_whether_it_is_a_fifo_queue(client: httpx.Client, name: str) -> None:
    """As in SQS, whose clients know no other way to tell."""
    path = f"/queues/{name}.fifo"
    made = client.put(path, json={"visibility_timeout": 60})
    assert (made.status_code, made.json()["kind"], "lanes" in made.json()["fixed"]) == (201, "fifo", True)
    assert client.put(path, json={"kind": "fifo", "visibility_timeout": 60}).status_code == 200
    refused(client.put(f"{path}/message", content=b"x"), 400, "invalid_request", "group")
    for number in range(3):
        put = client.put(f"{path}/message", content=str(number), params={"group": "g", "key": f"k{number}"})
        assert put.status_code == 201
    assert [message["body"] for message in client.get(f"{path}/messages/10").json()["messages"]] == ["0", "1", "2"]
    for wrong, kind in ((f"{name}-b.fifo", "bucketed"), (name, "fifo")):
        message = refused(client.put(f"/queues/{wrong}", json={"kind": kind}), 400, "invalid_request", "kind")
        assert message == "kind: a queue whose name ends with .fifo is of the kind 'fifo', and no other is"
        refused(client.get(f"/queues/{wrong}"), 404, "queue_not_found")


def test_what_a_fifo_queue_does_not_have_is_not_shown(client: httpx.Client, name: str) -> None:
    path = f"/queues/{name}.fifo"
    said = client.put(path).json()
    assert said["fixed"] == ["kind", "bucket_size", "lanes"]
    assert sorted(said["changeable"] + said["fixed"]) == sorted(said["settings"])
    for wrong in ("priorities", 2), ("archive", True):
        message = refused(client.patch(path, json=dict([wrong])), 400, "invalid_request", wrong[0])
        assert "has no such setting" in message
    assert client.patch(path, json={"priorities": 1, "archive": False}).status_code == 200


def test_good_names(client: httpx.Client, name: str) -> None:
    for good in (f"{name}.fifo", f"_{name}", f"9{name}", name + "-" * (80 - len(name))):
        assert client.put(f"/queues/{good}").status_code == 201


# --- showing --------------------------------------------------------------------------------------------------------


def test_statistics(make: Make) -> None:
    queue = make(visibility_timeout=60)
    assert queue.show()["statistics"] == {
        "visible": 0, "in_flight": 0, "delayed": 0, "dead": 0, "oldest_age": None, "exact": True,
    }
    for _ in range(3):
        queue.put()
    queue.put(params={"delay": 60})
    assert len(queue.receive(1)) == 1
    statistics = queue.show()["statistics"]
    age = statistics.pop("oldest_age")
    assert statistics == {"visible": 2, "in_flight": 1, "delayed": 1, "dead": 0, "exact": True}
    assert 0 <= age < 60


def test_answers_are_not_for_caches(make: Make) -> None:
    queue = make()
    for rest in ("", "/messages/1", "/peek/1", "/pointers", "/buckets"):
        assert queue.call("GET", rest).headers["cache-control"] == "no-store"


# --- changing -------------------------------------------------------------------------------------------------------


def test_change(make: Make) -> None:
    queue = make(delay=5)
    changed = queue.call("PATCH", json={"visibility_timeout": 90, "retention": None, "max_deliveries": 2})
    assert changed.status_code == 200
    expected = {**DEFAULTS, "delay": 5, "visibility_timeout": 90, "retention": None, "max_deliveries": 2}
    assert changed.json()["settings"] == expected
    assert queue.show()["settings"] == expected
    assert queue.call("PATCH", json={"max_deliveries": None}).json()["settings"]["max_deliveries"] is None


def test_a_change_of_nothing_changes_nothing(make: Make) -> None:
    queue = make()
    changed_at = queue.call("PATCH", json={"delay": 5}).json()["changed_at"]
    again = queue.call("PATCH", json={})
    assert (again.status_code, again.json()["changed_at"], again.json()["settings"]["delay"]) == (200, changed_at, 5)


def test_who_makes_or_changes_a_queue_is_warned(make: Make, client: httpx.Client, name: str) -> None:
    missing = f"there is no queue {name}-dead, the dead_letter_queue: max_deliveries does nothing until it is made"
    settings = {"max_deliveries": 3, "dead_letter_queue": f"{name}-dead"}
    for status in (201, 200):
        made = client.put(f"/queues/{name}", json=settings)
        assert (made.status_code, made.json()["warnings"]) == (status, [missing])
    queue = make()
    assert queue.call("PATCH", json={"delay": 1}).json()["warnings"] == []
    assert queue.call("PATCH", json=settings).json()["warnings"] == [missing]
    client.put(f"/queues/{name}-dead")
    assert queue.call("PATCH", json={"delay": 2}).json()["warnings"] == []


def test_a_warning_that_cannot_be_looked_for_denies_nothing(make: Make, name: str) -> None:
    """The change is made: an answer that says "unavailable" would be a lie (A6)."""
    queue = make()
    queue.server.store.next("read", QUEUES, UNAVAILABLE, times=sys.maxsize, when=lambda span: span.first == name)
    answer = queue.call("PATCH", json={"max_deliveries": 3, "dead_letter_queue": name})
    assert (answer.status_code, answer.json()["warnings"]) == (200, [])
    assert queue.server.store.rules[0].happened


@pytest.mark.parametrize("field", ["kind", "bucket_size"])
def test_what_cannot_change_says_so(make: Make, field: str) -> None:
    queue = make()
    message = refused(queue.call("PATCH", json={field: DEFAULTS[field]}), 400, "invalid_request", field)
    assert "cannot change" in message


def test_change_refuses_what_creation_refuses(make: Make) -> None:
    queue = make()
    refused(queue.call("PATCH", json={"lanes": 65}), 400, "invalid_request", "lanes")
    refused(queue.call("PATCH", json={"colour": "red"}), 400, "invalid_request", "colour")
    refused(queue.call("PATCH", json={"dead_letter_queue": queue.name}), 400, "invalid_request", "dead_letter_queue")
    refused(queue.call("PATCH"), 400, "malformed_json")
    assert queue.show()["settings"] == DEFAULTS


def test_lanes_change(make: Make) -> None:
    queue = make()
    assert queue.call("PATCH", json={"lanes": 3}).json()["settings"]["lanes"] == 3
    assert [lane["lane"] for lane in queue.call("GET", "/pointers").json()["lanes"]] == [0, 1, 2]


# --- deleting -------------------------------------------------------------------------------------------------------


def test_delete(make: Make) -> None:
    queue = make()
    queue.put(b"old")
    (old,) = queue.receive()
    assert queue.call("DELETE").status_code == 204
    for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/messages/1"), ("PUT", "/message")):
        refused(queue.call(method, rest), 404, "queue_not_found")
    assert queue.call("PUT").status_code == 201
    assert queue.receive() == []
    refused(queue.ack(old["receipt"]), 400, "invalid_receipt", "receipt")


@pytest.mark.parametrize(("method", "rest", "body"), [
    ("GET", "", None), ("PATCH", "", {}), ("DELETE", "", None), ("POST", "/purge", None),
    ("PUT", "/messages", [{"body": "x"}]), ("GET", "/messages/1", None), ("GET", "/messages/1?wait=1", None),
    ("POST", "/acks", {"receipts": ["x"]}), ("GET", "/peek/1", None), ("GET", "/dead/1", None),
    ("POST", "/redrive", {}),
    ("GET", "/pointers", None), ("GET", "/buckets", None), ("GET", "/buckets?lane=0", None),
    ("POST", "/repair", {"lane": 0, "bucket": 0}), ("PATCH", "/message/x", {"visibility": 1}),
    ("DELETE", "/message/x", None),
])
def test_unknown_queue(client: httpx.Client, name: str, method: str, rest: str, body: object) -> None:
    answer = client.request(method, f"/queues/{name}{rest}", **({} if body is None else {"json": body}))
    assert name in refused(answer, 404, "queue_not_found")


def test_purge(make: Make) -> None:
    queue = make()
    queue.put(b"before")
    queue.put(b"before")
    assert len(queue.receive(visibility=0)) == 1
    assert queue.call("POST", "/purge").status_code == 204
    queue.put(b"after")
    assert [message["body"] for message in queue.receive(10)] == ["after"]


# --- listing --------------------------------------------------------------------------------------------------------


def test_list_and_pages(client: httpx.Client, name: str) -> None:
    names = [f"{name}.{letter}" for letter in "edcba"]
    for each in names:
        assert client.put(f"/queues/{each}").status_code == 201
    names.sort()

    def listed(**parameters: object) -> tuple[list[str], str | None]:
        answer = client.get("/queues", params={"prefix": f"{name}.", **parameters})
        assert answer.status_code == 200
        return answer.json()["queues"], answer.json()["next"]

    assert listed() == (names, None)
    assert listed(limit=5) == (names, None)
    assert listed(limit=2) == (names[:2], names[1])
    assert listed(limit=2, after=names[1]) == (names[2:4], names[3])
    assert listed(limit=2, after=names[3]) == (names[4:], None)
    assert listed(after=names[4]) == ([], None)
    assert set(names) <= set(client.get("/queues").json()["queues"])
    assert client.delete(f"/queues/{names[2]}").status_code == 204
    assert listed() == (names[:2] + names[3:], None)


@pytest.mark.parametrize(("query", "field"), [
    ("limit=0", "limit"), ("limit=1001", "limit"), ("limit=", "limit"), ("limit=ten", "limit"), ("limit=+5", "limit"),
    ("limit=5.5", "limit"), ("limit=05", "limit"), ("limit=" + "9" * 5000, "limit"), ("prefix=a%20b", "prefix"),
    ("prefix=" + "x" * (limits.NAME_LENGTH + 1), "prefix"), ("after=%C3%A4", "after"), ("first=1", "first"),
    ("prefix=a&prefix=a", "prefix"), ("=5", ""), ("%FF=5", "query"), ("limit=%FF", "query"),
])
def test_bad_pages(client: httpx.Client, query: str, field: str) -> None:
    refused(client.get(f"/queues?{query}"), 400, "invalid_request", field)
