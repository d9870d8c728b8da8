"""A2, A10: a message stays invisible for its time-out, a delayed one for its delay, within the clocks' error."""

from itertools import pairwise

from angelhair.simulation.history import CONFIRMED, REFUSED, Changed, Delivered, History
from angelhair.simulation.outcome import Outcome

MILLISECOND_US = 1_000
DRIFT = 1_000
"""A monotonic clock may run fast by one part in this many, at worst."""


def visibility(outcome: Outcome) -> list[str]:
    history = outcome.history
    until_us = hidden_until_us(history)
    by_message: dict[tuple[str, str, str], list[Delivered]] = {}
    for delivery in history.deliveries:
        by_message.setdefault(delivery.place, []).append(delivery)
    violations = []
    for deliveries in by_message.values():
        deliveries.sort(key=lambda delivery: delivery.number)
        for first, second in pairwise(deliveries):
            # The claim lies between the question and the answer; only what is too early either way is a violation.
            if second.number == first.number + 1 and second.answered_us < until_us.get(first.receipt, 0):
                violations.append(
                    f"{first.id}: delivery {first.number} at {first.asked_us} us hid it until "
                    f"{until_us[first.receipt]} us, delivery {second.number} at {second.answered_us} us"
                )
    return violations + _too_early(history, _error_us(history))


def hidden_until_us(history: History) -> dict[str, int]:
    """By receipt: before when its message can't be delivered again, nor moved to the dead letters, however the clocks
    go. Nothing is said of those whose visibility was changed more than once, or nobody knows whether."""
    changes: dict[str, list[Changed]] = {}
    for change in history.changes:
        if change.visibility_ms is not None:
            changes.setdefault(change.receipt, []).append(change)
    error_us = _error_us(history)
    until_us = {}
    for delivery in history.deliveries:
        since_us, visibility_ms = delivery.asked_us, delivery.visibility_ms
        if changed := [change for change in changes.get(delivery.receipt, ()) if change.outcome != REFUSED]:
            if len(changed) > 1 or changed[0].outcome != CONFIRMED or changed[0].visibility_ms is None:
                continue
            since_us, visibility_ms = changed[0].started_us, changed[0].visibility_ms
        hidden_us = visibility_ms * MILLISECOND_US
        until_us[delivery.receipt] = since_us + hidden_us - hidden_us // DRIFT - error_us
    return until_us


def _error_us(history: History) -> int:
    return 2 * history.largest_skew_us + 2 * MILLISECOND_US


def _too_early(history: History, error_us: int) -> list[str]:
    """First deliveries before the delay was over. A repeated put may have landed the first time."""
    earliest: dict[str, int] = {}
    for put in history.puts:
        visible_us = put.started_us + put.delay_ms * MILLISECOND_US
        earliest[put.body] = min(earliest.get(put.body, visible_us), visible_us)
    return [
        f"{delivery.id}: delivered at {delivery.answered_us} us, delayed until {earliest[delivery.body]} us"
        for delivery in history.deliveries
        if delivery.answered_us < earliest.get(delivery.body, 0) - error_us
    ]
