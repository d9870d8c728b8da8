"""What a consumer decides, without a network: its plans are asked for their steps, on a clock that the test holds."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from angelhair import limits
from angelhair.client import Message
from angelhair.client.consuming import Consuming, Handle, Held, Rest, Rules, Start
from angelhair.client.plans import Answer, Broken, Pause, Plan, Send
from angelhair.client.retrying import Manner, Retry
from angelhair.errors import InvalidRequest, QueueNotFound, StaleReceipt
from tests.client.test_retrying import DONE, Hours, answer, refused

VISIBILITY = 30.0
STALE = refused(409, "stale_receipt")
BROKE = Broken("broke", sent=True)
NOW = datetime(2026, 11, 15, 13, tzinfo=UTC)


def message(number: int = 0, deliveries: int = 1) -> Message:
    return Message("chores", f"0-{number}", b"x", None, deliveries, NOW, None, f"R{number}", NOW, NOW)


def received(*numbers: int) -> Answer:
    time = "2026-11-15T13:00:00.000Z"
    found = [
        {
            "id": f"0-{number}", "receipt": f"R{number}", "body": "x", "content_type": None, "deliveries": 1,
            "enqueued_at": time, "first_delivered_at": time, "visible_at": time, "origin": None,
        }
        for number in numbers
    ]
    return answer(200, json.dumps({"messages": found}))


class Desk:
    """A consumer's plans and the clock that they see."""

    def __init__(self, concurrency: int = 4, on_error: Any = None, chance: float = 1.0) -> None:
        self.clock = Hours()
        self.told: list[tuple[str, Exception]] = []
        self.plans: list[Plan[None]] = []
        """A plan that nobody has hold of ends."""
        manner = Manner(30.0, Retry(total_seconds=0.0), self.clock, lambda: chance)
        rules = Rules("chores", concurrency, VISIBILITY, 20.0)
        self.consuming = Consuming(rules, manner, on_error or self._tell)

    def _tell(self, message: Message, error: Exception) -> None:
        self.told.append((message.id, error))


def asked(step: Any) -> int:
    assert isinstance(step, Send)
    assert step.request.method == "GET"
    assert step.request.query == {"wait": "20.0", "visibility": "30.0"}
    return int(step.request.path.rpartition("/")[2])


def handled(desk: Desk, step: Any) -> Plan[None]:
    """Begins a handling, up to where the handler would be called."""
    assert isinstance(step, Start)
    assert isinstance(next(step.plan), Handle)
    desk.plans.append(step.plan)
    return step.plan


def finish(plan: Plan[None], *outcomes: Any) -> list[Any]:
    """Hands in the outcomes one by one, and returns the steps in between."""
    steps = []
    try:
        for outcome in outcomes:
            step = plan.send(outcome)
            steps.append(step)
    except StopIteration:
        return steps
    raise AssertionError(f"the plan goes on with {steps[-1]}")


# --- fetching -------------------------------------------------------------------------------------------------------


def test_it_asks_for_as_many_as_it_has_places_for() -> None:
    desk = Desk(concurrency=4)
    fetching = desk.consuming.fetching()
    assert asked(next(fetching)) == 4
    assert asked(fetching.send(received())) == 4, "nothing came: the same again, at once, as the server has waited"
    first = handled(desk, fetching.send(received(1, 2, 3)))
    handled(desk, next(fetching))
    handled(desk, next(fetching))
    assert asked(next(fetching)) == 1
    handled(desk, fetching.send(received(4)))
    assert next(fetching) == Rest(None), "all places are taken"
    assert next(fetching) == Rest(None), "whatever woke it, none is free"
    finish(first, None, DONE)
    assert asked(next(fetching)) == 1


def test_it_asks_for_no_more_than_a_request_may() -> None:
    with pytest.raises(InvalidRequest):
        Desk(concurrency=limits.BATCH_MESSAGES + 1)


def test_a_place_is_free_only_when_the_message_is_settled() -> None:
    desk = Desk(concurrency=1)
    fetching = desk.consuming.fetching()
    next(fetching)
    handling = handled(desk, fetching.send(received(1)))
    acking = handling.send(None)
    assert acking.request.method == "DELETE"
    assert next(fetching) == Rest(None)
    with pytest.raises(StopIteration):
        handling.send(DONE)
    assert asked(next(fetching)) == 1


def test_told_to_stop_it_finishes_what_it_holds_also_what_is_just_coming() -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    desk.consuming.stop()
    handling = handled(desk, fetching.send(received(1)))
    assert next(fetching) == Rest(None)
    finish(handling, None, DONE)
    with pytest.raises(StopIteration):
        next(fetching)


