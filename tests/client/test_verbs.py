"""Every verb, through both clients, against a real server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from angelhair import limits
from angelhair.client import Draft, Origin, Receipt
from angelhair.errors import StaleReceipt
from tests.client.server import Served

NOT_TEXT = b"\xff\x00\xfe"


def test_a_queue_is_made_shown_changed_and_deleted(client: Any) -> None:
    made = client.create_queue("chores", visibility_timeout=1.5, retention=None, lanes=2)
    assert (made.name, made.kind) == ("chores", "bucketed")
    assert made.settings["visibility_timeout"] == 1.5
    assert made.settings["retention"] is None
    assert "lanes" in made.changeable
    assert "bucket_size" in made.fixed
    assert client.create_queue("chores", visibility_timeout=1.5, retention=None, lanes=2) == made

    changed = client.change_queue("chores", max_deliveries=3)
    assert changed.settings["max_deliveries"] == 3
    assert changed.settings["visibility_timeout"] == 1.5

    client.put("chores", b"one")
    shown = client.queue("chores")
    assert shown.settings == changed.settings
    assert (shown.statistics.visible, shown.statistics.in_flight, shown.statistics.exact) == (1, 0, True)
    assert shown.created_at.tzinfo is not None

    client.delete_queue("chores")
    assert list(client.queues()) == []


def test_queues_are_listed_over_pages(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIST_QUEUES", 3)
    names = [f"a{number}" for number in range(8)]
    for name in [*names, "b"]:
        client.create_queue(name)
    assert list(client.queues()) == [*names, "b"]
    assert list(client.queues("a")) == names
    assert list(client.queues("c")) == []


@pytest.mark.parametrize("body", [b"", b"plain", "Übergrößenträger", NOT_TEXT, b"{}"])
def test_a_body_comes_back_as_it_was_put(client: Any, body: bytes | str) -> None:
    client.create_queue("chores")
    put_id = client.put("chores", body, content_type="text/plain; charset=utf-8")
    (message,) = client.receive("chores")
    assert message.id == put_id
    assert message.body == (body.encode() if isinstance(body, str) else body)
    assert message.content_type == "text/plain; charset=utf-8"
    if isinstance(body, str):
        assert message.text == body


def test_what_a_message_says_about_itself(client: Any) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    client.create_queue("chores")
    client.put("chores", '{"wash": 2}')
    (message,) = client.receive("chores", visibility=60)
    assert (message.queue, message.deliveries, message.content_type, message.origin) == ("chores", 1, None, None)
    assert message.json() == {"wash": 2}
    assert before <= message.enqueued_at <= message.first_delivered_at <= datetime.now(UTC)
    assert message.visible_at - message.first_delivered_at == timedelta(seconds=60)
    assert message.receipt not in repr(message), "receipts do not get into logs"


def test_receive_takes_up_to_so_many_and_waits(client: Any) -> None:
    client.create_queue("chores")
    assert client.receive("chores", 10) == []
    client.put_many("chores", [b"a", b"b", b"c"])
    assert [message.body for message in client.receive("chores", 2)] == [b"a", b"b"]
    client.put("chores", b"d", delay=0.3)
    assert [message.body for message in client.receive("chores", 1, wait=20)] == [b"c"]
    assert [message.body for message in client.receive("chores", 1, wait=20)] == [b"d"]


def test_a_delayed_message_is_not_there_yet(client: Any) -> None:
    client.create_queue("chores")
    client.put("chores", b"later", delay=3600)
    client.put("chores", b"at a time", due=datetime.now(UTC) + timedelta(hours=1))
    client.put("chores", b"overdue", due=datetime.now(UTC) - timedelta(hours=1))
    client.put_many("chores", [Draft(b"many", delay=3600), Draft(b"due", due=datetime.now(UTC) + timedelta(hours=1))])
    assert [message.body for message in client.receive("chores", 10)] == [b"overdue"]
    assert client.queue("chores").statistics.delayed == 4


def test_puts_under_one_key_are_one_message(client: Any) -> None:
    client.create_queue("chores")
    first = client.put("chores", b"one", key="order 17/ä&?")
    assert client.put("chores", b"one", key="order 17/ä&?") == first
    (same, other) = client.put_many("chores", [Draft(b"one", key="order 17/ä&?"), Draft(b"two", key="order 18")])
    assert same.id == first != other.id
    assert [message.body for message in client.receive("chores", 10)] == [b"one", b"two"]


def test_many_are_put_in_few_requests(server: Served, client: Any) -> None:
    client.create_queue("chores")
    bodies = [b"%d" % number for number in range(2 * limits.BATCH_MESSAGES + 1)]
    outcomes = client.put_many("chores", bodies)
    assert all(outcome.error is None for outcome in outcomes)
    assert len({outcome.id for outcome in outcomes}) == len(bodies)
    assert [path for _, path, _ in server.requests].count("/queues/chores/messages") == 3
    taken = [message for _ in range(3) for message in client.receive("chores", limits.BATCH_MESSAGES)]
    assert [message.body for message in taken] == bodies
    assert [message.id for message in taken] == [outcome.id for outcome in outcomes]


def test_many_are_put_in_requests_that_are_not_too_large(server: Served, client: Any) -> None:
    client.create_queue("chores")
    bodies = [b"x" * 3_000_000, b"\xff" * 3_000_000] * 7
    assert all(outcome.error is None for outcome in client.put_many("chores", bodies))
    assert [path for _, path, _ in server.requests].count("/queues/chores/messages") == 2
    taken: list[bytes] = []
    while found := client.receive("chores", 100):
        taken += [message.body for message in found]
    assert taken == bodies


def test_nothing_to_put_is_nothing_sent(server: Served, client: Any) -> None:
    assert client.put_many("chores", []) == []
    assert client.ack_many([]) == []
    assert server.requests == []


def test_drafts_keep_what_is_said_about_them(client: Any) -> None:
    client.create_queue("chores")
    client.put_many("chores", [Draft("a", content_type="text/plain"), Draft(NOT_TEXT), "b", b"c"])
    found = [(message.body, message.content_type) for message in client.receive("chores", 10)]
    assert found == [(b"a", "text/plain"), (NOT_TEXT, None), (b"b", None), (b"c", None)]


def test_an_acked_message_is_gone_and_acking_it_again_is_fine(client: Any) -> None:
    client.create_queue("chores")
    client.put("chores", b"one")
    (message,) = client.receive("chores", visibility=0)
    client.ack(message)
    client.ack(message)
    client.ack(Receipt("chores", message.receipt))
    assert client.receive("chores") == []


def test_many_are_acked_also_of_several_queues(server: Served, client: Any) -> None:
    count = limits.BATCH_MESSAGES + 1
    for name in ("chores", "errands"):
        client.create_queue(name)
    client.put_many("chores", [b"x"] * count)
    client.put("errands", b"y")
    taken = [message for _ in range(2) for message in client.receive("chores", limits.BATCH_MESSAGES)]
    taken += client.receive("errands")
    forged = Receipt("errands", "A" * 44)
    failures = client.ack_many([*taken, forged])
    assert [failure.receipt for failure in failures] == [forged]
    assert [path for _, path, _ in server.requests if path.endswith("/acks")].count("/queues/chores/acks") == 2
    for name in ("chores", "errands"):
        statistics = client.queue(name).statistics
        assert (statistics.visible, statistics.in_flight) == (0, 0)


def test_a_message_is_extended_released_and_changed(client: Any) -> None:
    client.create_queue("chores", visibility_timeout=30)
    client.put("chores", b"one")
    (message,) = client.receive("chores")
    client.extend(message, 3600)
    assert client.receive("chores") == []
    client.change(message, "two, by another")
    client.release(message)
    (again,) = client.receive("chores")
    assert (again.id, again.body, again.deliveries) == (message.id, b"two, by another", 2)
    client.change(again, NOT_TEXT, visibility=0)
    (third,) = client.receive("chores")
    assert third.body == NOT_TEXT
    client.release(third, 3600)
    assert client.receive("chores") == []
    with pytest.raises(StaleReceipt):
        client.extend(message, 10)


def test_peek_takes_nothing(client: Any) -> None:
    client.create_queue("chores")
    client.put_many("chores", [b"a", Draft(NOT_TEXT, content_type="x/y")])
    first, second = client.peek("chores", 5)
    assert (first.body, first.deliveries, first.queue) == (b"a", 0, "chores")
    assert (second.body, second.content_type) == (NOT_TEXT, "x/y")
    assert len(client.peek("chores", 1)) == 1
    assert len(client.receive("chores", 5)) == 2


def test_purge_empties(client: Any) -> None:
    client.create_queue("chores")
    client.put_many("chores", [b"a", b"b"])
    client.purge("chores")
    assert client.receive("chores", 5) == []


def test_dead_letters_are_looked_into_and_redriven(client: Any) -> None:
    client.create_queue("failed")
    client.create_queue("chores", max_deliveries=1, dead_letter_queue="failed")
    put_id = client.put("chores", b"paint the moon")
    (message,) = client.receive("chores")
    client.release(message)
    assert client.receive("chores") == []
    # The server's background moves it.
    (dead,) = client.receive("failed", wait=30)
    client.release(dead)
    (letter,) = client.dead_letters("chores")
    assert (letter.queue, letter.body, letter.origin) == ("failed", b"paint the moon", Origin("chores", put_id))
    client.change_queue("chores", max_deliveries=None)
    assert client.redrive("failed") == 1
    assert client.redrive("failed") == 0
    (again,) = client.receive("chores")
    assert (again.body, again.deliveries) == (b"paint the moon", 1)
    client.release(again)
    assert client.redrive("chores", "failed", count=1) == 1


def test_pointers_buckets_and_move_back(client: Any) -> None:
    client.create_queue("chores", bucket_size=2, lanes=2)
    client.put_many("chores", [b"a", b"b", b"c"])
    lanes = client.pointers("chores")
    assert [lane.lane for lane in lanes] == [0, 1]
    assert sum(lane.next_id for lane in lanes) == 3
    used = next(lane.lane for lane in lanes if lane.next_id == 3)
    buckets = client.buckets("chores", used, first=0, count=5)
    assert [(bucket.bucket, bucket.state, bucket.messages) for bucket in buckets] == [(0, "open", 2), (1, "open", 1)]
    assert client.buckets("chores", used) == buckets
    assert client.move_back("chores", used, 0) == 0


def test_groups_and_priorities(client: Any) -> None:
    client.create_queue("urgent", priorities=2, fair=True)
    client.put("urgent", "low", group="tenant")
    outcomes = client.put_many("urgent", [Draft("high", priority=1, group="other"), "plain"])
    assert [outcome.error for outcome in outcomes] == [None, None]
    found = client.receive("urgent", 3)
    assert [(message.text, message.priority, message.group) for message in found] == [
        ("high", 1, "other"), ("low", 0, "tenant"), ("plain", 0, None),
    ]
