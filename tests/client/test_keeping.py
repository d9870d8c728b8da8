"""When a message that is held is extended, and when no more: the plan is asked for its steps, hour by hour."""

from __future__ import annotations

from typing import Any

import pytest

from angelhair.client.plans import Pause, Plan, Send
from angelhair.errors import StaleReceipt
from tests.client.desk import BROKE, STALE, VISIBILITY, Desk, begun, finish, released
from tests.client.test_retrying import DONE


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