def test_told_to_stop_before_it_began_it_asks_for_nothing() -> None:
    desk = Desk()
    desk.consuming.stop()
    with pytest.raises(StopIteration):
        next(desk.consuming.fetching())


def test_a_server_that_is_away_is_asked_again_ever_more_slowly(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    pauses = []
    with caplog.at_level(logging.WARNING, "angelhair.client"):
        for _ in range(8):
            step = fetching.send(Broken("refused", sent=False))
            assert isinstance(step, Rest)
            assert step.seconds is not None
            pauses.append(step.seconds)
            desk.clock.seconds += step.seconds / 2
            early = next(fetching)
            assert isinstance(early, Rest), "something else changed: it is not time yet"
            assert early.seconds is not None
            desk.clock.seconds += early.seconds + 0.001
            assert asked(next(fetching)) == 4
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5], abs=0.002)
    assert "refused" in caplog.text
    handled(desk, fetching.send(received(1)))
    assert asked(next(fetching)) == 3
    assert fetching.send(BROKE) == Rest(pytest.approx(0.1, abs=0.002)), "after a success it begins anew"


def test_told_to_stop_it_does_not_wait_for_a_server_that_is_away() -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    assert isinstance(fetching.send(BROKE), Rest)
    desk.consuming.stop()
    with pytest.raises(StopIteration):
        next(fetching)


def test_a_refusal_is_raised_when_the_rest_is_done() -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    handling = handled(desk, fetching.send(received(1)))
    assert asked(next(fetching)) == 3
    assert fetching.send(refused(404, "queue_not_found")) == Rest(None)
    finish(handling, None, DONE)
    with pytest.raises(QueueNotFound):
        next(fetching)


# --- handling -------------------------------------------------------------------------------------------------------


def begun(desk: Desk, number: int = 0, deliveries: int = 1) -> tuple[Held, Plan[None]]:
    held = desk.consuming._take(message(number, deliveries))
    plan = desk.consuming.handling(held)
    assert next(plan) == Handle(held.message)
    desk.plans.append(plan)
    return held, plan


def released(step: Any) -> float:
    assert isinstance(step, Send)
    assert step.request.method == "PATCH"
    assert step.request.body is not None
    (visibility,) = json.loads(step.request.body).values()
    return float(visibility)


def test_a_message_whose_handler_returns_is_acked() -> None:
    desk = Desk()
    _, plan = begun(desk)
    (step,) = finish(plan, None, DONE)
    assert (step.request.method, step.request.path) == ("DELETE", "/queues/chores/message/R0")
    assert desk.told == []


