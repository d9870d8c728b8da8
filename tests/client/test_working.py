"""What a worker of a timeline decides, and when it stops deciding (W9): its plan is asked for its steps, on a clock
that the test holds."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from angelhair import limits
from angelhair.client.plans import Answer, Broken, Plan, Send
from angelhair.client.retrying import Manner, Retry
from angelhair.client.working import Collect, Ended, Held, Working, WorkRules
from angelhair.errors import InvalidRequest, QueueNotFound
from tests.client.test_retrying import DONE, Hours, answer, refused

LOCK = 10.0
BROKE = Broken("broke", sent=True)


def share(fences: dict[int, int], left: float = LOCK) -> Answer:
    shards = [{"shard": shard, "fence": fence} for shard, fence in fences.items()]
    return answer(200, json.dumps({"consumer": "ann", "shards": shards, "lock": LOCK, "left": left}))


def received(*numbers: int, shard: int = 0, deliveries: int = 1) -> Answer:
    time = "2026-11-15T13:00:00.000Z"
    found = [
        {
            "id": f"{shard}-{number:08x}-0000-7000-8000-000000000000", "receipt": f"R{number}", "body": str(number),
            "content_type": None, "deliveries": deliveries, "enqueued_at": time, "first_delivered_at": time,
            "visible_at": time, "origin": None, "due": time,
        }
        for number in numbers
    ]
    return answer(200, json.dumps({"messages": found}))


def acked(*failed: str) -> Answer:
    found = [{"receipt": receipt, "code": "stale_receipt", "message": "stale"} for receipt in failed]
    return answer(200, json.dumps({"acked": 0, "failed": found}))


class Desk:
    def __init__(self, concurrency: int = 2, on_error: Any = None) -> None:
        self.clock = Hours()
        self.started: list[Held] = []
        manner = Manner(30.0, Retry(total_seconds=0.0), self.clock, lambda: 1.0)
        self.working = Working(WorkRules("bells", "ann", concurrency), manner, on_error, self.started.append)
        self.plan: Plan[None] = self.working.wire()
        self.step: Any = next(self.plan)

    def send(self, outcome: Any) -> Any:
        self.step = self.plan.send(outcome)
        return self.step

    def wait(self, seconds: float) -> None:
        self.clock.seconds += seconds

    def until_it_rests(self, *ended: Ended) -> None:
        """Through to where it waits for handlers; receives on the way find nothing."""
        if isinstance(self.step, Collect):
            self.send(list(ended))
        for _ in range(20):
            if isinstance(self.step, Collect) and self.step.seconds > 0:
                return
            if isinstance(self.step, Send) and self.step.wait_seconds > 0:
                assert verb(self.step) == RECEIVE, "with nothing at hand, it is the server that waits"
                return
            self.send([] if isinstance(self.step, Collect) else received())
        raise AssertionError(f"it does not rest: {self.step}")


def verb(step: Any) -> tuple[str, str]:
    assert isinstance(step, Send), step
    return step.request.method, step.request.path.removeprefix("/queues/bells/").split("/")[0]


TOUCH, RECEIVE, ACKS, CHANGE, LEAVE = (
    ("PUT", "consumers"), ("GET", "messages"), ("POST", "acks"), ("PATCH", "message"), ("DELETE", "consumers"),
)


def at_work(numbers: tuple[int, ...] = (1,), **options: Any) -> Desk:
    """A worker that holds shard 0 and has started these."""
    desk = Desk(**options)
    assert verb(desk.step) == TOUCH, "before anything else it says that it is there"
    assert verb(desk.send(share({0: 7}))) == RECEIVE
    assert desk.step.request.query["consumer"] == "ann"
    assert float(desk.step.request.query["visibility"]) == LOCK, "longer would be to set it aside"
    desk.send(received(*numbers))
    desk.until_it_rests()
    return desk


def test_what_is_handled_is_acked_together() -> None:
    desk = at_work((1, 2))
    assert [held.message.text for held in desk.started] == ["1", "2"]
    first, second = desk.started
    assert verb(desk.send([Ended(first, True), Ended(second, True)])) == ACKS
    assert json.loads(desk.step.request.body) == {"receipts": ["R1", "R2"]}
    assert verb(desk.send(acked("R2"))) == RECEIVE
    assert (desk.working.figures.processed, desk.working.figures.unsettled) == (1, 1)


def test_what_failed_comes_again_later_with_every_try() -> None:
    told: list[str] = []
    desk = at_work(on_error=lambda message, error: told.append(str(error)))
    step = desk.send([Ended(desk.started[0], True, ValueError("no"))])
    assert verb(step) == CHANGE
    assert json.loads(step.request.body) == {"visibility": limits.CONSUMER_DELAY_FIRST_SECONDS}
    desk.send(DONE)
    assert (desk.working.figures.failed, desk.working.figures.processed, told) == (1, 0, ["no"])


def test_no_more_handlers_than_it_was_told_and_no_shard_no_receive() -> None:
    desk = Desk(concurrency=2)
    step = desk.send(share({}, left=0))
    assert isinstance(step, Collect)
    assert not desk.working.figures.suspended, "who holds none has nothing to lose"
    assert step.seconds == pytest.approx(limits.TIMELINE_SEARCH_SECONDS), "who has none asks soon again"
    desk.wait(step.seconds)
    assert verb(desk.send([])) == TOUCH
    assert verb(desk.send(share({3: 1}))) == RECEIVE
    assert desk.step.request.path.endswith("/2")
    desk.send(received(1, 2, 3, shard=3))
    desk.until_it_rests()
    assert len(desk.started) == 2


def test_w9_without_an_answer_for_half_the_lock_nothing_is_started_and_nothing_acked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = at_work((1, 2, 3))
    first, second = desk.started
    with caplog.at_level(logging.WARNING, "angelhair.client"):
        desk.wait(LOCK * limits.TIMELINE_SURE_SHARE)
        assert not desk.working.may_start(second), "not even one that was about to"
        assert verb(desk.send([Ended(first, True), Ended(second, started=False)])) == TOUCH
        assert isinstance(desk.send(BROKE), Collect), "no ack, no receive"
    assert desk.working.figures.suspended
    assert desk.working.figures.stops == 1
    assert "may have lost its shards" in caplog.text
    assert len(desk.started) == 2

    desk.wait(1.0)
    assert verb(desk.send([])) == TOUCH
    assert verb(desk.send(share({0: 7}))) == ACKS, "it holds the shard as before: what was handled is acked"
    assert not desk.working.figures.suspended
    desk.send(acked())
    desk.until_it_rests()
    assert [held.message.text for held in desk.started] == ["1", "2", "2", "3"]


@pytest.mark.parametrize("fences", [{0: 9}, {}, {1: 1}], ids=["taken anew", "none left", "another"])
def test_w9_what_was_taken_under_another_fence_is_neither_started_nor_acked(fences: dict[int, int]) -> None:
    desk = at_work((1, 2, 3))
    first, second = desk.started
    desk.wait(LOCK)
    assert verb(desk.send([Ended(first, True), Ended(second, started=False)])) == TOUCH
    step = desk.send(share(fences))
    assert not isinstance(step, Send) or verb(step) == RECEIVE, "nothing of it is acked"
    desk.until_it_rests()
    assert len(desk.started) == 2
    assert (desk.working.figures.unsettled, desk.working.figures.processed) == (1, 0)


def test_w9_an_answer_that_was_long_on_its_way_counts_from_when_it_was_asked_for() -> None:
    desk = Desk()
    desk.wait(LOCK * limits.TIMELINE_SURE_SHARE)
    step = desk.send(share({0: 7}))
    assert isinstance(step, Collect), "it may be lost already"
    assert verb(desk.send([])) == TOUCH


def test_w9_a_short_rest_of_the_lock_is_believed_no_longer_than_it_lasts() -> None:
    desk = Desk()
    desk.send(share({0: 7}, left=1.0))
    desk.send(received(1))
    desk.until_it_rests()
    (held,) = desk.started
    assert desk.working.may_start(held)
    desk.wait(1.0)
    assert not desk.working.may_start(held)


def test_slow_handlers_keep_their_messages_hidden_and_touches_go_on() -> None:
    desk = at_work()
    (held,) = desk.started
    changed = touched = 0
    for _ in range(30):
        desk.wait(1.0)
        desk.send([] if isinstance(desk.step, Collect) else received())
        while isinstance(desk.step, Send):
            if verb(desk.step) == CHANGE:
                assert json.loads(desk.step.request.body) == {"visibility": LOCK}
                changed += 1
                desk.send(DONE)
            elif verb(desk.step) == TOUCH:
                touched += 1
                desk.send(share({0: 7}))
            else:
                desk.send(received())
    assert 30 / LOCK <= changed <= 2 * 30 / LOCK + 1
    assert touched >= 30 / (LOCK * limits.TIMELINE_TOUCH_SHARE) - 2
    assert desk.working.may_start(held)


def test_told_to_stop_it_acks_what_ran_and_says_goodbye() -> None:
    desk = at_work((1, 2, 3))
    desk.working.stop()
    first, second = desk.started
    assert isinstance(desk.send([]), Collect), "what runs is waited for"
    step = desk.send([Ended(first, True)])
    assert isinstance(step, Collect) and step.seconds == pytest.approx(limits.TIMELINE_SETTLE_SECONDS)
    desk.wait(step.seconds)
    assert verb(desk.send([])) == ACKS, "one that runs for long holds up no other's ack"
    desk.send(acked())
    assert verb(desk.send([Ended(second, True)])) == ACKS
    assert isinstance(desk.send(acked()), Collect) or verb(desk.step) == LEAVE
    if isinstance(desk.step, Collect):
        desk.send([])
    assert verb(desk.step) == LEAVE
    with pytest.raises(StopIteration):
        desk.send(DONE)
    assert len(desk.started) == 2, "what waited is left to others"
    assert desk.working.figures.processed == 2


def test_told_to_stop_while_the_server_is_away_it_ends() -> None:
    desk = at_work()
    desk.working.stop()
    desk.wait(LOCK)
    assert verb(desk.send([Ended(desk.started[0], True)])) == TOUCH
    assert isinstance(desk.send(BROKE), Collect)
    assert verb(desk.send([])) == LEAVE
    with pytest.raises(StopIteration):
        desk.send(BROKE)


def test_a_refusal_ends_it_when_what_runs_is_done() -> None:
    desk = at_work()
    desk.wait(LOCK)
    assert verb(desk.send([])) == TOUCH
    step = desk.send(refused(404, "queue_not_found"))
    assert isinstance(step, Collect)
    assert verb(desk.send([Ended(desk.started[0], True)])) == LEAVE
    with pytest.raises(QueueNotFound):
        desk.send(refused(404, "queue_not_found"))


def test_quick_handlers_are_given_work_ahead_and_slow_ones_are_not() -> None:
    desk = at_work((1, 2))
    for number in range(200):
        desk.wait(0.01)
        running = [held for held in desk.started if held.running]
        desk.send([Ended(running[0], True)] if isinstance(desk.step, Collect) and running else [])
        while isinstance(desk.step, Send):
            if verb(desk.step) == ACKS:
                desk.send(acked())
            elif verb(desk.step) == TOUCH:
                desk.send(share({0: 7}))
            else:
                asked = int(desk.step.request.path.rpartition("/")[2])
                if asked > 10:
                    return
                desk.send(received(1_000 + number))
    raise AssertionError("a hundred messages a second, and it never asks for more than its handlers can take")


@pytest.mark.parametrize("wrong", [{"queue": "a b"}, {"consumer": ""}, {"concurrency": 0}])
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        WorkRules(**{"queue": "bells", "consumer": "ann", "concurrency": 1, **wrong})
