"""The observer: labels stay within bounds, whatever comes."""

from __future__ import annotations

import threading

import pytest

from angelhair import limits
from angelhair.engine.counts import Stats
from angelhair.model import Delivery, MessageId
from angelhair.server.observing.observer import OTHER, Observer


def values(observer: Observer, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in observer.collect()
        for sample in family.samples
        if sample.name == name
    }


def delivery(deliveries: int, waited_ms: int = 0) -> Delivery:
    return Delivery(MessageId(0, 1), "receipt", b"", None, deliveries, 1_000, 1_000 + waited_ms, 0, None)


def test_routes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRICS_ROUTES", 3)
    observer = Observer()
    for number in range(10):
        observer.request(f"/somebody/passed/a/path/{number}", "GET", 200, 0.001)
    observer.request("", "GET", 404, 0.001)
    requests = values(observer, "angelhair_http_requests_total")
    assert len(requests) == 5
    assert requests[(OTHER, "GET", "200")] == 7
    assert requests[(OTHER, "GET", "404")] == 1


def test_methods_are_bounded() -> None:
    observer = Observer()
    for method in ("GET", "PURGE", "MKCALENDAR", "SOURCE"):
        observer.request("/", method, 405, 0.001)
    requests = values(observer, "angelhair_http_requests_total")
    assert requests == {("/", "GET", "405"): 1, ("/", OTHER, "405"): 3}


def test_no_queue_can_be_called_as_the_rest_is() -> None:
    from angelhair.errors import InvalidRequest
    from angelhair.model import validate_name

    with pytest.raises(InvalidRequest):
        validate_name("name", OTHER)


def test_depths_are_not_mixed_up_in_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRICS_QUEUES", 1)
    observer = Observer()
    observer.depth("first", Stats(visible=3))
    observer.depth("second", Stats(visible=5))
    assert {key[0] for key in values(observer, "angelhair_queue_depth")} == {"first"}


def test_only_first_deliveries_count_as_waits() -> None:
    observer = Observer()
    observer.received("jobs", [delivery(1, 2_000), delivery(2, 9_000), delivery(1, -50)])
    assert values(observer, "angelhair_message_wait_seconds_count") == {(): 2}
    assert values(observer, "angelhair_message_wait_seconds_sum") == {(): 2.0}
    assert values(observer, "angelhair_messages_redelivered_total") == {("jobs",): 1}


def test_nothing_is_no_series() -> None:
    observer = Observer()
    observer.put("jobs", 0)
    observer.received("jobs", [])
    observer.acked("jobs", 0)
    observer.changed("jobs", 0)
    assert not values(observer, "angelhair_messages_put_total")
    assert not values(observer, "angelhair_messages_received_total")
    assert not values(observer, "angelhair_messages_acked_total")
    assert not values(observer, "angelhair_messages_changed_total")


def test_what_is_watched_is_looked_at_when_it_is_refreshed_and_only_grows() -> None:
    observer = Observer()
    steps, level = 5, 2
    observer.watch_count("steps", "Steps.", lambda: steps)
    observer.watch_level("level", "Level.", lambda: level)
    assert (values(observer, "steps_total"), values(observer, "level")) == ({(): 0}, {})
    observer.refresh()
    assert (values(observer, "steps_total"), values(observer, "level")) == ({(): 5}, {(): 2})
    steps, level = 3, 1  # counted anew: what was counted stays
    observer.refresh()
    steps = 4
    observer.refresh()
    assert (values(observer, "steps_total"), values(observer, "level")) == ({(): 6}, {(): 1})


def test_a_deleted_queue_leaves_nothing_behind() -> None:
    observer = Observer()
    for queue in ("jobs", "others"):
        observer.put(queue, 1)
        observer.received(queue, [delivery(2)])
        observer.acked(queue, 1, 1)
        observer.changed(queue, 1)
        observer.depth(queue, Stats())
    observer.forget_queue("jobs")
    labels = {value for family in observer.collect() for sample in family.samples for value in sample.labels.values()}
    assert "jobs" not in labels
    assert "others" in labels


def test_collecting_on_another_thread_while_everything_grows() -> None:
    """The bridge to Graphite and a scrape collect beside the loop."""
    observer = Observer()
    ended = threading.Event()
    wrong: list[str] = []

    def collect() -> None:
        while not ended.is_set():
            for family in observer.collect():
                wrong.extend(sample.name for sample in family.samples if sample.value < 0)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        for number in range(20_000):
            observer.put(f"queue-{number % 500}", 1)
            observer.request(f"/route/{number % 50}", "GET", 200 + number % 5, number / 1_000)
            if number % 100 == 0:
                observer.forget_queue(f"queue-{number % 500}")
    finally:
        ended.set()
        thread.join()
    assert not wrong
    assert sum(values(observer, "angelhair_http_requests_total").values()) == 20_000


def test_publications_are_counted_by_what_became_of_them() -> None:
    observer = Observer()
    observer.publications("published", 3)
    observer.publications("spread", 2)
    untouched = dict.fromkeys([("waiting",), ("dropped",), ("posted",), ("retried",)], 0)
    expected = {("published",): 3, ("spread",): 2, **untouched}
    assert values(observer, "angelhair_publications_total") == expected
