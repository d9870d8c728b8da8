"""Databags through both clients: settings, puts, deletes by id; and a consumer, which has nothing to extend there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from angelhair import limits
from angelhair.client import Draft, Message, Receipt
from angelhair.client.consuming import Handle
from angelhair.client.plans import Pause, Send
from angelhair.errors import InvalidReceipt, InvalidRequest
from tests.client.conftest import Connect
from tests.client.consumers import running
from tests.client.desk import NOW, VISIBILITY, Desk, finish
from tests.client.server import PATIENCE_SECONDS, Served
from tests.client.test_consumers import eventually
from tests.client.test_retrying import DONE


@pytest.fixture
def databag(client: Any) -> str:
    client.create_queue("chores", kind="databag", visibility_timeout=60)
    return "chores"


def calls(server: Served, method: str, ending: str = "") -> int:
    return sum(seen == method and path.endswith(ending) for seen, path, _ in server.requests)


# --- verbs ------------------------------------------------------------------------------------------------------------


def test_a_databag_is_made_shown_and_cut_otherwise(client: Any) -> None:
    made = client.create_queue("chores", kind="databag", min_partitions=20, max_partitions=40)
    assert (made.kind, made.partitions) == ("databag", None), "nobody has counted"
    shown = client.queue("chores")
    assert (shown.settings["min_partitions"], shown.settings["max_partitions"]) == (20, 40)
    assert asdict(shown.partitions) == {
        "count": 20, "min_partitions": 20, "max_partitions": 40, "visibility_timeout": 30,
        "sync": limits.BAG_SYNC_MS / 1000, "locked": 0, "epochs": limits.BAG_BLOCKS, "duplicates": 0,
    }
    client.change_queue("chores", min_partitions=30, max_partitions=60)
    again = client.queue("chores")
    assert (again.settings["min_partitions"], again.settings["max_partitions"]) == (30, 60), "stored at once"
    assert again.partitions.max_partitions == 40, "and in force at the next sync"
    with pytest.raises(InvalidRequest, match="is more than max_partitions"):
        client.change_queue("chores", min_partitions=61)


def test_other_queues_have_no_partitions(client: Any) -> None:
    client.create_queue("chores")
    assert client.queue("chores").partitions is None


def test_messages_are_put_received_and_deleted_by_their_ids(client: Any, databag: str) -> None:
    put_id = client.put(databag, "one", content_type="text/plain")
    (message,) = client.receive(databag, 10)
    assert (message.id, message.receipt, message.text, message.content_type) == (put_id, put_id, "one", "text/plain")
    assert message.is_of_databag
    assert client.receive(databag, 10) == []
    shown = client.queue(databag)
    assert (shown.statistics.in_flight, shown.partitions.locked) == (1, 1)
    client.ack(message)
    client.ack(Receipt(databag, put_id))
    shown = client.queue(databag)
    assert (shown.statistics.visible, shown.statistics.in_flight, shown.statistics.exact) == (0, 0, True)


def test_a_message_of_another_queue_is_none_of_a_databag(client: Any) -> None:
    client.create_queue("chores")
    client.put("chores", "one")
    (message,) = client.receive("chores")
    assert not message.is_of_databag


def test_many_are_put_and_deleted_at_once(client: Any, databag: str) -> None:
    outcomes = client.put_many(databag, [b"%d" % number for number in range(2 * limits.BATCH_MESSAGES)])
    assert {outcome.error for outcome in outcomes} == {None}
    assert len({outcome.id for outcome in outcomes}) == len(outcomes)
    wrong = Receipt(databag, "0-99999999999999999999")
    (failure,) = client.ack_many([*(Receipt(databag, outcome.id) for outcome in outcomes), wrong])
    assert (failure.receipt, type(failure.error)) == (wrong, InvalidReceipt)
    assert client.receive(databag, 1) == []
    assert len(client.peek(databag, 10)) == 0


def test_looking_and_purging(client: Any, databag: str) -> None:
    client.put_many(databag, ["a", "b"])
    assert sorted(seen.text for seen in client.peek(databag, 10)) == ["a", "b"]
    client.purge(databag)
    assert client.peek(databag, 10) == client.receive(databag, 10) == []


def test_what_a_databag_cannot_do_is_an_invalid_request(client: Any, databag: str) -> None:
    client.put(databag, "one")
    (message,) = client.receive(databag)
    wrong: list[Callable[[], object]] = [
        lambda: client.extend(message, 5),
        lambda: client.release(message),
        lambda: client.change(message, "two"),
        lambda: client.put(databag, "x", delay=5),
        lambda: client.put(databag, "x", group="g"),
        lambda: client.put(databag, "x", priority=1),
        lambda: client.change_queue(databag, max_deliveries=3),
        lambda: client.redrive(databag, "other"),
    ]
    for refused in wrong:
        with pytest.raises(InvalidRequest):
            refused()


def test_of_many_those_are_put_that_can_be(client: Any, databag: str) -> None:
    wrong, right = client.put_many(databag, [Draft("late", delay=5), Draft("now")])
    assert isinstance(wrong.error, InvalidRequest) and "delay" in str(wrong.error)
    assert [message.id for message in client.receive(databag, 10)] == [right.id]


def test_one_key_is_one_message(client: Any, databag: str) -> None:
    first = client.put(databag, "one", key="k")
    assert client.put(databag, "one", key="k") == first
    assert len(client.peek(databag, 10)) == 1


def test_that_a_queue_knows_no_keys_is_found_out_once(server: Served, client: Any) -> None:
    """Naive: every put is sent with a key, refused, and sent again."""
    for name, kind, refused in (("chores", "databag", 0), ("bells", "timeline", 1)):
        client.create_queue(name, kind=kind)
        server.requests.clear()
        for number in range(5):
            client.put(name, str(number))
            client.put_many(name, ["a", "b"])
        assert calls(server, "PUT") == 10 + refused


def test_a_queue_that_is_made_again_as_another_kind_has_keys_again(
    server: Served, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLIENT_KEYLESS_SECONDS", 0.0)
    client.create_queue("chores", kind="timeline")
    client.put("chores", "one")
    client.delete_queue("chores")
    client.create_queue("chores")
    client.put("chores", "two")
    assert "key=" in server.requests[-1][2]


# --- consumers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_consumer_works_off_a_databag(server: Served, connect: Connect, kind: str) -> None:
    """It deletes by ids, gives nothing back, and extends nothing."""
    client = connect(server.url)
    client.create_queue("chores", kind="databag", visibility_timeout=30)
    bodies = {str(number) for number in range(50)}
    client.put_many("chores", sorted(bodies))
    seen: list[str] = []
    failed: list[tuple[str, str]] = []
    all_done = threading.Event()

    def work(message: Message) -> None:
        first = message.text not in seen
        seen.append(message.text)
        if set(seen) == bodies:
            all_done.set()
        if message.text == "7" and first:
            raise RuntimeError("not yet")

    def tell(message: Message, error: Exception) -> float:
        failed.append((message.text, str(error)))
        return 0.0

    with running(kind, server.url, work, visibility=1, wait=1, concurrency=5, on_error=tell):
        assert all_done.wait(PATIENCE_SECONDS)
        eventually(lambda: seen.count("7") == 2)
    assert failed == [("7", "not yet")], "told once, of what the handler raised"
    assert calls(server, "PATCH") == 0
    statistics = client.queue("chores").statistics
    assert (statistics.visible, statistics.in_flight) == (0, 0)


def of_databag(number: int = 0) -> Message:
    return Message("chores", f"0-{number}", b"x", None, 1, NOW, None, f"0-{number}", NOW, NOW)


def test_a_message_of_a_databag_is_never_extended() -> None:
    """Naive: the extension is refused, the message counts as lost, and is not deleted when its handler is done."""
    desk = Desk()
    handling = desk.consuming.handling(desk.consuming._take(of_databag()))
    assert isinstance(next(handling), Handle)
    keeping = desk.consuming.keeping()
    for step in (next(keeping) for _ in range(20)):
        assert isinstance(step, Pause) and 0 < step.seconds <= VISIBILITY
        desk.clock.seconds += step.seconds
    (acking,) = finish(handling, None, DONE)
    assert (acking.request.method, acking.request.path) == ("DELETE", "/queues/chores/message/0-0")
    assert desk.told == []


def test_a_message_of_a_databag_whose_handler_fails_is_not_given_back() -> None:
    """It cannot be: it comes again with its partition."""
    desk = Desk()
    handling = desk.consuming.handling(desk.consuming._take(of_databag()))
    assert isinstance(next(handling), Handle)
    assert finish(handling, ValueError("no")) == []
    ((identity, error),) = desk.told
    assert (identity, str(error)) == ("0-0", "no")


def test_who_takes_longer_than_a_databag_hides_is_told(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    for late in (0.0, 1.0):
        handling = desk.consuming.handling(desk.consuming._take(of_databag()))
        assert isinstance(next(handling), Handle)
        desk.clock.seconds += VISIBILITY + late
        with caplog.at_level(logging.WARNING, "angelhair.client"):
            steps = finish(handling, None, DONE)
        assert [isinstance(step, Send) for step in steps] == [True], "it is deleted all the same"
        assert ("may come again" in caplog.text) == bool(late)
