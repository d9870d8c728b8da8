"""What becomes of each message, from the handler's call to its settlement: the plan is asked for its steps."""

from __future__ import annotations

import pytest

from angelhair.client import Message
from angelhair.client.consuming import Consuming, Rules
from angelhair.client.retrying import Manner
from angelhair.errors import StaleReceipt
from tests.client.desk import NOW, STALE, VISIBILITY, Desk, asked, begun, finish, released
from tests.client.test_retrying import DONE, Hours


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
