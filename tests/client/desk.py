"""A consumer's plans on a clock that the test holds, and what is handed to them; for the tests that need no network."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from angelhair.client import Message
from angelhair.client.consuming import Consuming, Handle, Held, Rules, Start
from angelhair.client.plans import Answer, Broken, Plan, Send
from angelhair.client.retrying import Manner, Retry
from tests.client.test_retrying import Hours, answer, refused

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