@pytest.mark.parametrize(("deliveries", "bound"), [(1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (2_000, 300)])
def test_a_message_whose_handler_raises_comes_back_later_and_later(deliveries: int, bound: float) -> None:
    for chance, share in ((1.0, 1.0), (0.0, 0.5)):
        desk = Desk(chance=chance)
        _, plan = begun(desk, deliveries=deliveries)
        problem = ZeroDivisionError()
        (step,) = finish(plan, problem, DONE)
        assert released(step) == bound * share
        assert desk.told == [("0-0", problem)]


def test_the_hook_chooses_the_delay() -> None:
    desk = Desk(on_error=lambda message, error: 7.5)
    _, plan = begun(desk)
    (step,) = finish(plan, ZeroDivisionError(), DONE)
    assert released(step) == 7.5


def test_a_hook_that_fails_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    def hook(message: Message, error: Exception) -> float:
        raise KeyError("in the hook")

    desk = Desk(on_error=hook)
    _, plan = begun(desk)
    (step,) = finish(plan, ZeroDivisionError(), DONE)
    assert released(step) == 1
    assert "in the hook" in caplog.text


def test_without_a_hook_it_is_logged_and_neither_body_nor_receipt_is(caplog: pytest.LogCaptureFixture) -> None:
    rules = Rules("chores", 1, VISIBILITY, 20.0)
    consuming = Consuming(rules, Manner(30.0, None, Hours(), lambda: 0.0), None)
    secret = Message("chores", "0-7", b"secret body", None, 1, NOW, None, "secret receipt", NOW, NOW)
    plan = consuming.handling(consuming._take(secret))
    next(plan)
    finish(plan, ZeroDivisionError("divided"), DONE)
    assert "0-7" in caplog.text
    assert "divided" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("outcome", [None, ZeroDivisionError()])
def test_a_message_that_cannot_be_settled_is_told_and_let_go(outcome: Exception | None) -> None:
    desk = Desk(concurrency=1)
    _, plan = begun(desk)
    finish(plan, outcome, STALE)
    assert isinstance(desk.told[-1][1], StaleReceipt)
    assert asked(next(desk.consuming.fetching())) == 1


def test_a_message_that_was_lost_is_not_acked() -> None:
    desk = Desk()
    held, plan = begun(desk)
    held.lost = StaleReceipt("delivered again")
    assert finish(plan, None) == []
    assert desk.told == [("0-0", held.lost)]


def test_a_plan_that_is_given_up_frees_its_place() -> None:
    desk = Desk(concurrency=1)
    _, plan = begun(desk)
    plan.close()
    assert asked(next(desk.consuming.fetching())) == 1


# --- keeping --------------------------------------------------------------------------------------------------------


def resting(desk: Desk, step: Any) -> None:
    assert isinstance(step, Pause)
    assert step.seconds <= VISIBILITY / 2
    desk.clock.seconds += step.seconds


def until_sent(desk: Desk, keeping: Plan[None], step: Any) -> Send:
    for _ in range(10):
        if isinstance(step, Pause):
            resting(desk, step)
            step = next(keeping)
    assert isinstance(step, Send)
    return step


def test_what_is_held_is_extended_at_half_time_again_and_again() -> None:
    desk = Desk()
    begun(desk)
    keeping = desk.consuming.keeping()
    sent = until_sent(desk, keeping, next(keeping))
    assert desk.clock.seconds == pytest.approx(15)
    assert (sent.request.path, released(sent)) == ("/queues/chores/message/R0", VISIBILITY)
    assert sent.timeout_seconds <= VISIBILITY / 8, "so that it can be tried again in time"
    until_sent(desk, keeping, keeping.send(DONE))
    assert desk.clock.seconds == pytest.approx(30)


def test_what_is_taken_while_it_rests_is_extended_in_time() -> None:
    desk = Desk()
    keeping = desk.consuming.keeping()
    step = next(keeping)
    begun(desk)
    until_sent(desk, keeping, step)
    assert desk.clock.seconds <= 0.75 * VISIBILITY


def test_each_is_extended_in_its_time() -> None:
    desk = Desk()
    begun(desk, 1)
    desk.clock.seconds = 5
    begun(desk, 2)
    keeping = desk.consuming.keeping()
    step: Any = next(keeping)
    order = []
    for _ in range(4):
        sent = until_sent(desk, keeping, step)
        order.append((sent.request.path[-2:], round(desk.clock.seconds)))
        step = keeping.send(DONE)
    assert order == [("R1", 15), ("R2", 20), ("R1", 30), ("R2", 35)]


def test_an_extension_that_fails_is_tried_again_in_time() -> None:
    desk = Desk()
    begun(desk)
    keeping = desk.consuming.keeping()
    step: Any = next(keeping)
    tries = []
    for _ in range(4):
        until_sent(desk, keeping, step)
        tries.append(desk.clock.seconds)
        step = keeping.send(BROKE)
    assert tries[-1] < VISIBILITY
    until_sent(desk, keeping, step)
    desk.consuming.over = True
    with pytest.raises(StopIteration):
        until_sent(desk, keeping, keeping.send(DONE))


def test_what_somebody_else_has_is_not_extended_any_more() -> None:
    desk = Desk()
    held, plan = begun(desk)
    keeping = desk.consuming.keeping()
    until_sent(desk, keeping, next(keeping))
    step = keeping.send(STALE)
    assert isinstance(held.lost, StaleReceipt)
    for _ in range(10):
        resting(desk, step)
        step = next(keeping)
    finish(plan, None)
    assert isinstance(desk.told[0][1], StaleReceipt)


def test_what_is_settled_is_not_extended() -> None:
    desk = Desk()
    _, plan = begun(desk)
    keeping = desk.consuming.keeping()
    step = next(keeping)
    finish(plan, None, DONE)
    for _ in range(10):
        resting(desk, step)
        step = next(keeping)


def test_a_release_that_an_extension_may_have_overtaken_is_repeated() -> None:
    """Otherwise the message would stay hidden for the whole visibility."""
    desk = Desk()
    _, plan = begun(desk)
    keeping = desk.consuming.keeping()
    until_sent(desk, keeping, next(keeping))
    finish(plan, ZeroDivisionError(), DONE)
    again = keeping.send(DONE)
    assert released(again) == 1
    assert isinstance(keeping.send(DONE), Pause)


# --- rules ----------------------------------------------------------------------------------------------------------

WRONG: dict[str, Callable[[], Rules]] = {
    "concurrency": lambda: Rules("chores", 0, 30, 20),
    "visibility": lambda: Rules("chores", 1, 0.5, 20),
    "wait": lambda: Rules("chores", 1, 30, limits.WAIT_MAXIMUM_SECONDS + 1),
    "queue": lambda: Rules("no/name", 1, 30, 20),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_rule_is_named(field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        WRONG[field]()
    assert raised.value.field == field


