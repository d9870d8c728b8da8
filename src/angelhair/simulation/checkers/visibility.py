"""A2, A10: a message stays invisible for its time-out, a delayed one for its delay, within the clocks' error."""

from itertools import pairwise

from angelhair.simulation.history import Delivered, History
from angelhair.simulation.outcome import Outcome

MILLISECOND_US = 1_000
DRIFT = 1_000
"""A monotonic clock may run fast by one part in this many, at worst."""


def visibility(outcome: Outcome) -> list[str]:
    history = outcome.history
    touched = {change.receipt for change in history.changes}
    by_message: dict[tuple[str, str, str], list[Delivered]] = {}
    for delivery in history.deliveries:
        by_message.setdefault(delivery.place, []).append(delivery)
    violations = []
    error_us = 2 * history.largest_skew_us + 2 * MILLISECOND_US
    for deliveries in by_message.values():
        deliveries.sort(key=lambda delivery: delivery.number)
        for first, second in pairwise(deliveries):
            if second.number != first.number + 1 or first.receipt in touched:
                continue
            hidden_us = first.visibility_ms * MILLISECOND_US
            # The claim lies between the question and the answer; only what is too early either way is a violation.
            if second.answered_us < first.asked_us + hidden_us - hidden_us // DRIFT - error_us:
                violations.append(
                    f"{first.id}: delivery {first.number} at {first.asked_us} us for {first.visibility_ms} ms, "
                    f"delivery {second.number} at {second.answered_us} us"
                )
    return violations + _too_early(history, error_us)


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
